"""A tiered topic of two replicas (KIP-405): who is served what is only in the tier, and how much.

Fifteen records in three leader epochs, two in a segment; all but the last are only in the tier.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final, TypedDict, Unpack

from tests.harness import batches
from tests.harness.served_cluster import Cluster
from tests.harness.wait import wait_until
from tests.harness.wire import Body
from tests.oracle.asker import Asker
from tests.oracle.asking import (
    Row,
    T,
    epoch_end,
    fetch,
    fetch_text,
    list_offsets,
    offset_text,
    tiered_offset,
)
from tests.oracle.steering import Steering

SECTION: Final = "TieredReplicas"
LEADER, FOLLOWER = 1, 2
CONFIGS: Final = {
    "remote.storage.enable": "true",
    "internal.segment.bytes": "1000",
    "retention.ms": "-1",
    "local.retention.bytes": "1",
}
VERSIONS: Final = (4, 8, 11, 12, 13, 14, 15, 18)
SPECIAL: Final = (-1, -2, -3, -4, -5, -6)
FUTURE, DEBUGGING = -3, -2
LAST_TIERED: Final = 13


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    name: str
    topic_id: str


def ask(cluster: Cluster, steering: Steering) -> list[Row]:
    """Put the questions to a fresh cluster of three brokers with a tier."""
    asker = Asker(cluster, steering)
    try:
        topic, other = _fill(asker, "one"), _fill(asker, "two")
        asker.facing = LEADER
        _followers(asker, topic)
        _consumers(asker, topic)
        _limits(asker, topic)
        _both(asker, topic, other)
        _epochs(asker, topic)
        _lookups(asker, topic, "first leader")
        _delete_records(asker, topic)
        asker.move_leader(topic.name, FOLLOWER)
        _wait_until_tiered(asker, topic)
        _lookups(asker, topic, "next leader")
        _consumer(asker, "offset 5, next leader", topic, 5, broker=FOLLOWER)
    finally:
        asker.close()
    return asker.rows


def _fill(asker: Asker, suffix: str) -> Topic:
    name, topic_id = asker.create(suffix, CONFIGS, [LEADER, FOLLOWER])
    _produce(asker, name, range(6))
    asker.move_leader(name, FOLLOWER)
    _produce(asker, name, range(6, 10))
    asker.move_leader(name, LEADER)
    _produce(asker, name, range(10, 15))
    topic = Topic(name=name, topic_id=topic_id)
    _wait_until_tiered(asker, topic)
    return topic


def _produce(asker: Asker, topic: str, numbers: range) -> None:
    for number in numbers:
        asker.produce(topic, batches.build([(T + number, None, b"x" * 300)]))


def _wait_until_tiered(asker: Asker, topic: Topic) -> None:
    """Both replicas know what is tiered, and have it no more."""

    def offset(broker: int, target: int) -> int:
        connection = asker.to(broker)
        answer = list_offsets(connection, topic.name, target, replica_id=DEBUGGING)
        found: int = answer["Offset"]
        return found

    def has_only_the_last(broker: int) -> bool:
        return [offset(broker, -5), offset(broker, -4)] == [LAST_TIERED, LAST_TIERED + 1]

    for broker in (LEADER, FOLLOWER):
        wait_until(
            f"broker {broker} has only the last segment",
            partial(has_only_the_last, broker),
        )


class Options(TypedDict, total=False):
    """Of a fetch: see `asking.fetch`."""

    version: int
    replica_id: int
    last_fetched_epoch: int
    max_bytes: int
    partition_max_bytes: int
    max_wait_ms: int
    min_bytes: int


def _fetch(
    asker: Asker,
    request: str,
    topic: Topic,
    offset: int,
    *,
    broker: int = LEADER,
    **options: Unpack[Options],
) -> None:
    answer = fetch(asker.to(broker), topic.name, offset, topic_id=topic.topic_id, **options)
    asker.row(SECTION, f"Fetch {request}", fetch_text(answer))


def _followers(asker: Asker, topic: Topic) -> None:
    for version in VERSIONS:
        request = f"v{version} ReplicaId={FOLLOWER} offset 0"
        _fetch(asker, request, topic, 0, version=version, replica_id=FOLLOWER)
    for offset in (5, 13, 14, 15, 99, -1):
        request = f"v18 ReplicaId={FOLLOWER} offset {offset}"
        _fetch(asker, request, topic, offset, version=18, replica_id=FOLLOWER)
    for replica in (3, 77, FUTURE, DEBUGGING):
        request = f"v12 ReplicaId={replica} offset 0"
        _fetch(asker, request, topic, 0, replica_id=replica)
    request = f"v12 ReplicaId={FOLLOWER} offset 0, at the follower"
    _fetch(asker, request, topic, 0, replica_id=FOLLOWER, broker=FOLLOWER)


def _consumers(asker: Asker, topic: Topic) -> None:
    for version in VERSIONS:
        _consumer(asker, f"v{version} offset 0", topic, 0, version=version)
    for offset in (1, 5, 6, 9, 13, 14, 15, 99):
        _consumer(asker, f"offset {offset}", topic, offset)
    _consumer(asker, "offset 3, MaxWait 0", topic, 3, max_wait_ms=0)
    _consumer(asker, "offset 3, MinBytes 1 MiB", topic, 3, min_bytes=1 << 20)
    _consumer(asker, "v11 offset 3, at the follower", topic, 3, version=11, broker=FOLLOWER)
    _consumer(asker, "v10 offset 3, at the follower", topic, 3, version=10, broker=FOLLOWER)


def _consumer(
    asker: Asker,
    request: str,
    topic: Topic,
    offset: int,
    *,
    broker: int = LEADER,
    **options: Unpack[Options],
) -> None:
    _fetch(asker, f"as consumer {request}", topic, offset, broker=broker, **options)


def _limits(asker: Asker, topic: Topic) -> None:
    for limit in (0, 1, 100, 371, 372, 500, 743, 744, 800):
        _consumer(asker, f"offset 0, partition limit {limit}", topic, 0, partition_max_bytes=limit)
        _consumer(asker, f"offset 0, limit {limit}", topic, 0, max_bytes=limit)


def _both(asker: Asker, topic: Topic, other: Topic) -> None:
    """Both topics in one request, from the tier and from here."""
    limit = 1 << 20
    for first, second in ((0, 0), (0, 14), (14, 0), (0, 99)):
        asked = [(topic, first), (other, second)]
        answer = asker.connection.call("Fetch", 12, _request(asked, limit))
        texts = {
            entry["Topic"]: fetch_text({"Responses": [entry]}) for entry in answer["Responses"]
        }
        request = f"Fetch as consumer both, offsets {first} and {second}, limit {limit}"
        asker.row(SECTION, request, [texts[each.name] for each, _ in asked])


def _request(asked: list[tuple[Topic, int]], limit: int) -> Body:
    topics = [
        {
            "Topic": topic.name,
            "Partitions": [{"Partition": 0, "FetchOffset": offset, "PartitionMaxBytes": 1 << 20}],
        }
        for topic, offset in asked
    ]
    return {
        "MaxWaitMs": 100,
        "MinBytes": 1,
        "MaxBytes": limit,
        "SessionEpoch": -1,
        "Topics": topics,
    }


def _epochs(asker: Asker, topic: Topic) -> None:
    for epoch in range(5):
        answer = epoch_end(asker.connection, topic.name, epoch)
        asker.row(SECTION, f"OffsetForLeaderEpoch {epoch}", answer)
    for epoch, offset in ((0, 5), (0, 6), (0, 10), (1, 6), (1, 10), (1, 13), (2, 13), (3, 13)):
        request = f"offset {offset} LastFetchedEpoch={epoch}"
        _consumer(asker, request, topic, offset, last_fetched_epoch=epoch)
        _fetch(
            asker,
            f"ReplicaId={FOLLOWER} {request}",
            topic,
            offset,
            replica_id=FOLLOWER,
            last_fetched_epoch=epoch,
        )


def _lookups(asker: Asker, topic: Topic, label: str) -> None:
    for replica in (-1, FOLLOWER, DEBUGGING):
        for target in SPECIAL:
            answer = list_offsets(asker.connection, topic.name, target, replica_id=replica)
            request = f"ListOffsets {target} ReplicaId={replica}, {label}"
            asker.row(SECTION, request, offset_text(answer))
    for time in (0, 5, 6, 9, 10, 13, 14, 15):
        answer = tiered_offset(asker.connection, topic.name, T + time)
        asker.row(SECTION, f"ListOffsets T+{time}, {label}", offset_text(answer))


def _delete_records(asker: Asker, topic: Topic) -> None:
    partition = {"PartitionIndex": 0, "Offset": 3}
    body = {"Topics": [{"Name": topic.name, "Partitions": [partition]}], "TimeoutMs": 5000}
    answer = asker.connection.call("DeleteRecords", 2, body)
    asker.row(SECTION, "DeleteRecords to 3", str(answer["Topics"][0]["Partitions"]))
    for offset in (2, 3):
        _consumer(asker, f"offset {offset} after DeleteRecords(3)", topic, offset)
        request = f"ReplicaId={FOLLOWER} offset {offset} after DeleteRecords(3)"
        _fetch(asker, request, topic, offset, replica_id=FOLLOWER)
    _lookups(asker, topic, "after DeleteRecords(3)")
