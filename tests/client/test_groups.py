from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from fencepost.client.client import Client
from fencepost.client.cluster import find_coordinator, init_producer_id
from fencepost.client.connection import Connection
from fencepost.client.consumer_protocol import encode_subscription
from fencepost.client.groups import (
    commit_offset,
    fetch_committed_offset,
    heartbeat,
    join_group,
    leave_group,
    sync_group,
)
from fencepost.client.model import ConsumerGroupMetadata, Partition
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.errors import ErrorCode

MANY = Partition(topic="many", index=2)
GROUP = "shipping"


def versions(name: str) -> range:
    api = BY_NAME[name]
    return range(api.min_version, api.max_version + 1)


@pytest.fixture
async def coordinator(client: Client) -> Connection:
    return await found_coordinator(client)


async def found_coordinator(client: Client, version: int | None = None) -> Connection:
    anybody = await client.broker(1)
    async with asyncio.timeout(10):
        while True:
            found = await find_coordinator(anybody, GROUP, version=version)
            if found.error == ErrorCode.NONE:
                return await client.broker(found.broker)


@pytest.mark.parametrize("version", versions("find_coordinator"))
async def test_coordinators_in_every_version(client: Client, version: int) -> None:
    assert (await found_coordinator(client, version)).is_open


@pytest.mark.parametrize("version", versions("offset_commit"))
async def test_commits_in_every_version(coordinator: Connection, version: int) -> None:
    who = ConsumerGroupMetadata(group=GROUP)
    answer = await commit_offset(coordinator, who, MANY, 5, epoch=3, note="noted", version=version)
    assert answer.error == 0
    found = await fetch_committed_offset(coordinator, GROUP, MANY)
    assert (found.offset, found.metadata) == (5, "noted")
    assert found.epoch == (3 if version >= 6 else -1)


@pytest.mark.parametrize("version", versions("offset_fetch"))
async def test_what_is_committed_in_every_version(coordinator: Connection, version: int) -> None:
    none = await fetch_committed_offset(coordinator, GROUP, MANY, version=version)
    assert (none.error, none.offset) == (0, -1)
    await commit_offset(coordinator, ConsumerGroupMetadata(group=GROUP), MANY, 5, epoch=3)
    found = await fetch_committed_offset(coordinator, GROUP, MANY, stable=True, version=version)
    assert (found.error, found.offset) == (0, 5)
    assert found.epoch == (3 if version >= 5 else -1)


async def test_who_does_not_coordinate_says_so(client: Client, coordinator: Connection) -> None:
    others = [await client.broker(broker) for broker in (1, 2, 3)]
    other = next(each for each in others if each is not coordinator)
    assert (await fetch_committed_offset(other, GROUP, MANY)).error == ErrorCode.NOT_COORDINATOR
    assert (
        await commit_offset(other, ConsumerGroupMetadata(group=GROUP), MANY, 1)
    ).error == ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize("version", versions("join_group"))
async def test_a_member_comes_stays_and_leaves(coordinator: Connection, version: int) -> None:
    who = ConsumerGroupMetadata(group=GROUP)
    wants = encode_subscription(["many"])
    joined = await join_group(coordinator, who, wants, version=version)
    if version >= 4:
        assert joined.error == ErrorCode.MEMBER_ID_REQUIRED
        who = replace(who, member_id=joined.member_id)
        joined = await join_group(coordinator, who, wants, version=version)
    assert (joined.error, joined.generation, joined.leader_id) == (0, 1, joined.member_id)
    assert joined.members == {joined.member_id: wants}
    who = replace(who, member_id=joined.member_id, generation=joined.generation)
    synced = await sync_group(coordinator, who, [(joined.member_id, b"mine")])
    assert (synced.error, synced.assignment) == (0, b"mine")
    assert (await heartbeat(coordinator, who)).error == 0
    stale = replace(who, generation=0)
    assert (await heartbeat(coordinator, stale)).error == ErrorCode.ILLEGAL_GENERATION
    assert (await commit_offset(coordinator, stale, MANY, 1)).error == ErrorCode.ILLEGAL_GENERATION
    assert (await leave_group(coordinator, who)).error == 0
    assert (await heartbeat(coordinator, who)).error == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", versions("leave_group"))
async def test_who_is_no_member_cannot_leave(coordinator: Connection, version: int) -> None:
    stranger = ConsumerGroupMetadata(group=GROUP, member_id="stranger", generation=1)
    answer = await leave_group(coordinator, stranger, version=version)
    assert answer.error == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", versions("init_producer_id"))
async def test_producer_ids_in_every_version(client: Client, version: int) -> None:
    connection = await client.broker(1)
    first = await init_producer_id(connection, version=version)
    second = await init_producer_id(connection, version=version)
    assert (first.error, first.producer_epoch) == (0, 0)
    assert second.producer_id > first.producer_id
