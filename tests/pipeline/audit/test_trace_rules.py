"""The rules about traces: a fault of a real cluster is found, and of a sound one nothing.

Each story is told twice, by a cluster with one thing wrong and by one without.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from fencepost.pipeline.audit.rule import Violation
from fencepost.protocol.errors import ErrorCode
from tests.pipeline.audit.rigs import TIERED
from tests.pipeline.audit.tracing import TOPIC, Traced, batch, traced

SLOW: Final = {"replica.lag.time.max.ms": "600000"}
_CHECKED: Final = {"check.expected.offsets": "true"}
_MISMATCH: Final = ErrorCode.EXPECTED_OFFSET_MISMATCH


def told(found: list[Violation]) -> list[tuple[str, int | None, bool]]:
    """Rule, offset, and whether it is explained."""
    return [(each.rule, each.offset, each.explanation is not None) for each in found]


# -- acknowledged-present -------------------------------------------------------------------------


def _lag_and_lead(cluster: Traced) -> list[int]:
    """Broker 2 lacks the second batch, and leads; then it has another one in its place."""
    cluster.create(TOPIC, 1, 2)
    cluster.send(1, batch(0))
    cluster.replica(2, "hold")
    codes = cluster.send(1, batch(3), timeout_ms=100)
    cluster.elect(2)
    cluster.replica(2, "release")
    cluster.send(2, batch(3, note="another"))
    return codes


@pytest.mark.parametrize("mutant", ["slow-broker", None])
def test_what_was_acknowledged_and_is_gone(tmp_path: Path, mutant: str | None) -> None:
    with traced(tmp_path, mutant, brokers=2, configs=SLOW) as cluster:
        codes = _lag_and_lead(cluster)
        found = cluster.audit()
    if mutant is None:
        assert codes == [ErrorCode.REQUEST_TIMED_OUT]
        assert found == []
        return
    assert codes == [ErrorCode.NONE]
    assert told(found) == [("acknowledged-present", 3, False)]
    (gone,) = found
    assert (gone.end_offset, gone.epoch, gone.broker) == (6, 0, 2)
    assert "has other records there, of epoch 1" in gone.message


def test_what_an_unclean_election_has_lost_is_explained(tmp_path: Path) -> None:
    with traced(tmp_path, brokers=2, configs=SLOW) as cluster:
        cluster.create(TOPIC, 1, 2)
        cluster.send(1, batch(0))
        cluster.latest(1)
        cluster.replica(2, "hold", leave_isr=True)
        assert cluster.send(1, batch(3)) == [ErrorCode.NONE]
        cluster.latest(1)
        cluster.elect(2, unclean=True)
        cluster.latest(2)
        found = cluster.audit()
    assert told(found) == [("acknowledged-present", 3, True), ("latest-never-back", 3, True)]
    for each in found:
        assert each.explanation == "the election of broker 2 in epoch 1 was unclean"


def test_what_was_deleted_or_expired_is_not_missing(tmp_path: Path) -> None:
    """Nor is the end of a log that is empty, nor a topic that was created again."""
    with traced(tmp_path, brokers=2, configs={"log.retention.check.interval.ms": "100"}) as cluster:
        cluster.create(TOPIC, 1, 2)
        for number in range(4):
            cluster.send(1, batch(3 * number))
        cluster.tell_to_delete(TOPIC)
        cluster.create(TOPIC, 2, 1, retention_ms="1")
        for number in range(4):
            cluster.send(2, batch(3 * number, note="again"))
            cluster.about(TOPIC, "roll")
        cluster.wait_for_log_start(12)
        cluster.latest(2)
        assert cluster.audit() == []


# -- latest-never-back ----------------------------------------------------------------------------


@pytest.mark.parametrize("gate", ["off", "kip", "kafka"])
def test_a_latest_offset_that_goes_back(tmp_path: Path, gate: str) -> None:
    """Broker 2 leads and has not heard how far all replicas are."""
    with traced(tmp_path, configs={"list.offsets.gate": gate, **SLOW}) as cluster:
        cluster.create(TOPIC, 1, 2, 3)
        cluster.send(1, batch(0))
        for broker in (2, 3):
            cluster.replica(broker, "hold")
        cluster.send(1, batch(3), acks=1)
        for broker in (2, 3):
            cluster.replica(broker, "step", fetches=2)
        assert cluster.latest(1) == (6, 0)
        cluster.elect(2)
        assert cluster.latest(2) == ((3, 0) if gate == "off" else (-1, 78))
        cluster.replica(3, "release")
        assert cluster.latest(2) == (6, 0)
        found = cluster.audit()
    assert told(found) == ([("latest-never-back", 3, False)] if gate == "off" else [])


def test_an_old_leader_that_has_not_heard_is_explained(tmp_path: Path) -> None:
    with traced(tmp_path, configs=SLOW) as cluster:
        cluster.create(TOPIC, 1, 2, 3)
        cluster.send(1, batch(0))
        cluster.tell("brokers/1/isolate", **{"from": "controller"})
        leader = cluster.control.partition(TOPIC)["leader"]
        cluster.send(leader, batch(3))
        assert cluster.latest(leader) == (6, 0)
        assert cluster.latest(1) == (3, 0), "the zombie"
        assert cluster.send(1, batch(3, note="lost"), acks=1) == [ErrorCode.NONE]
        cluster.tell("brokers/1/rejoin")
        found = cluster.audit()
    assert told(found) == [("latest-never-back", 3, True)]
    assert found[0].explanation == "broker 1 had not heard yet of epoch 1"


# -- no-stale-epoch -------------------------------------------------------------------------------


@pytest.mark.parametrize("mutant", ["kip-232-stale-metadata", None])
def test_a_success_under_an_old_epoch(tmp_path: Path, mutant: str | None) -> None:
    fenced = ErrorCode.FENCED_LEADER_EPOCH if mutant is None else ErrorCode.NONE
    with traced(tmp_path, mutant, brokers=2) as cluster:
        cluster.create(TOPIC, 1, 2)
        cluster.send(1, batch(0))
        assert cluster.fetch(1, 0, epoch=0) == ErrorCode.NONE
        cluster.elect(1)
        assert cluster.fetch(1, 3, epoch=1) == ErrorCode.NONE
        assert cluster.fetch(1, 0, epoch=0) == fenced
        assert cluster.latest(1, epoch=0)[1] == fenced
        found = cluster.audit()
    if mutant is None:
        assert found == []
        return
    assert {each.rule for each in found} == {"no-stale-epoch"}
    assert [each.epoch for each in found] == [0] * len(found)
    messages = " ".join(each.message for each in found)
    assert "answers Fetch without an error under leader epoch 0, and was in epoch 1" in messages
    assert "and shows that it is in epoch 1" in messages


# -- expected-offsets -----------------------------------------------------------------------------


@pytest.mark.parametrize("mutant", ["kip-27-competing-writers", None])
def test_a_batch_that_lies_where_it_was_not_expected(tmp_path: Path, mutant: str | None) -> None:
    with traced(tmp_path, mutant, brokers=2) as cluster:
        cluster.create(TOPIC, 1, 2, **_CHECKED)
        assert cluster.send(1, batch(0)) == [ErrorCode.NONE]
        codes = cluster.send(1, batch(3), batch(7))
        found = cluster.audit()
    assert codes == [_MISMATCH if mutant is None else ErrorCode.NONE]
    assert told(found) == ([] if mutant is None else [("expected-offsets", 6, False)])
    assert all("expected at 7" in each.message for each in found)


@pytest.mark.parametrize("mutant", ["appended-and-refused", None])
def test_a_batch_that_was_refused_and_is_there(tmp_path: Path, mutant: str | None) -> None:
    with traced(tmp_path, mutant, brokers=2) as cluster:
        cluster.create(TOPIC, 1, 2, **_CHECKED)
        assert cluster.send(1, batch(0)) == [ErrorCode.NONE]
        assert cluster.send(1, batch(3), batch(7)) == [_MISMATCH]
        assert cluster.send(1, batch(9)) == [_MISMATCH], "and sent again below, where it fits"
        for first in (3, 6, 9):
            cluster.send(1, batch(first, note="" if first > 6 else "another"))
        found = cluster.audit()
    if mutant is None:
        assert found == []
        return
    assert told(found) == [("expected-offsets", 3, False)] * 2
    assert [each.broker for each in found] == [1, 2]


# -- committed-offsets ----------------------------------------------------------------------------


@pytest.mark.parametrize("mutant", ["coordinator-moves", "commits-without-epoch", None])
def test_a_group_that_is_told_something_else(tmp_path: Path, mutant: str | None) -> None:
    with traced(tmp_path, mutant, brokers=2) as cluster:
        cluster.create(TOPIC, 1, 2)
        cluster.send(1, batch(0))
        first = cluster.coordinator("group")
        cluster.commit(first, "group", 2, 0)
        cluster.commit(first, "group", 3, 0)
        told_first = cluster.committed(first, "group")
        second = 3 - first
        cluster.elect(second, topic="__consumer_offsets")
        told_then = cluster.committed(second, "group")
        found = cluster.audit()
    if mutant is None:
        assert (told_first, told_then) == ((3, 0), (3, 0))
        assert found == []
    elif mutant == "coordinator-moves":
        assert told(found) == [("committed-offsets", None, False)]
        assert "had committed 3 of epoch 0" in found[0].message
    else:
        assert told(found) == [("committed-offsets", 3, False)] * 2


def test_a_commit_that_fits_no_log(tmp_path: Path) -> None:
    """Of a client that commits what it can't have read."""
    with traced(tmp_path, brokers=2) as cluster:
        cluster.create(TOPIC, 1, 2)
        cluster.send(1, batch(0))
        cluster.elect(2)
        cluster.send(2, batch(3))
        coordinator = cluster.coordinator("group")
        for offset, epoch in ((3, 0), (3, 1), (6, 1), (4, -1), (0, 1)):
            cluster.commit(coordinator, "group", offset, epoch)
        for offset, epoch in ((7, 1), (5, 0), (6, 2)):
            cluster.commit(coordinator, "wrong", offset, epoch)
        found = cluster.audit()
    assert told(found) == [("committed-offsets", offset, False) for offset in (7, 5, 6)]
    assert "ends at 6" in found[0].message
    assert "the record before it is of epoch 1" in found[1].message
    assert "the newest epoch that there was is 1" in found[2].message


# -- fetched-share --------------------------------------------------------------------------------


_BY_HAND: Final = {
    **SLOW,
    "remote.log.storage.system.enable": "true",
    "remote.log.manager.task.interval.ms": "3600000",
}


@pytest.mark.parametrize("mutant", ["kip-1023-bootstrap", None])
def test_a_follower_that_fetches_what_is_tiered(tmp_path: Path, mutant: str | None) -> None:
    settings = {**_BY_HAND, "follower.fetch.last.tiered.offset.enable": "true"}
    with traced(tmp_path, mutant, brokers=2, configs=settings) as cluster:
        cluster.create(TOPIC, 1, 2, **TIERED, retention_ms="-1")
        cluster.replica(2, "hold", leave_isr=True)
        for number in range(4):
            cluster.send(1, batch(3 * number))
            cluster.about(TOPIC, "roll")
            if number == 0:
                cluster.about(TOPIC, "tier", action="upload")
                cluster.about(TOPIC, "tier", action="delete-local")
            elif number == 2:
                cluster.about(TOPIC, "tier", action="upload")
        cluster.replica(2, "release")
        cluster.wait_for_isr(1, 2)
        found = cluster.audit()
    if mutant is None:
        assert found == []
        return
    assert told(found) == [("fetched-share", 3, False)]
    assert "did not ask for the earliest that waits to be tiered" in found[0].message


@pytest.mark.parametrize("mutant", ["kip-405-still-local", None])
def test_a_leader_that_refuses_what_it_has(tmp_path: Path, mutant: str | None) -> None:
    with traced(tmp_path, mutant, brokers=2, configs=_BY_HAND) as cluster:
        cluster.create(TOPIC, 1, 2, **TIERED, retention_ms="-1")
        cluster.replica(2, "hold", leave_isr=True)
        for number in range(2):
            cluster.send(1, batch(3 * number))
            cluster.about(TOPIC, "roll")
        cluster.about(TOPIC, "tier", action="upload")
        cluster.replica(2, "release")
        if mutant is None:
            cluster.wait_for_isr(1, 2)
        else:
            cluster.wait_for_trace('"timestamp":-4')
        found = cluster.audit()
    if mutant is None:
        assert found == []
        return
    assert {(each.rule, each.offset, each.broker) for each in found} == {("fetched-share", 0, 1)}
    assert "refused offset 0 to broker 2" in found[0].message
