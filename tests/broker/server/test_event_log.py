"""Events in the log: warnings at once, all others once nothing waits for it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fencepost.broker.core.events import Events, Kind
from fencepost.broker.core.log_levels import Level
from fencepost.broker.core.scheduler import ManualClock, Scheduler
from fencepost.broker.server import logs
from fencepost.broker.server.event_log import EventLog


@pytest.fixture
def events() -> Events:
    return Events(Scheduler(ManualClock(5)))


@pytest.fixture
def log(events: Events) -> EventLog:
    made = EventLog(events)
    events.listeners.append(made.record)
    return made


def logged(capsys: pytest.CaptureFixture[str]) -> list[tuple[str, str]]:
    lines: list[dict[str, Any]] = list(map(json.loads, capsys.readouterr().err.splitlines()))
    return [(line["level"], line["event"]) for line in lines]


def elect(events: Events, topic: str) -> None:
    events.emit(
        Kind.LEADER_CHANGED,
        topic=topic,
        partition=0,
        leader=2,
        previous_leader=1,
        leader_epoch=3,
        unclean=False,
    )


def test_events_wait_until_the_log_begins_and_warnings_do_not(
    events: Events, log: EventLog, capsys: pytest.CaptureFixture[str]
) -> None:
    events.emit(Kind.RESET)
    events.emit(Kind.STORAGE_FAILED, broker=1, error="no space")
    assert logged(capsys) == [("error", "storage_failed")]
    log.begin()
    assert logged(capsys) == [("info", "reset")]
    log.begin()
    events.emit(Kind.CLOCK_ADVANCED, ms=1)
    assert logged(capsys) == [("info", "clock_advanced")]


def test_a_line_has_the_place_and_the_words(
    events: Events, log: EventLog, capsys: pytest.CaptureFixture[str]
) -> None:
    log.begin()
    elect(events, "orders")
    line = json.loads(capsys.readouterr().err)
    assert (line["topic"], line["partition"], line["number"]) == ("orders", 0, 1)
    assert line["detail"] == "orders-0: leader 1 -> 2 in epoch 3"
    assert line["part"] == "events"


def test_internal_topics_and_what_clients_cause_are_for_debugging(
    events: Events, log: EventLog, capsys: pytest.CaptureFixture[str]
) -> None:
    log.begin()
    elect(events, "__consumer_offsets")
    events.emit(Kind.PUBLISH_REFUSED, topic="t", expected=1, upcoming=2, client_id="a")
    events.emit(Kind.TRANSACTION_CHANGED, broker=1, transactional_id="x", state="Ongoing")
    assert logged(capsys) == []
    logs.levels.set_level("fencepost.server", Level.DEBUG)
    try:
        elect(events, "__consumer_offsets")
    finally:
        logs.levels.unset_level("fencepost.server")
    assert logged(capsys) == [("debug", "leader_changed")]
