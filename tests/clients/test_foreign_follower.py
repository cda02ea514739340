"""A foreign follower over TCP: a raw client that fetches under a broker's id.

The broker's own follower is held, so that the raw client alone speaks for it. Broker 1 leads.
"""

from __future__ import annotations

import select
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

import pytest

from fencepost.protocol.errors import ErrorCode
from tests.harness import batches
from tests.harness.control_client import Control
from tests.harness.served_cluster import Cluster, serving, unique
from tests.harness.wait import wait_until
from tests.harness.wire import Body, Connection, decode_answer

CLAIMED: Final = 3
UNKNOWN: Final = -1
FIRST_WITH_STATE: Final = 15
FIRST_WITH_IDS: Final = 13
FIRST_WITH_EPOCH: Final = 9
OK: Final = ErrorCode.NONE
FENCED: Final = ErrorCode.FENCED_LEADER_EPOCH
NEWER: Final = ErrorCode.UNKNOWN_LEADER_EPOCH
ELSEWHERE: Final = ErrorCode.NOT_LEADER_OR_FOLLOWER
OUT_OF_RANGE: Final = ErrorCode.OFFSET_OUT_OF_RANGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A partition whose broker 3 is the test itself, with connections to the other two."""

    control: Control
    topic: str
    topic_id: str
    connections: dict[int, Connection]
    producer: Connection

    @property
    def isr(self) -> set[int]:
        return set(self.control.partition(self.topic)["isr"])

    @property
    def high_watermark(self) -> int:
        return int(self.control.partition(self.topic)["high_watermark"])

    @property
    def leader_epoch(self) -> int:
        return int(self.control.partition(self.topic)["leader_epoch"])

    @property
    def log_end(self) -> int:
        """The leader's, exclusive."""
        state = self.control.partition(self.topic)
        ends = {r["broker"]: r["log_end_offset"] for r in state["replicas"]}
        return int(ends[state["leader"]])

    def fetch(
        self,
        offset: int,
        *,
        version: int = 18,
        epoch: int = UNKNOWN,
        last: int = UNKNOWN,
        replica_id: int = CLAIMED,
        broker_epoch: int = UNKNOWN,
        asked: int = 1,
    ) -> Body:
        """Fetch as a replica whose log ends at ``offset``; the answer's one partition."""
        partition = {
            "Partition": 0,
            "CurrentLeaderEpoch": epoch,
            "FetchOffset": offset,
            "LastFetchedEpoch": last,
            "LogStartOffset": 0,
            "PartitionMaxBytes": 1 << 20,
        }
        body: Body = {
            "MaxWaitMs": 0,
            "MinBytes": 1,
            "Topics": [{"Topic": self.topic, "TopicId": self.topic_id, "Partitions": [partition]}],
        }
        if version >= FIRST_WITH_STATE:
            body["ReplicaState"] = {"ReplicaId": replica_id, "ReplicaEpoch": broker_epoch}
        else:
            body["ReplicaId"] = replica_id
        answer = self.connections[asked].call("Fetch", version, body)
        assert answer.get("ErrorCode", OK) == OK
        found: Body = answer["Responses"][0]["Partitions"][0]
        return found

    def code(self, offset: int, *, epoch: int = UNKNOWN, version: int = 18) -> int:
        return int(self.fetch(offset, epoch=epoch, version=version)["ErrorCode"])

    def produce(self, value: bytes, *, acks: int = -1) -> Body:
        """The request for one record."""
        batch = batches.build([(1_700_000_000_000, None, value)])
        return batches.produce_body(self.topic, batch, acks=acks)

    def send(self, value: bytes, *, acks: int = -1) -> None:
        """Produce one record; when this returns, the leader has it, acknowledged or not."""
        end = self.log_end
        self.producer.send("Produce", 9, self.produce(value, acks=acks))
        if acks == 1:
            self.receive()
        wait_until("the leader has it", lambda: self.log_end > end)

    @property
    def is_acknowledged(self) -> bool:
        return bool(select.select([self.producer.socket], [], [], 0)[0])

    def receive(self) -> None:
        """Wait for the acknowledgement."""
        _, answer = decode_answer("Produce", 9, self.producer.receive())
        assert answer["Responses"][0]["PartitionResponses"][0]["ErrorCode"] == OK

    def forget_claimed(self) -> None:
        """The claimed replica leaves the ISR."""
        self.control.replica("hold", self.topic, CLAIMED, leave_isr=True)
        assert self.isr == {1, 2}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    log = tmp_path_factory.mktemp("foreign") / "fencepost.log"
    with serving(log, "--clock", "manual") as started:
        yield started


@contextmanager
def made(served: Cluster, min_insync: int = 1) -> Iterator[Partition]:
    """The only partition on a cluster that is as new; the claimed broker's own follower is held."""
    assert served.control is not None
    with ExitStack() as stack:
        control = Control(served.control)
        stack.callback(control.close)
        control.reset()
        topic = unique("foreign")
        topic_id = create(served, topic, min_insync)
        control.replica("hold", topic, CLAIMED)
        connect = {
            broker: stack.enter_context(served.connect(address))
            for broker, address in enumerate(served.addresses[:2], 1)
        }
        producer = stack.enter_context(served.connect(served.addresses[0]))
        yield Partition(
            control=control,
            topic=topic,
            topic_id=topic_id,
            connections=connect,
            producer=producer,
        )


@pytest.fixture
def partition(served: Cluster) -> Iterator[Partition]:
    with made(served) as found:
        yield found


def create(cluster: Cluster, topic: str, min_insync: int) -> str:
    """A topic of one partition; its id."""
    wanted = {
        "Name": topic,
        "NumPartitions": -1,
        "ReplicationFactor": -1,
        "Assignments": [{"PartitionIndex": 0, "BrokerIds": [1, 2, CLAIMED]}],
        "Configs": [{"Name": "min.insync.replicas", "Value": str(min_insync)}],
    }
    with cluster.connect() as connection:
        body = {"Topics": [wanted], "timeoutMs": 20_000}
        created = connection.call("CreateTopics", 7, body)["Topics"][0]
    assert created["ErrorCode"] == OK
    return str(created["TopicId"])


@pytest.mark.parametrize("version", range(4, 19))
def test_it_joins_the_isr_and_acks_all_waits_for_it(partition: Partition, version: int) -> None:
    partition.forget_claimed()
    assert partition.code(0, epoch=0, version=version) == OK
    assert partition.isr == {1, 2, CLAIMED}
    partition.send(b"a")
    given = partition.fetch(0, epoch=0, version=version)
    assert (given["ErrorCode"], given["HighWatermark"]) == (OK, 0)
    assert [batch.records for batch in batches.parse(given["Records"])[0]] == [1]
    assert not partition.is_acknowledged
    told = partition.fetch(1, epoch=0, last=0, version=version)
    assert (told["ErrorCode"], told["HighWatermark"]) == (OK, 1)
    partition.receive()


@pytest.mark.parametrize("version", [4, 8, 9, 12, 14, 15, 18])
@pytest.mark.parametrize(
    ("epoch", "code"), [(-1, OK), (0, FENCED), (1, FENCED), (2, OK), (3, NEWER)]
)
def test_its_epoch_is_checked_from_v9(
    partition: Partition, version: int, epoch: int, code: ErrorCode
) -> None:
    partition.forget_claimed()
    for _ in range(2):
        partition.control.elect(partition.topic, 1)
    wanted = code if version >= FIRST_WITH_EPOCH else OK
    assert partition.code(0, epoch=epoch, version=version) == wanted
    assert partition.isr == ({1, 2, CLAIMED} if wanted is OK else {1, 2})


@pytest.mark.parametrize("version", [4, 8, 9, 12, 14, 15, 18])
@pytest.mark.parametrize("replica_id", [1, 99])
@pytest.mark.parametrize("epoch", [-1, 0])
def test_the_leaders_own_id_and_a_strangers_are_refused(
    partition: Partition, version: int, replica_id: int, epoch: int
) -> None:
    found = partition.fetch(0, version=version, replica_id=replica_id, epoch=epoch)
    knows = version >= FIRST_WITH_EPOCH and epoch >= 0
    assert found["ErrorCode"] == (NEWER if knows else ELSEWHERE)


@pytest.mark.parametrize("version", [12, 18])
@pytest.mark.parametrize(
    ("epoch", "code"), [(-1, ELSEWHERE), (0, FENCED), (1, ELSEWHERE), (2, NEWER)]
)
def test_another_follower_does_not_serve_it(
    partition: Partition, version: int, epoch: int, code: ErrorCode
) -> None:
    partition.control.elect(partition.topic, 1)
    found = partition.fetch(0, version=version, epoch=epoch, asked=2)
    assert found["ErrorCode"] == code


@pytest.mark.parametrize(
    ("offset", "last", "code", "diverging"),
    [
        (2, 1, OK, None),
        (2, -1, OK, None),
        (2, 0, OK, (0, 1)),
        (1, 0, OK, None),
        (3, 1, OK, (1, 2)),
        (2, 2, OUT_OF_RANGE, None),
        (3, -1, OUT_OF_RANGE, None),
    ],
)
@pytest.mark.parametrize("version", [12, 15, 18])
def test_where_its_log_parts_from_the_leaders_it_is_told_so_and_does_not_count(
    partition: Partition,
    version: int,
    offset: int,
    last: int,
    code: ErrorCode,
    diverging: tuple[int, int] | None,
) -> None:
    """The leader has a record of epoch 0 and one of epoch 1."""
    partition.send(b"a", acks=1)
    partition.control.elect(partition.topic, 1)
    partition.send(b"b", acks=1)
    found = partition.fetch(offset, version=version, epoch=1, last=last)
    assert found["ErrorCode"] == code
    told = found.get("DivergingEpoch(tag0)")
    assert (told and (told["Epoch"], told["EndOffset"])) == diverging
    counts = code is OK and diverging is None
    assert partition.high_watermark == (offset if counts else 0)


@pytest.mark.parametrize("version", [15, 18])
def test_an_older_registration_is_refused(partition: Partition, version: int) -> None:
    before = partition.control.broker("kill", CLAIMED)["epoch"]
    now = partition.control.broker("start", CLAIMED)["epoch"]
    assert now == before + 1
    for broker_epoch, code in ((before, ELSEWHERE), (now + 1, OK), (now, OK)):
        assert partition.isr == {1, 2}
        found = partition.fetch(0, version=version, epoch=0, broker_epoch=broker_epoch)
        assert found["ErrorCode"] == code
    assert partition.isr == {1, 2, CLAIMED}


@pytest.mark.parametrize("version", [4, 9, 12, 15, 18])
@pytest.mark.parametrize(
    ("leaves", "returns"), [("kill", "start"), ("stop", "start"), ("isolate", "rejoin")]
)
def test_marked_offline_it_never_joins_and_acks_all_does_not_count_it(
    partition: Partition, version: int, leaves: str, returns: str
) -> None:
    wanted = {"from_": "controller"} if leaves == "isolate" else {}
    partition.control.broker(leaves, CLAIMED, **wanted)
    for offset in range(3):
        assert partition.code(offset, epoch=0, version=version) == OK
        partition.send(b"a")
        partition.receive()
        assert partition.high_watermark == offset + 1, "its fetches hold nothing back"
        assert partition.code(offset + 1, epoch=0, version=version) == OK
        assert partition.isr == {1, 2}
    partition.control.broker(returns, CLAIMED)
    assert partition.isr == {1, 2}
    assert partition.code(3, epoch=0, version=version) == OK
    assert partition.isr == {1, 2, CLAIMED}


def test_acks_all_is_refused_though_it_has_everything(served: Cluster) -> None:
    """With min.insync.replicas=2, a leader and a follower that is offline are too few."""
    with made(served, min_insync=2) as partition:
        partition.control.broker("kill", CLAIMED)
        partition.control.broker("stop", 2)
        assert partition.code(0, epoch=0) == OK
        assert partition.isr == {1}
        answer = partition.producer.call("Produce", 9, partition.produce(b"a"))
    found = answer["Responses"][0]["PartitionResponses"][0]
    assert found["ErrorCode"] == ErrorCode.NOT_ENOUGH_REPLICAS


@pytest.mark.parametrize("version", [1, 4, 5, 11])
def test_list_offsets_tells_it_the_log_end_and_does_not_gate_it(
    partition: Partition, version: int
) -> None:
    partition.send(b"a", acks=1)
    partition.control.elect(partition.topic, 1)
    gate = ErrorCode.OFFSET_NOT_AVAILABLE if version >= 5 else ErrorCode.LEADER_NOT_AVAILABLE
    for replica_id, code, offset in ((CLAIMED, OK, 1), (-1, gate, -1)):
        wanted = {"PartitionIndex": 0, "CurrentLeaderEpoch": 1, "Timestamp": -1}
        topic = {"Name": partition.topic, "Partitions": [wanted]}
        body = {"ReplicaId": replica_id, "Topics": [topic]}
        answer = partition.connections[1].call("ListOffsets", version, body)
        found = answer["Topics"][0]["Partitions"][0]
        assert (found["ErrorCode"], found["Offset"]) == (code, offset)


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize(("known", "code"), [(-1, OK), (0, FENCED), (1, OK), (2, NEWER)])
def test_offset_for_leader_epoch_tells_it_where_epochs_end(
    partition: Partition, version: int, known: int, code: ErrorCode
) -> None:
    partition.send(b"a", acks=1)
    partition.control.elect(partition.topic, 1)
    wanted = {"Partition": 0, "CurrentLeaderEpoch": known, "LeaderEpoch": 0}
    topic = {"Topic": partition.topic, "Partitions": [wanted]}
    body = {"ReplicaId": CLAIMED, "Topics": [topic]}
    answer = partition.connections[1].call("OffsetForLeaderEpoch", version, body)
    found = answer["Topics"][0]["Partitions"][0]
    ends = (0, 1) if code is OK else (-1, -1)
    assert (found["ErrorCode"], found["LeaderEpoch"], found["EndOffset"]) == (code, *ends)
