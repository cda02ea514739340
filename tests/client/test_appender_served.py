"""Conditional appends, against a cluster that is served in this process and broken on purpose."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from fencepost.broker.controller import Fence
from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.faults.kinds import (
    Action,
    Delay,
    Disconnect,
    DisconnectWhen,
    Drop,
    Refuse,
    StaleMetadata,
)
from fencepost.broker.faults.registry import Fault
from fencepost.broker.faults.rules import FaultRule
from fencepost.broker.faults.selectors import Apis
from fencepost.broker.node import operator_actions
from fencepost.broker.server.server import Server
from fencepost.client import (
    Appended,
    Appender,
    AppendRefused,
    Client,
    ExpectedOffsetMismatch,
    NewRecord,
    NotChecked,
    OutcomeUnknown,
    Partition,
    encode_records,
    fetch,
    produce,
    produce_set,
)
from fencepost.client.model import OffsetSpec
from fencepost.client.partitions import list_offsets
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.errors import ErrorCode
from tests.harness.in_process_server import running
from tests.harness.scripted_broker import records
from tests.harness.wait import eventually

WAL = Partition(topic="wal", index=0)
MINE = records("a", "b", "c", "d")
CHECKED = {"check.expected.offsets": "true"}


def topic(name: str, **configs: str) -> NewTopic:
    configs = {key.replace("_", "."): value for key, value in configs.items()}
    return NewTopic(name=name, assignments=((1, 2, 3),), configs=CHECKED | configs)


TOPICS = (
    topic("wal"),
    topic("zipped", compression_type="gzip"),
    topic("stamped", message_timestamp_type="LogAppendTime"),
    topic("odd", check_expected_offsets_error_code="87"),
    topic("small", max_message_bytes="200"),
    NewTopic(name="plain", assignments=((1, 2, 3),), configs={}),
    NewTopic(name="two", assignments=((1, 2, 3), (1, 2, 3)), configs=CHECKED),
)
PRODUCE = BY_NAME["produce"]
VERSIONS = range(PRODUCE.min_version, PRODUCE.max_version + 1)


@pytest.fixture
async def server(ports: list[socket.socket]) -> AsyncIterator[Server]:
    async with running(ports, topics=TOPICS) as started:
        yield started


@pytest.fixture
async def other(client: Client, bootstrap: str) -> AsyncIterator[Client]:
    """Another process."""
    async with Client(bootstrap, client_id="other") as made:
        yield made


def fault(
    server: Server,
    action: Action,
    api: str = "produce",
    count: int | None = 1,
    client_id: str | None = None,
) -> Fault:
    rule = FaultRule(
        api=Apis((BY_NAME[api],)), action=action, count=count, client_id=client_id, source="clients"
    )
    return server.cluster.faults.add(rule)


def appender(client: Client, name: str = "wal", **settings: object) -> Appender:
    settings = {"deadline_s": 10.0, "request_timeout_s": 1.0} | settings
    return Appender(client, Partition(topic=name, index=0), **settings)  # type: ignore[arg-type]  # each of its own type


async def log_of(client: Client, name: str = "wal") -> list[str]:
    """What a consumer reads."""
    partition = Partition(topic=name, index=0)
    client.forget()
    fetched = await fetch(await client.leader(name, 0), partition, 0, wait_ms=100)
    assert fetched.error == ErrorCode.NONE
    return [(each.value or b"").decode() for each in fetched.content.records]


async def write(client: Client, *values: str) -> None:
    """Another producer, who expects nothing."""
    client.forget()
    batch = encode_records(records(*values), base_offset=-1)
    answer = await produce(await client.leader("wal", 0), WAL, batch)
    assert answer is not None
    assert answer.error == ErrorCode.NONE


# -- every version ------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
async def test_append_in_every_version(client: Client, version: int) -> None:
    append = appender(client, version=version, max_batch_records=3)
    assert await append.append(MINE, expected=0) == Appended(first_offset=0, next_offset=4)
    assert await append.append(MINE, expected=4) == Appended(first_offset=4, next_offset=8)
    with pytest.raises(ExpectedOffsetMismatch) as told:
        await append.append(MINE, expected=5)
    upcoming = 8 if version >= 8 else None
    assert (told.value.expected, told.value.upcoming, told.value.appended) == (5, upcoming, 0)
    assert await log_of(client) == ["a", "b", "c", "d"] * 2


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_lost_answer_in_every_version(client: Client, server: Server, version: int) -> None:
    hit = fault(server, Disconnect(DisconnectWhen.AFTER))
    append = appender(client, version=version)
    assert (await append.append(MINE, expected=0)).next_offset == 4
    assert hit.left == 0
    fault(server, Disconnect(DisconnectWhen.BEFORE))
    assert (await append.append(MINE, expected=4)).next_offset == 8
    assert await log_of(client) == ["a", "b", "c", "d"] * 2


# -- faults -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "action",
    [
        Disconnect(DisconnectWhen.BEFORE),
        Disconnect(DisconnectWhen.AFTER),
        Drop(),
        Refuse(ErrorCode.REQUEST_TIMED_OUT),
        Refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER),
        Refuse(ErrorCode.NOT_ENOUGH_REPLICAS),
        Refuse(ErrorCode.UNKNOWN_SERVER_ERROR),
        Delay(400),
    ],
    ids=str,
)
@pytest.mark.parametrize("idempotent", [False, True])
async def test_whatever_happens_to_the_request_it_is_there_once(
    client: Client, server: Server, action: Action, idempotent: bool
) -> None:
    append = appender(client, idempotent=idempotent, request_timeout_s=0.3)
    await append.append(MINE[:1], expected=0)
    fault(server, action)
    assert (await append.append(MINE[1:], expected=1)).next_offset == 4
    await append.append(MINE, expected=4)
    assert await log_of(client) == ["a", "b", "c", "d"] * 2


async def test_a_delayed_request_that_comes_after_its_retry_is_refused(
    client: Client, server: Server
) -> None:
    fault(server, Delay(600))
    append = appender(client, request_timeout_s=0.2)
    assert (await append.append(MINE, expected=0)).next_offset == 4
    await asyncio.sleep(0.6)
    assert await log_of(client) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("multiple", [1, 2])
async def test_the_log_end_alone_does_not_tell(
    client: Client, other: Client, server: Server, multiple: int
) -> None:
    """Others append just as many records as are lost, so that the log ends where it might."""
    fault(server, Disconnect(DisconnectWhen.BEFORE), count=None, client_id="tests")
    task = asyncio.create_task(appender(client).append(MINE, expected=0))
    await write(other, *("xyzw" * multiple))
    server.cluster.faults.remove_all()
    with pytest.raises(ExpectedOffsetMismatch) as told:
        await task
    assert (told.value.appended, told.value.upcoming) == (0, 4 * multiple)
    assert await log_of(client) == list("xyzw" * multiple)


@pytest.mark.parametrize("fate", [DisconnectWhen.BEFORE, DisconnectWhen.AFTER])
async def test_a_new_process_takes_up_the_append_of_one_that_died(
    client: Client, server: Server, fate: DisconnectWhen
) -> None:
    hit = fault(server, Disconnect(fate), count=None)
    task = asyncio.create_task(appender(client).append(MINE, expected=0))
    await eventually(lambda: hit.hits > 0)
    task.cancel()
    server.cluster.faults.remove_all()
    done = await appender(client, max_batch_records=3).append(MINE, expected=0, may_be_there=True)
    assert done.next_offset == 4
    assert await log_of(client) == ["a", "b", "c", "d"]


async def test_the_leader_dies_with_the_answer(client: Client, server: Server) -> None:
    operator_actions.hold(server.cluster, "wal", 0, 2)
    append = appender(client)
    task = asyncio.create_task(append.append(MINE, expected=0))
    await eventually_has(server, 1, 4)
    await server.kill_broker(1, Fence.NOW)
    assert (await task).next_offset == 4
    assert await log_of(client) == ["a", "b", "c", "d"]


async def eventually_has(server: Server, broker: int, end: int) -> None:
    await eventually(lambda: log_end(server, broker) >= end)


def log_end(server: Server, broker: int, name: str = "wal") -> int:
    return server.cluster.brokers[broker].replicas[name, 0].log.log_end_offset


# -- elections ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [0, 2, 4])
async def test_an_unclean_election_leaves_a_part(client: Client, server: Server, kept: int) -> None:
    """The new leader has the first batches only, or none; the rest is sent again."""
    await appender(client).append(MINE[:1], expected=0)
    operator_actions.hold(server.cluster, "wal", 0, 2, 1 + kept)
    operator_actions.hold(server.cluster, "wal", 0, 3, 1)
    append = appender(client, max_batch_records=2)
    task = asyncio.create_task(append.append(MINE, expected=1))
    await eventually_has(server, 1, 5)
    await eventually_has(server, 2, 1 + kept)
    operator_actions.elect(server.cluster, "wal", 0, 2, unclean=True)
    for broker in (2, 3):
        operator_actions.release(server.cluster, "wal", 0, broker)
    assert await task == Appended(first_offset=1, next_offset=5)
    assert await log_of(client) == ["a", "a", "b", "c", "d"]


async def test_others_come_before_the_rest(client: Client, other: Client, server: Server) -> None:
    operator_actions.hold(server.cluster, "wal", 0, 2, 2)
    operator_actions.hold(server.cluster, "wal", 0, 3, 0)
    task = asyncio.create_task(appender(client, max_batch_records=2).append(MINE, expected=0))
    await eventually_has(server, 1, 4)
    await eventually_has(server, 2, 2)
    fault(server, Disconnect(DisconnectWhen.BEFORE), count=None, client_id="tests")
    operator_actions.elect(server.cluster, "wal", 0, 2, unclean=True)
    for broker in (2, 3):
        operator_actions.release(server.cluster, "wal", 0, broker)
    await write(other, "x")
    server.cluster.faults.remove_all()
    with pytest.raises(ExpectedOffsetMismatch) as told:
        await task
    assert (told.value.appended, told.value.upcoming) == (2, 3)
    assert await log_of(client) == ["a", "b", "x"]


async def test_what_is_not_replicated_is_waited_for(client: Client, server: Server) -> None:
    for broker in (2, 3):
        operator_actions.hold(server.cluster, "wal", 0, broker)
    append = appender(client, request_timeout_s=0.2)
    task = asyncio.create_task(append.append(MINE, expected=0))
    await eventually_has(server, 1, 4)
    await asyncio.sleep(0.5)
    assert not task.done()
    for broker in (2, 3):
        operator_actions.release(server.cluster, "wal", 0, broker)
    assert (await task).next_offset == 4


async def test_what_is_never_replicated_is_not_known(client: Client, server: Server) -> None:
    for broker in (2, 3):
        operator_actions.hold(server.cluster, "wal", 0, broker)
    append = appender(client, request_timeout_s=0.2, deadline_s=2.0)
    with pytest.raises(OutcomeUnknown):
        await append.append(MINE, expected=0)
    for broker in (2, 3):
        operator_actions.release(server.cluster, "wal", 0, broker)
    assert (await append.append(MINE, expected=0)).next_offset == 4
    assert await log_of(client) == ["a", "b", "c", "d"]


async def test_a_deposed_leader_who_does_not_know_it(client: Client, server: Server) -> None:
    """Its log is short, and says nothing of the one in which the records are."""
    append = appender(client)
    await append.append(MINE, expected=0)
    operator_actions.isolate(server.cluster, 1, from_controller=True, brokers=(2, 3))
    done = await append.append(MINE, expected=4)
    assert done.next_offset == 8
    assert server.cluster.controller.partition("wal", 0).leader != 1
    fault(server, Disconnect(DisconnectWhen.AFTER))
    assert (await append.append(MINE, expected=8)).next_offset == 12
    assert log_end(server, 1) < 12
    operator_actions.rejoin(server.cluster, 1)
    assert await log_of(client) == ["a", "b", "c", "d"] * 3


async def test_stale_metadata_is_not_believed(client: Client, server: Server) -> None:
    await appender(client).append(MINE, expected=0)
    operator_actions.elect(server.cluster, "wal", 0, 2)
    fault(server, StaleMetadata(0), api="metadata", count=2)
    assert (await appender(client).append(MINE, expected=4)).next_offset == 8


@pytest.mark.parametrize("version", [12, 13])
async def test_another_topic_of_the_same_name_is_not_appended_to(
    client: Client, server: Server, version: int
) -> None:
    hit = fault(server, Disconnect(DisconnectWhen.BEFORE), count=None)
    append = appender(client, deadline_s=2.0, version=version)
    task = asyncio.create_task(append.append(MINE, expected=0))
    await eventually(lambda: hit.hits > 0)
    server.cluster.controller.delete_topics(["wal"])
    server.cluster.controller.create_topic(TOPICS[0])
    server.cluster.faults.remove_all()
    with pytest.raises(OutcomeUnknown):
        await task
    assert await log_of(client) == []


# -- topics -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["zipped", "stamped"])
async def test_a_topic_that_changes_batches(client: Client, server: Server, name: str) -> None:
    fault(server, Disconnect(DisconnectWhen.AFTER))
    assert (await appender(client, name).append(MINE, expected=0)).next_offset == 4
    assert await log_of(client, name) == ["a", "b", "c", "d"]


async def test_a_topic_with_a_code_of_its_own(client: Client) -> None:
    with pytest.raises(ExpectedOffsetMismatch, match="expected offset 3, upcoming offset 0"):
        await appender(client, "odd").append(MINE, expected=3)
    with pytest.raises(ExpectedOffsetMismatch, match=r"expected offset 3$"):
        await appender(client, "odd", version=7, mismatch_code=87).append(MINE, expected=3)


async def test_a_topic_that_does_not_check(client: Client) -> None:
    with pytest.raises(NotChecked):
        await appender(client, "plain").append(MINE, expected=3)


async def test_records_that_are_too_large(client: Client) -> None:
    large = [NewRecord(value=b"x" * 500, timestamp=1)]
    with pytest.raises(AppendRefused, match="MESSAGE_TOO_LARGE"):
        await appender(client, "small").append(large, expected=0)
    assert await log_of(client, "small") == []


async def test_idempotent_records_of_another_with_the_same_content(
    client: Client, server: Server
) -> None:
    await appender(client, idempotent=True).append(MINE, expected=0)
    fault(server, Disconnect(DisconnectWhen.BEFORE))
    with pytest.raises(ExpectedOffsetMismatch) as told:
        await appender(client, idempotent=True).append(MINE, expected=0)
    assert told.value.appended == 0


# -- several partitions -------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
async def test_several_partitions_in_one_request(client: Client, version: int) -> None:
    first, second, third = (
        Partition(topic="two", index=0),
        Partition(topic="two", index=1),
        WAL,
    )
    leader = await client.leader("two", 0)
    batch = bytes(encode_records(MINE))
    answers = await produce_set(
        leader, dict.fromkeys((first, second, third), batch), version=version
    )
    assert answers is not None
    assert [(each.error, each.base_offset) for each in answers.values()] == [(0, 0)] * 3
    later = bytes(encode_records(MINE, base_offset=4))
    refused = await produce_set(
        leader, {third: later, second: later, first: batch}, version=version
    )
    assert refused is not None
    assert list(refused) == [third, second, first]
    codes = {each: answer.error for each, answer in refused.items()}
    assert set(codes.values()) == {ErrorCode.EXPECTED_OFFSET_MISMATCH}
    errors = {each: len(answer.record_errors) for each, answer in refused.items()}
    assert errors == {third: 0, second: 0, first: int(version >= 8)}
    for partition in (first, second, third):
        end = await list_offsets(leader, partition, OffsetSpec.LATEST)
        assert end.offset == 4


async def test_several_partitions_without_an_answer(client: Client) -> None:
    leader = await client.leader("two", 0)
    assert await produce_set(leader, {WAL: encode_records(MINE)}, acks=0) is None
    assert await log_of(client) == ["a", "b", "c", "d"]
