from __future__ import annotations

import pytest

from fencepost.broker.server.server import Server
from fencepost.client.batches import NewRecord, encode_records
from fencepost.client.client import Client
from fencepost.client.connection import Connection
from fencepost.client.model import Isolation, OffsetSpec, Partition, Produced
from fencepost.client.partitions import fetch, list_offsets, offset_for_leader_epoch, produce
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.errors import ErrorCode

ORDERS = Partition(topic="orders", index=0)


def versions(name: str) -> range:
    api = BY_NAME[name]
    return range(api.min_version, api.max_version + 1)


def batch(*values: str, base_offset: int = 0) -> bytearray:
    records = [NewRecord(value=each.encode(), timestamp=1) for each in values]
    return encode_records(records, base_offset=base_offset)


@pytest.fixture
async def leader(client: Client) -> Connection:
    return await client.leader("orders", 0)


async def produced(leader: Connection, *values: str) -> Produced:
    answer = await produce(leader, ORDERS, batch(*values))
    assert answer is not None
    return answer


@pytest.mark.parametrize("version", versions("produce"))
async def test_produce_in_every_version(leader: Connection, version: int) -> None:
    for offset in range(2):
        answer = await produce(leader, ORDERS, batch("a"), version=version)
        assert answer is not None
        assert (answer.error, answer.base_offset, answer.version) == (0, offset, version)


async def test_produce_with_acks_0_is_not_answered(leader: Connection) -> None:
    assert await produce(leader, ORDERS, batch("a"), acks=0) is None
    assert (await produced(leader, "b")).base_offset == 1


async def test_a_record_that_is_refused_is_named(leader: Connection) -> None:
    damaged = batch("a")
    damaged[-1] ^= 1
    answer = await produce(leader, ORDERS, damaged)
    assert answer is not None
    assert answer.error == ErrorCode.CORRUPT_MESSAGE
    assert answer.base_offset == -1


async def test_who_does_not_lead_says_who_does(client: Client) -> None:
    other = await client.broker(2)
    answer = await produce(other, ORDERS, batch("a"))
    assert answer is not None
    assert (answer.error, answer.leader) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, (1, 0))


@pytest.mark.parametrize("version", versions("fetch"))
async def test_fetch_in_every_version(leader: Connection, version: int) -> None:
    await produced(leader, "a", "b", "c")
    answer = await fetch(leader, ORDERS, 1, epoch=0, last_epoch=0, version=version)
    assert (answer.error, answer.high_watermark) == (0, 3)
    assert [each.value for each in answer.content.records] == [b"b", b"c"]
    assert answer.content.next_offset == 3


async def test_fetch_knows_what_the_protocol_says(leader: Connection) -> None:
    await produced(leader, "a")
    beyond = await fetch(leader, ORDERS, 7)
    assert beyond.error == ErrorCode.OFFSET_OUT_OF_RANGE
    newer = await fetch(leader, ORDERS, 0, epoch=5, isolation=Isolation.READ_COMMITTED)
    assert newer.error == ErrorCode.UNKNOWN_LEADER_EPOCH
    diverging = await fetch(leader, ORDERS, 1, last_epoch=0)
    assert diverging.diverging is None


async def test_a_topic_that_is_not_there(leader: Connection) -> None:
    gone = Partition(topic="gone", index=0)
    answer = await fetch(leader, gone, 0)
    assert answer.error == ErrorCode.UNKNOWN_TOPIC_ID
    old = await fetch(leader, gone, 0, version=12)
    assert old.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_fetch_tells_where_logs_part(client: Client, server: Server) -> None:
    leader = await client.leader("orders", 0)
    await produced(leader, "a")
    server.cluster.controller.elect("orders", 0, 1, unclean=False)
    answer = await fetch(leader, ORDERS, 5, last_epoch=0)
    assert answer.diverging == (0, 1)


@pytest.mark.parametrize("version", versions("list_offsets"))
async def test_list_offsets_in_every_version(leader: Connection, version: int) -> None:
    await produced(leader, "a", "b")
    answer = await list_offsets(leader, ORDERS, OffsetSpec.LATEST, version=version)
    assert (answer.error, answer.offset) == (0, 2)
    assert answer.epoch == (0 if version >= 4 else -1)


async def test_list_offsets_by_time(leader: Connection) -> None:
    await produced(leader, "a", "b")
    found = await list_offsets(leader, ORDERS, 1)
    assert (found.offset, found.timestamp) == (0, 1)
    assert (await list_offsets(leader, ORDERS, 2)).offset == -1


@pytest.mark.parametrize("version", versions("offset_for_leader_epoch"))
async def test_epoch_ends_in_every_version(leader: Connection, version: int) -> None:
    await produced(leader, "a", "b")
    answer = await offset_for_leader_epoch(leader, ORDERS, 0, epoch=0, version=version)
    assert (answer.error, answer.epoch, answer.end_offset) == (0, 0, 2)
    fenced = await offset_for_leader_epoch(leader, ORDERS, 0, epoch=3, version=version)
    assert fenced.error == ErrorCode.UNKNOWN_LEADER_EPOCH
