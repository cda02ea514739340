"""The transaction coordinator: what a producer is answered, what is in the log, and the markers."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from fencepost.broker.configs.config_layers import NO_CONFIGS
from fencepost.broker.coordinator import partition_for
from fencepost.broker.metadata.image import TRANSACTION_TOPIC
from fencepost.broker.transactions.marker_channel import RETRY_BACKOFF_MS
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnTopic
from fencepost.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.broker.transactions.workbench import FakeLeaders, Producer
from tests.harness.driver import Driver
from tests.harness.driver_requests import create

OLD_FLOW = 4


def cluster(level: int = 2, configs: Mapping[str, str] = NO_CONFIGS) -> Driver:
    configs = {**configs, "transaction.state.log.num.partitions": "3"}
    driver = Driver(3, configs=configs, features={"transaction.version": level})
    create(driver, "t", replicas=[[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    return driver


@pytest.fixture
def driver(leaders: FakeLeaders) -> Driver:
    return cluster()


def test_each_end_of_a_transaction_bumps_the_epoch_and_markers_carry_the_bumped_one(
    driver: Driver, leaders: FakeLeaders
) -> None:
    producer = Producer(driver)
    assert producer.init() == (ErrorCode.NONE, (0, 0))
    producer.transact(0, 2)
    assert producer.producer == (0, 1)
    assert [(m.topic, m.partition, m.epoch, m.commit, m.version) for m in leaders.written] == [
        ("t", 0, 1, True, 2),
        ("t", 2, 1, True, 2),
    ]
    assert all(m.leader == driver.partition("t", m.partition).leader for m in leaders.written)
    assert producer.state == "CompleteCommit"
    producer.transact(1, commit=False)
    assert producer.producer == (0, 2)
    assert producer.state == "CompleteAbort"


def test_before_version_5_the_epoch_stays(driver: Driver, leaders: FakeLeaders) -> None:
    producer = Producer(driver, version=OLD_FLOW)
    producer.init()
    producer.transact(0)
    assert producer.producer == (0, 0)
    assert [(m.epoch, m.version) for m in leaders.written] == [(0, 0)]
    producer.transact(0)


def test_end_is_answered_before_the_markers_and_others_are_concurrent_until_then(
    driver: Driver, leaders: FakeLeaders
) -> None:
    producer = Producer(driver)
    producer.init()
    producer.add(0, 1, version=5)
    leaders.refusals["t", 1] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    ended = producer.producer
    assert producer.end(commit=True) is ErrorCode.NONE
    assert producer.state == "PrepareCommit"
    assert producer.add(2, version=5) == {2: ErrorCode.CONCURRENT_TRANSACTIONS}
    assert Producer(driver).init()[0] is ErrorCode.CONCURRENT_TRANSACTIONS
    assert producer.shard.remaining_partitions("t", producer.metadata) == {("t", 1)}
    late = Producer(driver)
    late.id, late.epoch = ended
    assert late.end(commit=True) is ErrorCode.CONCURRENT_TRANSACTIONS
    leaders.refusals.clear()
    driver.advance(RETRY_BACKOFF_MS)
    assert producer.state == "CompleteCommit"
    assert producer.add(2, version=5) == {2: ErrorCode.NONE}


def test_a_producer_may_take_its_answer_before_markers_are_written(
    driver: Driver, leaders: FakeLeaders
) -> None:
    producer = Producer(driver)
    producer.init()
    producer.add(0, 1, version=5)
    written: list[int] = []
    driver.cluster.scheduler.give_way = lambda: written.append(len(leaders.written))
    assert producer.end(commit=True) is ErrorCode.NONE
    assert producer.state == "CompleteCommit"
    assert (written, len(leaders.written)) == ([0], 2)


def test_a_repeated_end_with_the_old_epoch_succeeds(driver: Driver) -> None:
    producer = Producer(driver)
    producer.init()
    producer.add(0, version=5)
    again = Producer(driver)
    again.id, again.epoch = producer.producer
    assert producer.end(commit=True) is ErrorCode.NONE
    assert again.end(commit=True) is ErrorCode.NONE
    assert again.producer == producer.producer
    again.epoch -= 1
    assert again.end(commit=False) is ErrorCode.INVALID_TXN_STATE


def test_an_empty_transaction_may_be_aborted_and_not_committed(driver: Driver) -> None:
    producer = Producer(driver)
    producer.init()
    assert producer.end(commit=True) is ErrorCode.INVALID_TXN_STATE
    assert producer.end(commit=False) is ErrorCode.NONE
    assert (producer.producer, producer.state) == ((0, 1), "CompleteAbort")
    producer.transact(0)
    assert producer.end(commit=True) is ErrorCode.INVALID_TXN_STATE
    assert producer.end(commit=False) is ErrorCode.NONE
    assert producer.producer == (0, 3)


def test_a_repeated_init_gets_the_same_epoch_and_a_zombie_none(driver: Driver) -> None:
    producer = Producer(driver)
    producer.init()
    first = producer.producer
    assert producer.init(expected=first) == (ErrorCode.NONE, (0, 1))
    assert producer.init(expected=first) == (ErrorCode.NONE, (0, 1))
    assert Producer(driver).init() == (ErrorCode.NONE, (0, 2))
    assert producer.init(expected=producer.producer)[0] is ErrorCode.PRODUCER_FENCED
    assert producer.init(expected=producer.producer, version=3)[0] is (
        ErrorCode.INVALID_PRODUCER_EPOCH
    )
    assert producer.init(expected=(99, 0))[0] is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_successor_aborts_an_open_transaction_and_fences_its_producer(
    leaders: FakeLeaders, level: int
) -> None:
    driver = cluster(level)
    zombie = Producer(driver, version=5 if level == 2 else OLD_FLOW)
    zombie.init()
    zombie.add(0)
    leaders.refusals["t", 0] = ErrorCode.NOT_ENOUGH_REPLICAS
    successor = Producer(driver)
    assert successor.init()[0] is ErrorCode.CONCURRENT_TRANSACTIONS
    assert successor.state == "PrepareAbort"
    leaders.refusals.clear()
    driver.advance(RETRY_BACKOFF_MS)
    assert [(m.epoch, m.commit, m.version) for m in leaders.written] == [
        (1, False, 2 if level == 2 else 0)
    ]
    assert successor.init() == (ErrorCode.NONE, (0, 2))
    assert zombie.add(1) == {1: ErrorCode.PRODUCER_FENCED}
    assert zombie.add(1, version=1) == {1: ErrorCode.INVALID_PRODUCER_EPOCH}
    assert zombie.end(commit=True) is ErrorCode.PRODUCER_FENCED
    zombie.version = 1
    assert zombie.end(commit=True) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_transaction_that_takes_too_long_is_aborted(driver: Driver, leaders: FakeLeaders) -> None:
    producer = Producer(driver)
    producer.init(timeout_ms=15_000)
    producer.add(0, version=5)
    driver.advance(15_000)
    assert producer.state == "Ongoing"
    driver.advance(10_000)
    assert producer.state == "CompleteAbort"
    assert [(m.epoch, m.commit) for m in leaders.written] == [(1, False)]
    assert producer.end(commit=True) is ErrorCode.INVALID_TXN_STATE
    assert producer.init(expected=producer.producer)[0] is ErrorCode.NONE


def test_one_that_begins_later_than_its_producer_waits_is_aborted_as_well(
    leaders: FakeLeaders,
) -> None:
    driver = cluster(configs={"replica.lag.time.max.ms": "600000"})
    producer = Producer(driver)
    producer.init(timeout_ms=15_000)
    driver.hold(*({1, 2, 3} - {producer.coordinator}))
    topics = (AddPartitionsToTxnTopic(name="t", partitions=(0,)),)
    addition = producer.addition(topics, 5)
    asked = driver.send(producer.coordinator, "add_partitions_to_txn", 5, addition)
    driver.advance(15_000)
    assert asked.done
    assert producer.state == "Empty"
    driver.advance(30_000)
    driver.release(1, 2, 3)
    assert producer.state == "Ongoing"
    driver.advance(10_000)
    assert producer.state == "CompleteAbort"


def test_an_idle_id_expires_and_one_with_a_transaction_does_not(leaders: FakeLeaders) -> None:
    driver = cluster(
        configs={
            "transactional.id.expiration.ms": "60000",
            "transaction.remove.expired.transaction.cleanup.interval.ms": "20000",
        }
    )
    idle, is_open = Producer(driver, "idle"), Producer(driver, "open")
    idle.init()
    is_open.init(timeout_ms=900_000)
    driver.advance(40_000)
    is_open.add(0)
    assert idle.shard.find("idle") is not None
    driver.advance(20_000)
    assert idle.shard.find("idle") is None
    driver.advance(60_000)
    assert is_open.state == "Ongoing"
    assert idle.add(0) == {0: ErrorCode.INVALID_PRODUCER_ID_MAPPING}


def test_a_new_coordinator_sends_the_markers_of_the_decisions_that_it_finds(
    driver: Driver, leaders: FakeLeaders
) -> None:
    producer = Producer(driver)
    producer.init()
    producer.add(0, 1, version=5)
    leaders.refusals["t", 0] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    producer.end(commit=True)
    first = producer.coordinator
    index = next(
        index
        for index, s in driver.broker(first).transactions.runtime.shards.items()
        if s is producer.shard
    )
    del leaders.written[:]
    leaders.refusals.clear()
    driver.elect("__transaction_state", index, first % 3 + 1)
    assert producer.coordinator != first
    assert {(m.partition, m.commit, m.coordinator_epoch) for m in leaders.written} == {
        (0, True, 1),
        (1, True, 1),
    }
    assert producer.state == "CompleteCommit"
    producer.transact(2)


def test_what_is_answered_from_a_record_before_one_that_was_given_up_is_not_undone(
    driver: Driver,
) -> None:
    producer = Producer(driver)
    producer.init(timeout_ms=5000)
    leader, state = producer.coordinator, (TRANSACTION_TOPIC, partition_for("t", 3))
    followers = [driver.broker(each).replica_manager for each in (1, 2, 3) if each != leader]

    def hold(at: int) -> None:
        for each in followers:
            each.hold(*state, at)
        driver.cluster.scheduler.run_due()

    hold(driver.replica(leader, *state).log.log_end_offset)
    partitions = (AddPartitionsToTxnTopic(name="t", partitions=(0,)),)
    addition = producer.addition(partitions, 5)
    successor = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=5000)
    for name, request in (("add_partitions_to_txn", addition), ("init_producer_id", successor)):
        given_up = driver.send(leader, name, 5, request)
        driver.advance(6000)
        assert given_up.done
    hold(driver.replica(leader, *state).log.log_end_offset - 1)  # the addition is committed
    assert producer.state == "Ongoing"
    assert producer.verify(0) == {0: ErrorCode.CONCURRENT_TRANSACTIONS}
    added = driver.send(leader, "add_partitions_to_txn", 5, addition)
    assert [added.done] == [False]
    for each in followers:
        each.release(*state)
    driver.cluster.scheduler.run_due()
    assert added.done
    assert producer.state == "Ongoing"
    assert producer.verify(0) == {0: ErrorCode.NONE}


def test_a_deleted_partition_keeps_no_transaction_open(
    driver: Driver, leaders: FakeLeaders
) -> None:
    producer = Producer(driver)
    producer.init()
    producer.add(0, version=5)
    leaders.refusals["t", 0] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    producer.end(commit=True)
    assert producer.state == "PrepareCommit"
    driver.cluster.controller.delete_topics(["t"])
    driver.cluster.scheduler.run_due()
    assert producer.state == "CompleteCommit"


def test_a_fenced_coordinator_sends_no_more_markers(driver: Driver, leaders: FakeLeaders) -> None:
    producer = Producer(driver)
    producer.init()
    producer.add(0, version=5)
    leaders.refusals["t", 0] = ErrorCode.TRANSACTION_COORDINATOR_FENCED
    producer.end(commit=True)
    sent = leaders.requests
    driver.advance(10 * RETRY_BACKOFF_MS)
    assert (producer.state, leaders.requests) == ("PrepareCommit", sent)


def test_a_marker_that_is_lost_is_sent_again(driver: Driver, leaders: FakeLeaders) -> None:
    producer = Producer(driver)
    producer.init()
    leader = producer.coordinator % 3 + 1
    create(driver, "u", replicas=[[leader]])
    producer.add(0, topic="u", version=5)
    leaders.lost = True
    assert producer.end(commit=True) is ErrorCode.NONE
    assert (producer.state, leaders.requests) == ("PrepareCommit", 1)
    leaders.lost = False
    driver.advance(RETRY_BACKOFF_MS)
    assert producer.state == "CompleteCommit"


def test_a_leader_has_one_request_at_a_time_and_the_next_has_all_that_came_meanwhile(
    leaders: FakeLeaders,
) -> None:
    driver = Driver(1, {"transaction.state.log.num.partitions": "1"})
    create(driver, "t")
    producers = [Producer(driver, name) for name in "abc"]
    for producer in producers:
        producer.init()
        producer.add(0, version=5)
    leaders.answers_later = True
    for producer in producers:
        assert producer.end(commit=True) is ErrorCode.NONE
    assert [len(request.markers) for request, _ in leaders.unanswered] == [1]
    leaders.answer_all()
    driver.cluster.scheduler.run_due()
    assert [len(request.markers) for request, _ in leaders.unanswered] == [2]
    leaders.answer_all()
    assert {producer.state for producer in producers} == {"CompleteCommit"}
