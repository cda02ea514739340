"""Structured Streaming over Spark's own Kafka connector, into Parquet files or other topics.

`options` has the data that a job takes, `job` checks its needs and runs the query, and
`query_monitor` reports each batch, and in one line why a query failed.

Nothing here corrects the connector: users are to see what it does when a leader changes, a log is
truncated, or the end of a partition goes back.
"""
