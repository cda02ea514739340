"""Truncation is found by OffsetForLeaderEpoch after a change of leader, as KIP-320 has it."""

from __future__ import annotations

import pytest

from fencepost.broker.node import operator_actions
from fencepost.client.consumer.errors import LogTruncationError, OffsetOutOfRangeError
from fencepost.client.consumer.model import OffsetAndMetadata, Truncation
from tests.client.consumer.driven import (
    TP,
    DrivenConsumer,
    cluster,
    elect_uncleanly,
    fall_behind,
    values,
    write,
)
from tests.harness.driver import Driver
from tests.harness.driver_requests import create


def at(offset: int, epoch: int | None = None) -> OffsetAndMetadata:
    return OffsetAndMetadata(offset=offset, leader_epoch=epoch)


def read_and_truncate(policy: str, *, written: int = 3) -> tuple[Driver, DrivenConsumer]:
    """A consumer has read a0 to a4 and b0 to b4, and b0 to b4 are lost; others take their place."""
    driver = cluster()
    write(driver, "a", 5)
    fall_behind(driver, 3)
    write(driver, "b", 5)
    consumer = DrivenConsumer(driver, auto_offset_reset=policy)
    consumer.core.assign([TP])
    consumer.core.seek(TP, at(0))
    consumer.read(10)
    elect_uncleanly(driver, 3)
    write(driver, "c", written)
    return driver, consumer


@pytest.mark.parametrize("policy", ["earliest", "latest", "by_duration:PT1H"])
@pytest.mark.parametrize("written", [3, 5, 9])
def test_with_a_policy_it_goes_on_where_the_logs_part(policy: str, written: int) -> None:
    _, consumer = read_and_truncate(policy, written=written)
    assert values(consumer.read(written)) == [b"c%d" % n for n in range(written)]
    truncation = Truncation(partition=TP, position=at(10, 0), divergent_offset=at(5, 0))
    assert consumer.core.truncations == (truncation,)


def test_the_new_leader_is_asked_in_its_epoch_about_the_epoch_that_was_read() -> None:
    _, consumer = read_and_truncate("earliest")
    consumer.read(3)
    (request,) = consumer.requests("offset_for_leader_epoch")
    (asked,) = consumer.partitions("offset_for_leader_epoch")
    assert (request.broker, request.message.replica_id) == (3, -1)
    assert (asked.current_leader_epoch, asked.leader_epoch) == (1, 0)


def test_without_a_policy_the_application_is_told_until_it_seeks() -> None:
    _, consumer = read_and_truncate("none")
    for _ in range(2):
        with pytest.raises(LogTruncationError) as told:
            consumer.poll()
        assert told.value.offsets == {TP: 10}
        assert told.value.divergent_offsets == {TP: at(5, 0)}
        assert str(told.value) == "the log was truncated: t-0 at 10, divergent offset 5"
    with pytest.raises(OffsetOutOfRangeError):
        consumer.position()
    consumer.core.seek(TP, told.value.divergent_offsets[TP])
    assert values(consumer.read(3)) == [b"c0", b"c1", b"c2"]


def test_an_application_that_does_not_seek_does_not_flood_the_leader() -> None:
    _, consumer = read_and_truncate("none")
    begun, told = consumer.now, 0
    while consumer.now < begun + 3_000:
        with pytest.raises(LogTruncationError):
            consumer.poll()
        told += 1
    assert 3 <= told == len(consumer.requests("offset_for_leader_epoch")) <= 8


def test_it_is_found_without_fetching() -> None:
    driver = cluster()
    write(driver, "a", 5)
    fall_behind(driver, 3)
    write(driver, "b", 5)
    consumer = DrivenConsumer(driver, auto_offset_reset="latest", metadata_max_age_ms=500)
    consumer.core.assign([TP])
    consumer.core.seek(TP, at(0))
    consumer.read(10)
    consumer.core.pause(TP, paused=True)
    elect_uncleanly(driver, 3)
    consumer.run(lambda: consumer.core.truncations)
    assert consumer.position() == at(5, 0)


def test_a_clean_election_interrupts_nothing() -> None:
    driver = cluster()
    write(driver, "a", 3)
    consumer = DrivenConsumer(driver, auto_offset_reset="none")
    consumer.core.assign([TP])
    consumer.core.seek(TP, at(0))
    consumer.read(3)
    operator_actions.elect(driver.cluster, "t", 0, 2)
    write(driver, "b", 2)
    assert [(each.value, each.leader_epoch) for each in consumer.read(2)] == [
        (b"b0", 1),
        (b"b1", 1),
    ]
    assert consumer.core.truncations == ()
    assert len(consumer.requests("offset_for_leader_epoch")) == 1


def test_an_election_without_records_is_no_truncation() -> None:
    driver = cluster()
    write(driver, "a", 3)
    for leader in (2, 3, 1):
        operator_actions.elect(driver.cluster, "t", 0, leader)
    consumer = DrivenConsumer(driver, auto_offset_reset="none")
    consumer.core.assign([TP])
    # A position at the log end in the epoch of a leader that wrote nothing in it.
    consumer.core.seek(TP, at(3, 2))
    assert consumer.position() == at(3, 2), "its epoch stays a bound"
    operator_actions.elect(driver.cluster, "t", 0, 2)
    write(driver, "b", 1)
    assert values(consumer.read(1)) == [b"b0"]


# -- seek, with an epoch and without ------------------------------------------------------------


def test_a_seek_with_an_epoch_shows_the_truncation_before_any_record() -> None:
    driver, _ = read_and_truncate("none")
    consumer = DrivenConsumer(driver, auto_offset_reset="none")
    consumer.core.assign([TP])
    consumer.core.seek(TP, at(7, 0))
    with pytest.raises(LogTruncationError) as told:
        consumer.poll()
    assert told.value.offsets == {TP: 7}
    assert told.value.divergent_offsets == {TP: at(5, 0)}
    assert consumer.requests("fetch") == []


def test_a_seek_without_an_epoch_does_not() -> None:
    driver, _ = read_and_truncate("none")
    consumer = DrivenConsumer(driver, auto_offset_reset="none")
    consumer.core.assign([TP])
    consumer.core.seek(TP, at(7))
    assert values(consumer.poll()) == [b"c2"]
    assert consumer.requests("offset_for_leader_epoch") == []


def test_a_seek_to_what_is_still_there_is_valid() -> None:
    driver, _ = read_and_truncate("none")
    consumer = DrivenConsumer(driver, auto_offset_reset="none")
    consumer.core.assign([TP])
    consumer.core.seek(TP, at(4, 0))
    assert consumer.position() == at(4, 0)
    assert values(consumer.poll()) == [b"a4", b"c0", b"c1", b"c2"]


def test_a_seek_beyond_the_metadata_waits_for_it_to_catch_up() -> None:
    driver = cluster()
    write(driver, "a", 3)
    consumer = DrivenConsumer(driver, auto_offset_reset="none")
    consumer.core.assign([TP])
    consumer.core.seek(TP, at(0))
    consumer.read(2 + 1)
    consumer.core.seek(TP, at(2, 1))
    consumer.nothing()
    assert consumer.requests("offset_for_leader_epoch") == []
    operator_actions.elect(driver.cluster, "t", 0, 2)
    assert consumer.position() == at(2, 1)
    (asked,) = consumer.partitions("offset_for_leader_epoch")
    assert (asked.current_leader_epoch, asked.leader_epoch) == (1, 1)


# -- several unclean elections ------------------------------------------------------------------


def test_a_record_that_the_log_does_not_have_is_noticed_behind_a_later_end_too() -> None:
    driver = cluster()
    write(driver, "a", 2)
    fall_behind(driver, 3)
    write(driver, "b", 6)  # on brokers 1 and 2 alone, in epoch 0
    driver.elect("t", 0, 1)
    for other in (1, 2):
        operator_actions.hold(driver.cluster, "t", 0, other)
    operator_actions.elect(driver.cluster, "t", 0, 3, unclean=True)
    write(driver, "c", 2)  # on broker 3, at 2 and 3, in a later epoch
    consumer = DrivenConsumer(driver, auto_offset_reset="none")
    consumer.core.assign([TP])
    consumer.core.seek(TP, at(0))
    assert values(consumer.read(4)) == [b"a0", b"a1", b"c0", b"c1"]
    operator_actions.elect(driver.cluster, "t", 0, 1, unclean=True)
    with pytest.raises(LogTruncationError) as told:
        consumer.poll()
    # Epoch 0 ends at 8 there, behind the position, but record 3 is another one.
    assert told.value.divergent_offsets == {TP: at(3, 0)}


# -- errors -------------------------------------------------------------------------------------


def test_it_is_asked_again_after_a_lost_request() -> None:
    _, consumer = read_and_truncate("earliest")
    consumer.loses = {"offset_for_leader_epoch"}
    consumer.nothing()
    consumer.loses = set()
    assert values(consumer.read(3)) == [b"c0", b"c1", b"c2"]
    assert len(consumer.requests("offset_for_leader_epoch")) > 2


def test_it_is_asked_again_when_the_leader_has_changed_meanwhile() -> None:
    driver = cluster()
    write(driver, "a", 3)
    consumer = DrivenConsumer(driver, auto_offset_reset="none")
    consumer.core.assign([TP])
    consumer.core.seek(TP, at(0))
    consumer.read(3)
    consumer.core.seek(TP, at(3, 0))
    turn = consumer.core.turn(consumer.now)
    (request,) = [each for each in turn.requests if each.api.name == "offset_for_leader_epoch"]
    operator_actions.elect(driver.cluster, "t", 0, 2)  # the request comes after the election
    answer = driver.ask(1, "offset_for_leader_epoch", request.version, request.message)
    assert answer.topics[0].partitions[0].error_code == 74
    consumer.core.answered(request, answer, consumer.now)
    assert consumer.core.position(TP) is None
    assert consumer.position() == at(3, 0)
    assert consumer.requests("offset_for_leader_epoch")[-1].broker == 2


# -- older brokers ------------------------------------------------------------------------------


def behind(**api_max: int) -> DrivenConsumer:
    """A consumer that has read ten records, five of which are lost and six others written."""
    driver = Driver(3, api_max=api_max)
    create(driver, "t", ((1, 2, 3),))
    write(driver, "a", 5)
    fall_behind(driver, 3)
    write(driver, "b", 5)
    consumer = DrivenConsumer(driver, auto_offset_reset="none")
    consumer.core.assign([TP])
    consumer.core.seek(TP, at(0))
    consumer.read(10)
    elect_uncleanly(driver, 3)
    write(driver, "c", 6)
    return consumer


@pytest.mark.parametrize(
    "api_max",
    [
        {"offset_for_leader_epoch": 1},  # so it is not served
        {"metadata": 6},  # no leader epochs, so that nothing shows that the leader is another
        {"metadata": 6, "fetch": 12},
    ],
    ids=str,
)
def test_where_it_can_not_be_asked_the_fetch_shows_it(api_max: dict[str, int]) -> None:
    consumer = behind(**api_max)
    for _ in range(2):
        with pytest.raises(LogTruncationError) as told:
            consumer.poll()
        assert told.value.divergent_offsets == {TP: at(5, 0)}
    assert consumer.requests("offset_for_leader_epoch") == []
    consumer.core.seek(TP, at(5, 0))
    assert values(consumer.read(6)) == [b"c%d" % n for n in range(6)]


@pytest.mark.parametrize(
    "api_max", [{"offset_for_leader_epoch": 1, "fetch": 11}, {"metadata": 6, "fetch": 8}], ids=str
)
def test_behind_brokers_that_can_do_neither_records_are_missed(api_max: dict[str, int]) -> None:
    consumer = behind(**api_max)
    assert values(consumer.read(1)) == [b"c5"]
    assert consumer.core.truncations == ()
