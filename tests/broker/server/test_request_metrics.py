"""What is counted, in which bucket, and under which name."""

from __future__ import annotations

import pytest

from fencepost.broker.core.events import Event, Kind
from fencepost.broker.server.request_metrics import BOUNDS_US, EventMetrics, RequestMetrics
from fencepost.protocol.apis import BY_NAME

FETCH = BY_NAME["fetch"]


@pytest.mark.parametrize(
    ("elapsed_us", "bucket"),
    [(0, 0), (50, 0), (51, 1), (BOUNDS_US[-1], len(BOUNDS_US) - 1), (10**9, len(BOUNDS_US))],
)
def test_a_bound_is_in_its_bucket(elapsed_us: int, bucket: int) -> None:
    figures = RequestMetrics().of(1, FETCH)
    figures.count(elapsed_us, 10, 20, ())
    assert figures.buckets[bucket] == 1
    assert (figures.requests, figures.elapsed_us) == (1, elapsed_us)


def test_figures_are_of_one_broker_and_api() -> None:
    meter = RequestMetrics()
    meter.of(1, FETCH).count(7, 10, 20, (6, 6, 3))
    meter.of(1, FETCH).count(None, 10, 0, ())
    meter.of(2, FETCH).count(7, 1, 2, ())
    first, second = meter
    assert (first.broker_id, first.requests, first.unanswered) == (1, 2, 1)
    assert (first.bytes_in, first.bytes_out, first.elapsed_us) == (20, 20, 7)
    assert first.errors == {6: 2, 3: 1}
    assert (second.broker_id, second.requests, second.bytes_in) == (2, 1, 1)


@pytest.mark.parametrize(
    ("before", "now", "change"),
    [((1, 2), (1,), "shrink"), ((1,), (1, 2), "expand"), ((1, 2), (1, 3), "swap")],
)
def test_changes_of_isrs(before: tuple[int, ...], now: tuple[int, ...], change: str) -> None:
    changes = EventMetrics()
    details = {"isr": now, "previous_isr": before}
    changes.record(Event(kind=Kind.ISR_CHANGED, time_ms=1, details=details))
    assert changes.isr == {change: 1}
    assert changes.events == {Kind.ISR_CHANGED: 1}


def test_hits_of_faults_by_api_and_action() -> None:
    changes = EventMetrics()
    for action in ({"delay": 5}, {"delay": 7}, {"drop": True}):
        details = {"api": "Fetch", "action": action}
        changes.record(Event(kind=Kind.FAULT_HIT, time_ms=1, details=details))
    assert changes.fault_hits == {("Fetch", "delay"): 2, ("Fetch", "drop"): 1}
