"""The lineage of a partition: the leader epochs of its replicas and of the tier, compared.

Two logs that agree on a record's offset and epoch agree on all before it (KIP-101, KIP-279). So
the leader epochs of a log, each with its first offset, say which log it is; KIP-320 lets clients
compare them. The modules build on each other:

epoch_runs           the epochs of a log as a fold: runs of parts merge into the runs of the whole
model                the values: a replica's lineage, two compared, a partition's lineage
comparison           two logs batch by batch: where they part, and what each has alone
tier_comparison      the same for the segments of the tier and one log
single_ranges        what one side has alone, and which of it was committed or acknowledged
truncation           what a follower would truncate, and what OffsetForLeaderEpoch would answer
partition_lineage    all of it from the evidence of a partition
table, description   as a table of rows, and as lines for people
data_frame           as a DataFrame of Spark
"""
