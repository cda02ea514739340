"""A transactional producer and a ``read_committed`` consumer at a cluster, in both flows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.faults.rules import FaultRule
from fencepost.broker.node import operator_actions
from fencepost.broker.server.server import Server
from fencepost.client import (
    Client,
    Consumer,
    NewRecord,
    OffsetAndMetadata,
    Partition,
    ProducerFenced,
    ProducerState,
    TimedOut,
    TransactionAbortable,
    TransactionalProducer,
    TransactionFailed,
)
from fencepost.protocol.errors import ErrorCode
from tests.harness.in_process_server import HOST, asked_by_clients, running, sockets
from tests.harness.wait import eventually

ORDERS = Partition(topic="orders", index=0)
COPIES = Partition(topic="copies", index=0)
TOPICS = tuple(
    NewTopic(name=name, partitions=1, replication_factor=3, configs={})
    for name in ("orders", "copies")
)
CONFIGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
LEVELS = pytest.mark.parametrize("level", [1, 2])
"""Of ``transaction.version``."""
LAST_OF_LEVEL_1 = {"produce": 11, "txn_offset_commit": 4, "end_txn": 4}
"""The last versions of the flow before level 2."""


class Setup:
    """A served cluster, and a client of it."""

    def __init__(self, server: Server, bootstrap: str, client: Client) -> None:
        self.server, self.bootstrap, self.client = server, bootstrap, client

    async def producer(
        self, level: int | None = None, *, deadline_s: float = 20.0
    ) -> TransactionalProducer:
        producer = TransactionalProducer(
            self.client, "copier", level=level, deadline_s=deadline_s, request_timeout_s=5.0
        )
        await producer.init()
        return producer

    async def read(self, partition: Partition, *, committed: bool = True) -> list[str]:
        """The values up to the end for this isolation."""
        isolation = "read_committed" if committed else "read_uncommitted"
        async with Consumer(
            self.bootstrap, isolation_level=isolation, fetch_max_wait_ms=10
        ) as consumer:
            consumer.assign([partition])
            consumer.seek_to_beginning(partition)
            end = (await consumer.end_offsets([partition]))[partition]
            found: list[str] = []
            while (await consumer.position(partition)).offset < end:
                polled = await consumer.poll(timeout_s=0.02)
                found += [(each.value or b"").decode() for each in polled]
            return found

    def fail(self, api: str, *actions: Mapping[str, str | int]) -> None:
        """The next requests of an API meet these faults."""
        for action in actions:
            rule = FaultRule.from_json({"api": api, "action": action})
            self.server.cluster.faults.add(rule)

    def heal(self) -> None:
        """Remove all faults."""
        self.server.cluster.faults.remove_all()


def records(*values: str) -> list[NewRecord]:
    return [NewRecord(value=each.encode(), timestamp=0) for each in values]


@asynccontextmanager
async def serving() -> AsyncIterator[Setup]:
    ports = sockets(3)
    bootstrap = ",".join(f"{HOST}:{each.getsockname()[1]}" for each in ports)
    async with (
        running(ports, topics=TOPICS, configs=CONFIGS) as server,
        Client(bootstrap, client_id="tests") as client,
    ):
        yield Setup(server, bootstrap, client)


@LEVELS
async def test_a_transaction_is_seen_when_it_is_committed(level: int) -> None:
    async with serving() as setup:
        producer = await setup.producer(level)
        await producer.begin()
        first = await producer.send(ORDERS, records("a", "b"))
        second = await producer.send(ORDERS, records("c"))
        await producer.send(COPIES, records("d"))
        assert (first.first_offset, second.next_offset) == (0, 3)
        assert await setup.read(ORDERS) == []
        assert await setup.read(ORDERS, committed=False) == ["a", "b", "c"]
        await producer.commit()
        assert await setup.read(ORDERS) == ["a", "b", "c"]
        assert await setup.read(COPIES) == ["d"]


async def fail_amid(producer: TransactionalProducer) -> None:
    async with producer.transaction():
        await producer.send(ORDERS, records("b"))
        raise ZeroDivisionError


@LEVELS
async def test_an_aborted_transaction_is_never_seen(level: int) -> None:
    async with serving() as setup:
        producer = await setup.producer(level)
        async with producer.transaction():
            await producer.send(ORDERS, records("a"))
        with pytest.raises(ZeroDivisionError):
            await fail_amid(producer)
        async with producer.transaction():
            await producer.send(ORDERS, records("c"))
        assert producer.state is ProducerState.READY
        assert await setup.read(ORDERS) == ["a", "c"]
        assert await setup.read(ORDERS, committed=False) == ["a", "b", "c"]


@LEVELS
async def test_offsets_are_committed_with_the_transaction(level: int) -> None:
    async with serving() as setup:
        producer = await setup.producer(level)
        async with Consumer(setup.bootstrap, group_id="copiers") as consumer:
            for offset, committed in ((5, False), (7, True)):
                await producer.begin()
                await producer.send(COPIES, records("x"))
                at = OffsetAndMetadata(offset=offset, leader_epoch=0, metadata="md")
                await producer.send_offsets({ORDERS: at}, consumer.group_metadata)
                await (producer.commit() if committed else producer.abort())
            found = (await consumer.committed([ORDERS]))[ORDERS]
        assert found == OffsetAndMetadata(offset=7, leader_epoch=0, metadata="md")
        assert await setup.read(COPIES) == ["x"]


@LEVELS
async def test_a_consumer_that_lost_its_partitions_commits_nothing(level: int) -> None:
    async with serving() as setup:
        producer = await setup.producer(level)
        async with Consumer(setup.bootstrap, group_id="g") as consumer:
            consumer.subscribe(["orders"])
            while not consumer.assignment:
                await consumer.poll(timeout_s=0.02)
            old = consumer.group_metadata
        await producer.begin()
        await producer.send(COPIES, records("x"))
        with pytest.raises(TransactionAbortable) as refused:
            await producer.send_offsets({ORDERS: OffsetAndMetadata(offset=5)}, old)
        assert refused.value.request == "TxnOffsetCommit"
        with pytest.raises(RuntimeError, match="ABORTABLE"):
            await producer.commit()
        await producer.abort()
        assert producer.state is ProducerState.READY
        assert await setup.read(COPIES) == []


@LEVELS
async def test_a_zombie_is_fenced_by_its_successor(level: int) -> None:
    async with serving() as setup:
        zombie = await setup.producer(level)
        await zombie.begin()
        await zombie.send(ORDERS, records("old"))
        successor = await setup.producer(level)
        async with successor.transaction():
            await successor.send(ORDERS, records("new"))
        with pytest.raises(TransactionAbortable):
            await zombie.send(ORDERS, records("late"))
        with pytest.raises(ProducerFenced):
            await zombie.abort()
        assert zombie.state is ProducerState.FAILED
        with pytest.raises(RuntimeError, match="FAILED"):
            await zombie.begin()
        assert await setup.read(ORDERS) == ["new"]


@LEVELS
async def test_an_error_that_passes_is_retried(level: int) -> None:
    passing = {
        "InitProducerId": ("CONCURRENT_TRANSACTIONS", "COORDINATOR_LOAD_IN_PROGRESS"),
        "FindCoordinator": ("COORDINATOR_NOT_AVAILABLE",),
        "Produce": ("NOT_LEADER_OR_FOLLOWER", "CONCURRENT_TRANSACTIONS"),
        "TxnOffsetCommit": ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"),
        "EndTxn": ("CONCURRENT_TRANSACTIONS", "NOT_COORDINATOR"),
        "AddPartitionsToTxn": ("CONCURRENT_TRANSACTIONS",),
        "AddOffsetsToTxn": ("CONCURRENT_TRANSACTIONS",),
    }
    async with serving() as setup:
        for api, errors in passing.items():
            setup.fail(api, *({"error": each} for each in errors))
        producer = await setup.producer(level)
        async with producer.transaction():
            await producer.send(ORDERS, records("a"))
            await producer.send_offsets({COPIES: OffsetAndMetadata(offset=5)}, "g")
        assert await setup.read(ORDERS) == ["a"]
        not_met = [each for each in setup.server.cluster.faults.all() if not each.hits]
        # Of level 2 a leader sends AddPartitionsToTxn, and AddOffsetsToTxn is not sent.
        assert len(not_met) == level - 1


@LEVELS
async def test_a_lost_answer_is_no_second_record(level: int) -> None:
    async with serving() as setup:
        producer = await setup.producer(level)
        for api in ("Produce", "TxnOffsetCommit", "EndTxn"):
            setup.fail(api, {"disconnect": "after"})
        for value in "ab":
            async with producer.transaction():
                await producer.send(ORDERS, records(value))
                await producer.send_offsets({COPIES: OffsetAndMetadata(offset=5)}, "g")
        assert await setup.read(ORDERS, committed=False) == await setup.read(ORDERS) == ["a", "b"]
        assert all(each.hits for each in setup.server.cluster.faults.all())


@LEVELS
async def test_a_producer_goes_on_after_a_send_whose_outcome_is_unknown(level: int) -> None:
    async with serving() as setup:
        producer = await setup.producer(level, deadline_s=0.3)
        await producer.begin()
        await producer.send(ORDERS, records("a"))
        setup.fail("Produce", *({"error": "NOT_ENOUGH_REPLICAS"} for _ in range(30)))
        with pytest.raises(TimedOut):
            await producer.send(ORDERS, records("b"))
        setup.heal()
        epoch = producer.producer[1]
        await producer.abort()
        assert producer.producer[1] > epoch, "sequence numbers begin again"
        async with producer.transaction():
            await producer.send(ORDERS, records("c"))
        assert await setup.read(ORDERS) == ["c"]


@LEVELS
async def test_a_producer_goes_on_after_a_send_that_was_cancelled(level: int) -> None:
    async with serving() as setup:
        producer = await setup.producer(level)
        await producer.begin()
        await producer.send(ORDERS, records("a"))
        setup.fail("Produce", {"delay": 10_000})
        sending = asyncio.ensure_future(producer.send(ORDERS, records("b")))
        await eventually(lambda: all(each.hits for each in setup.server.cluster.faults.all()))
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        with pytest.raises(RuntimeError, match="ABORTABLE"):
            await producer.send(ORDERS, records("c"))
        await setup.client.close()
        await producer.abort()
        async with producer.transaction():
            await producer.send(ORDERS, records("d"))
        assert await setup.read(ORDERS) == ["d"]


async def test_a_commit_whose_outcome_is_unknown_is_repeated() -> None:
    async with serving() as setup:
        producer = await setup.producer(deadline_s=0.3)
        await producer.begin()
        await producer.send(ORDERS, records("a"))
        setup.fail("EndTxn", *({"error": "COORDINATOR_LOAD_IN_PROGRESS"} for _ in range(30)))
        with pytest.raises(TimedOut):
            await producer.commit()
        with pytest.raises(RuntimeError, match="COMMITTING"):
            await producer.abort()
        setup.heal()
        await producer.commit()
        assert await setup.read(ORDERS) == ["a"]


async def test_an_error_that_does_not_pass_ends_the_producer() -> None:
    async with serving() as setup:
        producer = await setup.producer()
        await producer.begin()
        await producer.send(ORDERS, records("a"))
        setup.fail("EndTxn", {"error": "INVALID_TXN_STATE"})
        with pytest.raises(TransactionFailed) as refused:
            await producer.commit()
        assert refused.value.error == ErrorCode.INVALID_TXN_STATE
        assert producer.state is ProducerState.FAILED


@LEVELS
async def test_each_flow_sends_its_own_requests(level: int) -> None:
    async with serving() as setup:
        producer = await setup.producer(level)
        async with producer.transaction():
            await producer.send(ORDERS, records("a"))
            await producer.send(ORDERS, records("b"))
            await producer.send_offsets({COPIES: OffsetAndMetadata(offset=5)}, "g")
        async with producer.transaction():
            pass
        asked = [(each.api.name, each.version) for each in asked_by_clients(setup.server)]
        apis = [name for name, _ in asked]
        assert apis.count("add_partitions_to_txn") == apis.count("add_offsets_to_txn") == 2 - level
        assert apis.count("end_txn") == 1, "a transaction with nothing is not ended"
        used = {name: version for name, version in asked if name in LAST_OF_LEVEL_1}
        assert all((used[name] > last) == (level == 2) for name, last in LAST_OF_LEVEL_1.items())


async def test_coordinators_and_leaders_may_move_meanwhile() -> None:
    async with serving() as setup:
        producer = await setup.producer()
        cluster = setup.server.cluster
        for turn in range(6):
            async with producer.transaction():
                await producer.send(ORDERS, records(f"a{turn}"))
                for topic in ("orders", "__transaction_state", "__consumer_offsets"):
                    if topic in cluster.controller.image.topics:
                        operator_actions.elect(cluster, topic, 0, turn % 3 + 1)
                await producer.send_offsets({ORDERS: OffsetAndMetadata(offset=turn)}, "g")
                await producer.send(ORDERS, records(f"b{turn}"))
        values = [f"{name}{turn}" for turn in range(6) for name in "ab"]
        assert await setup.read(ORDERS) == values


async def test_calls_out_of_turn_are_refused() -> None:
    async with serving() as setup:
        producer = TransactionalProducer(setup.client, "copier")
        with pytest.raises(RuntimeError, match="UNINITIALIZED"):
            await producer.begin()
        await producer.init()
        with pytest.raises(RuntimeError, match="READY"):
            await producer.send(ORDERS, records("a"))
        with pytest.raises(ValueError, match="no records"):
            await producer.send(ORDERS, [])
        await producer.begin()
        await producer.send_offsets({}, "g")
        await producer.commit()
        assert await asyncio.wait_for(setup.read(ORDERS), 5) == []
