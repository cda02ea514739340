"""ElectLeaders and reassignments: what succeeds, what is refused, and the messages."""

from __future__ import annotations

from collections.abc import Sequence

from tests.harness.served_cluster import Cluster
from tests.harness.wait import wait_until
from tests.harness.wire import Body
from tests.oracle.asker import RETAINED, Asker
from tests.oracle.asking import Row, error_text, records
from tests.oracle.steering import Steering

PREFERRED, UNCLEAN = 0, 1
"""Election types."""

Partitions = Sequence[tuple[str, Sequence[int]]]
"""Topics and the partitions of each."""


def ask(cluster: Cluster, steering: Steering) -> list[Row]:
    """Put the questions to a fresh cluster of three brokers."""
    asker = Asker(cluster, steering)
    try:
        topic, _ = asker.create("elected", RETAINED, [1, 2, 3])
        _not_needed(asker, topic)
        _move(asker, "another order of the same replicas", topic, [2, 1, 3])
        elect(asker, "preferred, v2", [(topic, [0])])
        asker.facing = asker.wait_until_served(topic, 2)
        show(asker, "after the preferred election", topic)
        elect(asker, "preferred again, of all there are", None)
        asker.produce(topic, records(0, 1))
        _refused(asker, topic)
        _move(asker, "without the leader", topic, [3, 1])
        _move(asker, "one more, and another order", topic, [1, 2, 3])
        list_moves(asker, "none in progress", None)
        list_moves(asker, "of a topic without one", [(topic, [0])])
        list_moves(asker, "of an unknown topic", [("nope", [0])])
    finally:
        asker.close()
    return asker.rows


# -- what other modules ask as well -------------------------------------------------------------


def elect(
    asker: Asker,
    request: str,
    partitions: Partitions | None,
    *,
    version: int = 2,
    kind: int = PREFERRED,
) -> None:
    asked = [{"Topic": topic, "Partitions": list(indexes)} for topic, indexes in partitions or ()]
    topics = None if partitions is None else asked
    body: Body = {"ElectionType": kind, "TopicPartitions": topics}
    answer = asker.connection.call("ElectLeaders", version, body)
    asker.row("ElectLeaders", request, str(answer))


def reassign(
    asker: Asker,
    request: str,
    topic: str,
    replicas: list[int] | None,
    *,
    partition: int = 0,
    version: int = 0,
    change: bool = True,
) -> None:
    """Ask for other replicas; None takes back what was asked for before.

    :param change: Whether their number may change; from version 1.
    """
    moved = {"PartitionIndex": partition, "Replicas": replicas}
    topics = [{"Name": topic, "Partitions": [moved]}]
    body: Body = {"AllowReplicationFactorChange": change, "Topics": topics}
    answer = asker.connection.call("AlterPartitionReassignments", version, body)
    asker.row("AlterPartitionReassignments", request, str(answer))


def list_moves(asker: Asker, request: str, partitions: Partitions | None) -> None:
    asked = [{"Name": topic, "PartitionIndexes": list(which)} for topic, which in partitions or ()]
    body: Body = {"Topics": None if partitions is None else asked}
    answer = asker.connection.call("ListPartitionReassignments", 0, body)
    asker.row("ListPartitionReassignments", request, str(answer))


def show(asker: Asker, when: str, topic: str) -> None:
    """What Metadata says of a topic's only partition."""
    found = asker.partition(topic)
    assert found is not None
    text = f"err={error_text(found['ErrorCode'])} leader={found['LeaderId']}"
    text += f" epoch={found['LeaderEpoch']} replicas={found['ReplicaNodes']}"
    text += f" isr={sorted(found['IsrNodes'])} offline={found['OfflineReplicas']}"
    asker.row("Metadata", when, text)


# -- the questions ------------------------------------------------------------------------------


def _not_needed(asker: Asker, topic: str) -> None:
    for version in (0, 1, 2):
        elect(asker, f"preferred, v{version}, it leads already", [(topic, [0])], version=version)
    elect(asker, "unclean, and there is a leader", [(topic, [0])], kind=UNCLEAN)
    for kind in (2, -1):
        elect(asker, f"unknown type {kind}", [(topic, [0])], kind=kind)
    for request, partitions in (
        ("unknown topic", [("nope", [0])]),
        ("invalid topic name", [("a b", [0])]),
        ("unknown partition", [(topic, [5])]),
        ("partition -1", [(topic, [-1])]),
        ("no partitions", [(topic, [])]),
        ("no topics", []),
        ("the same partition twice", [(topic, [0, 0])]),
        ("preferred, of all there are", None),
    ):
        elect(asker, request, partitions)


def _move(asker: Asker, request: str, topic: str, replicas: list[int]) -> None:
    """Reassign, and show the partition when that is done."""
    reassign(asker, request, topic, replicas)

    def done() -> bool:
        found = asker.partition(topic)
        assert found is not None
        in_sync = sorted(found["IsrNodes"]) == sorted(replicas)
        return in_sync and bool(found["ReplicaNodes"] == replicas)

    wait_until(f"{topic} is on {replicas}", done)
    show(asker, f"after: {request}", topic)


def _refused(asker: Asker, topic: str) -> None:
    for request, replicas in (
        ("no replicas", []),
        ("the same replica twice", [1, 1, 2]),
        ("an unknown broker", [1, 9]),
        ("a negative broker", [1, -2]),
        ("cancelled, and there is none", None),
        ("the replicas that it has", [2, 1, 3]),
    ):
        reassign(asker, request, topic, replicas)
    reassign(asker, "unknown topic", "nope", [1])
    reassign(asker, "unknown partition", topic, [1, 2, 3], partition=5)
    request = "fewer replicas, which is not allowed"
    reassign(asker, request, topic, [2, 1], version=1, change=False)
    reassign(asker, "v1, the replicas that it has", topic, [2, 1, 3], version=1)
