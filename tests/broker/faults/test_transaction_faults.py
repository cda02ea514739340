"""Faults on the APIs of transactions: single partitions of markers, and transactional ids."""

from __future__ import annotations

import pytest

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.faults.kinds import Refuse
from fencepost.broker.transactions.marker_channel import RETRY_BACKOFF_MS
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.broker.faults.faulty import CODE, set_fault
from tests.broker.transactions.workbench import Producer
from tests.harness.driver import NEWEST, Driver
from tests.harness.driver_requests import create


@pytest.fixture
def driver() -> Driver:
    driver = Driver(1, {"transaction.state.log.num.partitions": "1"})
    create(driver, "t", [[1], [1]])
    create(driver, "u")
    return driver


def test_a_marker_of_one_partition_is_refused_and_comes_later(driver: Driver) -> None:
    producer = Producer(driver)
    producer.init()
    producer.add(0, 1, version=5)
    refused = int(ErrorCode.NOT_ENOUGH_REPLICAS)
    set_fault(driver, "write_txn_markers", Refuse(refused), topic="t", partition=1)
    assert producer.end(commit=True) is ErrorCode.NONE
    assert producer.shard.remaining_partitions("t", producer.metadata) == {("t", 1)}
    ends = [driver.replica(1, "t", index).log.log_end_offset for index in (0, 1)]
    assert (producer.state, ends) == ("PrepareCommit", [1, 0])
    driver.advance(RETRY_BACKOFF_MS)
    assert producer.state == "CompleteCommit"
    assert driver.replica(1, "t", 1).log.log_end_offset == 1


def test_a_refused_topic_joins_the_answers_of_all_producers(driver: Driver) -> None:
    set_fault(driver, "write_txn_markers", Refuse(int(CODE)), topic="t", count=None)
    request = WriteTxnMarkersRequest(
        markers=tuple(
            WritableTxnMarker(
                producer_id=producer_id,
                topics=tuple(
                    WritableTxnMarkerTopic(name=name, partition_indexes=(0,)) for name in "ut"
                ),
            )
            for producer_id in (7, 8)
        )
    )
    response = driver.ask(1, "write_txn_markers", NEWEST, request)
    codes = {
        (marker.producer_id, topic.name): [each.error_code for each in topic.partitions]
        for marker in response.markers
        for topic in marker.topics
    }
    assert codes == {(7, "u"): [0], (7, "t"): [CODE], (8, "u"): [0], (8, "t"): [CODE]}


def test_what_a_broker_asks_the_coordinator_names_the_id_as_well(driver: Driver) -> None:
    producer, other = Producer(driver, "a"), Producer(driver, "b")
    producer.init()
    other.init()
    set_fault(driver, "add_partitions_to_txn", Refuse(int(CODE)), transactional_id="a", count=None)
    assert producer.add(0) == {0: CODE}
    assert producer.add(0, version=5) == {}
    assert other.add(0, version=5) == {0: ErrorCode.NONE}


def test_a_group_and_a_transactional_id_select_where_both_are_named(driver: Driver) -> None:
    both = {"group": "g", "transactional_id": "a"}
    set_fault(driver, "add_offsets_to_txn", Refuse(int(CODE)), **both)
    with pytest.raises(ControllerError, match="EndTxn names no group"):
        set_fault(driver, "end_txn", Refuse(int(CODE)), **both)
    with pytest.raises(ControllerError, match="no request names both"):
        set_fault(driver, "find_coordinator", Refuse(int(CODE)), **both)
