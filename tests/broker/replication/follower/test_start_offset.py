"""The table of how a follower starts over: every row, and the offsets that it needs."""

from __future__ import annotations

import pytest

from fencepost.broker.replication.follower.start_offset import (
    TABLE,
    FetchRefusal,
    OffsetAndEpoch,
    SpecialTimestamp,
    StartAction,
    StartDecision,
    StartInputs,
    StartProtocol,
    decide,
)

END, START = SpecialTimestamp.LATEST, SpecialTimestamp.EARLIEST
LOCAL, PENDING = SpecialTimestamp.EARLIEST_LOCAL, SpecialTimestamp.EARLIEST_PENDING_UPLOAD
OUT, MOVED = FetchRefusal.OUT_OF_RANGE, FetchRefusal.MOVED_TO_TIER
OLD, BOOTSTRAP = StartProtocol.OLD, StartProtocol.BOOTSTRAP


def start(
    refusal: FetchRefusal,
    protocol: StartProtocol,
    leader: dict[SpecialTimestamp, int],
    log_end: int = 0,
) -> tuple[list[SpecialTimestamp], StartDecision]:
    """The offsets that a follower requests, in order, and its decision."""
    findings = StartInputs(refusal=refusal, protocol=protocol, log_end=log_end)
    asked: list[SpecialTimestamp] = []
    while isinstance(found := decide(findings), SpecialTimestamp):
        asked.append(found)
        findings.offsets[found] = OffsetAndEpoch(leader[found], 7)
    return asked, found


LEADER = {END: 100, START: 10, LOCAL: 40, PENDING: 90}


@pytest.mark.parametrize("refusal", FetchRefusal)
def test_an_empty_follower_leaves_to_the_tier_what_is_there(refusal: FetchRefusal) -> None:
    asked, decision = start(refusal, BOOTSTRAP, LEADER)
    assert asked == [START, PENDING]
    assert (decision.action, decision.at) == (StartAction.BUILD, OffsetAndEpoch(90, 7))


@pytest.mark.parametrize("refusal", FetchRefusal)
def test_where_nothing_is_tiered_yet_all_is_fetched(refusal: FetchRefusal) -> None:
    asked, decision = start(refusal, BOOTSTRAP, LEADER | {PENDING: -1, LOCAL: 10})
    assert asked == [START, PENDING, LOCAL]
    assert (decision.action, decision.at) == (StartAction.START, OffsetAndEpoch(10, 7))


@pytest.mark.parametrize("refusal", FetchRefusal)
def test_where_the_leader_does_not_know_yet_it_waits(refusal: FetchRefusal) -> None:
    asked, decision = start(refusal, BOOTSTRAP, LEADER | {PENDING: -1})
    assert asked == [START, PENDING, LOCAL]
    assert decision.action is StartAction.BACK_OFF


@pytest.mark.parametrize("refusal", FetchRefusal)
def test_what_is_tiered_before_the_log_start_does_not_count(refusal: FetchRefusal) -> None:
    asked, decision = start(refusal, BOOTSTRAP, LEADER | {PENDING: 9, LOCAL: 10})
    assert asked == [START, PENDING]
    assert (decision.action, decision.at) == (StartAction.START, OffsetAndEpoch(10, 7))


def test_a_tier_with_nothing_from_the_log_start_on_is_not_asked() -> None:
    _, decision = start(MOVED, BOOTSTRAP, LEADER | {PENDING: 10, LOCAL: 10})
    assert (decision.action, decision.at) == (StartAction.START, OffsetAndEpoch(10, 7))


def test_case_2_1_goes_to_the_log_start() -> None:
    asked, decision = start(OUT, OLD, LEADER, log_end=3)
    assert asked == [END, START]
    assert (decision.action, decision.at) == (StartAction.START, OffsetAndEpoch(10, 7))


def test_case_2_2_goes_to_the_local_log_start() -> None:
    asked, decision = start(MOVED, OLD, LEADER, log_end=10)
    assert asked == [START, LOCAL]
    assert (decision.action, decision.at) == (StartAction.BUILD, OffsetAndEpoch(40, 7))


def test_a_follower_ahead_of_its_leader_asks_for_nothing_else() -> None:
    asked, decision = start(OUT, OLD, LEADER, log_end=101)
    assert asked == [END]
    assert (decision.action, decision.at) == (StartAction.TRUNCATE, OffsetAndEpoch(100, 7))


@pytest.mark.parametrize("log_end", [10, 55, 100])
def test_an_offset_that_is_there_by_now_is_fetched_again(log_end: int) -> None:
    asked, decision = start(OUT, OLD, LEADER, log_end=log_end)
    assert asked == [END, START]
    assert decision.action is StartAction.BACK_OFF


def test_a_log_that_is_local_by_now_needs_no_tier() -> None:
    _, decision = start(MOVED, OLD, LEADER | {START: 40}, log_end=10)
    assert (decision.action, decision.at) == (StartAction.START, OffsetAndEpoch(40, 7))


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
        for refusal in FetchRefusal
        for protocol in StartProtocol
        for leader in leaders
        for log_end in (3, 10, 101)
    }
    assert decided == {row.case for row in TABLE}
