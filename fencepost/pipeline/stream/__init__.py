"""Structured Streaming over Spark's own Kafka connector, into Parquet files or other topics.

`wanted` says what is to be done, `ahead` finds out what cannot work, `source` and `sinks` make the
query, `counts` the aggregation on the way, and `running` watches it to its end: it tells of each
batch (`progress`), and in one line why the query failed (`failures`). `job` is all of this in one.

Nothing here corrects the connector: what it does when a leader changes, a log is truncated or the
end of a partition goes back is what one wants to see.
"""
