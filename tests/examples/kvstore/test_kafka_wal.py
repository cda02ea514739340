"""A shard's log in a partition of a cluster in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import pytest

from examples.kvstore.kafka_wal import EntriesLost, KafkaWal
from examples.kvstore.leader import Leader, Unknown
from examples.kvstore.records import Entry, UnreadableLog
from examples.kvstore.replica import Replica
from examples.kvstore.state import Kind, Operation
from examples.kvstore.topic import UnfitTopic, prepare
from examples.kvstore.wal import NotConfirmed
from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.node import operator_actions
from fencepost.broker.server.server import Server
from fencepost.client.append_outcomes import NotChecked
from fencepost.client.client import Client
from fencepost.client.model import Partition
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from tests.harness.typed_client import produce
from tests.harness.wait import eventually

TOPIC: Final = "store"
PARTITION: Final = Partition(topic=TOPIC, index=0)


@pytest.fixture
def bootstrap(server: Server) -> str:
    brokers = server.cluster.controller.image.brokers.values()
    return ",".join(f"{broker.host}:{broker.port}" for broker in brokers)


@pytest.fixture
async def client(bootstrap: str) -> AsyncIterator[Client]:
    async with Client(bootstrap) as made:
        yield made


def entries(*ids: str) -> list[Entry]:
    return [Entry(id=each, operation=Operation(kind=Kind.PUT, key="k", value=each)) for each in ids]


def elect(server: Server, leader: int) -> None:
    operator_actions.elect(server.cluster, TOPIC, 0, leader)


async def test_it_is_read_as_it_was_written(client: Client) -> None:
    await prepare(client, TOPIC, 1)
    wal = KafkaWal(client, PARTITION)
    await wal.append(0, entries("1", "2"))
    await wal.append(2, [Entry(id="3", operation=None)])
    stretch = await wal.read(1, 0)
    assert stretch.entries == (*entries("2"), Entry(id="3", operation=None))
    assert (stretch.next_offset, stretch.end) == (3, 3)
    beyond = await wal.read(3, 0)
    assert (beyond.entries, beyond.next_offset, beyond.end) == ((), 3, 3)


async def test_nothing_is_appended_where_the_log_does_not_end(client: Client) -> None:
    await prepare(client, TOPIC, 1)
    wal = KafkaWal(client, PARTITION)
    await wal.append(0, entries("1"))
    for expected in (0, 2):
        with pytest.raises(NotConfirmed):
            await wal.append(expected, entries("2", "3"))
    assert (await wal.read(0, 0)).end == 1


async def test_preparing_twice_changes_nothing(client: Client) -> None:
    assert await prepare(client, TOPIC, 3) == 3
    assert await prepare(client, TOPIC, 5) == 3


async def test_a_topic_that_cannot_be_is_refused(client: Client) -> None:
    with pytest.raises(UnfitTopic, match="can't be created"):
        await prepare(client, "no good", 1)


async def test_a_leader_ends_when_the_log_turns_out_not_to_check(
    server: Server, client: Client, bootstrap: str
) -> None:
    """As when an operator takes the config back while the store runs."""
    server.cluster.controller.create_topic(NewTopic(name=TOPIC, configs={}))
    wal = KafkaWal(client, PARTITION)
    leader = Leader(Replica(), wal, "a")
    leading = asyncio.create_task(leader.lead())
    put = Operation(kind=Kind.PUT, key="k", value="v")
    assert (await leader.do(put, 10)).done
    async with Client(bootstrap) as other:
        await KafkaWal(other, PARTITION).append(1, entries("1"))
    with pytest.raises(Unknown):
        await leader.do(put, 10)
    with pytest.raises(NotChecked):
        await leading


async def test_records_of_others_are_not_taken_for_entries(server: Server, client: Client) -> None:
    server.cluster.controller.create_topic(NewTopic(name=TOPIC, configs={}))
    await produce(server, TOPIC, values=[b"hello"])
    with pytest.raises(UnreadableLog):
        await KafkaWal(client, PARTITION).read(0, 0)


async def test_a_log_that_begins_later_is_no_log(client: Client) -> None:
    await prepare(client, TOPIC, 1)
    wal = KafkaWal(client, PARTITION)
    await wal.append(0, entries("1", "2"))
    part = DeleteRecordsPartition(partition_index=0, offset=1)
    topics = (DeleteRecordsTopic(name=TOPIC, partitions=(part,)),)
    leader = await client.leader(TOPIC, 0)
    answer: DeleteRecordsResponse = await leader.ask_any(
        BY_NAME["delete_records"], 2, DeleteRecordsRequest(topics=topics, timeout_ms=10_000)
    )
    assert answer.topics[0].partitions[0].error_code == 0
    with pytest.raises(EntriesLost):
        await wal.read(0, 0)


async def test_it_reads_on_after_an_election(server: Server, client: Client) -> None:
    await prepare(client, TOPIC, 1)
    wal = KafkaWal(client, PARTITION)
    for turn, leader in enumerate((1, 2, 3)):
        elect(server, leader)
        await wal.append(turn, entries(str(turn)))
        assert (await wal.read(turn, 0)).entries == tuple(entries(str(turn)))


async def test_it_does_not_go_on_asking_a_leader_that_was_deposed(
    server: Server, client: Client, bootstrap: str
) -> None:
    await prepare(client, TOPIC, 1)
    elect(server, 1)
    wal = KafkaWal(client, PARTITION)
    await wal.append(0, entries("1"))
    assert (await wal.read(1, 0)).entries == ()
    operator_actions.isolate(server.cluster, 1, from_controller=True)
    async with Client(bootstrap) as other:
        await KafkaWal(other, PARTITION).append(1, entries("2"))
    replica = Replica()
    following = asyncio.create_task(replica.follow(wal))
    await eventually(lambda: replica.upcoming == 2)
    following.cancel()
