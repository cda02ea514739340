"""Transactions as a test sees and ends them, at their coordinators and in their partitions."""

from __future__ import annotations

import pytest

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.core.events import Kind
from fencepost.broker.core.waits import Wait
from fencepost.broker.node import operator_actions, transaction_actions
from fencepost.broker.node.transaction_actions import FoundTransaction
from fencepost.protocol.errors import ErrorCode
from tests.broker.transactions.workbench import Producer
from tests.harness.driver import Driver
from tests.harness.driver_requests import create
from tests.harness.transactions import append_in_transaction

CONFIGS = {"transaction.state.log.num.partitions": "1", "offsets.topic.num.partitions": "1"}


class Transacting(Driver):
    """Three brokers, topics t and u, and a producer with an open transaction in t-0."""

    def __init__(self, **configs: str) -> None:
        given = {name.replace("_", "."): value for name, value in configs.items()}
        super().__init__(configs={**CONFIGS, **given})
        for topic in "tu":
            create(self, topic, [(1, 2, 3)])
        self.producer = Producer(self, "x")
        self.producer.init()
        self.producer.add(0, version=5)
        append_in_transaction(self, "t", (self.producer.id, self.producer.epoch, 0), b"a")

    def found(self) -> FoundTransaction:
        return transaction_actions.find_transaction(self.cluster, "x")

    def stable(self, topic: str = "t") -> int:
        return self.leader(topic).last_stable_offset


def test_a_transaction_is_where_its_coordinator_is() -> None:
    driver = Transacting()
    found = driver.found()
    assert (found.coordinator, found.state_partition) == (driver.producer.coordinator, 0)
    assert (found.metadata.state.title, found.partitions) == ("Ongoing", (("t", 0),))
    others = {1, 2, 3} - {found.coordinator}
    driver.elect("__transaction_state", 0, min(others))
    driver.advance(0)
    assert driver.found().coordinator == min(others)
    assert driver.found().metadata == found.metadata


def test_all_of_them_are_listed_by_name() -> None:
    driver = Transacting()
    Producer(driver, "a").init()
    listed = transaction_actions.all_transactions(driver.cluster)
    assert [each.transactional_id for each in listed] == ["a", "x"]
    for broker_id in (1, 2, 3):
        operator_actions.stop(driver.cluster, broker_id)
    assert transaction_actions.all_transactions(driver.cluster) == []


def test_an_id_that_there_is_not_is_not_found() -> None:
    driver = Transacting()
    with pytest.raises(ControllerError) as refused:
        transaction_actions.find_transaction(driver.cluster, "y")
    assert refused.value.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    with pytest.raises(ControllerError):
        transaction_actions.find_transaction(Driver().cluster, "x")


def test_an_abort_fences_the_producer_and_writes_the_markers() -> None:
    driver = Transacting()
    assert transaction_actions.abort(driver.cluster, "x").result is ErrorCode.NONE
    driver.advance(0)
    assert driver.found().metadata.state.title == "CompleteAbort"
    assert driver.stable() == 2
    assert driver.producer.end(commit=True) is ErrorCode.INVALID_TXN_STATE
    with pytest.raises(ControllerError, match="CompleteAbort") as refused:
        transaction_actions.abort(driver.cluster, "x")
    assert refused.value.code is ErrorCode.INVALID_TXN_STATE


def test_a_held_marker_keeps_the_last_stable_offset_until_it_is_released() -> None:
    driver = Transacting()
    transaction_actions.hold_marker(driver.cluster, "x", "t", 0)
    assert driver.found().is_settled
    assert driver.producer.end(commit=True) is ErrorCode.NONE
    driver.advance(10_000)
    found = driver.found()
    assert (found.metadata.state.title, found.partitions) == ("PrepareCommit", (("t", 0),))
    assert found.held == {("t", 0)}
    assert found.is_settled
    assert driver.stable() == 0
    assert driver.producer.add(0, version=5) == {0: ErrorCode.CONCURRENT_TRANSACTIONS}
    transaction_actions.release_marker(driver.cluster, "x", "t", 0)
    driver.advance(0)
    assert driver.found().metadata.state.title == "CompleteCommit"
    assert (driver.stable(), driver.found().held) == (2, frozenset())


def test_a_marker_is_held_by_the_next_coordinator_too() -> None:
    driver = Transacting()
    transaction_actions.hold_marker(driver.cluster, "x", "t", 0)
    driver.producer.end(commit=True)
    driver.elect("__transaction_state", 0, min({1, 2, 3} - {driver.found().coordinator}))
    driver.advance(10_000)
    assert (driver.found().partitions, driver.stable()) == ((("t", 0),), 0)
    driver.cluster.reset()
    assert driver.broker(1).transactions.channel.held == ()


def test_only_what_is_held_is_released() -> None:
    driver = Transacting()
    transaction_actions.hold_marker(driver.cluster, "x", "t", 0)
    with pytest.raises(ControllerError, match="held: t-0") as refused:
        transaction_actions.release_marker(driver.cluster, "x", "u", 0)
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    with pytest.raises(ControllerError) as refused:
        transaction_actions.hold_marker(driver.cluster, "x", "t", 7)
    assert refused.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_hanging_transaction_is_ended_in_its_partition() -> None:
    driver = Transacting()
    append_in_transaction(driver, "u", (77, 3, 0), b"late")
    assert (driver.leader("u").high_watermark, driver.stable("u")) == (1, 0)
    answer = transaction_actions.abort_hanging(driver.cluster, "u", 0, 77)
    assert isinstance(answer, Wait)
    assert answer.result is ErrorCode.NONE
    assert driver.stable("u") == 2
    (aborted,) = driver.leader("u").log.aborted_transactions(0, 2)
    assert (aborted.producer_id, aborted.first_offset) == (77, 0)


def test_a_hanging_transaction_in_the_offsets_topic_is_ended_by_the_group_coordinator() -> None:
    driver = Transacting()
    create(driver, "__consumer_offsets", [(1, 2, 3)])
    append_in_transaction(driver, "__consumer_offsets", (77, 3, 0), b"late")
    transaction_actions.abort_hanging(driver.cluster, "__consumer_offsets", 0, 77)
    assert driver.stable("__consumer_offsets") == 2


def test_a_transaction_that_does_not_hang_is_not_ended_so() -> None:
    driver = Transacting()
    with pytest.raises(ControllerError, match="transactional id 'x'") as refused:
        transaction_actions.abort_hanging(driver.cluster, "t", 0, driver.producer.id)
    assert refused.value.code is ErrorCode.INVALID_TXN_STATE
    with pytest.raises(ControllerError, match=f"have one: {driver.producer.id}"):
        transaction_actions.abort_hanging(driver.cluster, "t", 0, 99)
    with pytest.raises(ControllerError, match="have one: none"):
        transaction_actions.abort_hanging(driver.cluster, "u", 0, 99)
    assert driver.stable() == 0


def test_an_open_transaction_times_out_in_time() -> None:
    driver = Transacting()
    due_ms = transaction_actions.ms_until_expiry(driver.cluster, "x")
    assert 60_000 < due_ms <= 70_001
    driver.advance(due_ms)
    assert driver.found().metadata.state.title == "CompleteAbort"
    assert driver.stable() == 2


def test_an_idle_id_is_forgotten_in_time() -> None:
    driver = Transacting(transactional_id_expiration_ms="60000")
    driver.producer.end(commit=True)
    driver.advance(0)
    driver.advance(transaction_actions.ms_until_expiry(driver.cluster, "x"))
    with pytest.raises(ControllerError):
        driver.found()


def test_nothing_expires_while_markers_are_on_their_way() -> None:
    driver = Transacting()
    transaction_actions.hold_marker(driver.cluster, "x", "t", 0)
    driver.producer.end(commit=True)
    driver.advance(0)
    with pytest.raises(ControllerError, match="PrepareCommit") as refused:
        transaction_actions.ms_until_expiry(driver.cluster, "x")
    assert refused.value.code is ErrorCode.CONCURRENT_TRANSACTIONS


def test_each_state_is_an_event_of_its_coordinator() -> None:
    driver = Transacting()
    driver.producer.add(0, version=5)
    driver.producer.end(commit=True)
    driver.advance(0)
    events = driver.cluster.events.since(0)
    changed = [each for each in events if each.kind is Kind.TRANSACTION_CHANGED]
    states = [each.details["state"] for each in changed]
    assert states == ["Empty", "Ongoing", "PrepareCommit", "CompleteCommit"]
    assert {each.broker for each in changed} == {driver.found().coordinator}
