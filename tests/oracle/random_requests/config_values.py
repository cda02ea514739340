"""The configs that requests name, of each type of resource, with good and bad values of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tests.oracle.random_requests.bounds import MAX_INT32, MAX_INT64

TOPIC_CONFIGS: Final[Mapping[str, Sequence[str | None]]] = {
    "cleanup.policy": ("delete", "compact", "compact,delete", "none", "", "x"),
    "compression.type": ("gzip", "producer", "zstd", "lz4", "snappy", "uncompressed", "x", ""),
    "max.message.bytes": ("600", "1048588", "0", "-1", "x", ""),
    "min.insync.replicas": ("1", "2", "0", "-1"),
    "retention.ms": ("-1", "604800000", "-2", "x", str(MAX_INT64), str(MAX_INT64 + 1)),
    "retention.bytes": ("-1", "1000000000", "x"),
    "segment.bytes": ("1048576", "1073741824", "1000", "x", str(MAX_INT32 + 1)),
    "segment.ms": ("604800000", "1", "0", "x"),
    "message.timestamp.type": ("CreateTime", "LogAppendTime", "x"),
    "message.timestamp.after.max.ms": ("3600000", str(MAX_INT64), "-1"),
    "unclean.leader.election.enable": ("true", "false", "TRUE", "x", ""),
    "min.cleanable.dirty.ratio": ("0.5", "0", "1", "1.5", "x"),
    "index.interval.bytes": ("4096", "-1", " 1 "),
    "file.delete.delay.ms": ("60000", "0", "-1"),
    "preallocate": ("false", "true", "x"),
    "remote.storage.enable": ("false", "x"),
    "leader.replication.throttled.replicas": ("*", "0:1", "0:1,1:2", "x", ""),
    "follower.replication.throttled.replicas": ("*", "", "a:b"),
    "flush.messages": ("1", "0", str(MAX_INT64)),
    "max.compaction.lag.ms": ("1", "0", str(MAX_INT64)),
    "segment.jitter.ms": ("0", "5", "-1"),
}
BROKER_CONFIGS: Final[Mapping[str, Sequence[str | None]]] = {
    "log.retention.ms": ("604800000", "-1", "x"),
    "log.cleaner.min.compaction.lag.ms": ("0", "5", "-1"),
    "min.insync.replicas": ("1", "0"),
    "broker.id": ("1", "2"),
    "node.id": ("1",),
    "num.partitions": ("1",),
    "nope": ("1", ""),
    "": ("1",),
}
GROUP_CONFIGS: Final[Mapping[str, Sequence[str | None]]] = {
    "consumer.session.timeout.ms": ("45000", "60000", "1", "x"),
    "consumer.heartbeat.interval.ms": ("5000", "15000", "1", "60000"),
    "share.auto.offset.reset": ("latest", "earliest", "x"),
    "nope": ("1",),
}
METRICS_CONFIGS: Final[Mapping[str, Sequence[str | None]]] = {
    "metrics": ("*", "org.apache.kafka.", "", "x,y"),
    "interval.ms": ("1000", "100", "99", "x", "3600001"),
    "match": ("client_id=a.*", "client_id=[", "nope=1", ""),
    "nope": ("1",),
}
ROOT_LOGGER: Final = "root"
LOGGER_CONFIGS: Final[Mapping[str, Sequence[str | None]]] = {
    ROOT_LOGGER: ("INFO", "WARN", "ERROR", "x"),
    "nope": ("INFO",),
}
