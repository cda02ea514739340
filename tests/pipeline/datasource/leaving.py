"""What a cluster leaves behind that is killed: log directories, and a tier in a folder."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from confluent_kafka import Producer

from fencepost.protocol.records import iter_headers
from tests.harness.confluent import delivered, send
from tests.harness.served_cluster import Cluster, configs, serve
from tests.harness.wait import wait_until

RECORDS: Final = 300
"""Of each partition of the tiered topic."""
_LATEST_TIERED: Final = -5
_SETTINGS: Final = {
    "remote.log.manager.task.interval.ms": "100",
    "log.cleaner.backoff.ms": "100",
    "log.retention.check.interval.ms": "100",
}
_SMALL: Final = {
    "internal.segment.bytes": "20000",
    "index.interval.bytes": "1000",
    "retention.ms": "-1",
}
_TIERED: Final = {**_SMALL, "remote.storage.enable": "true", "local.retention.bytes": "60000"}
_COMPACTED: Final = {
    **_SMALL,
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """Three brokers that were killed.

    :ivar folder: What ``--data-dir`` named.
    :ivar remote: The URL of the tier.
    :ivar tier: Its folder.
    :ivar topic: Has two partitions; their older segments are in the tier, and some there alone.
    :ivar compacted: Has one, in which there are gaps.
    :ivar values: What was sent to the first, by partition.
    """

    folder: Path
    remote: str
    tier: Path
    topic: str
    compacted: str
    values: tuple[list[bytes], ...]


def leave(place: Path) -> Left:
    """Let a cluster write, and kill it."""
    tier = place / "the tier"
    remote = f"file://{tier}".replace(" ", "%20")
    cluster = serve(
        place / "log", "--data-dir", str(place / "data"), "--remote", remote, *configs(_SETTINGS)
    )
    assert cluster.process is not None
    try:
        topic = cluster.create_topic("tiered", partitions=2, configs=_TIERED)
        values = _fill(cluster, topic)
        compacted = cluster.create_topic("compacted", configs=_COMPACTED)
        _compact(cluster, compacted)
        wait_until(
            "most is in the tier",
            lambda: (
                min(cluster.end_offset(topic, each, timestamp=_LATEST_TIERED) for each in (0, 1))
                > 200
            ),
        )
    finally:
        cluster.process.child.kill()
        cluster.process.stop(expect=None)
    return Left(
        folder=place / "data",
        remote=remote,
        tier=tier,
        topic=topic,
        compacted=compacted,
        values=values,
    )


def _fill(cluster: Cluster, topic: str) -> tuple[list[bytes], ...]:
    values: tuple[list[bytes], ...] = ([], [])
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    for number, codec in enumerate(codecs):
        share = range(number * 2 * RECORDS // 5, (number + 1) * 2 * RECORDS // 5)
        sent = [_value(each) for each in share]
        delivered(
            send(
                cluster,
                topic,
                sent,
                partitions=2,
                compression_type=codec,
                batch_num_messages=10,
                acks="all",
            )
        )
        for partition in range(2):
            values[partition].extend(sent[partition::2])
    return values


def _value(number: int) -> bytes:
    """What does not compress to nothing."""
    return b"%d %s" % (number, bytes((number * n * n + n) % 251 for n in range(600)))


def _compact(cluster: Cluster, topic: str) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "batch.num.messages": 5})
    for number in range(300):
        producer.produce(topic, _value(number), b"%d" % (number % 7))
    assert producer.flush(30) == 0

    def has_gaps() -> bool:
        headers = [header for _, header in iter_headers(cluster.stored(topic))]
        return any(each.record_count <= each.last_offset_delta for each in headers) or any(
            before.next_offset < after.base_offset for before, after in pairwise(headers)
        )

    wait_until("it is compacted", has_gaps)
