"""A consumer of KIP-320's earlier draft: what it detects, where it goes on, what it can't see."""

from __future__ import annotations

import pytest

from fencepost.broker.node import operator_actions
from fencepost.client.consumer.errors import (
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    TruncatedPartitionError,
)
from fencepost.client.consumer.model import OffsetAndMetadata, Truncation
from fencepost.protocol.codec.drafts import KIP_320_DRAFT
from fencepost.protocol.errors import ErrorCode
from tests.client.consumer.driven import (
    TP,
    DrivenConsumer,
    cluster,
    delete_before,
    elect_uncleanly,
    fall_behind,
    refused,
    start,
    values,
    write,
)
from tests.harness.driver import Driver

DRAFT = "kip-320-draft"
T0 = 1_699_990_000_000
"""Of record 0; each later one is a second younger."""


def at(offset: int, epoch: int | None = None, timestamp: int | None = None) -> OffsetAndMetadata:
    return OffsetAndMetadata(offset=offset, leader_epoch=epoch, timestamp=timestamp)


def drafted() -> Driver:
    return cluster(dialect=KIP_320_DRAFT)


def parted() -> Driver:
    """a0 to a4 of epoch 0 are everywhere, b0 to b4 of epoch 1 on brokers 1 and 2 alone."""
    driver = drafted()
    write(driver, "a", 5, timestamp=T0)
    fall_behind(driver, 3)
    operator_actions.elect(driver.cluster, "t", 0, 1)
    write(driver, "b", 5, timestamp=T0 + 5_000)
    return driver


def truncate(driver: Driver, written: int = 3, timestamp: int = T0 + 5_500) -> None:
    """b0 to b4 are lost, and others take their place, in epoch 2."""
    elect_uncleanly(driver, 3)
    write(driver, "c", written, timestamp=timestamp)


def reader(driver: Driver, policy: str, offset: int | None = 0) -> DrivenConsumer:
    return start(driver, offset, dialect=DRAFT, auto_offset_reset=policy, group_id="g")


def returned(driver: Driver, policy: str, committed: OffsetAndMetadata) -> DrivenConsumer:
    """A member that goes on from what the group has committed."""
    other = DrivenConsumer(driver, dialect=DRAFT, group_id="g")
    other.result(other.core.commit({TP: committed}))
    return reader(driver, policy, None)


# -- the reset table ----------------------------------------------------------------------------


@pytest.mark.parametrize(("policy", "offset"), [("latest", 5), ("earliest", 2), ("closest", 2)])
def test_initialization(policy: str, offset: int) -> None:
    driver = drafted()
    write(driver, "a", 5)
    delete_before(driver, 2)
    assert reader(driver, policy, None).position() == at(offset)


@pytest.mark.parametrize(("policy", "offset"), [("latest", 5), ("earliest", 3), ("closest", 3)])
def test_an_offset_that_is_too_low(policy: str, offset: int) -> None:
    driver = drafted()
    write(driver, "a", 5)
    delete_before(driver, 3)
    consumer = reader(driver, policy, 1)
    consumer.run(lambda: consumer.core.position(TP) == at(offset))


@pytest.mark.parametrize("policy", ["latest", "earliest", "closest"])
def test_a_truncation_whose_offset_is_found(policy: str) -> None:
    driver = parted()
    consumer = reader(driver, policy)
    consumer.read(10)
    truncate(driver)
    assert values(consumer.read(3)) == [b"c0", b"c1", b"c2"]
    position = at(10, 1, T0 + 9_000)
    (truncation,) = consumer.core.truncations
    assert truncation == Truncation(partition=TP, position=position, divergent_offset=at(5, 0))


@pytest.mark.parametrize(
    ("policy", "offset"),
    [
        ("latest", 8),
        ("earliest", 0),
        ("closest", 6),  # c1 is the first that is not older than the record before the commit
    ],
)
def test_a_truncation_whose_offset_is_not_found(policy: str, offset: int) -> None:
    driver = parted()
    truncate(driver)
    # Of epoch 1 nothing is left, and this member never fetched of epoch 0.
    consumer = returned(driver, policy, at(10, 1, T0 + 6_000))
    consumer.run(lambda: consumer.core.truncations and consumer.core.position(TP))
    assert consumer.core.truncations[0].divergent_offset is None
    assert consumer.position() == at(offset)


@pytest.mark.parametrize(
    "timestamp",
    [None, T0 + 60_000],
    ids=["no timestamp was committed", "no record is as young"],
)
def test_closest_is_the_log_end_where_no_time_leads_to_a_record(timestamp: int | None) -> None:
    driver = parted()
    truncate(driver)
    consumer = returned(driver, "closest", at(10, 1, timestamp))
    consumer.run(lambda: consumer.core.truncations and consumer.core.position(TP))
    assert consumer.position() == at(8)


@pytest.mark.parametrize("group", ["g", None])
def test_closest_is_the_log_end_where_nothing_was_committed(group: str | None) -> None:
    driver = parted()
    truncate(driver)
    consumer = start(driver, None, dialect=DRAFT, auto_offset_reset="closest", group_id=group)
    consumer.core.seek(TP, at(10, 1))
    consumer.run(lambda: consumer.core.truncations and consumer.core.position(TP))
    assert consumer.position() == at(8)


def test_the_last_commit_of_any_member_is_what_closest_goes_by() -> None:
    driver = parted()
    consumer = returned(driver, "closest", at(10, 1, T0 + 60_000))
    consumer.position()
    other = DrivenConsumer(driver, dialect=DRAFT, group_id="g")
    other.result(other.core.commit({TP: at(4, 0, T0 + 3_000)}))
    truncate(driver)
    consumer.run(lambda: consumer.core.truncations and consumer.core.position(TP))
    assert consumer.position() == at(3)


# -- policy none --------------------------------------------------------------------------------


def test_the_application_is_told_once_and_goes_on_at_the_same_offset() -> None:
    driver = parted()
    consumer = reader(driver, "none")
    consumer.read(10)
    truncate(driver)
    with pytest.raises(TruncatedPartitionError) as told:
        consumer.poll()
    assert told.value.offsets == {TP: 10}
    assert told.value.truncated_offsets == {TP: 5}
    assert str(told.value) == "the log was truncated: t-0 at 10, divergent offset 5"
    assert consumer.position() == at(10)
    consumer.nothing()  # the log has not reached the offset; that is no error
    asked = consumer.partitions("fetch")[-1]
    assert (asked.fetch_offset, asked.last_fetched_epoch) == (10, -1)
    write(driver, "d", 4)
    assert values(consumer.read(2)) == [b"d2", b"d3"]
    assert consumer.position().leader_epoch == 2
    assert len(consumer.core.truncations) == 1


def test_it_can_seek_to_where_the_logs_part() -> None:
    driver = parted()
    consumer = reader(driver, "none")
    consumer.read(10)
    truncate(driver)
    with pytest.raises(OffsetOutOfRangeError) as told:
        consumer.poll()
    assert isinstance(told.value, TruncatedPartitionError)
    consumer.core.seek(TP, at(5, 0))
    assert values(consumer.read(3)) == [b"c0", b"c1", b"c2"]


def test_where_the_offset_is_not_found_the_error_has_none() -> None:
    driver = parted()
    truncate(driver)
    consumer = returned(driver, "none", at(10, 1, T0))
    with pytest.raises(TruncatedPartitionError, match="divergent offset unknown") as told:
        consumer.poll()
    assert told.value.truncated_offsets == {TP: None}
    consumer.nothing(200)


def test_other_errors_are_those_of_the_final_protocol() -> None:
    driver = drafted()
    write(driver, "a", 5)
    delete_before(driver, 3)
    with pytest.raises(NoOffsetForPartitionError):
        reader(driver, "none", None).poll()
    consumer = reader(driver, "none", 1)
    for _ in range(2):
        with pytest.raises(OffsetOutOfRangeError) as told:
            consumer.poll()
        assert type(told.value) is OffsetOutOfRangeError


# -- the cache of epochs ------------------------------------------------------------------------


def test_the_epochs_that_it_fetched_lead_to_the_offset() -> None:
    driver = parted()
    consumer = reader(driver, "earliest")
    consumer.read(10)
    truncate(driver)
    consumer.read(3)
    asked = consumer.partitions("offset_for_leader_epoch")
    assert [each.leader_epoch for each in asked] == [1]
    assert [each.current_leader_epoch for each in asked] == [-1], "it sends no current epoch"
    assert consumer.requests("offset_for_leader_epoch")[0].broker == 3


def test_smaller_epochs_are_asked_about_until_one_is_found() -> None:
    driver = drafted()
    write(driver, "a", 2)
    fall_behind(driver, 3)
    for broker in (1, 2):
        operator_actions.hold(driver.cluster, "t", 0, broker)
    operator_actions.elect(driver.cluster, "t", 0, 3, unclean=True)
    write(driver, "b", 1)  # epoch 1, on broker 3 alone
    operator_actions.elect(driver.cluster, "t", 0, 1, unclean=True)
    write(driver, "c", 4)  # epoch 2, on broker 1 alone
    consumer = reader(driver, "earliest")
    assert values(consumer.read(6)) == [b"a0", b"a1", b"c0", b"c1", b"c2", b"c3"]
    operator_actions.elect(driver.cluster, "t", 0, 3, unclean=True)
    assert values(consumer.read(1)) == [b"b0"]
    assert consumer.core.truncations[0].divergent_offset == at(2, 0)
    asked = consumer.partitions("offset_for_leader_epoch")
    assert [each.leader_epoch for each in asked] == [2, 0], "1 was not fetched"


def test_it_is_exact_after_several_unclean_elections() -> None:
    driver = drafted()
    write(driver, "a", 2)
    fall_behind(driver, 3)
    write(driver, "b", 3)  # on brokers 1 and 2 alone, in epoch 0
    for other in (1, 2):
        operator_actions.hold(driver.cluster, "t", 0, other)
    operator_actions.elect(driver.cluster, "t", 0, 3, unclean=True)
    write(driver, "c", 5)  # on broker 3, from 2 on
    consumer = reader(driver, "earliest")
    assert values(consumer.read(7)) == [b"a0", b"a1", *(b"c%d" % n for n in range(5))]
    operator_actions.elect(driver.cluster, "t", 0, 1, unclean=True)
    write(driver, "d", 1)
    # Epoch 0 ends at 5 there, but the consumer has read none of it from 2 on.
    assert values(consumer.read(4)) == [b"b0", b"b1", b"b2", b"d0"]
    assert consumer.core.truncations[0].divergent_offset == at(2, 0)


def test_a_leader_whose_log_has_the_position_after_all_is_fetched_from() -> None:
    driver = parted()
    consumer = reader(driver, "none")
    consumer.read(10)
    consumer.alters = [("fetch", refused(ErrorCode.LOG_TRUNCATION))]
    consumer.nothing()
    assert len(consumer.requests("offset_for_leader_epoch")) == 1
    write(driver, "b", 1)
    assert values(consumer.poll()) == [b"b0"]
    assert consumer.core.truncations == ()


def test_lost_questions_are_repeated_of_the_leader_of_that_time() -> None:
    driver = parted()
    consumer = reader(driver, "earliest")
    consumer.read(10)
    truncate(driver)
    consumer.loses = {"offset_for_leader_epoch"}
    consumer.run(lambda: len(consumer.requests("offset_for_leader_epoch")) == 2)
    operator_actions.elect(driver.cluster, "t", 0, 2)
    consumer.loses = set()
    assert values(consumer.read(3)) == [b"c0", b"c1", b"c2"]


def test_brokers_without_the_lookup_leave_the_offset_unknown() -> None:
    driver = cluster(dialect=KIP_320_DRAFT, api_max={"offset_for_leader_epoch": 1})
    write(driver, "a", 5)
    fall_behind(driver, 3)
    write(driver, "b", 5)
    consumer = reader(driver, "none")
    consumer.read(10)
    truncate(driver)
    with pytest.raises(TruncatedPartitionError) as told:
        consumer.poll()
    assert told.value.truncated_offsets == {TP: None}


# -- what it sends and commits ------------------------------------------------------------------


def test_it_speaks_the_versions_of_the_draft() -> None:
    driver = parted()
    consumer = reader(driver, "earliest", None)
    consumer.read(10)
    consumer.result(consumer.core.commit())
    versions = {each.api: each.version for each in consumer.sent}
    drafted_ones = {"fetch": 9, "list_offsets": 4, "offset_commit": 6, "offset_fetch": 5}
    assert {api: versions[api] for api in drafted_ones} == drafted_ones
    assert versions["metadata"] > 7


def test_commits_have_the_epoch_and_timestamp_of_the_last_record() -> None:
    driver = parted()
    consumer = reader(driver, "earliest")
    consumer.read(10)
    consumer.result(consumer.core.commit())
    expected = at(10, 1, T0 + 9_000)
    assert consumer.position() == expected
    assert consumer.result(consumer.core.committed([TP])) == {TP: expected}
    assert reader(driver, "none", None).position() == expected


def test_lookups_by_time_have_epochs() -> None:
    driver = parted()
    consumer = reader(driver, "none")
    found = consumer.result(consumer.core.find_offsets({TP: T0 + 5_000}))[TP]
    assert found is not None
    assert (found.offset, found.timestamp, found.leader_epoch) == (5, T0 + 5_000, 1)


def test_a_change_of_leader_is_not_validated() -> None:
    driver = drafted()
    write(driver, "a", 2)
    consumer = reader(driver, "none")
    consumer.read(2)
    operator_actions.elect(driver.cluster, "t", 0, 2)
    write(driver, "b", 1)
    assert values(consumer.poll()) == [b"b0"]
    assert consumer.requests("offset_for_leader_epoch") == []
    assert consumer.requests("fetch")[-1].broker == 2


def test_a_seek_with_an_epoch_is_checked_by_the_fetch() -> None:
    driver = parted()
    truncate(driver)
    consumer = reader(driver, "none")
    consumer.core.seek(TP, at(8, 0))
    with pytest.raises(TruncatedPartitionError) as told:
        consumer.poll()
    assert told.value.truncated_offsets == {TP: 5}
    assert consumer.requests("fetch") != []


# -- stale metadata (KIP-232) -------------------------------------------------------------------


def test_a_zombie_serves_it_unfenced() -> None:
    """It sends no current epoch. The final protocol's consumer is fenced in this story."""
    driver = drafted()
    write(driver, "a", 1)
    consumer = reader(driver, "none")
    consumer.read(1)
    operator_actions.isolate(driver.cluster, 1, from_controller=True)
    assert driver.partition("t").leader == 2
    consumer.nothing(500)
    assert {each.broker for each in consumer.requests("fetch")} == {1}


def test_a_record_that_is_newer_than_the_metadata_has_it_refreshed() -> None:
    driver = drafted()
    write(driver, "a", 1)
    consumer = reader(driver, "none")
    consumer.read(1)
    asked = len(consumer.requests("metadata"))
    operator_actions.elect(driver.cluster, "t", 0, 1)  # the same leader in a new epoch
    write(driver, "b", 1)
    assert values(consumer.poll()) == [b"b0"]
    consumer.run(lambda: len(consumer.requests("metadata")) > asked)
    write(driver, "c", 1)
    assert values(consumer.poll()) == [b"c0"]


def test_a_broker_that_knows_no_such_epoch_is_stale() -> None:
    driver = drafted()
    write(driver, "a", 2)
    consumer = reader(driver, "none")
    consumer.read(2)
    consumer.alters = [("fetch", refused(ErrorCode.UNKNOWN_LEADER_EPOCH))]
    write(driver, "b", 1)
    asked = len(consumer.requests("metadata"))
    assert values(consumer.poll()) == [b"b0"]
    consumer.nothing(200)
    assert len(consumer.requests("metadata")) > asked


def test_the_draft_does_not_see_a_smaller_epoch_with_a_later_end() -> None:
    """The broker compares ends alone: the other records below the position are not noticed."""
    driver = drafted()
    write(driver, "a", 2)
    fall_behind(driver, 3)
    write(driver, "b", 6)
    for other in (1, 2):
        operator_actions.hold(driver.cluster, "t", 0, other)
    operator_actions.elect(driver.cluster, "t", 0, 3, unclean=True)
    write(driver, "c", 2)
    consumer = reader(driver, "none")
    assert values(consumer.read(4)) == [b"a0", b"a1", b"c0", b"c1"]
    operator_actions.elect(driver.cluster, "t", 0, 1, unclean=True)
    assert values(consumer.read(4)) == [b"b2", b"b3", b"b4", b"b5"]
    assert consumer.core.truncations == ()


def test_closest_needs_the_draft() -> None:
    with pytest.raises(ValueError, match='needs dialect="kip-320-draft"'):
        DrivenConsumer(cluster(), auto_offset_reset="closest")
