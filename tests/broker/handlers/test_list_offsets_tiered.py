"""ListOffsets and OffsetForLeaderEpoch of a tiered topic, and what DeleteRecords does to them."""

from __future__ import annotations

from typing import Final

import pytest

from fencepost.broker.faults.remote_storage import RemoteFaultRule, RemoteOperation
from fencepost.broker.node.cluster import Conformance
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from fencepost.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from fencepost.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from fencepost.storage.tier.object_store import ObjectKind
from tests.harness.driver import Asked
from tests.harness.driver_requests import list_offset
from tests.harness.logs import T
from tests.harness.records import batch
from tests.harness.remote_tier import Tier

LATEST, EARLIEST, MAX_TIMESTAMP, LOCAL, TIERED, PENDING = -1, -2, -3, -4, -5, -6
NOTHING: Final = (-1, -1, -1)
PATIENCE_MS: Final = 30_000
"""Kafka's default of remote.list.offsets.request.timeout.ms."""
both = pytest.mark.parametrize("conformance", Conformance)


def append(tier: Tier, *times: int) -> None:
    """Batches of one record; two fill a segment. Times are ms after T."""
    for each in times:
        tier.leader("t").append(batch((T + each, b"k", b"v")), now_ms=tier.clock.now_ms())
        tier.cluster.scheduler.run_due()


def place(tier: Tier, timestamp: int, broker: int | None = None) -> tuple[int, int, int]:
    """Offset, epoch, and timestamp (-1 or ms after T)."""
    found = list_offset(tier, "t", timestamp, broker_id=broker)
    assert found.error_code == ErrorCode.NONE, found
    when = found.timestamp - T if found.timestamp >= 0 else -1
    return found.offset, found.leader_epoch, when


def new(conformance: Conformance = Conformance.KIP, brokers: int = 1) -> Tier:
    return Tier(brokers, conformance=conformance, retention_ms="-1", local_retention_ms="-1")


def moved(conformance: Conformance = Conformance.KIP, brokers: int = 1) -> Tier:
    """Offsets 0 to 5 are only in the tier, 6 is here; each in an epoch of two records."""
    tier = new(conformance, brokers)
    append(tier, *range(7))
    assert tier.run() is None
    tier.manager.delete_local(tier.leader("t"))
    tier.objects.asked.clear()
    return tier


# -- special targets ------------------------------------------------------------------------------


@both
def test_of_a_log_without_a_tier(conformance: Conformance) -> None:
    tier = Tier(conformance=conformance, remote_storage_enable="false")
    append(tier, 0, 1, 2)
    assert [place(tier, each) for each in (TIERED, PENDING)] == [NOTHING, NOTHING]


@both
def test_of_an_empty_log(conformance: Conformance) -> None:
    tier = new(conformance)
    assert [place(tier, each) for each in (EARLIEST, LOCAL)] == [(0, 0, -1)] * 2
    assert [place(tier, each) for each in (TIERED, PENDING)] == [NOTHING, NOTHING]


@pytest.mark.parametrize(
    ("conformance", "pending"), [(Conformance.KIP, NOTHING), (Conformance.APACHE, (0, 0, -1))]
)
def test_where_nothing_was_ever_tiered(
    conformance: Conformance, pending: tuple[int, int, int]
) -> None:
    tier = new(conformance)
    append(tier, 0)
    assert (place(tier, TIERED), place(tier, PENDING)) == (NOTHING, pending)


@both
def test_what_is_tiered_and_what_is_next(conformance: Conformance) -> None:
    tier = new(conformance)
    append(tier, *range(7))
    tier.run()
    assert (place(tier, TIERED), place(tier, PENDING)) == ((5, 0, -1), (6, 0, -1))
    assert (place(tier, EARLIEST), place(tier, LOCAL)) == ((0, 0, -1), (0, 0, -1))
    tier.manager.delete_local(tier.leader("t"))
    assert (place(tier, TIERED), place(tier, PENDING)) == ((5, 0, -1), (6, 0, -1))
    assert (place(tier, EARLIEST), place(tier, LOCAL)) == ((0, 0, -1), (6, 0, -1))
    assert place(tier, LATEST) == (7, 0, -1)


@pytest.mark.parametrize(
    ("conformance", "pending"), [(Conformance.KIP, (7, 0, -1)), (Conformance.APACHE, NOTHING)]
)
def test_where_all_is_tiered(conformance: Conformance, pending: tuple[int, int, int]) -> None:
    tier = moved(conformance)
    tier.leader("t").log.roll(tier.clock.now_ms())
    tier.run()
    assert (place(tier, TIERED), place(tier, PENDING)) == ((6, 0, -1), pending)


@both
def test_a_new_leader_does_not_know_until_its_task_has_run(conformance: Conformance) -> None:
    tier = moved(conformance, brokers=2)
    fault = tier.cluster.tier_faults.add(
        RemoteFaultRule(operation=RemoteOperation.LIST, error="not now", count=None)
    )
    tier.elect("t", 0, 2)
    assert [place(tier, each) for each in (TIERED, PENDING)] == [NOTHING, NOTHING]
    tier.cluster.tier_faults.remove(fault.id)
    assert tier.run() is None
    assert (place(tier, TIERED), place(tier, PENDING)) == ((5, 0, -1), (6, 0, -1))


def test_epochs_are_those_of_the_offsets() -> None:
    tier = new(brokers=2)
    append(tier, 0, 1, 2)
    tier.elect("t", 0, 2)
    append(tier, 3, 4, 5)
    tier.elect("t", 0, 1)
    append(tier, 6)
    assert tier.run() is None
    tier.manager.delete_local(tier.leader("t"))
    assert place(tier, EARLIEST) == (0, 0, -1)
    assert place(tier, TIERED) == (5, 1, -1)
    assert place(tier, PENDING) == place(tier, LOCAL) == (6, 2, -1)
    assert place(tier, LATEST) == (7, 2, -1)
    assert [place(tier, T + each) for each in (2, 3, 6)] == [(2, 0, 2), (3, 1, 3), (6, 2, 6)]


def test_leader_epochs_that_are_only_in_the_tier_have_their_ends() -> None:
    tier = new(brokers=2)
    append(tier, 0, 1, 2)
    tier.elect("t", 0, 2)
    append(tier, 3, 4)
    tier.elect("t", 0, 1)
    append(tier, 5, 6)
    assert tier.run() is None
    tier.manager.delete_local(tier.leader("t"))
    assert tier.leader("t").log.local_log_start_offset == 6
    ends = []
    for epoch in range(4):
        asked = (OffsetForLeaderPartition(partition=0, leader_epoch=epoch),)
        request = OffsetForLeaderEpochRequest(
            replica_id=-1, topics=(OffsetForLeaderTopic(topic="t", partitions=asked),)
        )
        (topic,) = tier.ask(1, "offset_for_leader_epoch", 4, request).topics
        (found,) = topic.partitions
        ends.append((found.leader_epoch, found.end_offset))
    assert ends == [(0, 3), (1, 5), (2, 7), (-1, -1)]


# -- by time --------------------------------------------------------------------------------------


@both
def test_a_time_that_is_only_in_the_tier(conformance: Conformance) -> None:
    tier = moved(conformance)
    assert place(tier, 0) == (0, 0, 0)
    for each in range(7):
        assert place(tier, T + each) == (each, 0, each)
    assert place(tier, T + 7) == NOTHING


def test_what_the_log_has_whole_is_not_looked_for_in_the_tier() -> None:
    tier = new()
    append(tier, *range(7))
    tier.run()
    tier.objects.asked.clear()
    assert place(tier, T + 3) == (3, 0, 3)
    assert not tier.objects.asked


def test_the_earlier_of_two_comes_from_the_tier_and_only_then_from_here() -> None:
    tier = new()
    append(tier, 5, 9, 3, 4, 9, 1, 9)
    tier.run()
    tier.manager.delete_local(tier.leader("t"))
    assert place(tier, T + 6) == (1, 0, 9)
    append(tier, 12)
    assert place(tier, T + 10) == (7, 0, 12)


@pytest.mark.parametrize(
    ("conformance", "latest"), [(Conformance.KIP, (1, 0, 9)), (Conformance.APACHE, (6, 0, 2))]
)
def test_the_latest_of_all(conformance: Conformance, latest: tuple[int, int, int]) -> None:
    """Apache Kafka knows only what is local."""
    tier = new(conformance)
    append(tier, 5, 9, 3, 4, 9, 1, 2)
    tier.run()
    tier.manager.delete_local(tier.leader("t"))
    assert place(tier, MAX_TIMESTAMP) == latest


def test_behind_what_may_be_read_nothing_is_found() -> None:
    tier = moved()
    tier.leader("t").high_watermark = 3
    assert place(tier, T + 2) == (2, 0, 2)
    assert place(tier, T + 3) == NOTHING


def send(tier: Tier, *targets: tuple[int, int], timeout_ms: int = 0, version: int = 11) -> Asked:
    """Partition index and timestamp each."""
    partitions = tuple(
        ListOffsetsPartition(partition_index=index, timestamp=timestamp)
        for index, timestamp in targets
    )
    request = ListOffsetsRequest(
        replica_id=-1,
        timeout_ms=timeout_ms,
        topics=(ListOffsetsTopic(name="t", partitions=partitions),),
    )
    return tier.send(1, "list_offsets", version, request)


def hold_records(tier: Tier) -> None:
    tier.objects.holds = lambda op, key: op == "get" and key.endswith(ObjectKind.LOG)


@pytest.mark.parametrize(
    ("version", "timeout_ms", "patience_ms"),
    [(9, 0, PATIENCE_MS), (11, 0, PATIENCE_MS), (10, 700, 700), (11, 700, 700)],
)
def test_a_slow_tier_is_waited_for(version: int, timeout_ms: int, patience_ms: int) -> None:
    tier = moved()
    hold_records(tier)
    late = send(tier, (0, T), version=version, timeout_ms=timeout_ms)
    soon = send(tier, (0, T), version=version, timeout_ms=timeout_ms)
    tier.advance(patience_ms - 1)
    assert not late.done
    assert not soon.done
    tier.advance(1)
    ((found,),) = (topic.partitions for topic in late.response.topics)
    assert (found.error_code, found.offset) == (ErrorCode.REQUEST_TIMED_OUT, -1)
    hold_records(tier)
    third = send(tier, (0, T), version=version, timeout_ms=timeout_ms)
    tier.objects.release()
    tier.cluster.scheduler.run_due()
    ((found,),) = (topic.partitions for topic in third.response.topics)
    assert (found.error_code, found.offset) == (ErrorCode.NONE, 0)


def test_a_partition_that_is_asked_twice_is_not_looked_for() -> None:
    tier = moved()
    asked = send(tier, (0, T), (0, T + 1))
    ((found,),) = (topic.partitions for topic in asked.response.topics)
    assert found.error_code == ErrorCode.INVALID_REQUEST
    assert not tier.objects.asked


def test_partitions_that_wait_and_that_do_not_are_one_answer() -> None:
    tier = moved()
    hold_records(tier)
    asked = send(tier, (1, T), (0, T))
    assert not asked.done
    tier.objects.release()
    tier.cluster.scheduler.run_due()
    ((first, second),) = (topic.partitions for topic in asked.response.topics)
    assert (first.partition_index, first.error_code) == (1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert (second.partition_index, second.offset) == (0, 0)


def test_a_tier_that_fails() -> None:
    tier = moved()
    tier.objects.fails = lambda op, key: op == "get" and key.endswith(ObjectKind.TIME_INDEX)
    assert list_offset(tier, "t", T).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    tier.objects.fails = lambda op, _key: op == "list"
    tier.manager.forget(tier.leader("t"), lambda _: None)
    tier.cluster.scheduler.run_due()
    assert list_offset(tier, "t", T).error_code == ErrorCode.REPLICA_NOT_AVAILABLE


# -- DeleteRecords --------------------------------------------------------------------------------


def delete(tier: Tier, offset: int) -> tuple[int, int]:
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(
        timeout_ms=1000, topics=(DeleteRecordsTopic(name="t", partitions=(partition,)),)
    )
    (topic,) = tier.ask(1, "delete_records", 2, request).topics
    (found,) = topic.partitions
    return found.low_watermark, found.error_code


@both
def test_records_are_deleted_within_the_tier(conformance: Conformance) -> None:
    tier = moved(conformance)
    assert delete(tier, 3) == (3, ErrorCode.NONE)
    assert tier.run() is None
    assert tier.tiered() == [(2, 3), (4, 5)]
    assert (place(tier, EARLIEST), place(tier, LOCAL)) == ((3, 0, -1), (6, 0, -1))
    assert (place(tier, TIERED), place(tier, PENDING)) == ((5, 0, -1), (6, 0, -1))
    assert place(tier, 0) == place(tier, T) == (3, 0, 3)
    assert place(tier, MAX_TIMESTAMP) == (6, 0, 6)


@pytest.mark.parametrize(
    ("conformance", "pending"), [(Conformance.KIP, (6, -1, -1)), (Conformance.APACHE, NOTHING)]
)
def test_all_records_are_deleted(conformance: Conformance, pending: tuple[int, int, int]) -> None:
    """A follower that is told of a place before the log start knows the tier for stale."""
    tier = moved(conformance)
    assert delete(tier, -1) == (7, ErrorCode.NONE)
    assert tier.run() is None
    assert not tier.objects.objects
    assert place(tier, EARLIEST) == place(tier, LOCAL) == (7, 0, -1)
    assert place(tier, TIERED) == (5, -1, -1)
    assert place(tier, PENDING) == pending
    assert place(tier, 0) == NOTHING


def test_the_latest_that_is_left_where_the_latest_was_deleted() -> None:
    tier = new()
    append(tier, 1, 9, 9, 4, 8, 3, 2)
    tier.run()
    tier.manager.delete_local(tier.leader("t"))
    assert place(tier, MAX_TIMESTAMP) == (1, 0, 9)
    assert delete(tier, 3) == (3, ErrorCode.NONE)
    assert place(tier, MAX_TIMESTAMP) == (4, 0, 8)
