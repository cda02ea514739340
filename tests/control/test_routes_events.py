"""Events over HTTP: a watcher receives all in order, and delays no other client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx
import pytest

from fencepost.broker.core.events import Events, Kind
from fencepost.broker.core.scheduler import ManualClock, Scheduler
from fencepost.control import lazy_app, routes_events
from fencepost.control.routes_events import EventStream
from tests.harness.control_client import Json, ok, refused
from tests.harness.in_process_server import sockets, url
from tests.harness.typed_client import produce
from tests.harness.wait import eventually

if TYPE_CHECKING:
    from fencepost.broker.server.server import Server


@asynccontextmanager
async def watching(
    control: httpx.AsyncClient, query: str = "", **headers: str
) -> AsyncIterator[AsyncIterator[list[str]]]:
    """Blocks of lines, as they come; comments left out."""
    async with control.stream("GET", f"/v1/events{query}", headers=headers) as stream:
        assert stream.status_code == 200
        assert stream.headers["content-type"].startswith("text/event-stream")
        yield _blocks(stream.aiter_lines())


async def _blocks(lines: AsyncIterator[str]) -> AsyncIterator[list[str]]:
    block: list[str] = []
    async for line in lines:
        if line and not line.startswith(":"):
            block.append(line)
        elif block:
            yield block
            block = []


async def take(blocks: AsyncIterator[list[str]], count: int) -> list[Json]:
    """The data of so many events."""
    async with asyncio.timeout(10):
        return [json.loads((await anext(blocks))[2].removeprefix("data: ")) for _ in range(count)]


async def test_an_event_has_its_name_its_id_and_all_there_is_to_say(
    server: Server, control: httpx.AsyncClient
) -> None:
    async with watching(control) as blocks:
        made = await ok(control, "POST", "/v1/topics", {"name": "t", "assignments": [[1, 2]]})
        await ok(control, "POST", "/v1/topics/t/partitions/0/elect", {"leader": 2})
        async with asyncio.timeout(10):
            verb, first, _, second = [await anext(blocks) for _ in range(4)]
    assert verb[:2] == ["id: 1", "event: verb"]
    assert first[:2] == ["id: 2", "event: topic_created"]
    data = json.loads(first[2].removeprefix("data: "))
    assert data.pop("time_ms") <= server.clock.wall_ms()
    assert data == {
        "number": 2,
        "kind": "topic_created",
        "topic": "t",
        "partition": None,
        "broker": None,
        "details": {"topic_id": made["topic_id"], "partitions": 1, "replication_factor": 2},
        "newest": 0,
        "text": "t: created, 1 partition, replication factor 2",
    }
    assert second[:2] == ["id: 4", "event: leader_changed"]
    data = json.loads(second[2].removeprefix("data: "))
    assert (data["topic"], data["partition"], data["broker"]) == ("t", 0, 2)
    election = {"leader": 2, "previous_leader": 1, "leader_epoch": 1, "unclean": False}
    assert data["details"] == election


async def test_every_verb_is_told_of(server: Server, control: httpx.AsyncClient) -> None:
    await ok(control, "POST", "/v1/topics", {"name": "t", "assignments": [[1, 2, 3]]})
    partition = "/v1/topics/t/partitions/0"
    async with watching(control) as blocks:
        told: dict[str, list[Json]] = {}
        for path, body in (
            (f"{partition}/replicas/2/hold", {"leave_isr": True}),
            (f"{partition}/replicas/2/release", None),
            (f"{partition}/replicas/2/wipe", None),
            (f"{partition}/roll", None),
            ("/v1/brokers/3/stop", None),
            ("/v1/brokers/3/start", None),
            ("/v1/brokers/3/kill", None),
            ("/v1/brokers/3/start", None),
            ("/v1/brokers/3/isolate", {"from": "controller"}),
            ("/v1/brokers/3/rejoin", None),
            ("/v1/reset", None),
        ):
            await ok(control, "POST", path, body)
            told[path] = []
        kinds = []
        states = []
        verbs = []
        while "reset" not in kinds:
            (event,) = await take(blocks, 1)
            if event["kind"] == "verb":
                verbs.append(event["text"])
                continue
            kinds.append(event["kind"])
            if event["kind"] == "broker_changed":
                states.append(event["details"]["state"])
    assert kinds[:4] == ["replica_held", "isr_changed", "replica_released", "isr_changed"]
    assert {"replica_wiped", "broker_changed"} < set(kinds)
    wanted = ["stopped", "running", "killed", "running", "isolated", "rejoined"]
    assert [state for state in states if not state.endswith("fenced")] == wanted
    assert kinds[-1] == "reset"
    assert verbs == [
        "hold t-0 broker 2 leave_isr=true",
        "release t-0 broker 2",
        "wipe t-0 broker 2",
        "roll t-0",
        "stop_broker broker 3",
        "start_broker broker 3",
        "kill_broker broker 3",
        "start_broker broker 3",
        "isolate_broker broker 3 from=controller",
        "rejoin_broker broker 3",
        "reset",
    ]


async def test_a_watcher_goes_on_where_it_was(control: httpx.AsyncClient) -> None:
    async with watching(control) as blocks:
        for name in "abc":
            await ok(control, "POST", "/v1/topics", {"name": name})
        _, first = await take(blocks, 2)
    assert first["topic"] == "a"
    for arguments in ({"query": "?since=2"}, {"query": "?since=0", "last-event-id": "2"}):
        query = arguments.pop("query")
        async with watching(control, query, **arguments) as blocks:
            topics = [each["topic"] for each in await take(blocks, 4)]
            assert topics == [None, "b", None, "c"]
    async with watching(control) as blocks:
        await ok(control, "POST", "/v1/topics", {"name": "d"})
        assert [each["topic"] for each in await take(blocks, 2)] == [None, "d"]


async def test_all_watchers_see_the_same(control: httpx.AsyncClient) -> None:
    async with watching(control) as one, watching(control) as other:
        await ok(control, "POST", "/v1/topics", {"name": "t"})
        assert await take(one, 1) == await take(other, 1)


@pytest.mark.parametrize(
    ("query", "headers", "words"),
    [
        ("?since=-1", {}, "since: input should be greater than or equal to 0"),
        ("?from=1", {}, "there is no field 'from'; there are since, follow"),
        ("", {"last-event-id": "x"}, "last-event-id: input should be a valid integer"),
    ],
)
async def test_a_wrong_place_to_begin_is_refused(
    control: httpx.AsyncClient, query: str, headers: dict[str, str], words: str
) -> None:
    control.headers.update(headers)
    status, code, message = await refused(control, "GET", f"/v1/events{query}")
    assert (status, code) == (400, "INVALID_REQUEST")
    assert words in message


async def test_a_stream_ends_with_the_server(server: Server) -> None:
    (sock,) = sockets(1)
    stop = asyncio.Event()
    serving = asyncio.ensure_future(lazy_app.serve(server, sock, stop))
    async with (
        httpx.AsyncClient(base_url=url(sock), trust_env=False, timeout=30) as client,
        watching(client) as blocks,
    ):
        stop.set()
        assert [block async for block in blocks] == []
    async with asyncio.timeout(10):
        await serving


async def test_who_is_gone_is_forgotten(
    server: Server, control: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[EventStream] = []
    watch = EventStream.watch

    def watched(self: EventStream, since: int | None = None) -> AsyncIterator[str]:
        made.append(self)
        return watch(self, since)

    monkeypatch.setattr(EventStream, "watch", watched)
    async with watching(control):
        await eventually(lambda: len(made[0]._watchers) == 1)
    await eventually(lambda: not made[0]._watchers)


async def test_nobody_is_told_before_somebody_watches(
    server: Server, control: httpx.AsyncClient
) -> None:
    await ok(control, "POST", "/v1/topics", {"name": "t"})
    await produce(server, "t")
    own = [
        server.event_metrics.record,
        server.journal.deleted_topics.record,
        server.event_log.record,
    ]
    assert server.cluster.events.listeners == own
    async with watching(control), watching(control):
        assert len(server.cluster.events.listeners) == len(own) + 1


# The feed itself


def make_feed() -> tuple[Events, EventStream]:
    events = Events(Scheduler(ManualClock(5)))
    return events, EventStream(events)


async def test_a_slow_watcher_misses_the_oldest_of_a_kind_and_is_told() -> None:
    events = Events(Scheduler(ManualClock(5)), max_of_kind=2)
    fed = EventStream(events)
    events.emit(Kind.RESET)
    slow = fed.watch()
    await anext(slow)
    for broker in range(5):
        events.emit(Kind.BROKER_CHANGED, broker=broker, state="running")
    comment, dropped, *blocks = (await anext(slow)).split("\n\n")
    assert comment == ": 3 events were missed"
    assert dropped.startswith("id: 1\nevent: events_dropped\n")
    assert '"text":"3 events are not kept any more: broker_changed"' in dropped
    assert [block.partition("\n")[0] for block in blocks] == ["id: 5", "id: 6", ""]
    events.emit(Kind.RESET)
    assert (await anext(slow)).startswith("id: 7\nevent: reset\n")


async def test_a_watcher_without_news_is_kept_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes_events, "KEEP_ALIVE_S", 0.001)
    events, fed = make_feed()
    stream = fed.watch()
    texts = [await anext(stream) for _ in range(3)]
    assert all(text.startswith(":") and text.endswith("\n\n") for text in texts)
    events.emit(Kind.RESET)
    assert (await anext(stream)).startswith("id: 1\n")


async def test_what_happens_before_the_first_turn_is_not_lost() -> None:
    events, fed = make_feed()
    stream = fed.watch()
    events.emit(Kind.RESET)
    fed.close()
    assert [text async for text in stream] == [": still here\n\n"]
    again = EventStream(events).watch()
    events.emit(Kind.RESET)
    await anext(again)
    assert (await anext(again)).startswith("id: 2\n")


async def test_a_number_from_before_a_restart_is_no_harm() -> None:
    events, fed = make_feed()
    stream = fed.watch(since=1000)
    events.emit(Kind.RESET)
    await anext(stream)
    assert (await anext(stream)).startswith("id: 1\n")


# From the start on


async def kept(control: httpx.AsyncClient, query: str = "") -> list[Json]:
    """All events that are kept, as lines."""
    answer = await control.get(f"/v1/events?follow=false{query}")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/x-ndjson")
    return [json.loads(line) for line in answer.text.splitlines()]


async def test_events_are_kept_from_the_start_and_through_a_reset(
    control: httpx.AsyncClient,
) -> None:
    await ok(control, "POST", "/v1/topics", {"name": "t"})
    await ok(control, "POST", "/v1/reset")
    await ok(control, "POST", "/v1/topics", {"name": "u"})
    texts = [event["text"] for event in await kept(control)]
    assert texts == [
        "create_topic name=t",
        "t: created, 1 partition, replication factor 1",
        "reset",
        "---- reset ----",
        "t: deleted",
        "create_topic name=u",
        "u: created, 1 partition, replication factor 1",
    ]
    assert [event["text"] for event in await kept(control, "&since=5")] == texts[5:]
    assert await kept(control, "&since=99") == []


async def test_a_verb_that_is_refused_says_so(control: httpx.AsyncClient) -> None:
    await refused(control, "POST", "/v1/brokers/9/kill")
    await refused(control, "POST", "/v1/faults", {"api": "Produc", "action": "drop"})
    texts = [event["text"] for event in await kept(control)]
    assert texts[0] == "kill_broker broker 9"
    assert texts[1].startswith("kill_broker broker 9: refused, there is no broker 9")
    assert texts[1].endswith("(BROKER_ID_NOT_REGISTERED)")
    assert texts[2] == "add_fault api=Produc, action=drop"
    assert texts[3].endswith("(INVALID_REQUEST)")


async def test_what_only_looks_is_no_event(control: httpx.AsyncClient) -> None:
    for path in ("/v1/cluster", "/v1/topics", "/v1/trace", "/v1/faults"):
        await ok(control, "GET", path)
    assert await kept(control) == []


async def test_long_arguments_are_shortened(control: httpx.AsyncClient) -> None:
    assignments = [[1, 2]] * 12
    await ok(control, "POST", "/v1/topics", {"name": "t" * 249, "assignments": assignments})
    (verb, *_) = await kept(control)
    assert verb["details"]["arguments"]["name"] == "t" * 200 + "..."
    assert verb["details"]["arguments"]["assignments"][9:] == [[1, 2], "... 2"]


async def test_an_event_has_its_place_among_the_requests(
    server: Server, control: httpx.AsyncClient
) -> None:
    await ok(control, "POST", "/v1/topics", {"name": "t", "assignments": [[1]]})
    await produce(server, "t")
    await ok(control, "POST", "/v1/topics/t/partitions/0/elect", {"leader": 1})
    (exchange,) = await ok(control, "GET", "/v1/trace?api=Produce")
    (before, *_, after) = await kept(control)
    assert before["newest"] < exchange["number"] <= after["newest"]
