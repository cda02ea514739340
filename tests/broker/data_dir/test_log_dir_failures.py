"""A log whose files fail: that replica is offline, the others are served, nothing is lost."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

import pytest

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.core.events import Event, Kind
from fencepost.broker.node import operator_actions
from fencepost.control.cluster_state import partition_state
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from fencepost.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.harness.crash_model import Operation
from tests.harness.driver import Driver
from tests.harness.driver_requests import create, fetch, list_offset, produce, send_produce
from tests.harness.durable_driver import DIR, DurableDriver
from tests.harness.typed_requests import fetch_request, from_offset, produced, values

STORAGE_ERROR = ErrorCode.KAFKA_STORAGE_ERROR


@pytest.fixture
def lasting() -> DurableDriver:
    """Two partitions that all brokers hold, the first with a record; broker 1 leads both."""
    lasting = DurableDriver()
    create(lasting.driver, "t", [(1, 2, 3), (1, 2, 3)])
    assert produce(lasting.driver, "t", b"a").error_code == 0
    return lasting


def fill_disk(lasting: DurableDriver, broker_id: int, index: int = 0) -> None:
    """From now on nothing can be written to a partition of a broker."""
    lasting.files.fail(
        Operation.WRITE, errno.ENOSPC, times=None, under=lasting.path(broker_id, "t", index)
    )


def attempt(driver: Driver, *values: bytes, broker_id: int, index: int = 0, acks: int = -1) -> int:
    sent = send_produce(driver, "t", *values, broker_id=broker_id, index=index, acks=acks)
    return int(produced(sent.response).error_code)


def epoch_end(driver: Driver, broker_id: int) -> int:
    partition = OffsetForLeaderPartition(partition=0, leader_epoch=0, current_leader_epoch=-1)
    topic = OffsetForLeaderTopic(topic="t", partitions=(partition,))
    request = OffsetForLeaderEpochRequest(replica_id=-2, topics=(topic,))
    answer = driver.ask(broker_id, "offset_for_leader_epoch", 4, request)
    return int(answer.topics[0].partitions[0].error_code)


def content(driver: Driver) -> list[bytes | None]:
    return values(fetch(driver, "t", 0))


def test_a_full_disk_takes_one_replica_offline_and_another_leads(lasting: DurableDriver) -> None:
    driver = lasting.driver
    epoch = driver.partition("t").leader_epoch
    fill_disk(lasting, 1)
    assert attempt(driver, b"b", broker_id=1) == STORAGE_ERROR
    partition = driver.partition("t")
    assert (partition.leader, partition.leader_epoch) == (2, epoch + 1)
    assert partition.isr == (2, 3)
    assert partition.failed == (1,)
    assert attempt(driver, b"b", broker_id=1) == STORAGE_ERROR
    assert attempt(driver, b"b", broker_id=2) == 0
    assert content(driver) == [b"a", b"b"]


def test_everything_about_it_is_a_storage_error_there(lasting: DurableDriver) -> None:
    driver = lasting.driver
    fill_disk(lasting, 1)
    attempt(driver, b"b", broker_id=1)
    assert fetch(driver, "t", 0, broker_id=1).error_code == STORAGE_ERROR
    assert list_offset(driver, "t", -1, broker_id=1).error_code == STORAGE_ERROR
    assert epoch_end(driver, 1) == STORAGE_ERROR


def test_the_broker_serves_on(lasting: DurableDriver) -> None:
    driver = lasting.driver
    fill_disk(lasting, 1)
    assert attempt(driver, b"b", broker_id=1) == STORAGE_ERROR
    assert attempt(driver, b"c", broker_id=1, index=1) == 0
    assert driver.partition("t", 1).isr == (1, 2, 3)
    both = fetch_request(("t", from_offset(0)), ("t", from_offset(0, 1)))
    answer = driver.ask(1, "fetch", 12, both)
    ((first, second),) = (topic.partitions for topic in answer.responses)
    assert first.error_code == STORAGE_ERROR
    assert values(second) == [b"c"]


def test_metadata_and_the_control_api_show_it_offline(lasting: DurableDriver) -> None:
    driver = lasting.driver
    fill_disk(lasting, 1)
    attempt(driver, b"b", broker_id=1)
    request = MetadataRequest(topics=(MetadataRequestTopic(name="t"),))
    first, second = driver.ask(3, "metadata", 9, request).topics[0].partitions
    assert (first.leader_id, first.offline_replicas, first.isr_nodes) == (2, (1,), (2, 3))
    assert second.offline_replicas == ()
    state = partition_state(driver.cluster, "t", 0)
    assert state.offline == (1,)
    assert [replica.role for replica in state.replicas] == ["offline", "leader", "follower"]


def test_it_is_told(lasting: DurableDriver) -> None:
    told: list[Event] = []
    lasting.driver.cluster.events.listeners.append(told.append)
    fill_disk(lasting, 1)
    attempt(lasting.driver, b"b", broker_id=1)
    (event,) = [each for each in told if each.kind is Kind.REPLICA_FAILED]
    assert (event.topic, event.partition, event.broker) == ("t", 0, 1)
    assert "No space left" in str(event.details["error"])


def test_a_follower_that_fails_leaves_the_isr_and_what_waits_for_it_goes_on(
    lasting: DurableDriver,
) -> None:
    driver = lasting.driver
    fill_disk(lasting, 3)
    assert attempt(driver, b"b", broker_id=1) == 0
    partition = driver.partition("t")
    assert (partition.leader, partition.isr, partition.failed) == (1, (1, 2), (3,))
    assert driver.leader("t").high_watermark == 2
    driver.advance(60_000)
    assert driver.partition("t").isr == (1, 2), "it does not come back by itself"


def test_an_append_that_waits_is_told(lasting: DurableDriver) -> None:
    driver = lasting.driver
    driver.hold(2)
    waits = send_produce(driver, "t", b"b", broker_id=1, timeout_ms=60_000)
    assert not waits.done
    fill_disk(lasting, 1)
    assert attempt(driver, b"c", broker_id=1, acks=1) == STORAGE_ERROR
    assert produced(waits.response).error_code == STORAGE_ERROR


@pytest.mark.parametrize("end", [operator_actions.stop, operator_actions.kill])
def test_stopped_and_started_the_broker_has_it_again(
    lasting: DurableDriver, end: Callable[[Any, int], None]
) -> None:
    driver = lasting.driver
    fill_disk(lasting, 1)
    attempt(driver, b"b", broker_id=1)
    assert attempt(driver, b"b", broker_id=2) == 0
    lasting.files.heal()
    end(driver.cluster, 1)
    operator_actions.start(driver.cluster, 1)
    partition = driver.partition("t")
    assert partition.failed == ()
    assert set(partition.isr) == {1, 2, 3}
    assert driver.replica(1, "t").log.log_end_offset == 2
    driver.elect("t", 0, 1)
    assert content(driver) == [b"a", b"b"]


def test_after_a_failure_no_end_is_an_orderly_one(lasting: DurableDriver) -> None:
    driver = lasting.driver
    lasting.files.fail(Operation.WRITE, errno.ENOSPC, under=lasting.path(1, "t"), torn=3)
    attempt(driver, b"b", broker_id=1)
    operator_actions.stop(driver.cluster, 1)
    operator_actions.start(driver.cluster, 1)
    assert not lasting.log_dir(1).clean
    cuts = [(name, cut.size) for name, r in lasting.log_dir(1).recoveries for cut in r.cut]
    assert cuts == [("t-0", 3)]
    operator_actions.stop(driver.cluster, 1)
    operator_actions.start(driver.cluster, 1)
    assert lasting.log_dir(1).clean


def test_a_disk_that_is_full_still_fails_again(lasting: DurableDriver) -> None:
    driver = lasting.driver
    fill_disk(lasting, 1)
    attempt(driver, b"b", broker_id=1)
    operator_actions.stop(driver.cluster, 1)
    operator_actions.start(driver.cluster, 1)
    attempt(driver, b"b", broker_id=2)
    partition = driver.partition("t")
    assert (partition.leader, partition.isr, partition.failed) == (2, (2, 3), (1,))


def test_one_that_cannot_be_opened_is_offline(lasting: DurableDriver) -> None:
    driver = lasting.driver
    operator_actions.kill(driver.cluster, 1)
    lasting.files.fail(Operation.READ, times=None, under=lasting.path(1, "t"))
    operator_actions.start(driver.cluster, 1)
    assert driver.partition("t").failed == (1,)
    assert driver.partition("t").isr == (2, 3)
    assert set(driver.partition("t", 1).isr) == {1, 2, 3}
    assert fetch(driver, "t", 0, broker_id=1).error_code == STORAGE_ERROR


def test_the_only_replica_comes_back_with_all_that_was_acknowledged() -> None:
    lasting = DurableDriver(1)
    driver = lasting.driver
    create(driver, "t", [(1,)])
    assert produce(driver, "t", b"a").error_code == 0
    fill_disk(lasting, 1)
    assert attempt(driver, b"b", broker_id=1) == STORAGE_ERROR
    assert driver.partition("t").leader == -1
    lasting.files.heal()
    operator_actions.stop(driver.cluster, 1)
    operator_actions.start(driver.cluster, 1)
    assert driver.partition("t").leader == 1
    assert content(driver) == [b"a"]
    assert attempt(driver, b"c", broker_id=1) == 0


def test_a_sync_that_fails_acknowledges_nothing() -> None:
    lasting = DurableDriver(sync=True)
    driver = lasting.driver
    create(driver, "t", [(1, 2, 3)])
    assert produce(driver, "t", b"a").error_code == 0
    lasting.files.fail(Operation.SYNC, times=None, under=lasting.path(1, "t"))
    assert attempt(driver, b"b", broker_id=1) == STORAGE_ERROR
    assert driver.partition("t").leader == 2
    assert attempt(driver, b"b", broker_id=2) == 0
    lasting.lose_power(5)
    assert content(lasting.begin())[:2] == [b"a", b"b"]


def test_a_read_that_fails_takes_it_offline_too(lasting: DurableDriver) -> None:
    driver = lasting.driver
    operator_actions.stop(driver.cluster, 1)
    operator_actions.start(driver.cluster, 1)  # so that what it has is in files only
    driver.elect("t", 0, 1)
    lasting.files.fail(Operation.READ, times=None, under=lasting.path(1, "t"))
    assert fetch(driver, "t", 0, broker_id=1).error_code == STORAGE_ERROR
    assert driver.partition("t").leader == 2
    assert content(driver) == [b"a"]


def test_a_lookup_that_fails_takes_it_offline_too(lasting: DurableDriver) -> None:
    driver = lasting.driver
    operator_actions.stop(driver.cluster, 1)
    operator_actions.start(driver.cluster, 1)
    driver.elect("t", 0, 1)
    lasting.files.fail(Operation.READ, times=None, under=lasting.path(1, "t"))
    assert list_offset(driver, "t", 0, broker_id=1).error_code == STORAGE_ERROR
    assert driver.partition("t").leader == 2


def test_it_leads_nothing_however_it_is_elected(lasting: DurableDriver) -> None:
    driver = lasting.driver
    fill_disk(lasting, 1)
    attempt(driver, b"b", broker_id=1)
    for unclean in (False, True):
        with pytest.raises(ControllerError, match="has failed: stop and start the broker"):
            operator_actions.elect(driver.cluster, "t", 0, 1, unclean=unclean)
    operator_actions.stop(driver.cluster, 2)
    operator_actions.stop(driver.cluster, 3)
    assert driver.partition("t").leader == -1


def test_wiped_it_begins_anew(lasting: DurableDriver) -> None:
    driver = lasting.driver
    fill_disk(lasting, 1)
    attempt(driver, b"b", broker_id=1)
    lasting.files.heal()
    operator_actions.wipe(driver.cluster, "t", 0, 1)
    assert driver.partition("t").failed == ()
    assert set(driver.partition("t").isr) == {1, 2, 3}
    assert driver.replica(1, "t").log.log_end_offset == 1


def test_its_topic_can_be_deleted(lasting: DurableDriver) -> None:
    driver = lasting.driver
    fill_disk(lasting, 1)
    attempt(driver, b"b", broker_id=1)
    driver.cluster.controller.delete_topics(["t"])
    assert lasting.names(1) == set()
    lasting.files.heal()
    create(driver, "t", [(1, 2, 3)])
    assert produce(driver, "t", b"new").error_code == 0


def test_a_broker_that_could_not_tell_tells_when_it_is_back(lasting: DurableDriver) -> None:
    driver = lasting.driver
    operator_actions.isolate(driver.cluster, 1, from_controller=True)
    fill_disk(lasting, 1, 1)
    attempt(driver, b"b", broker_id=1, index=1, acks=1)
    assert driver.partition("t", 1).failed == ()
    operator_actions.rejoin(driver.cluster, 1)
    assert driver.partition("t", 1).failed == (1,)
    assert driver.partition("t").failed == ()
    assert set(driver.partition("t").isr) == {1, 2, 3}


def test_checkpoints_that_can_not_be_written_stop_nothing(lasting: DurableDriver) -> None:
    told: list[Event] = []
    driver = lasting.driver
    driver.cluster.events.listeners.append(told.append)
    for name in ("replication-offset-checkpoint", "registry.log"):
        at = DIR if name == "registry.log" else DIR / "broker-1"
        lasting.files.fail(Operation.WRITE, errno.ENOSPC, times=None, under=at / name)
        temporary = at / f"{name}.tmp"
        lasting.files.fail(Operation.WRITE, errno.ENOSPC, times=None, under=temporary)
    driver.elect("t", 0, 2)
    epoch = driver.partition("t").leader_epoch
    driver.advance(20_000)
    assert attempt(driver, b"b", broker_id=2) == 0
    failed = {
        (e.broker, str(e.details["error"])[:30]) for e in told if e.kind is Kind.STORAGE_FAILED
    }
    assert {broker for broker, _ in failed} == {None, 1}
    lasting.files.heal()
    driver.advance(20_000)
    lasting.kill()
    assert lasting.begin().partition("t").leader_epoch > epoch
    assert lasting.driver.partition("t").leader == 2, "the registry has caught up"


def test_a_log_that_can_not_be_closed_leaves_no_mark_of_an_orderly_end(
    lasting: DurableDriver,
) -> None:
    driver = lasting.driver
    told: list[Event] = []
    driver.cluster.events.listeners.append(told.append)
    lasting.files.fail(Operation.WRITE, errno.ENOSPC, times=None, under=lasting.path(2, "t"))
    operator_actions.stop(driver.cluster, 2)
    assert not lasting.files.exists(DIR / "broker-2" / ".kafka_cleanshutdown")
    assert [e.broker for e in told if e.kind is Kind.STORAGE_FAILED] == [2]
    lasting.files.heal()
    operator_actions.start(driver.cluster, 2)
    assert not lasting.log_dir(2).clean
    assert set(driver.partition("t").isr) == {1, 2, 3}
    assert driver.replica(2, "t").log.log_end_offset == 1


# Too many open files


@pytest.fixture
def alone() -> DurableDriver:
    """One broker, with two partitions that have a record each; their files are closed."""
    lasting = DurableDriver(1)
    create(lasting.driver, "t", [(1,), (1,)])
    for index in range(2):
        assert attempt(lasting.driver, b"a", broker_id=1, index=index) == 0
    lasting.stop()
    lasting.begin()
    return lasting


def lack_descriptors(lasting: DurableDriver) -> None:
    """From now on broker 1 can open no file, and none is open that could be closed."""
    shared = lasting.log_dir(1)._shared
    while shared.open_files.evict_half():
        pass
    lasting.files.fail(Operation.OPEN, errno.EMFILE, times=None, under=DIR / "broker-1")


def test_replicas_that_lacked_descriptors_come_back_by_themselves(alone: DurableDriver) -> None:
    driver = alone.driver
    told: list[Event] = []
    driver.cluster.events.listeners.append(told.append)
    lack_descriptors(alone)
    assert attempt(driver, b"lost", broker_id=1) == STORAGE_ERROR
    assert driver.partition("t").leader == -1
    driver.advance(10_000)
    assert driver.partition("t").leader == -1
    assert [each.kind for each in told].count(Kind.REPLICA_FAILED) == 1

    alone.files.heal()
    driver.advance(2_000)
    assert (driver.partition("t").leader, driver.partition("t").failed) == (1, ())
    assert attempt(driver, b"b", broker_id=1) == 0
    assert fetched_values(driver) == [b"a", b"b"]


def test_they_come_back_as_followers_where_others_lead_now(lasting: DurableDriver) -> None:
    driver = lasting.driver
    lack_descriptors(lasting)
    assert attempt(driver, b"lost", broker_id=1) == STORAGE_ERROR
    lasting.files.heal()
    assert driver.partition("t").leader == 2
    assert attempt(driver, b"b", broker_id=2, acks=1) == 0
    driver.advance(5_000)
    partition = driver.partition("t")
    assert (partition.leader, partition.failed, set(partition.isr)) == (2, (), {1, 2, 3})
    assert driver.replica(1, "t").log.log_end_offset == 2


def test_a_topic_that_could_not_be_made_for_lack_of_descriptors_is_made_then(
    alone: DurableDriver,
) -> None:
    driver = alone.driver
    lack_descriptors(alone)
    create(driver, "new", [(1,)])
    assert driver.partition("new").failed == (1,)
    alone.files.heal()
    driver.advance(2_000)
    assert produce(driver, "new", b"a").error_code == 0


def test_a_replica_that_failed_for_another_reason_stays_offline(alone: DurableDriver) -> None:
    driver = alone.driver
    fill_disk(alone, 1, 1)
    assert attempt(driver, b"x", broker_id=1, index=1) == STORAGE_ERROR
    lack_descriptors(alone)
    assert attempt(driver, b"x", broker_id=1) == STORAGE_ERROR
    alone.files.heal()
    driver.advance(5_000)
    assert driver.partition("t", 0).failed == ()
    assert driver.partition("t", 1).failed == (1,)


def test_a_broker_that_ends_meanwhile_has_them_when_it_starts(alone: DurableDriver) -> None:
    driver = alone.driver
    lack_descriptors(alone)
    assert attempt(driver, b"lost", broker_id=1) == STORAGE_ERROR
    alone.files.heal()
    operator_actions.stop(driver.cluster, 1)
    driver.advance(5_000)
    operator_actions.start(driver.cluster, 1)
    driver.cluster.scheduler.run_due()
    assert fetched_values(driver) == [b"a"]


def fetched_values(driver: Driver) -> list[bytes | None]:
    request = fetch_request(("t", from_offset(0)))
    return values(driver.ask(1, "fetch", 12, request).responses[0].partitions[0])
