"""The raw calls of a transaction, in every version."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.client import (
    Client,
    Connection,
    ConsumerGroupMetadata,
    OffsetAndMetadata,
    Partition,
    Sequenced,
    add_offsets_to_txn,
    add_partitions_to_txn,
    end_txn,
    init_producer_id,
    txn_offset_commit,
)
from fencepost.client.cluster import CoordinatorType, find_coordinator
from fencepost.client.transactions import LAST_ADD_PARTITIONS_OF_CLIENTS
from fencepost.protocol.errors import ErrorCode
from tests.harness.driver import versions
from tests.harness.in_process_server import HOST, running, sockets

ORDERS = Partition(topic="orders", index=0)
TOPICS = (NewTopic(name="orders", partitions=1, replication_factor=1, configs={}),)
CONFIGS = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


@asynccontextmanager
async def broker() -> AsyncIterator[Connection]:
    """The one broker of a cluster, which coordinates all."""
    ports = sockets(1)
    bootstrap = f"{HOST}:{ports[0].getsockname()[1]}"
    async with running(ports, topics=TOPICS, configs=CONFIGS), Client(bootstrap) as client:
        yield await client.broker(1)


async def begin(connection: Connection, name: str) -> Sequenced:
    """A producer of a transactional id."""
    for of, key in ((CoordinatorType.TRANSACTION, name), (CoordinatorType.GROUP, "g")):
        assert (await find_coordinator(connection, key, of=of)).error == 0
    found = await init_producer_id(connection, transactional_id=name, transaction_timeout_ms=60_000)
    assert found.error == 0
    return Sequenced(producer_id=found.producer_id, producer_epoch=found.producer_epoch)


async def test_each_request_is_answered_in_every_version() -> None:
    async with broker() as connection:
        for version in range(LAST_ADD_PARTITIONS_OF_CLIENTS + 1):
            producer = await begin(connection, f"partitions-{version}")
            added = await add_partitions_to_txn(
                connection, f"partitions-{version}", producer, [ORDERS], version=version
            )
            assert (added.version, added.error) == (version, 0)
        for version in versions("add_offsets_to_txn"):
            producer = await begin(connection, f"offsets-{version}")
            added = await add_offsets_to_txn(
                connection, f"offsets-{version}", producer, "g", version=version
            )
            assert (added.version, added.error) == (version, 0)
        for version in versions("txn_offset_commit"):
            name, who = f"commit-{version}", ConsumerGroupMetadata(group="g")
            producer = await begin(connection, name)
            await add_offsets_to_txn(connection, name, producer, "g", version=3)
            offsets = {ORDERS: OffsetAndMetadata(offset=version)}
            committed = await txn_offset_commit(
                connection, name, producer, who, offsets, version=version
            )
            assert (committed.version, committed.error) == (version, 0)
        for version in versions("end_txn"):
            name = f"end-{version}"
            producer = await begin(connection, name)
            await add_partitions_to_txn(connection, name, producer, [ORDERS], version=3)
            ended = await end_txn(connection, name, producer, committed=True, version=version)
            assert (ended.version, ended.error) == (version, 0)
            bumped = (producer.producer_id, producer.producer_epoch + 1)
            expected = bumped if version >= 5 else (-1, -1)
            assert (ended.producer_id, ended.producer_epoch) == expected


async def test_the_error_of_several_partitions_is_the_one_that_says_why() -> None:
    async with broker() as connection:
        producer = await begin(connection, "x")
        nowhere = Partition(topic="nowhere", index=0)
        added = await add_partitions_to_txn(connection, "x", producer, [ORDERS, nowhere])
        assert added.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        fenced = await end_txn(connection, "x", Sequenced(producer_id=99), committed=True)
        assert fenced.error == ErrorCode.INVALID_PRODUCER_ID_MAPPING
