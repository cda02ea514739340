"""A client that speaks the dialect, and brokers that serve it or do not."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator

import pytest

from fencepost.broker.server.server import Server
from fencepost.client import (
    Client,
    DialectNotServed,
    NewRecord,
    OffsetSpec,
    Partition,
    connect,
    encode_records,
    fetch,
    list_offsets,
    offset_for_leader_epoch,
    produce,
)
from fencepost.client.cluster import find_coordinator
from fencepost.client.connection import Connection
from fencepost.client.groups import commit_offset, fetch_committed_offset
from fencepost.client.model import ConsumerGroupMetadata
from fencepost.protocol.codec.drafts import KIP_320_DRAFT
from fencepost.protocol.errors import ErrorCode
from tests.client.conftest import TOPICS
from tests.harness.in_process_server import HOST, running, sockets

DIALECT = "kip-320-draft"
ORDERS = Partition(topic="orders", index=0)
WHO = ConsumerGroupMetadata(group="g")
TIME = 1_600_000_000_000


@pytest.fixture
async def leader() -> AsyncIterator[Connection]:
    """A connection that speaks the dialect, to the leader of a topic with three records."""
    ports = sockets(3)
    bootstrap = ",".join(f"{HOST}:{sock.getsockname()[1]}" for sock in ports)
    async with (
        running(ports, topics=TOPICS, dialect=KIP_320_DRAFT),
        Client(bootstrap, dialect=DIALECT) as client,
    ):
        connection = await client.leader("orders", 0)
        values = [NewRecord(value=value, timestamp=TIME) for value in (b"a", b"b", b"c")]
        produced = await produce(connection, ORDERS, encode_records(values))
        assert produced is not None
        assert produced.error == 0
        yield connection


async def test_versions_are_the_drafts_unless_others_are_named(leader: Connection) -> None:
    assert (await fetch(leader, ORDERS, 0)).version == 9
    assert (await fetch(leader, ORDERS, 0, version=12)).version == 12
    assert (await list_offsets(leader, ORDERS, OffsetSpec.LATEST)).version == 4
    assert (await offset_for_leader_epoch(leader, ORDERS, 0)).version == 4


async def test_fetch_is_checked_by_the_epoch_of_the_last_record(leader: Connection) -> None:
    codes = {
        (offset, epoch): (await fetch(leader, ORDERS, offset, last_epoch=epoch)).error
        for offset in (2, 3, 4)
        for epoch in (-1, 0, 1)
    }
    unknown, truncated = ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.LOG_TRUNCATION
    assert codes == {
        **{(offset, epoch): 0 for offset in (2, 3) for epoch in (-1, 0)},
        **{(offset, 1): unknown for offset in (2, 3, 4)},
        (4, 0): truncated,
        (4, -1): 0,
    }
    assert [r.value for r in (await fetch(leader, ORDERS, 0)).content.records] == [b"a", b"b", b"c"]


async def test_offsets_are_found_with_their_epochs(leader: Connection) -> None:
    latest = await list_offsets(leader, ORDERS, OffsetSpec.LATEST)
    assert (latest.error, latest.offset, latest.epoch) == (0, 3, 0)
    by_time = await list_offsets(leader, ORDERS, TIME)
    assert (by_time.offset, by_time.timestamp, by_time.epoch) == (0, TIME, 0)


async def test_timestamps_are_committed(leader: Connection) -> None:
    coordinator = await find_coordinator(leader, "g")
    connection = await connect(HOST, coordinator.port, "tests", dialect=DIALECT)
    for timestamp in (TIME, -1):
        done = await commit_offset(connection, WHO, ORDERS, 2, epoch=0, timestamp=timestamp)
        assert (done.version, done.error) == (6, 0)
        found = await fetch_committed_offset(connection, "g", ORDERS)
        assert (found.version, found.offset, found.epoch) == (5, 2, 0)
        assert found.timestamp == timestamp
    await connection.close()


async def test_a_client_without_the_dialect_is_refused_the_four_versions(
    leader: Connection,
) -> None:
    host, port = leader._writer.get_extra_info("peername")[:2]
    plain = await connect(host, port, "tests")
    unsupported = ErrorCode.UNSUPPORTED_VERSION
    assert (await fetch(plain, ORDERS, 0, version=9)).error == unsupported
    assert (await list_offsets(plain, ORDERS, -1, version=4)).error == unsupported
    assert (await commit_offset(plain, WHO, ORDERS, 1, version=6)).error == unsupported
    assert (await fetch_committed_offset(plain, "g", ORDERS, version=5)).error == unsupported
    assert (await fetch(plain, ORDERS, 0)).version == 18
    await plain.close()


async def test_brokers_without_the_dialect_are_not_asked_further(
    server: Server, ports: list[socket.socket], bootstrap: str
) -> None:
    with pytest.raises(DialectNotServed, match=r"metadata\.version .*; serve it with --dialect"):
        await connect(HOST, ports[0].getsockname()[1], "draft", dialect=DIALECT)
    async with Client(bootstrap, client_id="draft", dialect=DIALECT) as client:
        with pytest.raises(DialectNotServed):
            await client.leader("orders", 0)
    asked = [each for each in server.journal if each.client_id == "draft"]
    assert {each.api.name for each in asked} == {"api_versions"}
