"""The table of how a follower starts over: every row, and what is asked for it."""

from __future__ import annotations

import pytest

from fencepost.broker.follower_start import (
    TABLE,
    Action,
    Decision,
    Findings,
    Found,
    Protocol,
    Refusal,
    Target,
    decide,
)

END, START = Target.LATEST, Target.EARLIEST
LOCAL, PENDING = Target.EARLIEST_LOCAL, Target.EARLIEST_PENDING_UPLOAD
OUT, MOVED = Refusal.OUT_OF_RANGE, Refusal.MOVED_TO_TIER
OLD, BOOTSTRAP = Protocol.OLD, Protocol.BOOTSTRAP


def start(
    refusal: Refusal, protocol: Protocol, leader: dict[Target, int], log_end: int = 0
) -> tuple[list[Target], Decision]:
    """What is asked of a leader with these offsets, in order, and what is decided."""
    findings = Findings(refusal=refusal, protocol=protocol, log_end=log_end)
    asked: list[Target] = []
    while isinstance(found := decide(findings), Target):
        asked.append(found)
        findings.answers[found] = Found(leader[found], 7)
    return asked, found


LEADER = {END: 100, START: 10, LOCAL: 40, PENDING: 90}


@pytest.mark.parametrize("refusal", Refusal)
def test_an_empty_follower_leaves_to_the_tier_what_is_there(refusal: Refusal) -> None:
    asked, decision = start(refusal, BOOTSTRAP, LEADER)
    assert asked == [START, PENDING]
    assert (decision.action, decision.at) == (Action.BUILD, Found(90, 7))


@pytest.mark.parametrize("refusal", Refusal)
def test_where_nothing_is_tiered_yet_all_is_fetched(refusal: Refusal) -> None:
    asked, decision = start(refusal, BOOTSTRAP, LEADER | {PENDING: -1, LOCAL: 10})
    assert asked == [START, PENDING, LOCAL]
    assert (decision.action, decision.at) == (Action.START, Found(10, 7))


@pytest.mark.parametrize("refusal", Refusal)
def test_where_the_leader_does_not_know_yet_it_waits(refusal: Refusal) -> None:
    asked, decision = start(refusal, BOOTSTRAP, LEADER | {PENDING: -1})
    assert asked == [START, PENDING, LOCAL]
    assert decision.action is Action.BACK_OFF


@pytest.mark.parametrize("refusal", Refusal)
def test_what_is_tiered_before_the_log_start_does_not_count(refusal: Refusal) -> None:
    asked, decision = start(refusal, BOOTSTRAP, LEADER | {PENDING: 9, LOCAL: 10})
    assert asked == [START, PENDING]
    assert (decision.action, decision.at) == (Action.START, Found(10, 7))


def test_a_tier_with_nothing_from_the_log_start_on_is_not_asked() -> None:
    _, decision = start(MOVED, BOOTSTRAP, LEADER | {PENDING: 10, LOCAL: 10})
    assert (decision.action, decision.at) == (Action.START, Found(10, 7))


def test_case_2_1_goes_to_the_log_start() -> None:
    asked, decision = start(OUT, OLD, LEADER, log_end=3)
    assert asked == [END, START]
    assert (decision.action, decision.at) == (Action.START, Found(10, 7))


def test_case_2_2_goes_to_the_local_log_start() -> None:
    asked, decision = start(MOVED, OLD, LEADER, log_end=10)
    assert asked == [START, LOCAL]
    assert (decision.action, decision.at) == (Action.BUILD, Found(40, 7))


def test_a_follower_ahead_of_its_leader_asks_for_nothing_else() -> None:
    asked, decision = start(OUT, OLD, LEADER, log_end=101)
    assert asked == [END]
    assert (decision.action, decision.at) == (Action.TRUNCATE, Found(100, 7))


@pytest.mark.parametrize("log_end", [10, 55, 100])
def test_an_offset_that_is_there_by_now_is_fetched_again(log_end: int) -> None:
    asked, decision = start(OUT, OLD, LEADER, log_end=log_end)
    assert asked == [END, START]
    assert decision.action is Action.BACK_OFF


def test_a_log_that_is_local_by_now_needs_no_tier() -> None:
    _, decision = start(MOVED, OLD, LEADER | {START: 40}, log_end=10)
    assert (decision.action, decision.at) == (Action.START, Found(40, 7))


def test_there_is_no_row_that_never_decides() -> None:
    leaders = [
        LEADER | {START: s, LOCAL: local, PENDING: pending}
        for s, local, pending in [
            (10, 40, 90),
            (10, 10, -1),
            (10, 40, -1),
            (10, 10, 9),
            (10, 10, 10),
        ]
    ]
    decided = {
        start(refusal, protocol, leader, log_end)[1].row.case
        for refusal in Refusal
        for protocol in Protocol
        for leader in leaders
        for log_end in (3, 10, 101)
    }
    assert decided == {row.case for row in TABLE}
