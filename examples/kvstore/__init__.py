"""A sharded key-value store whose only storage is a Kafka topic: the worked example of KIP-27.

Each shard is a partition, and the partition is the shard's write-ahead log. `state` is what the
operations do, `records` how the log tells them, `replica` the state that a log comes to, `leader`
how new operations get into it; that two nodes may take themselves for the leader does no harm,
because the broker refuses what was not appended where it was meant to be. `wal` is the partition,
`membership` says who is to lead what, `node` is a process of the store, `server` and `client` what
passes between it and its users. README.md tells the story.
"""
