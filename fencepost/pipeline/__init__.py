"""Jobs on Apache Spark over a cluster's data: audit, load, streaming.

``datasource`` makes DataFrames of log directories, remote tiers and traces. ``audit`` checks
whether a cluster and its clients kept the rules. ``load`` appends files to a topic exactly once.
``stream`` runs Structured Streaming over the Kafka connector.

Needs the extra ``fencepost[spark]`` and Java 17.
"""
