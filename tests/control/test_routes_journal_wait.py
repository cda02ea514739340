"""To wait for a request that is yet to come, or yet to be answered."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.control.traces import fetch, replicated, topic, trace
from tests.harness.control_client import Json, ok, refused
from tests.harness.typed_client import kafka, produce
from tests.harness.typed_requests import list_offsets_request
from tests.harness.wait import eventually

if TYPE_CHECKING:
    import httpx

    from fencepost.broker.server.server import Server


async def wait_for(control: httpx.AsyncClient, **filters: object) -> Json:
    query = "&".join(f"{name}={value}" for name, value in filters.items())
    return await ok(control, "GET", f"/v1/trace/wait?{query}")


async def test_a_wait_ends_with_the_answer_to_a_request_that_fits(
    server: Server, control: httpx.AsyncClient
) -> None:
    waits = [
        asyncio.ensure_future(wait_for(control, **filters))
        for filters in (
            {"topic": "t", "api": "Fetch"},
            {"client_id": "late"},
            {"api": "list_offsets", "error": "UNKNOWN_TOPIC_OR_PARTITION"},
        )
    ]
    await eventually(lambda: len(server.journal.listeners) == 3)
    topic_id = await topic(control, "t")  # a wait may be for what is not there yet
    async with kafka(server, 1, "early") as early, kafka(server, 1, "late") as late:
        await early.ask("list_offsets", 5, list_offsets_request("t"))
        await early.send("fetch", 13, fetch(topic_id, max_wait_ms=30_000))
        await late.ask("list_offsets", 5, list_offsets_request("gone"))
        by_client, by_error = [await wait for wait in waits[1:]]
        assert not waits[0].done()
        await produce(server, "t")
        await early.answer("fetch", 13)
    by_topic = await waits[0]
    assert (by_topic["api"], by_topic["client_id"]) == ("Fetch", "early")
    assert by_topic["response"]["responses"] != []
    assert by_client == by_error
    assert by_client["response"]["topics"][0]["name"] == "gone"
    await eventually(lambda: server.journal.listeners == [])


async def test_a_wait_takes_the_oldest_that_is_there_already(
    server: Server, control: httpx.AsyncClient
) -> None:
    await topic(control, "t")
    async with kafka(server, 1) as client:
        for _ in range(20):
            await client.ask("list_offsets", 5, list_offsets_request("t"))
    everything = await trace(control)
    assert await wait_for(control, topic="t") == everything[0]
    assert await wait_for(control, topic="t", timeout_ms=0) == everything[0]
    assert await wait_for(control, topic="t", since=everything[0]["number"]) == everything[1]


async def test_a_wait_for_what_does_not_come_is_told_so(
    server: Server, control: httpx.AsyncClient
) -> None:
    await topic(control, "t")
    async with kafka(server, 1) as client:
        await client.ask("list_offsets", 5, list_offsets_request("t"))
    query = "api=Fetch&client_id=me&topic=t&timeout_ms=1"
    status, code, message = await refused(control, "GET", f"/v1/trace/wait?{query}")
    assert (status, code) == (409, "REQUEST_TIMED_OUT")
    assert message == (
        "no Fetch by client me about topic t was answered within 1 ms; "
        "of other requests 0 came meanwhile"
    )
    assert server.journal.listeners == []


async def test_a_wait_may_be_for_a_request_between_brokers(
    server: Server, control: httpx.AsyncClient
) -> None:
    await replicated(control)
    number = (await trace(control, source="all"))[-1]["number"]
    waiting = asyncio.ensure_future(wait_for(control, client_id="broker-3-fetcher-0", since=number))
    await eventually(lambda: len(server.journal.listeners) == 1)
    await ok(control, "POST", "/v1/topics/t/partitions/0/replicas/3/step")
    found = await waiting
    assert (found["api"], found["broker"]) == ("Fetch", 1)


async def test_a_request_whose_client_has_gone_is_over(
    server: Server, control: httpx.AsyncClient
) -> None:
    topic_id = await topic(control, "t")
    waiting = asyncio.ensure_future(wait_for(control, api="Fetch"))
    await eventually(lambda: len(server.journal.listeners) == 1)
    async with kafka(server, 1) as client:
        await client.send("fetch", 13, fetch(topic_id, max_wait_ms=30_000))
    found = await waiting
    assert (found["response"], found["answered_ms"], found["elapsed_us"]) == (None, None, None)


async def test_nobody_waits_on_for_an_asker_who_has_gone(
    server: Server, control: httpx.AsyncClient
) -> None:
    waiting = asyncio.ensure_future(wait_for(control, timeout_ms=60_000))
    await eventually(lambda: len(server.journal.listeners) == 1)
    waiting.cancel()
    await eventually(lambda: server.journal.listeners == [])
