"""The consumer over sockets, against a cluster of three brokers in this process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from fencepost.broker.controller import Fence
from fencepost.broker.node import operator_actions
from fencepost.broker.server.server import Server
from fencepost.client import (
    Client,
    Consumer,
    ConsumerRecords,
    LogTruncationError,
    NewRecord,
    NoOffsetForPartitionError,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    Partition,
    TimedOut,
    encode_records,
    find_leader,
    produce,
)
from fencepost.client.asyncio_consumer import ConsumerRebalanceListener
from tests.harness.in_process_server import asked_by_clients

ORDERS = Partition(topic="orders", index=0)
MANY = [Partition(topic="many", index=index) for index in range(4)]
POLL_S = 20.0


async def write(client: Client, *values: str, partition: Partition = ORDERS, time: int = 0) -> None:
    found = await find_leader(client, partition, last=None, timeout_s=POLL_S)
    leader = await client.broker(found.broker)
    records = [NewRecord(value=each.encode(), timestamp=time) for each in values]
    answer = await produce(leader, partition, encode_records(records))
    assert answer is not None
    assert answer.error == 0


async def read(consumer: Consumer, count: int) -> list[str]:
    found: list[str] = []
    while len(found) < count:
        records = await consumer.poll(timeout_s=POLL_S)
        assert records, "no record came"
        found += [(each.value or b"").decode() for each in records]
    return found


def at(offset: int, epoch: int | None = None) -> OffsetAndMetadata:
    return OffsetAndMetadata(offset=offset, leader_epoch=epoch)


@pytest.fixture
async def consumer(server: Server, bootstrap: str) -> AsyncIterator[Consumer]:
    async with Consumer(bootstrap, client_id="c", auto_offset_reset="none", group_id="g") as made:
        made.assign([ORDERS])
        yield made


def truncate(server: Server) -> None:
    """Broker 3 leads from where it was held; the others truncate to that."""
    operator_actions.elect(server.cluster, "orders", 0, 3, unclean=True)
    operator_actions.release(server.cluster, "orders", 0, 3)


def fall_behind(server: Server) -> None:
    operator_actions.hold(server.cluster, "orders", 0, 3, leave_isr=True)


async def test_it_reads_commits_and_goes_on(
    client: Client, consumer: Consumer, bootstrap: str
) -> None:
    await write(client, "a", "b")
    consumer.seek(ORDERS, 0)
    records = await consumer.poll(timeout_s=POLL_S)
    assert [each.value for each in records] == [b"a", b"b"]
    assert records.next_offsets == {ORDERS: at(2, 0)}
    assert await consumer.position(ORDERS) == at(2, 0)
    await consumer.commit()
    assert await consumer.committed([ORDERS, MANY[0]]) == {ORDERS: at(2, 0), MANY[0]: None}
    await write(client, "c")
    async with Consumer(bootstrap, auto_offset_reset="none", group_id="g") as other:
        other.assign([ORDERS])
        assert await read(other, 1) == ["c"]
        await other.commit({ORDERS: at(1)})
    assert await consumer.committed([ORDERS]) == {ORDERS: at(1)}
    assert consumer.group_metadata.group == "g"


async def test_offsets_are_looked_up(client: Client, consumer: Consumer) -> None:
    await write(client, "a", time=5)
    await write(client, "b", time=9)
    found = await consumer.offsets_for_times({ORDERS: 6, MANY[1]: 6})
    expected = OffsetAndTimestamp(offset=1, timestamp=9, leader_epoch=0)
    assert found == {ORDERS: expected, MANY[1]: None}
    assert await consumer.beginning_offsets([ORDERS, MANY[1]]) == {ORDERS: 0, MANY[1]: 0}
    assert await consumer.end_offsets([ORDERS, MANY[1]]) == {ORDERS: 2, MANY[1]: 0}
    with pytest.raises(ValueError, match="a timestamp is 0 or later"):
        await consumer.offsets_for_times({ORDERS: -1})


async def test_a_poll_waits_for_records_and_not_longer(client: Client, consumer: Consumer) -> None:
    consumer.seek(ORDERS, 0)
    assert not await consumer.poll(timeout_s=0.05)
    assert await consumer.poll(timeout_s=0) == ConsumerRecords()
    waiting = asyncio.create_task(read(consumer, 1))
    await asyncio.sleep(0)
    await write(client, "a")
    assert await waiting == ["a"]


async def test_a_truncation_while_fetching_is_told(
    server: Server, client: Client, consumer: Consumer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "fencepost.client.consumer")
    await write(client, "a", "b")
    fall_behind(server)
    await write(client, "c", "d")
    consumer.seek(ORDERS, 0)
    assert await read(consumer, 4) == ["a", "b", "c", "d"]
    truncate(server)
    await write(client, "x")
    with pytest.raises(LogTruncationError) as told:
        await consumer.poll(timeout_s=POLL_S)
    assert told.value.divergent_offsets == {ORDERS: at(2, 0)}
    # It is looked for again each time, also when nothing else is to be done.
    for _ in range(2):
        with pytest.raises(LogTruncationError):
            await consumer.position(ORDERS, timeout_s=POLL_S)
    consumer.seek(ORDERS, told.value.divergent_offsets[ORDERS])
    assert await read(consumer, 1) == ["x"]
    assert {each.position for each in consumer.truncations} == {at(4, 0)}
    assert "orders-0 was truncated below offset 4; divergent offset: 2" in caplog.messages


@pytest.mark.parametrize("policy", ["earliest", "latest"])
async def test_a_truncation_while_away_resets_by_policy(
    server: Server, client: Client, bootstrap: str, policy: str
) -> None:
    await write(client, "a", "b")
    fall_behind(server)
    await write(client, "c", "d")
    async with Consumer(bootstrap, auto_offset_reset="earliest", group_id="g") as first:
        first.assign([ORDERS])
        await read(first, 4)
        await first.commit()
    truncate(server)
    await write(client, "x", "y", "z")
    async with Consumer(bootstrap, auto_offset_reset=policy, group_id="g") as second:
        second.assign([ORDERS])
        assert await second.position(ORDERS) == at(2, 0)
        assert await read(second, 3) == ["x", "y", "z"]
        (truncation,) = second.truncations
        assert (truncation.position, truncation.divergent_offset) == (at(4, 0), at(2, 0))


async def test_a_seek_with_an_epoch_is_validated(
    server: Server, client: Client, consumer: Consumer
) -> None:
    await write(client, "a", "b")
    fall_behind(server)
    await write(client, "c", "d")
    truncate(server)
    await write(client, "x", "y", "z")
    consumer.seek(ORDERS, 3, leader_epoch=0)
    with pytest.raises(LogTruncationError) as told:
        await consumer.poll(timeout_s=POLL_S)
    assert told.value.divergent_offsets == {ORDERS: at(2, 0)}
    consumer.seek(ORDERS, at(3))
    assert await read(consumer, 2) == ["y", "z"]


async def test_it_survives_its_leader(server: Server, client: Client, consumer: Consumer) -> None:
    await write(client, "a")
    consumer.seek(ORDERS, 0)
    await read(consumer, 1)
    await server.kill_broker(1, Fence.NOW)
    await write(client, "b")
    assert await read(consumer, 1) == ["b"]


async def test_paused_partitions_wait(client: Client, consumer: Consumer) -> None:
    await write(client, "a")
    consumer.seek(ORDERS, 0)
    consumer.pause(ORDERS)
    assert not await consumer.poll(timeout_s=0.05)
    consumer.resume(ORDERS)
    assert await read(consumer, 1) == ["a"]


async def test_it_goes_to_the_beginning_and_to_the_end(client: Client, consumer: Consumer) -> None:
    await write(client, "a", "b")
    consumer.seek_to_end(ORDERS)
    assert await consumer.position(ORDERS) == at(2)
    consumer.seek_to_beginning(ORDERS)
    assert await read(consumer, 2) == ["a", "b"]


async def test_several_partitions_are_read_together(client: Client, bootstrap: str) -> None:
    for each in MANY:
        await write(client, f"v{each.index}", partition=each)
    async with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign(MANY)
        assert consumer.assignment == set(MANY)
        assert sorted(await read(consumer, 4)) == ["v0", "v1", "v2", "v3"]


async def test_between_two_polls_nothing_is_fetched(
    server: Server, client: Client, consumer: Consumer
) -> None:
    await write(client, "a")
    consumer.seek(ORDERS, 0)
    await read(consumer, 1)
    await consumer.commit()
    fetches = [each for each in asked_by_clients(server) if each.api.name == "fetch"]
    await write(client, "b")
    await consumer.committed([ORDERS])
    later = [each for each in asked_by_clients(server) if each.api.name == "fetch"]
    assert len(later) <= len(fetches) + 1, "at most one was under way"


async def test_what_takes_too_long_says_why(bootstrap: str, server: Server) -> None:
    async with Consumer(bootstrap, group_id="g") as consumer:
        gone = Partition(topic="gone", index=0)
        with pytest.raises(TimedOut, match=r"not within 0\.05 s: "):
            await consumer.end_offsets([gone], timeout_s=0.05)
        consumer.assign([gone])
        with pytest.raises(TimedOut, match="gone-0 has no valid position yet"):
            await consumer.position(gone, timeout_s=0.05)


async def test_what_is_raised_can_be_raised_again(consumer: Consumer) -> None:
    for _ in range(2):
        with pytest.raises(NoOffsetForPartitionError):
            await consumer.poll(timeout_s=POLL_S)


async def test_a_closed_consumer_does_nothing(consumer: Consumer) -> None:
    await consumer.close()
    await consumer.close()
    with pytest.raises(ValueError, match="the consumer is closed"):
        await consumer.poll(timeout_s=0)


async def test_a_consumer_that_was_never_used_closes(server: Server, bootstrap: str) -> None:
    async with Consumer(bootstrap) as consumer:
        consumer.assign([ORDERS])


async def test_an_error_of_its_own_is_raised_and_does_not_hang(
    consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(consumer._core, "turn", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        await consumer.poll(timeout_s=POLL_S)
    with pytest.raises(RuntimeError, match="a bug"):
        await consumer.committed([ORDERS])


async def test_an_error_with_an_answer_is_raised_too(
    client: Client, consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(consumer._core, "answered", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        await consumer.poll(timeout_s=POLL_S)


# -- groups -------------------------------------------------------------------------------------


class Listener(ConsumerRebalanceListener):
    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.told: list[tuple[str, int]] = []

    async def on_partitions_assigned(self, partitions: frozenset[Partition]) -> None:
        self.told.append(("assigned", len(partitions)))

    async def on_partitions_revoked(self, partitions: frozenset[Partition]) -> None:
        await self.consumer.commit()
        self.told.append(("revoked", len(partitions)))


async def test_members_share_the_partitions_and_hand_them_over(
    client: Client, bootstrap: str
) -> None:
    for each in MANY:
        await write(client, "a", partition=each)
    async with Consumer(
        bootstrap, group_id="g", auto_offset_reset="earliest", heartbeat_interval_ms=50
    ) as first:
        listener = Listener(first)
        first.subscribe(["many"], listener=listener)
        await read(first, 4)
        assert first.assignment == set(MANY)
        async with Consumer(bootstrap, group_id="g", auto_offset_reset="none") as second:
            second.subscribe(["many"])
            async with asyncio.timeout(POLL_S):
                while not (first.assignment and second.assignment):
                    await asyncio.gather(first.poll(timeout_s=0.05), second.poll(timeout_s=0.05))
            assert first.assignment | second.assignment == set(MANY)
            assert (len(first.assignment), len(second.assignment)) == (2, 2)
            for each in second.assignment:
                assert await second.position(each) == at(1, 0), "as it was committed"
            for each in MANY:
                await write(client, "b", partition=each)
            for values in await asyncio.gather(read(first, 2), read(second, 2)):
                assert values == ["b", "b"]
        async with asyncio.timeout(POLL_S):
            while len(first.assignment) < 4:
                await first.poll(timeout_s=0.05)
        assert listener.told[:2] == [("assigned", 4), ("revoked", 4)]
        told = len(listener.told)
        await first.unsubscribe()
        assert listener.told[told:] == [("revoked", 4)]
        assert first.assignment == set()
        assert first.group_metadata.member_id == ""
