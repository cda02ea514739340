"""Records that a test appends and reads itself, at the leader and past all faults."""

from __future__ import annotations

from typing import Final

import pytest

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.faults.remote_storage import RemoteFaultRule, RemoteOperation
from fencepost.broker.faults.rules import FaultRule
from fencepost.broker.node import operator_actions, record_actions
from fencepost.broker.node.record_actions import LEADER, Append, NewRecord
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.errors import ErrorCode
from tests.harness.driver import Driver, content
from tests.harness.driver_requests import create
from tests.harness.remote_tier import Tier

PLACES: Final = {b"21": 0, b"foobar": 1, b"a-little-bit-long-string": 2, b"": 1}
"""Of five partitions those that Kafka's own DefaultPartitioner chooses."""


def append(driver: Driver, *values: bytes, partition: int | None = 0, acks: int = -1) -> Append:
    records = [NewRecord(value=value) for value in values]
    return record_actions.append(driver.cluster, "t", records, partition=partition, acks=acks)


def refusal(made: Append) -> tuple[ErrorCode, str]:
    with pytest.raises(ControllerError) as refused:
        made.offsets()
    return refused.value.code, refused.value.message


def read(driver: Driver, offset: int, end: int) -> list[bytes | None] | ErrorCode:
    """The values that are read of partition 0."""
    found: list[tuple[Buffer, ...] | ErrorCode] = []
    record_actions.read(
        driver.cluster, driver.leader("t"), offset, end, max_bytes=1 << 20, then=found.append
    )
    driver.cluster.scheduler.run_due()
    (answer,) = found
    if isinstance(answer, ErrorCode):
        return answer
    batches = record_actions.stored_records(answer)
    return [each.record.value for _, records in batches for each in records]


def test_records_are_on_every_replica_and_committed() -> None:
    driver = Driver()
    create(driver, "t", [(1, 2, 3)])
    made = append(driver, b"a", b"b")
    assert made.wait().done
    assert made.offsets() == [(0, 0), (0, 1)]
    for broker_id in (1, 2, 3):
        assert content(driver.replica(broker_id, "t")) == [(0, 0, b"a"), (1, 0, b"b")]
    assert driver.leader("t").high_watermark == 2


def test_a_key_chooses_the_partition_as_kafkas_default_partitioner_does() -> None:
    driver = Driver(1)
    create(driver, "t", [(1,)] * 5)
    made = record_actions.append(driver.cluster, "t", [NewRecord(key=key) for key in PLACES])
    assert [index for index, _ in made.offsets()] == list(PLACES.values())


def test_records_without_a_key_go_together_to_the_partition_that_ends_first() -> None:
    driver = Driver()
    create(driver, "t", [(1,), (2,), (3,)])
    places = [append(driver, b"a", b"b", partition=None).offsets() for _ in range(4)]
    assert places == [[(0, 0), (0, 1)], [(1, 0), (1, 1)], [(2, 0), (2, 1)], [(0, 2), (0, 3)]]
    operator_actions.kill(driver.cluster, 2)
    assert append(driver, b"c", partition=None).offsets() == [(2, 2)]


def test_the_offsets_come_in_the_order_of_the_records() -> None:
    driver = Driver()
    create(driver, "t", [(1,), (2,), (3,), (1,), (2,)])
    keys = [b"21", b"foobar", b"21", b"foobar"]
    made = record_actions.append(driver.cluster, "t", [NewRecord(key=key) for key in keys])
    assert made.offsets() == [(0, 0), (1, 0), (0, 1), (1, 1)]


def test_a_timestamp_is_the_clusters_unless_it_is_given() -> None:
    driver = Driver(1)
    create(driver, "t")
    records = [NewRecord(value=b"a", timestamp_ms=7), NewRecord(value=b"b")]
    record_actions.append(driver.cluster, "t", records)
    found: list[tuple[Buffer, ...] | ErrorCode] = []
    record_actions.read(driver.cluster, driver.leader("t"), 0, 2, max_bytes=1, then=found.append)
    assert isinstance(found[0], tuple)
    ((_, stored),) = record_actions.stored_records(found[0])
    assert [each.record.timestamp for each in stored] == [7, driver.clock.wall_ms()]


def test_a_held_replica_of_the_isr_keeps_records_from_being_committed() -> None:
    driver = Driver()
    create(driver, "t", [(1, 2, 3)])
    driver.hold(3)
    made = append(driver, b"a")
    told: list[bool | None] = []
    made.wait().then(told.append)
    assert told == []
    code, message = refusal(made)
    assert code is ErrorCode.REQUEST_TIMED_OUT
    assert message == (
        "t-0: appended at offset 0 by broker 1, but not committed in time: the high watermark is"
        " 0, broker 3 of the ISR is held"
    )
    driver.release(3)
    assert told == [True]
    assert made.offsets() == [(0, 0)]


def test_with_acks_1_the_leader_is_enough() -> None:
    driver = Driver()
    create(driver, "t", [(1, 2, 3)])
    driver.hold(2, 3)
    made = append(driver, b"a", acks=LEADER)
    assert made.wait().done
    assert made.offsets() == [(0, 0)]
    assert driver.leader("t").high_watermark == 0


def test_a_leader_that_is_deposed_does_not_commit() -> None:
    driver = Driver()
    create(driver, "t", [(1, 2, 3)])
    driver.hold(2, 3)
    made = append(driver, b"a")
    wait = made.wait()
    driver.elect("t", 0, 2)
    assert wait.done
    assert refusal(made) == (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        "t-0: appended at offset 0 by broker 1, but not committed: it does not lead any more",
    )


def test_an_isr_below_the_minimum_appends_nothing() -> None:
    driver = Driver()
    create(driver, "t", [(1, 2)], min_insync_replicas="2")
    operator_actions.kill(driver.cluster, 2)
    made = append(driver, b"a")
    assert refusal(made) == (
        ErrorCode.NOT_ENOUGH_REPLICAS,
        "t-0: nothing was appended: min.insync.replicas is 2, the ISR [1]",
    )
    assert driver.leader("t").log.log_end_offset == 0


def test_one_partition_that_is_refused_does_not_hide_the_others() -> None:
    driver = Driver()
    create(driver, "t", [(1, 3), (1, 2), (1, 3), (1, 3), (1, 3)], min_insync_replicas="2")
    operator_actions.kill(driver.cluster, 2)
    records = [NewRecord(key=b"21"), NewRecord(key=b"foobar")]
    made = record_actions.append(driver.cluster, "t", records)
    code, message = refusal(made)
    assert code is ErrorCode.NOT_ENOUGH_REPLICAS
    assert message.startswith("t-0 has offset 0; t-1: nothing was appended: ")


def test_nothing_is_appended_where_a_partition_has_no_leader() -> None:
    driver = Driver()
    create(driver, "t", [(1,), (2,), (3,), (1,), (2,)])
    operator_actions.kill(driver.cluster, 2)
    with pytest.raises(ControllerError, match="t-1 has no leader at present") as refused:
        record_actions.append(driver.cluster, "t", [NewRecord(key=b"21"), NewRecord(key=b"foobar")])
    assert refused.value.code is ErrorCode.LEADER_NOT_AVAILABLE
    assert driver.leader("t", 0).log.log_end_offset == 0


def test_what_the_log_refuses_is_told_in_its_words() -> None:
    driver = Driver(1)
    create(driver, "t", cleanup_policy="compact")
    code, message = refusal(append(driver, b"a"))
    assert code is ErrorCode.INVALID_RECORD
    assert "record 0: Compacted topic cannot accept message without key" in message


def test_the_brokers_own_topics_are_not_appended_to() -> None:
    driver = Driver(1)
    create(driver, "__consumer_offsets")
    with pytest.raises(ControllerError) as refused:
        record_actions.append(driver.cluster, "__consumer_offsets", [NewRecord(value=b"a")])
    assert refused.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_an_expected_offset_is_left_open() -> None:
    driver = Driver(1)
    create(driver, "t", check_expected_offsets="true")
    assert append(driver, b"a").offsets() == [(0, 0)]
    assert append(driver, b"b").offsets() == [(0, 1)]


def test_no_fault_hits_and_none_is_used_up() -> None:
    driver = Driver(1)
    create(driver, "t")
    for api in ("Produce", "Fetch"):
        driver.cluster.faults.add(FaultRule.from_json({"api": api, "action": {"drop": True}}))
    assert append(driver, b"a").offsets() == [(0, 0)]
    assert read(driver, 0, 1) == [b"a"]
    assert [fault.hits for fault in driver.cluster.faults.all()] == [0, 0]


def test_a_consumer_may_read_up_to_the_high_watermark() -> None:
    driver = Driver()
    create(driver, "t", [(1, 2, 3)])
    append(driver, b"a")
    driver.hold(3)
    append(driver, b"b", acks=LEADER)
    readable = record_actions.readable_range(driver.cluster, "t", 0)
    assert (readable.start, readable.end) == (0, 1)
    assert record_actions.readable_range(driver.cluster, "t", 0, committed=True).end == 1
    assert read(driver, 0, readable.end) == [b"a"]


@pytest.mark.parametrize("knows_its_tier", [True, False])
def test_records_in_the_tier_are_read_past_its_faults(knows_its_tier: bool) -> None:
    tier = Tier()
    tier.append(6)
    assert tier.run() is None
    assert tier.leader("t").log.delete_local(4, now_ms=None) == 2
    if not knows_its_tier:
        tier.manager.forget(tier.leader("t"), lambda _error: None)
    for operation in (RemoteOperation.FETCH, RemoteOperation.LIST):
        rule = RemoteFaultRule(operation=operation, error="no", delay_ms=0, count=None)
        tier.cluster.tier_faults.add(rule)
    assert read(tier, 1, 4) == [b"v"]
    assert [fault.hits for fault in tier.cluster.tier_faults.all()] == [0, 0]
    assert tier.cluster.remote_storage_metrics.fetch_requests == 0
