"""The consumer of KIP-320's earlier draft over sockets, and brokers that do not serve it."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator

import pytest

from fencepost.broker.node import operator_actions
from fencepost.broker.server.server import Server
from fencepost.client import (
    Client,
    Consumer,
    DialectNotServed,
    NewRecord,
    OffsetAndMetadata,
    Partition,
    TruncatedPartitionError,
    encode_records,
    produce,
)
from fencepost.protocol.codec.drafts import KIP_320_DRAFT
from tests.client.conftest import TOPICS
from tests.harness.in_process_server import running

ORDERS = Partition(topic="orders", index=0)
DRAFT = "kip-320-draft"
POLL_S = 20.0


@pytest.fixture
async def drafted(ports: list[socket.socket]) -> AsyncIterator[Server]:
    async with running(ports, topics=TOPICS, dialect=KIP_320_DRAFT) as started:
        yield started


async def write(client: Client, *values: str) -> None:
    client.forget()
    leader = await client.leader(ORDERS.topic, ORDERS.index)
    records = [NewRecord(value=each.encode(), timestamp=7) for each in values]
    answer = await produce(leader, ORDERS, encode_records(records))
    assert answer is not None
    assert answer.error == 0


async def test_it_is_told_of_a_truncation_once_and_commits_timestamps(
    drafted: Server, bootstrap: str
) -> None:
    async with (
        Client(bootstrap) as client,
        Consumer(bootstrap, dialect=DRAFT, group_id="g", auto_offset_reset="none") as consumer,
    ):
        await write(client, "a", "b")
        operator_actions.hold(drafted.cluster, "orders", 0, 3, leave_isr=True)
        await write(client, "c", "d")
        consumer.assign([ORDERS])
        consumer.seek(ORDERS, 0)
        assert len(await consumer.poll(timeout_s=POLL_S)) == 4
        await consumer.commit()
        position = OffsetAndMetadata(offset=4, leader_epoch=0, timestamp=7)
        assert await consumer.committed([ORDERS]) == {ORDERS: position}
        operator_actions.elect(drafted.cluster, "orders", 0, 3, unclean=True)
        with pytest.raises(TruncatedPartitionError) as told:
            await consumer.poll(timeout_s=POLL_S)
        assert told.value.truncated_offsets == {ORDERS: 2}
        operator_actions.release(drafted.cluster, "orders", 0, 3)
        await write(client, "x", "y", "z")
        records = await consumer.poll(timeout_s=POLL_S)
        assert [each.value for each in records] == [b"z"], "it went on at offset 4"


async def test_a_broker_that_does_not_name_the_feature_is_refused(
    server: Server, bootstrap: str
) -> None:
    async with Consumer(bootstrap, dialect=DRAFT, group_id="g") as consumer:
        consumer.assign([ORDERS])
        with pytest.raises(DialectNotServed, match="does not serve the dialect kip-320-draft"):
            await consumer.poll(timeout_s=POLL_S)
        with pytest.raises(DialectNotServed):
            await consumer.commit({ORDERS: OffsetAndMetadata(offset=1)})


async def test_a_consumer_of_kafkas_protocol_is_served_by_the_same_brokers(
    drafted: Server, bootstrap: str
) -> None:
    async with (
        Client(bootstrap) as client,
        Consumer(bootstrap, auto_offset_reset="earliest") as consumer,
    ):
        await write(client, "a")
        consumer.assign([ORDERS])
        assert len(await consumer.poll(timeout_s=POLL_S)) == 1
