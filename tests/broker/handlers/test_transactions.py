"""The coordinator's APIs over the wire: the answers of each version, and refused requests."""

from __future__ import annotations

import pytest

from fencepost.broker.groups.group_coordinator import OFFSETS_TOPIC
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from fencepost.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from fencepost.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    TopicData,
    TransactionState,
)
from fencepost.protocol.messages.end_txn import EndTxnRequest
from fencepost.protocol.messages.init_producer_id import InitProducerIdRequest
from fencepost.protocol.messages.list_transactions import ListTransactionsRequest
from fencepost.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
)
from tests.broker.transactions.workbench import Producer
from tests.harness.driver import NEWEST, Driver, versions
from tests.harness.driver_requests import create

CONFIGS = {"transaction.state.log.num.partitions": "1"}


@pytest.fixture
def driver() -> Driver:
    driver = Driver(1, CONFIGS)
    create(driver, "t", [[1], [1]])
    return driver


def add_offsets(driver: Driver, producer: Producer, version: int = NEWEST) -> int:
    request = AddOffsetsToTxnRequest(
        transactional_id=producer.transactional_id,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        group_id="g",
    )
    code: int = driver.ask(1, "add_offsets_to_txn", version, request).error_code
    return code


def listed(driver: Driver, **filters: object) -> list[str]:
    request = ListTransactionsRequest(**filters)  # type: ignore[arg-type]  # fields of a table
    response = driver.ask(1, "list_transactions", NEWEST, request)
    assert response.error_code == ErrorCode.NONE
    return [each.transactional_id for each in response.transaction_states]


@pytest.mark.parametrize("version", versions("add_offsets_to_txn"))
def test_offsets_add_the_partition_of_their_group(driver: Driver, version: int) -> None:
    producer = Producer(driver)
    producer.init()
    assert add_offsets(driver, producer, version) == ErrorCode.NONE
    assert producer.metadata.partitions == {(OFFSETS_TOPIC, 3)}
    Producer(driver).init()
    fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert add_offsets(driver, producer, version) == fenced
    producer.transactional_id = ""
    assert add_offsets(driver, producer, version) == ErrorCode.INVALID_REQUEST


def test_one_unknown_partition_keeps_the_others_out(driver: Driver) -> None:
    producer = Producer(driver)
    producer.init()
    assert producer.add(0, 7) == {
        0: ErrorCode.OPERATION_NOT_ATTEMPTED,
        7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert producer.state == "Empty"
    producer.transactional_id = ""
    assert producer.add(0) == {0: ErrorCode.INVALID_REQUEST}


@pytest.mark.parametrize("version", [4, 5])
def test_brokers_add_and_verify_partitions_of_several_transactions(
    driver: Driver, version: int
) -> None:
    first, second = Producer(driver, "a"), Producer(driver, "b")
    first.init()
    second.init()
    request = AddPartitionsToTxnRequest(
        transactions=tuple(
            AddPartitionsToTxnTransaction(
                transactional_id=each.transactional_id,
                producer_id=each.id,
                producer_epoch=each.epoch,
                verify_only=each is second,
                topics=(AddPartitionsToTxnTopic(name="t", partitions=(0, 1)),),
            )
            for each in (first, second)
        )
    )
    response = driver.ask(1, "add_partitions_to_txn", version, request)
    codes = {
        result.transactional_id: [
            each.partition_error_code for each in result.topic_results[0].results_by_partition
        ]
        for result in response.results_by_transaction
    }
    missing = ErrorCode.TRANSACTION_ABORTABLE
    assert codes == {"a": [0, 0], "b": [missing, missing]}
    assert first.verify(0, 1) == {0: ErrorCode.NONE, 1: ErrorCode.NONE}
    assert second.state == "Empty"


@pytest.mark.parametrize("version", [3, 5])
def test_topics_without_partitions_are_answered_where_no_partition_is_refused(
    driver: Driver, version: int
) -> None:
    producer = Producer(driver)
    producer.init()
    for partitions, answered in (((0, 0), [("t", 2), ("u", 0)]), ((0, 7), [("t", 2)])):
        topics = (
            AddPartitionsToTxnTopic(name="t", partitions=partitions),
            AddPartitionsToTxnTopic(name="u"),
        )
        response = driver.ask(
            1, "add_partitions_to_txn", version, producer.addition(topics, version)
        )
        results = (
            response.results_by_transaction[0].topic_results
            if version > 3
            else response.results_by_topic_v3_and_below
        )
        assert [(each.name, len(each.results_by_partition)) for each in results] == answered


@pytest.mark.parametrize("version", versions("end_txn"))
def test_only_version_5_tells_the_next_epoch(driver: Driver, version: int) -> None:
    producer = Producer(driver, version=version)
    producer.init()
    producer.add(0)
    response = producer.send_end(commit=True).response
    assert response.error_code == ErrorCode.NONE
    expected = (producer.id, 1) if version >= 5 else (-1, -1)
    assert (response.producer_id, response.producer_epoch) == expected
    empty = driver.ask(1, "end_txn", version, EndTxnRequest())
    assert empty.error_code == ErrorCode.INVALID_REQUEST


def init_code(driver: Driver, version: int = 6, **fields: object) -> int:
    request = InitProducerIdRequest(
        **{"transactional_id": "t", "transaction_timeout_ms": 1000, **fields}  # type: ignore[arg-type]  # fields of a table
    )
    code: int = driver.ask(1, "init_producer_id", version, request).error_code
    return code


def test_a_timeout_is_positive_and_not_too_long(driver: Driver) -> None:
    assert Producer(driver).coordinator == 1
    for wrong in (0, -1, 900_001):
        code = init_code(driver, transaction_timeout_ms=wrong)
        assert code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert init_code(driver, transaction_timeout_ms=900_000) == ErrorCode.NONE


def test_two_phase_commits_are_not_enabled(driver: Driver) -> None:
    assert Producer(driver).coordinator == 1
    refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert init_code(driver, enable2_pc=True) == refused
    assert init_code(driver, keep_prepared_txn=True) == ErrorCode.UNSUPPORTED_VERSION
    assert init_code(driver) == ErrorCode.NONE


def test_described_is_what_the_coordinator_has(driver: Driver) -> None:
    producer = Producer(driver)
    producer.init(timeout_ms=5000)
    producer.add(0, 1)
    request = DescribeTransactionsRequest(transactional_ids=("t", "nope", ""))
    response = driver.ask(1, "describe_transactions", 0, request)
    assert response.transaction_states == (
        TransactionState(
            transactional_id="t",
            transaction_state="Ongoing",
            transaction_timeout_ms=5000,
            transaction_start_time_ms=driver.clock.now_ms(),
            producer_id=producer.id,
            producer_epoch=0,
            topics=(TopicData(topic="t", partitions=(0, 1)),),
        ),
        TransactionState(error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, transactional_id="nope"),
        TransactionState(error_code=ErrorCode.INVALID_REQUEST, transactional_id=""),
    )


def test_without_the_topic_no_broker_coordinates() -> None:
    driver = Driver(1, CONFIGS)
    request = DescribeTransactionsRequest(transactional_ids=("t",))
    (state,) = driver.ask(1, "describe_transactions", 0, request).transaction_states
    assert state.error_code == ErrorCode.NOT_COORDINATOR
    assert listed(driver) == []


def test_transactions_are_listed_by_state_producer_duration_and_pattern(driver: Driver) -> None:
    idle, short, long = (Producer(driver, name) for name in ("idle", "short", "long"))
    for producer in (idle, short, long):
        producer.init()
    long.add(0)
    driver.advance(5000)
    short.add(0)
    assert listed(driver) == ["idle", "short", "long"]
    assert listed(driver, state_filters=("Ongoing",)) == ["short", "long"]
    assert listed(driver, producer_id_filters=(idle.id, long.id)) == ["idle", "long"]
    assert listed(driver, duration_filter=1000, state_filters=("Ongoing",)) == ["long"]
    assert listed(driver, transactional_id_pattern="(id|lo).*") == ["idle", "long"]
    assert listed(driver, transactional_id_pattern="lo") == []
    assert listed(driver, transactional_id_pattern="") == ["idle", "short", "long"]


def test_names_that_are_no_states_are_told_and_match_nothing(driver: Driver) -> None:
    Producer(driver).init()
    request = ListTransactionsRequest(state_filters=("Empty", "Nope"))
    response = driver.ask(1, "list_transactions", 2, request)
    assert response.unknown_state_filters == ("Nope",)
    assert len(response.transaction_states) == 1
    assert listed(driver, state_filters=("Nope",)) == []


def test_a_pattern_that_is_none_is_refused(driver: Driver) -> None:
    request = ListTransactionsRequest(transactional_id_pattern="(")
    response = driver.ask(1, "list_transactions", 2, request)
    assert response.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_the_features_are_changed_while_ids_are_in_use(driver: Driver) -> None:
    producer = Producer(driver)
    producer.init()
    producer.transact(0)
    key = FeatureUpdateKey(feature="transaction.version", max_version_level=0, upgrade_type=2)
    request = UpdateFeaturesRequest(feature_updates=(key,), timeout_ms=1000)
    assert driver.ask(1, "update_features", 2, request).error_code == ErrorCode.NONE
    producer.version = 4
    assert producer.init(expected=producer.producer) == (ErrorCode.NONE, (producer.id, 2))
    producer.transact(0)
    assert producer.producer == (producer.id, 2)
