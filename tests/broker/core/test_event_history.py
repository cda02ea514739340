"""Which events are kept for readers who come later."""

from __future__ import annotations

from fencepost.broker.core.events import Events, Kind
from fencepost.broker.core.scheduler import ManualClock, Scheduler


def emitted(*kinds: Kind, max_of_kind: int = 2) -> Events:
    events = Events(Scheduler(ManualClock(5)), max_of_kind=max_of_kind)
    for kind in kinds:
        events.emit(kind)
    return events


def test_events_are_kept_although_nobody_listens() -> None:
    events = emitted(Kind.VERB, Kind.RESET)
    assert [(each.number, each.kind) for each in events.since(0)] == [
        (1, Kind.VERB),
        (2, Kind.RESET),
    ]
    assert [each.number for each in events.since(1)] == [2]
    assert events.since(2) == events.since(7) == []


def test_a_frequent_kind_does_not_push_out_the_others() -> None:
    events = emitted(Kind.VERB, *[Kind.FAULT_HIT] * 5, Kind.LEADER_CHANGED)
    dropped, *kept = events.since(0)
    assert [each.number for each in kept] == [1, 5, 6, 7]
    assert dropped.kind is Kind.EVENTS_DROPPED
    assert dropped.details == {"events": 3, "kinds": ["fault_hit"]}


def test_the_most_frequent_kind_makes_room_where_many_kinds_are_frequent() -> None:
    others = [Kind.LEADER_CHANGED, Kind.ISR_CHANGED, Kind.BROKER_CHANGED]
    events = emitted(*[Kind.FAULT_HIT] * 4, *others * 2, Kind.VERB, max_of_kind=3)
    kept = events.since(4)
    assert [each.kind for each in kept] == [*others * 2, Kind.VERB]
    assert [each.number for each in events.since(0) if each.kind is Kind.FAULT_HIT] == [3, 4]


def test_only_what_came_since_counts_as_dropped() -> None:
    events = emitted(Kind.VERB, *[Kind.FAULT_HIT] * 5)
    dropped, *_ = events.since(3)
    assert (dropped.number, dropped.details["events"]) == (3, 1)
    assert [each.number for each in events.since(4)] == [5, 6]


def test_each_event_has_the_number_of_the_newest_request() -> None:
    events = emitted(Kind.VERB)
    events.newest_request = lambda: 17
    events.emit(Kind.RESET)
    assert [each.newest for each in events.since(0)] == [0, 17]
