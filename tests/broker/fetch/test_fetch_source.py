"""Foreign followers: a client that claims a replica id is treated as that replica."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from fencepost.broker.node import operator_actions
from fencepost.protocol.errors import ErrorCode
from tests.broker.replication.foreign_follower import (
    CLAIMED,
    ELSEWHERE,
    FENCED,
    FIRST_WITH_EPOCH,
    LAG_MS,
    NEWER,
    OK,
    OUT_OF_RANGE,
    UNASSIGNED,
    UNKNOWN_BROKER,
    VERSIONS,
    elect_again,
    epoch_end,
    is_answered,
    isr,
    registration,
    start,
)
from tests.harness.driver_requests import produce, send_produce
from tests.harness.typed_requests import fetched, values

# -- counted ----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_acks_all_waits_for_a_foreign_follower_of_the_isr(version: int) -> None:
    driver, foreign = start(version)
    asked = send_produce(driver, "t", b"a", b"b")
    assert driver.replica(2, "t").log.log_end_offset == 2
    assert not is_answered(asked)
    assert driver.leader("t").high_watermark == 0
    first = foreign.fetch(0, epoch=0)
    assert (first.error_code, values(first), first.high_watermark) == (OK, [b"a", b"b"], 0)
    assert not is_answered(asked), "to be given records is not to have them"
    second = foreign.fetch(2, epoch=0, last=0)
    assert (second.error_code, values(second), second.high_watermark) == (OK, [], 2)
    assert is_answered(asked)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_foreign_follower_joins_the_isr_when_it_has_caught_up(version: int) -> None:
    driver, foreign = start(version, records=3, joins=False)
    assert isr(driver) == {1, 2}
    assert foreign.code(2, epoch=0) == OK
    assert isr(driver) == {1, 2}
    assert foreign.code(3, epoch=0) == OK
    assert isr(driver) == {1, 2, CLAIMED}
    asked = send_produce(driver, "t", b"now it counts")
    assert not is_answered(asked)
    assert foreign.code(4, epoch=0) == OK
    assert is_answered(asked)


def test_the_high_watermark_is_the_lowest_of_what_all_have_fetched() -> None:
    driver, foreign = start()
    for n in range(4):
        send_produce(driver, "t", b"%d" % n, acks=1)
    for offset, watermark in ((1, 1), (3, 3), (2, 3), (4, 4), (0, 4)):
        assert foreign.fetch(offset).high_watermark == watermark
        assert driver.leader("t").high_watermark == watermark


def test_to_reach_the_high_watermark_is_not_enough_before_the_start_of_the_epoch() -> None:
    driver, foreign = start(records=2, joins=False)
    operator_actions.hold(driver.cluster, "t", 0, 2)
    send_produce(driver, "t", b"not committed", acks=1)
    epoch = elect_again(driver)
    assert driver.leader("t").high_watermark == 2
    assert foreign.code(2, epoch=epoch) == OK
    assert isr(driver) == {1, 2}
    assert foreign.code(3, epoch=epoch) == OK
    assert isr(driver) == {1, 2, CLAIMED}


def test_a_foreign_follower_that_stops_leaves_the_isr_and_acks_all_goes_on() -> None:
    driver, foreign = start()
    assert foreign.code(0) == OK
    asked = send_produce(driver, "t", b"a", timeout_ms=10 * LAG_MS)
    driver.advance(LAG_MS // 2)
    assert not is_answered(asked)
    driver.advance(LAG_MS + LAG_MS // 2)
    assert isr(driver) == {1, 2}
    assert is_answered(asked)


def test_a_foreign_follower_that_keeps_pace_stays_though_it_never_reaches_the_end() -> None:
    driver, foreign = start()
    for n in range(8):
        send_produce(driver, "t", b"%d" % n, acks=1)
        assert foreign.code(n) == OK, "all but the newest"
        driver.advance(LAG_MS // 2)
    assert CLAIMED in isr(driver)


@pytest.mark.parametrize("version", [4, 8, 12, 18])
def test_a_waiting_fetch_is_answered_by_the_next_append(version: int) -> None:
    driver, foreign = start(version)
    waiting = foreign.send(0, epoch=0, wait_ms=1000)
    assert not waiting.done
    send_produce(driver, "t", b"a")
    assert values(fetched(waiting.response)) == [b"a"]


@pytest.mark.parametrize("version", [7, 12, 13, 18])
def test_a_follower_that_fetches_within_a_session_counts_as_well(version: int) -> None:
    driver, foreign = start(version)
    session_id = foreign.send(0, epoch=0, session=(0, 0)).response.session_id
    assert session_id > 0
    asked = send_produce(driver, "t", b"a")
    given = fetched(foreign.send(0, epoch=0, session=(session_id, 1)).response)
    assert values(given) == [b"a"]
    assert not is_answered(asked)
    told = fetched(foreign.send(1, epoch=0, session=(session_id, 2)).response)
    assert told.high_watermark == 1
    assert is_answered(asked)


def test_a_follower_reads_to_the_log_end_at_any_isolation_level() -> None:
    driver, foreign = start()
    send_produce(driver, "t", b"committed by none", acks=1)
    given = fetched(foreign.send(0, read_committed=True).response)
    assert values(given) == [b"committed by none"]
    assert given.aborted_transactions is None


# -- fenced and refused -----------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("epoch", "code"), [(-1, OK), (0, FENCED), (1, FENCED), (2, OK), (3, NEWER), (1000, NEWER)]
)
def test_the_leader_epoch_is_checked_from_v9_and_not_before(
    version: int, epoch: int, code: ErrorCode
) -> None:
    driver, foreign = start(version, joins=False)
    assert elect_again(driver, 2) == 2
    wanted = code if version >= FIRST_WITH_EPOCH else OK
    assert foreign.code(0, epoch=epoch) == wanted
    assert isr(driver) == ({1, 2, CLAIMED} if wanted is OK else {1, 2})


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("replica_id", [1, UNASSIGNED, UNKNOWN_BROKER])
@pytest.mark.parametrize("epoch", [-1, 0])
def test_who_is_not_assigned_is_refused_and_so_is_the_leader_itself(
    version: int, replica_id: int, epoch: int
) -> None:
    driver, foreign = start(version, joins=False)
    foreign.replica_id = replica_id
    knows = version >= FIRST_WITH_EPOCH and epoch >= 0
    assert foreign.code(0, epoch=epoch) == (NEWER if knows else ELSEWHERE)
    assert isr(driver) == {1, 2}


@pytest.mark.parametrize("replica_id", [2, CLAIMED])
def test_each_assigned_replica_counts_for_itself_alone(replica_id: int) -> None:
    driver, foreign = start()
    operator_actions.hold(driver.cluster, "t", 0, 2)
    foreign.replica_id = replica_id
    send_produce(driver, "t", b"a", acks=1)
    assert foreign.code(1) == OK
    assert driver.leader("t").high_watermark == 0
    foreign.replica_id = 2 + CLAIMED - replica_id
    assert foreign.code(1) == OK
    assert driver.leader("t").high_watermark == 1


@pytest.mark.parametrize(
    ("broker_id", "epoch", "code"),
    [
        (2, -1, ELSEWHERE),
        (2, 0, FENCED),
        (2, 1, ELSEWHERE),
        (2, 2, NEWER),
        (UNASSIGNED, -1, ELSEWHERE),
        (UNASSIGNED, 0, ELSEWHERE),
        (UNASSIGNED, 2, ELSEWHERE),
    ],
)
def test_a_replica_is_served_by_the_leader_alone(
    broker_id: int, epoch: int, code: ErrorCode
) -> None:
    driver, foreign = start()
    assert elect_again(driver) == 1
    assert foreign.code(0, epoch=epoch, broker_id=broker_id) == code


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A fetch that is not to count, and what it is answered. The log ends at 6, in epoch 2."""

    code: ErrorCode
    offset: int = 6
    epoch: int = 2
    last: int = 2
    replica_id: int = CLAIMED
    broker_epoch: int = 2
    diverging: tuple[int, int] = (-1, -1)


@pytest.mark.parametrize(
    "case",
    [
        Refusal(code=FENCED, epoch=1),
        Refusal(code=NEWER, epoch=3),
        Refusal(code=NEWER, replica_id=UNASSIGNED),
        Refusal(code=NEWER, replica_id=1),
        Refusal(code=ELSEWHERE, replica_id=1, epoch=-1),
        Refusal(code=ELSEWHERE, broker_epoch=1),
        Refusal(code=OUT_OF_RANGE, offset=7, last=-1),
        Refusal(code=OUT_OF_RANGE, last=3),
        Refusal(code=OK, last=1, diverging=(1, 4)),
        Refusal(code=OK, last=0, diverging=(0, 2)),
        Refusal(code=OK, offset=7, diverging=(2, 6)),
    ],
    ids=str,
)
def test_a_fetch_that_is_refused_or_diverges_does_not_count(case: Refusal) -> None:
    driver, foreign = start()
    operator_actions.kill(driver.cluster, CLAIMED)
    operator_actions.start(driver.cluster, CLAIMED)
    foreign.broker_epoch = registration(driver)
    assert foreign.broker_epoch == 2
    assert foreign.code(0) == OK
    assert isr(driver) == {1, 2, CLAIMED}
    for epoch in range(3):
        assert elect_again(driver, 1 if epoch else 0) == epoch
        asked = send_produce(driver, "t", b"a", b"b")
    foreign.replica_id, foreign.broker_epoch = case.replica_id, case.broker_epoch
    refused = foreign.fetch(case.offset, epoch=case.epoch, last=case.last)
    assert refused.error_code == case.code
    diverging = refused.diverging_epoch
    assert (diverging.epoch, diverging.end_offset) == case.diverging
    assert not values(refused)
    assert driver.leader("t").high_watermark == 0
    assert not is_answered(asked)
    foreign.replica_id, foreign.broker_epoch = CLAIMED, 2
    assert foreign.fetch(6, epoch=2, last=2).high_watermark == 6
    assert is_answered(asked)


@pytest.mark.parametrize("version", [16, 17, 18])
@pytest.mark.parametrize(("epoch", "broker_id"), [(-1, 2), (0, 1), (0, 2)])
def test_a_refused_replica_is_told_who_leads_but_no_address(
    version: int, epoch: int, broker_id: int
) -> None:
    driver, foreign = start(version)
    elect_again(driver)
    response = foreign.send(0, epoch=epoch, broker_id=broker_id).response
    leader = fetched(response).current_leader
    assert (leader.leader_id, leader.leader_epoch) == (1, 1)
    assert response.node_endpoints == ()


def test_an_election_fences_a_fetch_that_waits() -> None:
    driver, foreign = start()
    waiting = foreign.send(0, epoch=0, wait_ms=1000)
    elect_again(driver)
    assert fetched(waiting.response).error_code == FENCED


def test_whoever_comes_to_terms_with_a_new_leader_counts_again() -> None:
    """As KIP-320 has it: fenced, then the end of its own epoch under the new one, then on."""
    driver, foreign = start()
    produce(driver, "t", b"a", acks=1)
    assert foreign.code(1, epoch=0) == OK
    send_produce(driver, "t", b"only on 1 and foreign", acks=1)
    operator_actions.hold(driver.cluster, "t", 0, 2)
    send_produce(driver, "t", b"on the leader alone", acks=1)
    assert values(foreign.fetch(2, epoch=0))
    driver.elect("t", 0, 2)
    assert foreign.code(3, epoch=0, broker_id=2) == FENCED
    assert foreign.code(3, epoch=0, broker_id=1) == FENCED
    ends = epoch_end(driver, 0, current=1, broker_id=2)
    assert (ends.leader_epoch, ends.end_offset) == (0, 2)
    asked = send_produce(driver, "t", b"new", broker_id=2)
    assert values(foreign.fetch(2, epoch=1, last=0, broker_id=2)) == [b"new"]
    assert not is_answered(asked)
    assert foreign.code(3, epoch=1, broker_id=2) == OK
    assert is_answered(asked)
