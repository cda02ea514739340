"""Bulk work on a cluster's data, on Apache Spark: audit, load, streaming.

``reading`` makes DataFrames of log directories, remote tiers and traces, ``audit`` finds out
whether a cluster and its clients kept the rules, ``load`` brings files into a topic exactly once,
and ``stream`` runs Structured Streaming over the Kafka connector.

Needs ``pip install 'fencepost[spark]'`` and Java 17.
"""
