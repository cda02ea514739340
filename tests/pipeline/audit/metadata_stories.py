"""A life of three brokers whose end only the cluster metadata explain, of a Kafka and of fencepost.

`tell` is told to both by what clients and operators of a Kafka have.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.delete_topics import DeleteTopicsRequest
from fencepost.storage.formats.checkpoints import decode_offsets
from tests.harness import batches
from tests.harness.kafka import start_kafka
from tests.harness.served_cluster import serve
from tests.harness.typed_client import BlockingClient
from tests.harness.wait import wait_until
from tests.oracle.asker import RETAINED, Asker
from tests.oracle.asking import T
from tests.oracle.questions.elections import UNCLEAN
from tests.oracle.steering import ControlSteering, KafkaSteering, Steering

_CHECKPOINTS: Final = {"replica.high.watermark.checkpoint.interval.ms": "100"}
_NO_CANDIDATE: Final = 83
"""ElectLeaders: the replica may not be counted among the living yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the story left behind. All brokers have ended; ``first`` was killed in the midst of it.

    - ``lost``: on ``first`` and ``late``. ``first`` alone has the committed offsets 10 to 19;
      ``late`` was elected uncleanly, and has others there.
    - ``kept``: on all three; ``first`` lacks what was appended without it.
    - ``moved``: was on ``first`` and ``bystander``, and is on ``bystander`` and ``late``.
    - ``gone``: was deleted, and ``first`` has its directory.
    """

    folder: Path
    first: int
    late: int
    bystander: int
    lost: str
    kept: str
    moved: str
    gone: str


@contextmanager
def told_to_kafka(folder: Path) -> Iterator[Told]:
    """What a real Kafka's three nodes leave; about 40 s."""
    kafka = start_kafka(folder, nodes=3, configs=_CHECKPOINTS)
    try:
        told = tell(Asker(kafka.cluster, KafkaSteering(kafka)), KafkaSteering(kafka), folder)
    finally:
        kafka.stop()
    yield told


@contextmanager
def told_to_fencepost(folder: Path) -> Iterator[Told]:
    """What fencepost's three brokers leave."""
    data = folder / "data"
    options = ["--data-dir", str(data)]
    for name, value in _CHECKPOINTS.items():
        options += ["--config", f"{name}={value}"]
    cluster = serve(folder / "log", *options, brokers=3)
    try:
        steering = ControlSteering(cluster)
        told = tell(Asker(cluster, steering), steering, data)
    finally:
        cluster.stop()
    yield told


def tell(asker: Asker, steering: Steering, folder: Path) -> Told:
    """The story."""
    try:
        late = max(steering.freezable())
        first, bystander = sorted(asker.alive - {late})
        lost, _ = asker.create("lost", RETAINED, [first, late])
        append(asker, lost, 0, 10)
        kept, _ = asker.create("kept", RETAINED, [first, bystander, late])
        append(asker, kept, 0, 10)
        moved, _ = asker.create("moved", RETAINED, [first, bystander])
        append(asker, moved, 0, 10)
        gone, _ = asker.create("gone", RETAINED, [first, bystander])
        append(asker, gone, 0, 10)
        asker.freeze(late)
        wait_until("late is out of the ISR", lambda: _in_sync(asker, lost) == {first})
        append(asker, lost, 10, 20)
        wait_until("it is known", lambda: _checkpointed(folder, lost) == 20)
        asker.facing = bystander
        asker.kill(first)
        asker.thaw(late)
        _elect_uncleanly(asker, lost, late)
        append(asker, lost, 100, 115)
        _delete(asker, gone)
        _reassign(asker, moved, [bystander, late])
        for topic in (moved, kept):
            asker.facing = asker.wait_until_served(topic)
            append(asker, topic, 10, 15)
    finally:
        asker.close()
    return Told(
        folder=folder,
        first=first,
        late=late,
        bystander=bystander,
        lost=lost,
        kept=kept,
        moved=moved,
        gone=gone,
    )


def append(asker: Asker, topic: str, start: int, end: int) -> None:
    """A record of each number, in batches of one, acknowledged by all that are in sync."""
    for each in range(start, end):
        asker.produce(topic, batches.build([(T + each, b"k", b"value %d" % each)]))


def _in_sync(asker: Asker, topic: str) -> set[int]:
    found = asker.partition(topic)
    return set() if found is None else set(found["IsrNodes"])


def _checkpointed(folder: Path, topic: str) -> int:
    """The highest high watermark that any broker has written down."""
    files = folder.rglob("replication-offset-checkpoint")
    return max(decode_offsets(each.read_bytes()).get((topic, 0), 0) for each in files)


def _elect_uncleanly(asker: Asker, topic: str, leader: int) -> None:
    wait_until("there is no leader", lambda: (asker.partition(topic) or {})["LeaderId"] == -1)
    body = {
        "ElectionType": UNCLEAN,
        "TopicPartitions": [{"Topic": topic, "Partitions": [0]}],
    }

    def is_elected() -> bool:
        answer = asker.connection.call("ElectLeaders", 2, body)
        result = answer["ReplicaElectionResults"][0]["PartitionResult"][0]
        assert result["ErrorCode"] in {0, _NO_CANDIDATE}, result
        return bool(result["ErrorCode"] == 0)

    wait_until("late is elected", is_elected)
    asker.facing = asker.wait_until_served(topic, leader)


def _delete(asker: Asker, topic: str) -> None:
    with closing(BlockingClient(asker.address)) as client:
        request = DeleteTopicsRequest(topic_names=(topic,), timeout_ms=20_000)
        (answer,) = client.ask("delete_topics", 4, request).responses
    assert answer.error_code == ErrorCode.NONE, answer


def _reassign(asker: Asker, topic: str, replicas: list[int]) -> None:
    wanted = {"Name": topic, "Partitions": [{"PartitionIndex": 0, "Replicas": replicas}]}
    answer = asker.connection.call("AlterPartitionReassignments", 0, {"Topics": [wanted]})
    done = answer["Responses"][0]["Partitions"][0]
    assert (answer["ErrorCode"], done["ErrorCode"]) == (0, 0), answer

    def is_moved() -> bool:
        found = asker.partition(topic) or {}
        return found.get("ReplicaNodes") == replicas and set(found["IsrNodes"]) == set(replicas)

    wait_until("it has moved", is_moved, 60)
