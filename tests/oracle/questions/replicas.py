"""A client that claims to be a replica: asks leader, follower and bystander with a replica id."""

from __future__ import annotations

from dataclasses import dataclass

from tests.harness.served_cluster import Cluster
from tests.oracle.asker import RETAINED, Asker
from tests.oracle.asking import (
    Row,
    epoch_end,
    error_text,
    fetch,
    fetch_text,
    list_offsets,
    offset_text,
    records,
)
from tests.oracle.steering import Steering

SECTION = "Replica"
LEADER, FOLLOWER, BYSTANDER = 1, 2, 3
VERSIONS = (4, 8, 9, *range(11, 19))
IDS = (-2, -3, 0, LEADER, BYSTANDER, 77)
"""Ids of what is no follower."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    name: str
    topic_id: str
    epoch: int


def ask(cluster: Cluster, steering: Steering) -> list[Row]:
    """Put the questions to a fresh cluster of three brokers."""
    asker = Asker(cluster, steering)
    try:
        topic = _fill(asker)
        _leader(asker, topic)
        _epochs(asker, topic)
        _elsewhere(asker, topic)
        _other_requests(asker, topic)
        _producers(asker, topic)
    finally:
        asker.close()
    return asker.rows


def _fill(asker: Asker) -> Topic:
    """Two records in each of three epochs."""
    name, topic_id = asker.create("replica", RETAINED, [LEADER, FOLLOWER])
    asker.produce(name, records(0, 1))
    asker.move_leader(name, FOLLOWER)
    asker.produce(name, records(2, 3))
    asker.move_leader(name, LEADER)
    asker.produce(name, records(4, 5))
    asker.wait_until_followed(name, 6, [FOLLOWER])
    return Topic(name=name, topic_id=topic_id, epoch=asker.leader_epoch(name))


def _row(
    asker: Asker,
    request: str,
    topic: Topic,
    offset: int,
    *,
    broker: int = LEADER,
    version: int = 12,
    replica_id: int = FOLLOWER,
    replica_epoch: int = -1,
    epoch: int = -1,
    last_fetched_epoch: int = -1,
) -> None:
    answer = fetch(
        asker.to(broker),
        topic.name,
        offset,
        topic_id=topic.topic_id,
        version=version,
        replica_id=replica_id,
        replica_epoch=replica_epoch,
        epoch=epoch,
        last_fetched_epoch=last_fetched_epoch,
    )
    asker.row(SECTION, request, fetch_text(answer))


def _leader(asker: Asker, topic: Topic) -> None:
    for version in VERSIONS:
        _row(asker, f"v{version} ReplicaId=2 offset 0", topic, 0, version=version)
    for offset in (1, 6, 7, 99, -1):
        _row(asker, f"v12 ReplicaId=2 offset {offset}", topic, offset)
    for replica_id in IDS:
        for version in (12, 17):
            request = f"v{version} ReplicaId={replica_id} offset 4"
            _row(asker, request, topic, 4, version=version, replica_id=replica_id)
            request += " CurrentLeaderEpoch=cur"
            epoch = topic.epoch
            _row(asker, request, topic, 4, version=version, replica_id=replica_id, epoch=epoch)
    for replica_epoch in (0, 10**9):
        request = f"v17 ReplicaId=2 ReplicaEpoch={replica_epoch} offset 6"
        _row(asker, request, topic, 6, version=17, replica_epoch=replica_epoch)


def _epochs(asker: Asker, topic: Topic) -> None:
    current = topic.epoch
    for name, epoch in (("cur", current), ("cur-1", current - 1), ("cur+1", current + 1)):
        for version in (9, 12, 17):
            request = f"v{version} ReplicaId=2 CurrentLeaderEpoch={name}"
            _row(asker, request, topic, 4, version=version, epoch=epoch)
    for offset, last in ((2, 0), (3, 0), (4, 0), (4, 1), (6, 1), (6, 2), (6, 3), (0, -1), (0, 0)):
        request = f"v12 ReplicaId=2 offset {offset} LastFetchedEpoch={last}"
        _row(asker, request, topic, offset, last_fetched_epoch=last)


def _elsewhere(asker: Asker, topic: Topic) -> None:
    for broker, name in ((FOLLOWER, "the follower"), (BYSTANDER, "a broker without replica")):
        for replica_id in (-2, 1, 2, 3):
            request = f"{name}, v12 ReplicaId={replica_id}"
            _row(asker, request, topic, 0, broker=broker, replica_id=replica_id)
            request += " CurrentLeaderEpoch=cur"
            epoch = topic.epoch
            _row(asker, request, topic, 0, broker=broker, replica_id=replica_id, epoch=epoch)


def _other_requests(asker: Asker, topic: Topic) -> None:
    leader = asker.to(LEADER)
    for replica_id in (-2, 2, 3, 77):
        for timestamp in (-1, -2, -3):
            answer = list_offsets(leader, topic.name, timestamp, replica_id=replica_id)
            request = f"ListOffsets v11 ts={timestamp} ReplicaId={replica_id}"
            asker.row(SECTION, request, offset_text(answer))
        for version in (2, 3, 4):
            text = epoch_end(
                leader, topic.name, 1, version=version, epoch=topic.epoch, replica_id=replica_id
            )
            request = f"OffsetForLeaderEpoch v{version} LeaderEpoch=1 ReplicaId={replica_id}"
            asker.row(SECTION, request, text)


def _producers(asker: Asker, topic: Topic) -> None:
    places = ((LEADER, "the leader"), (FOLLOWER, "the follower"), (BYSTANDER, "another broker"))
    for broker, name in places:
        body = {"Topics": [{"Name": topic.name, "PartitionIndexes": [0, 1]}]}
        answer = asker.to(broker).call("DescribeProducers", 0, body)
        (found,) = answer["Topics"]
        texts = [
            f"{error_text(p['ErrorCode'])} {p['ErrorMessage']!r}, {len(p['ActiveProducers'])} known"
            for p in found["Partitions"]
        ]
        asker.row(SECTION, f"DescribeProducers v0 to {name}, partitions 0 and 1", "; ".join(texts))
