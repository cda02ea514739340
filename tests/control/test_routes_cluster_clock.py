"""Time: the wall clock's, or a test's own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import pytest

from fencepost.broker.core.scheduler import Clock, ManualClock
from fencepost.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from fencepost.protocol.messages.metadata import MetadataRequest
from tests.harness.control_client import Json, ok, refused
from tests.harness.in_process_server import asked_by_clients
from tests.harness.typed_client import kafka, produce
from tests.harness.wait import eventually

if TYPE_CHECKING:
    import httpx

    from fencepost.broker.server.server import Server

START_MS: Final = 1_700_000_000_000
LAG_MS: Final = 30_000
"""``replica.lag.time.max.ms``."""


async def test_nobody_advances_the_real_clock(control: httpx.AsyncClient) -> None:
    status, code, message = await refused(control, "POST", "/v1/clock/advance", {"ms": 1})
    assert (status, code) == (400, "INVALID_REQUEST")
    assert "--clock manual" in message


class TestManual:
    @pytest.fixture
    def clock(self) -> Clock:
        return ManualClock(START_MS)

    @staticmethod
    async def advance(control: httpx.AsyncClient, ms: int) -> Json:
        return await ok(control, "POST", "/v1/clock/advance", {"ms": ms})

    async def test_it_goes_just_as_far_as_it_is_told(self, control: httpx.AsyncClient) -> None:
        shown = await ok(control, "GET", "/v1/cluster")
        assert shown["clock"] == {"mode": "manual", "now_ms": START_MS}
        for ms, now_ms in ((0, START_MS), (1, START_MS + 1), (10**7, START_MS + 1 + 10**7)):
            assert await self.advance(control, ms) == {"mode": "manual", "now_ms": now_ms}
        shown = await ok(control, "GET", "/v1/cluster")
        assert shown["clock"]["now_ms"] == START_MS + 1 + 10**7

    async def test_what_is_due_has_happened_when_it_answers(
        self, server: Server, control: httpx.AsyncClient
    ) -> None:
        await ok(control, "POST", "/v1/topics", {"name": "t", "assignments": [[1, 2, 3]]})
        await ok(control, "POST", "/v1/topics/t/partitions/0/replicas/3/hold")
        await produce(server, "t", acks=1)
        await self.advance(control, LAG_MS)
        state = await ok(control, "GET", "/v1/topics/t/partitions/0")
        assert state["isr"] == [1, 2, 3]
        await self.advance(control, LAG_MS // 2)
        state = await ok(control, "GET", "/v1/topics/t/partitions/0")
        assert (state["isr"], state["high_watermark"]) == ([1, 2], 1)

    async def test_a_long_poll_ends_at_its_time_and_is_answered(
        self, server: Server, control: httpx.AsyncClient
    ) -> None:
        await ok(control, "POST", "/v1/topics", {"name": "t", "assignments": [[1, 2, 3]]})
        wanted = FetchPartition(partition_max_bytes=99)
        topic = FetchTopic(topic="t", partitions=(wanted,))
        request = FetchRequest(max_wait_ms=500, min_bytes=1, topics=(topic,))
        async with kafka(server, 1) as client:
            await client.send("fetch", 12, request)
            await eventually(lambda: len(asked_by_clients(server)) == 1)
            await self.advance(control, 499)
            assert [exchange.done for exchange in asked_by_clients(server)] == [False]
            await self.advance(control, 1)
            assert [exchange.done for exchange in asked_by_clients(server)] == [True]
            async with asyncio.timeout(10):
                assert (await client.answer("fetch", 12)).responses

    async def test_everything_on_the_way_happens_in_order_and_at_its_time(
        self, server: Server, control: httpx.AsyncClient
    ) -> None:
        scheduler, ran = server.cluster.scheduler, []

        def fail() -> None:
            ran.append(scheduler.now_ms())
            scheduler.at(scheduler.now_ms() + 5, lambda: ran.append(scheduler.now_ms()))
            raise RuntimeError("a bug")

        scheduler.at(START_MS + 20, lambda: ran.append(scheduler.now_ms()))
        scheduler.at(START_MS + 10, fail)
        assert (await self.advance(control, 30))["now_ms"] == START_MS + 30
        assert ran == [START_MS + 10, START_MS + 15, START_MS + 20]

    async def test_clients_are_not_cut_off_for_the_time_that_passes(
        self, server: Server, control: httpx.AsyncClient
    ) -> None:
        async with kafka(server, 1) as client:
            await client.ask("metadata", 12, MetadataRequest(topics=None))
            await self.advance(control, 3600 * 1000)
            assert server._idle_check is None, "no timer closes what was silent for an hour"
            assert await client.ask("metadata", 12, MetadataRequest(topics=None))

    @pytest.mark.parametrize(
        ("body", "words"),
        [
            ({}, "ms: field required"),
            ({"ms": -1}, "ms: input should be greater than or equal to 0"),
            ({"ms": 1.5}, "ms: input should be a valid integer"),
            ({"ms": 10**18}, "ms: input should be less than or equal to 2678400000"),
        ],
    )
    async def test_what_is_no_time_is_refused(
        self, control: httpx.AsyncClient, body: Json, words: str
    ) -> None:
        status, code, message = await refused(control, "POST", "/v1/clock/advance", body)
        assert (status, code) == (400, "INVALID_REQUEST")
        assert words in message
