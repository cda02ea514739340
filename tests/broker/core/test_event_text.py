"""The line of text that stands for an event."""

from __future__ import annotations

from typing import Final

import pytest

from fencepost.broker.core.event_text import event_text
from fencepost.broker.core.events import Event, Kind

LINES: Final[list[tuple[str, Kind, dict[str, object], dict[str, object]]]] = [
    (
        "orders-0: leader 1 -> 2 in epoch 3",
        Kind.LEADER_CHANGED,
        {"topic": "orders", "partition": 0, "broker": 2},
        {"leader": 2, "previous_leader": 1, "leader_epoch": 3, "unclean": False},
    ),
    (
        "orders-0: leader 1 -> none in epoch 3",
        Kind.LEADER_CHANGED,
        {"topic": "orders", "partition": 0},
        {"leader": -1, "previous_leader": 1, "leader_epoch": 3, "unclean": False},
    ),
    (
        "orders-0: leader none -> 2 in epoch 4, unclean",
        Kind.LEADER_CHANGED,
        {"topic": "orders", "partition": 0, "broker": 2},
        {"leader": 2, "previous_leader": -1, "leader_epoch": 4, "unclean": True},
    ),
    (
        "orders-0: ISR 1,2,3 -> 1, ELR 2",
        Kind.ISR_CHANGED,
        {"topic": "orders", "partition": 0},
        {"isr": [1], "previous_isr": [1, 2, 3], "elr": [2]},
    ),
    (
        "orders-0: broker 3 truncates its log from 12 to 10",
        Kind.LOG_TRUNCATED,
        {"topic": "orders", "partition": 0, "broker": 3},
        {"offset": 10, "previous_offset": 12},
    ),
    (
        "orders-0: offsets 10 to 12 (exclusive) of broker 1 are lost: 2 records, 1 committed",
        Kind.RECORDS_LOST,
        {"topic": "orders", "partition": 0, "broker": 1},
        {"start_offset": 10, "end_offset": 12, "records": 2, "committed_records": 1},
    ),
    (
        "broker 2: isolated from controller,1",
        Kind.BROKER_CHANGED,
        {"broker": 2},
        {"state": "isolated", "from_controller": True, "from_brokers": [1]},
    ),
    ("broker 2: killed", Kind.BROKER_CHANGED, {"broker": 2}, {"state": "killed"}),
    (
        "fault 1 hits Produce of shop at broker 1: disconnect after",
        Kind.FAULT_HIT,
        {"topic": "orders", "broker": 1},
        {"id": 1, "api": "Produce", "action": {"disconnect": "after"}, "client_id": "shop"},
    ),
    (
        "fault 1: Fetch drop, removed after 1 hit",
        Kind.FAULT_REMOVED,
        {"topic": "orders"},
        {"id": 1, "api": "Fetch", "action": {"drop": True}, "hits": 1},
    ),
    (
        "fault 2: Produce,Fetch error NOT_LEADER_OR_FOLLOWER then pass, added",
        Kind.FAULT_ADDED,
        {"topic": "orders"},
        {
            "id": 2,
            "api": ("Produce", "Fetch"),
            "sequence": ({"error": "NOT_LEADER_OR_FOLLOWER"}, "pass"),
        },
    ),
    (
        "orders-0: leader 2",
        Kind.LEADER_CHANGED,
        {"topic": "orders", "partition": 0},
        {"leader": 2},
    ),
    (
        "orders: retention.ms=1000, cleanup.policy removed",
        Kind.CONFIGS_CHANGED,
        {"topic": "orders"},
        {"configs": {"retention.ms": "1000", "cleanup.policy": None}},
    ),
    (
        "all brokers: log.retention.ms=1",
        Kind.CONFIGS_CHANGED,
        {},
        {"configs": {"log.retention.ms": "1"}},
    ),
    ("group g: a=b", Kind.CONFIGS_CHANGED, {}, {"group": "g", "configs": {"a": "b"}}),
    (
        "elect orders-0 leader=2, unclean=true",
        Kind.VERB,
        {"topic": "orders", "partition": 0},
        {"verb": "elect", "arguments": {"leader": 2, "unclean": True}},
    ),
    (
        "kill_broker broker 9: refused, there is none (BROKER_ID_NOT_REGISTERED)",
        Kind.VERB_REFUSED,
        {"broker": 9},
        {
            "verb": "kill_broker",
            "arguments": {},
            "error": "BROKER_ID_NOT_REGISTERED",
            "message": "there is none",
        },
    ),
]


@pytest.mark.parametrize(("line", "kind", "place", "details"), LINES)
def test_an_event_is_one_line(
    line: str, kind: Kind, place: dict[str, object], details: dict[str, object]
) -> None:
    event = Event(kind=kind, time_ms=1, details=details, **place)  # type: ignore[arg-type]  # fields of a table
    assert event_text(event) == line


class _Anything(dict[str, object]):
    """Details that have whatever is looked up."""

    def __missing__(self, key: str) -> object:
        lists = {"from_brokers": [], "offsets": [[1, 2]], "configs": {}, "arguments": {}}
        return lists.get(key, 1)


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_has_words(kind: Kind) -> None:
    event = Event(kind=kind, time_ms=1, topic="t", partition=0, broker=1, details=_Anything())
    assert event_text(event)
    assert "\n" not in event_text(event)
