"""The timeline: verbs, events and requests in one order, and repetitions in one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from fencepost.control.timeline import timeline_lines, trimmed
from fencepost.protocol.messages.find_coordinator import FindCoordinatorRequest
from fencepost.verbs.answers.cluster import EventState, ExchangeState, TimelineLine
from fencepost.verbs.bodies import MAX_LISTED
from tests.harness.control_client import Json, ok
from tests.harness.typed_client import kafka, produce

if TYPE_CHECKING:
    import httpx

    from fencepost.broker.server.server import Server

EXAMPLE: Final = ExchangeState.examples[0]
NO_ANSWER: Final = None
ANSWERED: Final[Json] = {"error_code": 0}
REFUSED: Final[Json] = {"error_code": 6}


def request(number: int, api: str = "Metadata", answer: Json | None = ANSWERED) -> ExchangeState:
    fields: Json = {
        "number": number,
        "time_ms": number,
        "api": api,
        "version": 1,
        "client_id": "shop",
        "request": {},
        "response": answer,
        "elapsed_us": 10,
    }
    return ExchangeState.model_validate({**EXAMPLE, **fields})


def event(
    number: int,
    newest: int,
    kind: str = "broker_changed",
    topic: str | None = None,
    **details: object,
) -> EventState:
    return EventState(
        number=number,
        kind=kind,
        time_ms=newest,
        topic=topic,
        partition=None,
        broker=None,
        details=details,
        newest=newest,
        text=f"{kind} {number}",
    )


def lines(
    events: Iterable[EventState] = (),
    exchanges: Iterable[ExchangeState] = (),
    left_out: Counter[str] | None = None,
) -> list[TimelineLine]:
    return timeline_lines(events, exchanges, Counter() if left_out is None else left_out)


def told(found: Sequence[TimelineLine]) -> list[tuple[str, int]]:
    return [(line.text.removeprefix("shop -> 1  "), line.times) for line in found]


def test_events_stand_behind_the_newest_request_before_them() -> None:
    found = lines([event(2, 1), event(1, 0), event(3, 2)], [request(2, "Fetch"), request(1)])
    assert [(line.kind, line.text[-8:]) for line in found] == [
        ("event", "hanged 1"),
        ("request", "a v1: ok"),
        ("event", "hanged 2"),
        ("request", "h v1: ok"),
        ("event", "hanged 3"),
    ]


def test_answered_requests_share_a_line_until_something_happens() -> None:
    exchanges = [request(n, "Fetch" if n % 3 else "Heartbeat") for n in range(1, 9)]
    found = lines([event(1, 4, "verb")], exchanges)
    assert told(found) == [
        ("Fetch v1: ok", 3),
        ("Heartbeat v1: ok", 1),
        ("verb 1", 1),
        ("Fetch v1: ok", 3),
        ("Heartbeat v1: ok", 1),
    ]
    assert (found[0].time_ms, found[0].until_ms) == (1, 4)


def test_a_failed_request_separates_those_before_from_those_after() -> None:
    found = lines([], [request(1), request(2), request(3, answer=NO_ANSWER), request(4)])
    assert told(found) == [
        ("Metadata v1: ok", 2),
        ("Metadata v1: no answer", 1),
        ("Metadata v1: ok", 1),
    ]


def test_a_repeated_group_of_lines_is_told_once() -> None:
    hits = [event(n, 2 * n - 1, "fault_hit", id=1) for n in range(1, 6)]
    exchanges = [request(n, answer=REFUSED if n % 2 else ANSWERED) for n in range(1, 11)]
    assert told(lines(hits, exchanges)) == [
        ("Metadata v1: NOT_LEADER_OR_FOLLOWER", 5),
        ("fault_hit 1", 5),
        ("Metadata v1: ok", 5),
    ]


def test_verbs_and_elections_never_share_a_line() -> None:
    events = [event(n, 0, "verb") for n in (1, 2)]
    events += [event(n, 0, "leader_changed", "t", leader=1) for n in (3, 4)]
    assert len(lines(events)) == 4


def test_a_crowd_of_events_is_counted() -> None:
    events = [
        event(n, 0, kind, "t") for n in range(1, 41) for kind in ("leader_changed", "isr_changed")
    ]
    texts = [line.text for line in lines(events)]
    assert texts[6:] == ["37 more leader_changed of t", "37 more isr_changed of t"]


def test_telemetry_and_internal_topics_are_left_out_unless_they_matter() -> None:
    left_out: Counter[str] = Counter()
    internal = "__consumer_offsets"
    found = lines(
        [
            event(1, 0, "leader_changed", internal, leader=2),
            event(2, 0, "leader_changed", internal, leader=-1),
            event(3, 0, "replica_failed", internal),
        ],
        [request(1, "PushTelemetry"), request(2, "PushTelemetry", REFUSED)],
        left_out,
    )
    assert [line.text[-22:].strip() for line in found] == [
        "leader_changed 2",
        "replica_failed 3",
        "NOT_LEADER_OR_FOLLOWER",
    ]
    assert left_out == {"events of internal topics": 1, "telemetry requests": 1}


def test_too_many_lines_lack_the_middle() -> None:
    found = lines([event(n, 0, "verb") for n in range(1, 21)])
    shown = [line.text for line in trimmed(found, 8)]
    assert shown[:3] == ["verb 1", "verb 2", "... 13 lines are left out ..."]
    assert shown[3:] == [f"verb {n}" for n in range(16, 21)]
    assert trimmed(found, 20) == found


# -- over HTTP ----------------------------------------------------------------------------------


async def test_a_timeline_has_what_happened_and_the_state_at_the_end(
    server: Server, control: httpx.AsyncClient
) -> None:
    await ok(control, "POST", "/v1/topics", {"name": "t", "assignments": [[1, 2]]})
    await produce(server, "t")
    await ok(control, "POST", "/v1/brokers/1/kill")
    state = await ok(control, "GET", "/v1/timeline")
    texts = [line["text"] for line in state["lines"]]
    wanted = [
        "create_topic name=t, assignments=1,2",
        "t: created, 1 partition, replication factor 2",
        "tester -> 1  Produce v9 t-0: 1 record, at 0, ok",
        "kill_broker broker 1",
        "broker 1: killed",
        "broker 1: fenced",
        "t-0: leader 1 -> 2 in epoch 1",
        "t-0: ISR 1,2 -> 2",
    ]
    assert [text for text in texts if text in wanted] == wanted, texts
    assert state["seed"] == server.cluster.options.seed
    assert state["brokers"] == ["broker 1: killed, fenced"]
    (partition,) = state["partitions"]
    assert partition.startswith("t-0: leader 2 in epoch 1, ISR 2, high watermark 1,")
    assert partition.endswith("replicas 1 offline at 1, 2 at 1")
    later = await ok(control, "GET", "/v1/timeline?since=3&requests_since=999")
    assert [line["text"] for line in later["lines"]] == wanted[4:]


async def test_groups_are_there_and_internal_topics_are_not(
    server: Server, control: httpx.AsyncClient
) -> None:
    await ok(control, "POST", "/v1/topics", {"name": "t", "assignments": [[1]]})
    await produce(server, "t")
    await produce(server, "t")
    await commit(server, "shipping", 1)
    state = await ok(control, "GET", "/v1/timeline")
    assert len(state["partitions"]) == 1
    (group,) = state["groups"]
    assert group.startswith("shipping: Empty, generation 0, 0 members, coordinator ")
    assert group.endswith("; t-0 at 1, lag 1")
    assert state["left_out"] == ["events of internal topics: 1"]


async def commit(server: Server, group: str, offset: int) -> None:
    """Commit an offset of t-0, at the group's coordinator."""
    from fencepost.protocol.messages.offset_commit import (
        OffsetCommitRequest,
        OffsetCommitRequestPartition,
        OffsetCommitRequestTopic,
    )

    async with kafka(server, 1) as client:
        for _ in range(2):  # the first one creates the internal topic
            found = await client.ask("find_coordinator", 4, _find(group))
    coordinator = found.coordinators[0].node_id
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = OffsetCommitRequestTopic(name="t", partitions=(partition,))
    async with kafka(server, coordinator) as client:
        await client.ask("offset_commit", 8, OffsetCommitRequest(group_id=group, topics=(topic,)))


def _find(group: str) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key_type=0, coordinator_keys=(group,))


async def test_what_the_journal_lacks_is_named(server: Server, control: httpx.AsyncClient) -> None:
    await ok(control, "POST", "/v1/topics", {"name": "t", "assignments": [[1]]})
    async with kafka(server, 1) as client:
        for _ in range(MAX_LISTED + 1):
            await client.ask("find_coordinator", 4, _find("g"))
    state = await ok(control, "GET", "/v1/timeline")
    assert any(each.startswith("requests before number") for each in state["left_out"])
