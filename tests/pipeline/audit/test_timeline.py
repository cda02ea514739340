"""What came before what, and what was at the same time."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from fencepost.pipeline.audit.committed_offset_register import committed_offset_registers
from tests.pipeline.audit.trace_rows import (
    Row,
    away,
    commit,
    created,
    event,
    evidence,
    fetch,
    found,
    latest,
)
from tests.pipeline.audit.tracing import TRACE_RULES


@pytest.mark.parametrize("rule", TRACE_RULES)
def test_a_trace_that_tells_nothing(rule: str) -> None:
    assert found(rule, evidence()) == []
    assert found(rule, evidence(created("one"))) == []


def test_only_what_was_answered_before_the_question_counts() -> None:
    rule = "latest-never-back"
    assert found(rule, evidence(latest(5), latest(3))) == [(3, False)]
    assert found(rule, evidence(latest(5, newest=2), latest(3))) == [], "at the same time"
    assert found(rule, evidence(latest(5, isolation_level=1), latest(3))) == []
    assert found(rule, evidence(latest(5, replica_id=2), latest(3))) == []
    assert found(rule, evidence(latest(5, epoch=3), latest(3, epoch=2))) == [(3, True)]


def elected(epoch: int, *, unclean: bool = False) -> Row:
    details = {"leader": 1, "leader_epoch": epoch, "unclean": unclean}
    return event("leader_changed", details=details)


def test_what_happens_later_explains_nothing() -> None:
    rule = "latest-never-back"
    back = [created("one"), latest(5), elected(1), latest(3, epoch=1)]
    assert found(rule, evidence(*back, elected(2, unclean=True))) == [(3, False)]
    assert found(rule, evidence(*back, event("replica_wiped", broker=1))) == [(3, False)]
    back[2] = elected(1, unclean=True)
    assert found(rule, evidence(*back)) == [(3, True)]
    back[2:3] = [event("replica_wiped", broker=1), elected(1)]
    assert found(rule, evidence(*back)) == [(3, True)]


@pytest.mark.parametrize("rule", TRACE_RULES)
def test_nothing_of_a_partition_is_kept_after_its_rules(rule: str) -> None:
    given = evidence(created("one"), latest(5))
    assert found(rule, given) == []
    traces = weakref.ref(given.traces)
    del given
    gc.collect()
    assert traces() is None


def test_a_topic_that_is_created_again_begins_at_offset_0() -> None:
    rows = created("one"), latest(5), created("two"), latest(0)
    first, second = evidence(*rows).incarnations
    assert (first.topic_id, second.topic_id) == ("one", "two")
    assert (first.rows["offset"].to_pylist(), second.rows["offset"].to_pylist()) == ([5], [0])
    assert [incarnation.is_last for incarnation in (first, second)] == [False, True]
    assert found("latest-never-back", evidence(*rows)) == []


def test_what_was_asked_before_is_of_no_life() -> None:
    late = latest(9, number=2)
    given = evidence(created("one"), latest(5), created("two"), late, latest(0))
    assert [incarnation.rows.num_rows for incarnation in given.incarnations] == [1, 1]


def test_a_broker_that_was_away_answers_of_the_topic_before() -> None:
    rows = [created("one"), away(2, "isolated"), created("two"), latest(0)]
    stale = latest(7, broker=2)
    assert evidence(*rows, stale).incarnations[-1].rows["offset"].to_pylist() == [0]
    back = [*rows, stale, away(2, "rejoined"), latest(1, broker=2)]
    assert evidence(*back).incarnations[-1].rows["offset"].to_pylist() == [0, 1]


@pytest.mark.parametrize(
    ("rows", "wrong"),
    [
        ((commit(1), fetch(1)), []),
        ((fetch(9), commit(1), fetch(1)), []),
        ((commit(1), commit(2), fetch(1)), [1]),
        ((commit(1), commit(2), fetch(-1)), [None]),
        ((commit(1, newest=2), commit(2), fetch(1)), []),
        ((commit(1), commit(2, newest=3), fetch(1)), []),
        ((commit(1), commit(2, error=7), fetch(2)), []),
        ((commit(1), commit(2, error=7), fetch(1)), []),
        ((commit(2, answered_ms=None), commit(1), fetch(2)), []),
        ((commit(1), commit(2, api="TxnOffsetCommit"), fetch(2)), []),
        ((commit(1), commit(2, api="TxnOffsetCommit"), fetch(1)), []),
        ((commit(1), commit(2, api="TxnOffsetCommit"), fetch(3)), [3]),
        ((commit(2, api="TxnOffsetCommit"), commit(1), fetch(2)), []),
        ((commit(2, api="TxnOffsetCommit", version=1), commit(1), fetch(2, epoch=-1)), []),
        ((commit(1), fetch(1, epoch=-1)), [1]),
        ((commit(1), fetch(1, epoch=-1, version=4)), []),
        ((commit(1), {"api": "OffsetDelete", "group": "g"}, fetch(-1)), []),
        (
            (
                commit(1),
                {"api": "DeleteGroups", "group": "g", "topic": None, "partition": None},
                fetch(-1),
            ),
            [],
        ),
        (({"api": "OffsetDelete", "group": "g"}, commit(1), fetch(-1)), [None]),
        ((commit(1), fetch(-1, time_ms=8 * 24 * 3_600_000)), []),
    ],
)
def test_what_a_group_may_be_told(rows: tuple[Row, ...], wrong: list[int | None]) -> None:
    given = evidence(*rows)
    (incarnation,) = given.incarnations
    (register,) = committed_offset_registers(given, incarnation)
    assert [told.offset for told, _ in register.invalid_reads()] == wrong


def test_a_fetch_session_is_asked_under_the_epoch_that_it_was_told() -> None:
    def fetched(**row: Any) -> Row:  # noqa: ANN401  # columns
        return {"api": "Fetch", "session_id": 7, "batches": [], **row}

    first = fetched(fetch_offset=0, current_leader_epoch=0)
    silent = fetched()
    assert found("no-stale-epoch", evidence(first, silent)) == []
    newer = latest(0, epoch=1, current_leader_epoch=1)
    assert len(found("no-stale-epoch", evidence(first, newer, silent))) == 1
    other = latest(0, epoch=1, current_leader_epoch=1, broker=2)
    assert found("no-stale-epoch", evidence(first, other, silent)) == []
    restarted = away(1, "running")
    assert found("no-stale-epoch", evidence(first, newer, restarted, silent)) == []
