"""Verbs from asyncio: the loop goes on, calls run at once, and a cancelled call delays no other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from fencepost.verbs.answers.cluster import EventState
from fencepost.verbs.catalogue import VERBS
from fencepost.verbs.methods import AsyncVerbs
from fencepost.verbs.remote import Refused, Unreachable
from fencepost.verbs.remote_async import AsyncRemote
from tests.harness.fake_control_api import FakeControlApi, Reply, Then, ok, refusal
from tests.verbs.test_remote import SILENT, TOPIC, events


@pytest.fixture
async def remote(stub: FakeControlApi) -> AsyncIterator[AsyncRemote]:
    made = AsyncRemote(stub.url, timeout_s=5)
    yield made
    made.close()


@pytest.fixture
def verbs(remote: AsyncRemote) -> AsyncVerbs:
    return AsyncVerbs(remote)


async def test_one_thing_and_a_list(stub: FakeControlApi, verbs: AsyncVerbs) -> None:
    stub.will(ok({"status": "ok"}), ok([TOPIC]))
    assert (await verbs.healthz()).status == "ok"
    assert [topic.name for topic in await verbs.topics()] == ["orders"]
    assert [asked.target for asked in stub.asked] == ["/healthz", "/v1/topics"]


async def test_refusals_and_a_cluster_that_is_not_there(
    stub: FakeControlApi, verbs: AsyncVerbs
) -> None:
    stub.will(refusal(404, "RESOURCE_NOT_FOUND", "there is no fault 7"))
    with pytest.raises(Refused, match="there is no fault 7"):
        await verbs.remove_fault(7)
    stub.will(Reply(content=None, then=Then.CLOSE))
    with pytest.raises(Unreachable):
        await verbs.reset()


async def test_one_connection_is_kept_while_one_asks_after_the_other(
    stub: FakeControlApi, verbs: AsyncVerbs
) -> None:
    for _ in range(5):
        await verbs.reset()
    assert {asked.connection for asked in stub.asked} == {1}


async def test_a_wait_lets_others_ask(stub: FakeControlApi, verbs: AsyncVerbs) -> None:
    stub.will(SILENT, ok({}))
    waiting = asyncio.ensure_future(verbs.wait_for_trace(timeout_ms=200))
    await asyncio.to_thread(stub.wait_for, 1)
    await verbs.reset()
    assert not waiting.done()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_who_is_cancelled_leaves_no_connection_open(
    stub: FakeControlApi, remote: AsyncRemote, verbs: AsyncVerbs
) -> None:
    """At whatever moment: before it asks, while it waits, or with the answer there."""
    for moments in range(40):
        asking = asyncio.ensure_future(verbs.reset())
        for _ in range(moments):
            await asyncio.sleep(0)
        asking.cancel()
        with suppress(asyncio.CancelledError):
            await asking
    await verbs.reset()
    remote.close()
    await asyncio.to_thread(stub.wait_for_all_closed)


async def test_a_stream_to_its_end(stub: FakeControlApi, verbs: AsyncVerbs) -> None:
    stub.will(events(1, 2))
    assert [event.number async for event in verbs.events()] == [1, 2]


async def test_a_stream_that_was_opened(stub: FakeControlApi, remote: AsyncRemote) -> None:
    stub.will(events(1))
    stream = await remote.open_stream(VERBS["events"], EventState, {}, {})
    assert len(stub.asked) == 1
    assert [event.number async for event in stream] == [1]
    stub.will(refusal(400, "INVALID_REQUEST", "since: too small"))
    with pytest.raises(Refused, match="since: too small"):
        await remote.open_stream(VERBS["events"], EventState, {}, {"since": 1})


async def test_who_is_cancelled_while_a_stream_opens_leaves_no_connection(
    stub: FakeControlApi,
) -> None:
    stub.will(SILENT)
    remote = AsyncRemote(stub.url, timeout_s=60)
    opening = asyncio.ensure_future(remote.open_stream(VERBS["events"], EventState, {}, {}))
    await asyncio.to_thread(stub.wait_for, 1)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    await asyncio.to_thread(stub.wait_for_all_closed)


async def test_a_stream_may_be_left(stub: FakeControlApi, verbs: AsyncVerbs) -> None:
    stub.will(events(1, then=Then.WAIT))
    told = verbs.events()
    assert (await anext(told)).number == 1
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(told), 0.01)


async def test_a_stream_that_is_refused(stub: FakeControlApi, verbs: AsyncVerbs) -> None:
    stub.will(refusal(400, "INVALID_REQUEST", "since: too small"))
    with pytest.raises(Refused, match="since: too small"):
        await anext(verbs.events(since=1))


def test_a_loop_ends_while_a_wait_or_a_stream_hears_nothing(stub: FakeControlApi) -> None:
    """`asyncio.run` waits for the threads of its loop: they must not wait for the cluster."""

    async def leave() -> None:
        verbs = AsyncVerbs(AsyncRemote(stub.url, timeout_s=60))
        told = verbs.events()
        assert (await anext(told)).number == 1
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(told), 0.01)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(verbs.wait_for_trace(timeout_ms=60_000), 0.01)
        verbs.remote.close()

    stub.will(events(1, then=Then.WAIT), SILENT)
    asyncio.run(asyncio.wait_for(leave(), 5))
