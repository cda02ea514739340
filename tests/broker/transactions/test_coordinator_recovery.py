"""A coordinator that is rebuilt from its log: after a restart from files, a crash, a lost disk."""

from __future__ import annotations

import pytest

from fencepost.broker.metadata.image import TRANSACTION_TOPIC
from fencepost.broker.node import operator_actions
from fencepost.broker.transactions.marker_channel import RETRY_BACKOFF_MS
from fencepost.protocol.errors import ErrorCode
from tests.broker.transactions.workbench import FakeLeaders, Producer
from tests.harness.driver import Driver
from tests.harness.driver_requests import create
from tests.harness.durable_driver import ENDS, DurableDriver, End

CONFIGS = {"transaction.state.log.num.partitions": "1"}
REFUSED = ErrorCode.NOT_LEADER_OR_FOLLOWER


def prepared(driver: Driver, leaders: FakeLeaders, *, commit: bool) -> Producer:
    """A producer whose transaction is decided, and has no marker."""
    create(driver, "t", [[1, 2, 3]])
    producer = Producer(driver)
    producer.init()
    producer.add(0, version=5)
    leaders.refusals["t", 0] = REFUSED
    assert producer.end(commit=commit) is ErrorCode.NONE
    assert not leaders.written
    return producer


@ENDS
@pytest.mark.parametrize("commit", [True, False])
def test_a_decision_outlives_the_process(end: End, commit: bool, leaders: FakeLeaders) -> None:
    lasting = DurableDriver(transaction_state_log_num_partitions="1")
    before = prepared(lasting.driver, leaders, commit=commit)
    lasting.driver.advance(5_000)  # the high watermarks are written down
    end(lasting)
    leaders.refusals.clear()
    after = Producer(lasting.begin())
    assert [(m.producer_id, m.epoch, m.commit) for m in leaders.written] == [(0, 1, commit)]
    assert after.state == ("CompleteCommit" if commit else "CompleteAbort")
    after.id, after.epoch = before.producer
    after.add(0, version=5)
    assert after.end(commit=True) is ErrorCode.NONE


def test_the_coordinator_of_a_killed_broker_is_rebuilt_by_another(leaders: FakeLeaders) -> None:
    driver = Driver(3, CONFIGS)
    producer = prepared(driver, leaders, commit=True)
    first, lived = producer.coordinator, dict(producer.shard.latest.transactions)
    driver.advance(5_000)
    operator_actions.kill(driver.cluster, first)
    driver.cluster.scheduler.run_due()
    asked = next(each for each in (1, 2, 3) if each != first)
    partition = driver.broker(asked).view.topics[TRANSACTION_TOPIC].partitions[0]
    assert partition.leader != first
    rebuilt = driver.broker(partition.leader).transactions.runtime.shards[0]
    assert rebuilt.latest.transactions == lived
    leaders.refusals.clear()
    driver.advance(RETRY_BACKOFF_MS)
    assert rebuilt.latest.transactions["t"].state.title == "CompleteCommit"
    assert [m.coordinator_epoch for m in leaders.written] == [partition.leader_epoch]


def test_a_coordinator_that_lost_its_disk_has_its_ids_from_the_others(
    leaders: FakeLeaders,
) -> None:
    driver = Driver(3, CONFIGS)
    producer = prepared(driver, leaders, commit=True)
    first, lived = producer.coordinator, dict(producer.shard.latest.transactions)
    operator_actions.kill(driver.cluster, first)
    operator_actions.wipe(driver.cluster, TRANSACTION_TOPIC, 0, first)
    operator_actions.start(driver.cluster, first)
    driver.cluster.scheduler.run_due()
    driver.elect(TRANSACTION_TOPIC, 0, first)
    assert producer.coordinator == first
    assert producer.shard.latest.transactions == lived
    leaders.refusals.clear()
    driver.advance(RETRY_BACKOFF_MS)
    assert producer.state == "CompleteCommit"


def test_no_marker_is_sent_before_its_decision_is_committed(leaders: FakeLeaders) -> None:
    driver = Driver(3, CONFIGS)
    create(driver, "t", [[1, 2, 3]])
    producer = Producer(driver)
    producer.init()
    producer.add(0, version=5)
    others = [each for each in (1, 2, 3) if each != producer.coordinator]
    driver.hold(*others)
    asked = producer.send_end(commit=True)
    assert not asked.done
    assert producer.add(0, version=5) == {0: ErrorCode.CONCURRENT_TRANSACTIONS}
    assert producer.verify(0) == {0: ErrorCode.CONCURRENT_TRANSACTIONS}
    assert producer.init()[0] is ErrorCode.CONCURRENT_TRANSACTIONS
    driver.advance(1_000)
    assert (asked.done, leaders.written) == (False, [])
    driver.release(*others)
    assert asked.response.error_code == ErrorCode.NONE
    assert producer.state == "CompleteCommit"
    assert len(leaders.written) == 1


def test_a_new_coordinator_sends_no_marker_before_a_decision_that_it_finds_is_committed(
    leaders: FakeLeaders,
) -> None:
    driver = Driver(3, {**CONFIGS, "replica.lag.time.max.ms": "600000"})
    create(driver, "t", [[1, 2, 3]])
    producer = Producer(driver)
    producer.init()
    producer.add(0, version=5)
    first = producer.coordinator
    second, third = (each for each in (1, 2, 3) if each != first)
    driver.broker(third).replica_manager.hold(TRANSACTION_TOPIC, 0, None)
    asked = producer.send_end(commit=True)
    driver.elect(TRANSACTION_TOPIC, 0, second)  # which has the decision, as the third has not
    driver.broker(first).replica_manager.hold(TRANSACTION_TOPIC, 0, None)
    assert asked.response.error_code == ErrorCode.NOT_COORDINATOR
    assert (producer.state, leaders.written) == ("PrepareCommit", [])
    assert producer.end(commit=True) is ErrorCode.CONCURRENT_TRANSACTIONS
    for each in (first, third):
        driver.broker(each).replica_manager.release(TRANSACTION_TOPIC, 0)
    driver.cluster.scheduler.run_due()
    assert producer.state == "CompleteCommit"
    assert len(leaders.written) == 1


def test_a_decision_that_is_not_committed_in_time_may_hold_all_the_same(
    leaders: FakeLeaders,
) -> None:
    driver = Driver(
        3,
        {**CONFIGS, "replica.lag.time.max.ms": "600000"},
    )
    create(driver, "t", [[1, 2, 3]])
    producer = Producer(driver)
    producer.init(timeout_ms=10_000)
    producer.add(0, version=5)
    others = [each for each in (1, 2, 3) if each != producer.coordinator]
    driver.hold(*others)
    asked = producer.send_end(commit=True)
    driver.advance(10_000)
    assert asked.response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    driver.release(*others)
    assert producer.state == "CompleteCommit"
    assert producer.end(commit=True) is ErrorCode.NONE
    assert producer.producer == (0, 1)


def end_that_is_not_committed() -> tuple[Driver, Producer, list[int]]:
    """A cluster, a producer that has asked to commit, and the brokers that are held meanwhile."""
    driver = Driver(3, {**CONFIGS, "replica.lag.time.max.ms": "600000"})
    create(driver, "t", [[1, 2, 3]])
    producer = Producer(driver)
    producer.init(timeout_ms=10_000)
    producer.add(0, version=5)
    others = [each for each in (1, 2, 3) if each != producer.coordinator]
    driver.hold(*others)
    producer.send_end(commit=True)
    return driver, producer, others


def test_after_a_decision_that_is_not_committed_in_time_the_next_is_made_as_without_it(
    leaders: FakeLeaders,
) -> None:
    """A producer that repeats EndTxn at a coordinator that is none any more gets no answer, and so
    looks for another one.
    """
    driver, producer, others = end_that_is_not_committed()
    assert producer.end(commit=True) is ErrorCode.CONCURRENT_TRANSACTIONS
    driver.advance(10_000)
    again = producer.send_end(commit=True)
    assert not again.done
    assert producer.state == "PrepareCommit"
    driver.release(*others)
    assert again.response.error_code == ErrorCode.NONE
    assert producer.state == "CompleteCommit"
    assert [(marker.epoch, marker.commit) for marker in leaders.written] == [(1, True)]


def test_a_transaction_whose_end_is_not_committed_in_time_is_aborted_when_its_own_time_is_up(
    leaders: FakeLeaders,
) -> None:
    driver, producer, others = end_that_is_not_committed()
    driver.advance(10_000)
    assert producer.state == "Ongoing"
    driver.advance(10_000)
    assert producer.state == "PrepareAbort"
    driver.release(*others)
    assert producer.state == "CompleteAbort"
    assert [(marker.epoch, marker.commit) for marker in leaders.written] == [(1, False)]


def test_without_enough_replicas_nothing_changes(leaders: FakeLeaders) -> None:
    driver = Driver(3, CONFIGS)
    create(driver, "t", [[1, 2, 3]])
    producer = Producer(driver)
    producer.init()
    coordinator = producer.coordinator
    down = [each for each in (1, 2, 3) if each != coordinator]
    for each in down:
        operator_actions.stop(driver.cluster, each)
    driver.cluster.scheduler.run_due()
    shard = driver.broker(coordinator).transactions.runtime.shards[0]
    before = dict(shard.latest.transactions)
    codes: list[ErrorCode] = []
    shard.abort("t", shard.latest.transactions["t"].with_partitions([("t", 0)], 2, 0), codes.append)
    assert codes == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert shard.latest.transactions == before


def test_ids_are_partitioned_by_javas_hash_over_utf_16(leaders: FakeLeaders) -> None:
    driver = Driver(3)
    producer = Producer(driver, "\U0001f4a1-polygenelubricants")
    producer.init()
    shards = driver.broker(producer.coordinator).transactions.runtime.shards
    (index,) = (index for index, shard in shards.items() if shard.latest.transactions)
    assert (len(driver.broker(1).view.topics[TRANSACTION_TOPIC].partitions), index) == (50, 25)


@pytest.mark.parametrize(("brokers", "replicas", "min_isr"), [(1, 1, "1"), (3, 3, "2")])
def test_the_topic_is_made_as_kafka_makes_it(brokers: int, replicas: int, min_isr: str) -> None:
    driver = Driver(brokers)
    assert Producer(driver).coordinator in driver.cluster.brokers
    view = driver.broker(1).view
    assert len(view.topics[TRANSACTION_TOPIC].partitions) == 50
    assert {len(each.replicas) for each in view.topics[TRANSACTION_TOPIC].partitions} == {replicas}
    assert view.configs_of(TRANSACTION_TOPIC) == {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": min_isr,
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    }
