"""Mixed load while all kinds of things go wrong: what a server must not do, however long it runs.

``FENCEPOST_SOAK_S=3600`` lets it work for an hour, and then its memory and its pauses count too:
they say nothing of a short run, or of a machine that has other work.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import Final

import pytest

from bench import soak
from bench.soak import Look, Soak

SHORT_S: Final = 24.0
SECONDS: Final = soak.seconds_wanted(SHORT_S)
MOST_MIB: Final = 400.0
"""Retention keeps a few MiB, and an idle server has a tenth of this."""


@pytest.mark.timeout(SECONDS + 300)
def test_nothing_fails_and_nothing_is_left_open_by_a_server_that_is_disturbed() -> None:
    found = soak.run(SECONDS)
    assert list(found.problems()) == []
    assert max(look.resident for look in found.looks) < MOST_MIB
    assert found.disturbed
    if soak.VARIABLE in os.environ:
        assert list(found.problems_in_time()) == []


USED = Look(
    stage="used",
    at_s=1,
    resident=120,
    free=20,
    descriptors=30,
    tasks=2,
    pause_ms=50,
    busy_ms=9,
    machine_ms=1.5,
)
EMPTY = replace(USED, stage="empty", descriptors=20)


def looked(*looks: Look) -> Soak:
    return Soak(looks=[look for each in looks for look in (USED, each)])


def test_a_server_that_stays_as_it_was_has_no_problems() -> None:
    found = looked(*[EMPTY] * 20)
    assert [*found.problems(), *found.problems_in_time()] == []


@pytest.mark.parametrize(
    ("name", "more"),
    [("descriptors", replace(EMPTY, descriptors=21)), ("tasks", replace(EMPTY, tasks=3))],
)
def test_what_an_empty_server_has_more_of_is_a_problem(name: str, more: Look) -> None:
    (problem,) = looked(EMPTY, more, EMPTY).problems()
    assert problem.startswith(f"{name} of an empty server rose")


def test_memory_may_grow_at_first_and_then_by_two_percent() -> None:
    first, more = replace(EMPTY, free=50), replace(EMPTY, free=17)
    steady = looked(first, first, *[EMPTY] * 15, *[replace(EMPTY, resident=121.9)] * 3)
    assert list(steady.problems_in_time()) == []
    assert list(looked(first, first, *[EMPTY] * 16, more, EMPTY).problems_in_time()) == []
    (problem,) = looked(first, first, *[EMPTY] * 15, *[more] * 3).problems_in_time()
    assert problem == "memory of the empty server rose from 100.0 to 103.0 MiB"


def test_only_later_computing_counts() -> None:
    slow = replace(EMPTY, busy_ms=12)
    assert list(looked(slow, *[EMPTY] * 19).problems_in_time()) == []
    (problem,) = looked(*[EMPTY] * 19, slow).problems_in_time()
    assert problem == (
        "the loop computed for 12.0 ms at once, where the machine takes up to 1.5 ms more than "
        "usual for the same work"
    )


def test_the_loop_may_compute_for_as_much_longer_as_the_machine_takes_by_itself() -> None:
    looks = [*[EMPTY] * 18, replace(EMPTY, busy_ms=12), replace(EMPTY, machine_ms=2.5)]
    assert list(looked(*looks).problems_in_time()) == []


def test_errors_and_tracebacks_of_the_log_are_found() -> None:
    fine = json.dumps({"event": "topic_created", "level": "info"})
    failed = json.dumps({"event": "callback_failed", "level": "error", "exception": "..."})
    log = (
        f'{{"bootstrap": "127.0.0.1:9092"}}\n{fine}\nTraceback (most recent call last):\n{failed}\n'
    )
    assert soak.exceptions(log) == ["Traceback (most recent call last):", failed]
