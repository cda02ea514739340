"""The events so far: numbered, kept, and told to listeners alone."""

from __future__ import annotations

from typing import Final

from fencepost.broker.core.events import Event, Events, Kind
from fencepost.broker.core.scheduler import ManualClock, Scheduler

NOW: Final = 5
CREATED: Final = Event(kind=Kind.TOPIC_CREATED, time_ms=NOW, topic="t")
DELETED: Final = Event(kind=Kind.TOPIC_DELETED, time_ms=NOW, topic="t")


def test_a_listener_hears_all_at_the_time_of_the_cluster() -> None:
    events = Events(Scheduler(ManualClock(NOW)))
    heard: list[Event] = []
    events.emit(Kind.RESET)
    events.emit_all([CREATED])
    events.listeners.append(heard.append)
    events.emit(Kind.REPLICA_HELD, topic="t", partition=0, broker=2, at=None)
    events.emit_all([DELETED])
    assert heard == [
        Event(
            kind=Kind.REPLICA_HELD,
            time_ms=NOW,
            topic="t",
            partition=0,
            broker=2,
            details={"at": None},
        ),
        DELETED,
    ]


def test_a_listener_may_leave_while_it_is_told() -> None:
    events = Events(Scheduler(ManualClock(NOW)))
    heard: list[str] = []

    def once(event: Event) -> None:
        heard.append(f"once {event.kind}")
        events.listeners.remove(once)

    events.listeners += [once, lambda event: heard.append(event.kind)]
    events.emit(Kind.RESET)
    events.emit(Kind.RESET)
    assert heard == ["once reset", "reset", "reset"]


def test_the_mark_of_a_reset_stands_before_its_events_and_counts_them() -> None:
    events = Events(Scheduler(ManualClock(NOW)))
    heard: list[Event] = []
    events.emit_all([CREATED])
    events.listeners.append(heard.append)
    with events.resetting():
        events.emit_all([DELETED])
        events.emit_all([CREATED])
    assert [event.kind for event in heard] == [Kind.RESET, Kind.TOPIC_DELETED, Kind.TOPIC_CREATED]
    assert heard[0].details == {"events": 2}
    assert [event.number for event in heard] == [2, 3, 4]
    assert events.since(1) == heard
