"""Produce of transactions, end to end: verification, implicit addition, late writes (KIP-890)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fencepost.broker.node import operator_actions
from fencepost.broker.transactions.marker_channel import RETRY_BACKOFF_MS
from fencepost.protocol.errors import ErrorCode
from tests.broker.transactions.workbench import FakeLeaders, Producer
from tests.harness.driver import Asked, Driver
from tests.harness.driver_requests import create, fetch
from tests.harness.records import batch
from tests.harness.typed_requests import produce_request, produced, values

ADDS = 12
VERIFIES = 11
OLD = 10
CONFIGS = {"transaction.state.log.num.partitions": "1", "replica.lag.time.max.ms": "600000"}


@pytest.fixture
def driver() -> Driver:
    driver = Driver(3, CONFIGS)
    create(driver, "t", [[1, 2, 3]])
    return driver


def send(
    producer: Producer,
    sequence: int,
    *,
    version: int = ADDS,
    epoch: int | None = None,
    transactional_id: str | None = "t",
    acks: int = -1,
    connection: str = "c1",
) -> Asked:
    """Send one record of the producer's transaction to the leader."""
    driver = producer.driver
    epoch = producer.epoch if epoch is None else epoch
    records = batch(b"%d" % sequence, producer=(producer.id, epoch, sequence), transactional=True)
    request = produce_request(("t", 0, records), acks=acks)
    request = replace(request, transactional_id=transactional_id)
    return driver.send(driver.partition("t").leader, "produce", version, request, connection)


def code(asked: Asked) -> ErrorCode:
    return ErrorCode(produced(asked.response).error_code)


def test_a_leader_adds_its_partition_to_the_transaction_of_version_2(driver: Driver) -> None:
    producer = Producer(driver)
    producer.init()
    assert code(send(producer, 0)) is ErrorCode.NONE
    assert producer.metadata.partitions == {("t", 0)}
    assert code(send(producer, 1)) is ErrorCode.NONE
    assert driver.leader("t").last_stable_offset == 0
    assert producer.end(commit=True) is ErrorCode.NONE
    assert driver.leader("t").last_stable_offset == 3
    assert values(fetch(driver, "t", 0))[:2] == [b"0", b"1"]


def test_before_version_12_a_partition_must_have_been_added(driver: Driver) -> None:
    producer = Producer(driver, version=4)
    producer.init()
    assert code(send(producer, 0, version=VERIFIES)) is ErrorCode.TRANSACTION_ABORTABLE
    answer = produced(send(producer, 0, version=OLD).response)
    assert answer.error_code == ErrorCode.INVALID_TXN_STATE
    assert answer.error_message == "Partition was not added to the transaction"
    assert driver.leader("t").log.log_end_offset == 0
    producer.add(0)
    assert code(send(producer, 0, version=VERIFIES)) is ErrorCode.NONE
    assert producer.end(commit=False) is ErrorCode.NONE
    assert driver.leader("t").last_stable_offset == 2


@pytest.mark.parametrize("version", [OLD, ADDS])
def test_a_late_write_after_the_abort_opens_no_transaction(driver: Driver, version: int) -> None:
    producer = Producer(driver, version=5 if version == ADDS else 4)
    producer.init()
    epoch = producer.epoch
    producer.add(0, version=5 if version == ADDS else 3)
    assert producer.end(commit=False) is ErrorCode.NONE
    late = code(send(producer, 0, version=version, epoch=epoch))
    expected = ErrorCode.INVALID_PRODUCER_EPOCH if version == ADDS else ErrorCode.INVALID_TXN_STATE
    assert late is expected
    assert driver.leader("t").last_stable_offset == driver.leader("t").log.log_end_offset == 1


def test_without_verification_a_late_write_hangs_the_partition() -> None:
    driver = Driver(3, {**CONFIGS, "transaction.partition.verification.enable": "false"})
    create(driver, "t", [[1, 2, 3]])
    producer = Producer(driver, version=4)
    producer.init()
    producer.add(0)
    assert producer.end(commit=False) is ErrorCode.NONE
    assert code(send(producer, 0, version=VERIFIES)) is ErrorCode.NONE
    assert driver.leader("t").last_stable_offset == 1
    assert producer.state == "CompleteAbort"


def test_a_transactional_batch_needs_a_transactional_id(driver: Driver) -> None:
    producer = Producer(driver)
    producer.init()
    refused = code(send(producer, 0, transactional_id=None))
    assert refused is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_batches_of_two_producers_are_no_transaction(driver: Driver) -> None:
    create(driver, "u")
    request = produce_request(
        ("t", 0, batch(b"a", producer=(1, 0, 0), transactional=True)),
        ("u", 0, batch(b"a", producer=(2, 0, 0), transactional=True)),
    )
    response = driver.ask(1, "produce", ADDS, replace(request, transactional_id="t"))
    partitions = [each for topic in response.responses for each in topic.partition_responses]
    assert [(each.error_code, each.error_message) for each in partitions] == [
        (
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            "Transactional records contained more than one producer ID",
        )
    ] * 2


@pytest.mark.parametrize(("topic", "times"), [("nope", 1), ("t", 2)])
def test_batches_that_are_refused_anyway_do_not_count_as_those_of_another_producer(
    driver: Driver, topic: str, times: int
) -> None:
    create(driver, "u", [[1, 2, 3]])
    first, second = Producer(driver, "t"), Producer(driver, "u")
    first.init()
    second.init()
    own = bytes(batch(b"v", producer=(first.id, 0, 0), transactional=True))
    other = bytes(batch(b"v", producer=(second.id, 0, 0), transactional=True))
    request = produce_request(("u", 0, own), (topic, 0, other * times))
    request = replace(request, transactional_id="t")
    response = driver.ask(driver.partition("u").leader, "produce", ADDS, request)
    codes = {each.name: each.partition_responses[0].error_code for each in response.responses}
    refused = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic == "nope" else ErrorCode.INVALID_RECORD
    assert codes == {"u": ErrorCode.NONE, topic: refused}
    assert first.metadata.partitions == {("u", 0)}


def test_what_is_verified_comes_before_unknown_acks(driver: Driver) -> None:
    producer = Producer(driver, version=4)
    producer.init()
    assert code(send(producer, 0, version=VERIFIES, acks=2)) is ErrorCode.TRANSACTION_ABORTABLE
    producer.add(0)
    assert code(send(producer, 0, version=VERIFIES, acks=2)) is ErrorCode.INVALID_REQUIRED_ACKS


def test_a_fenced_producer_is_told_so_by_the_leader(driver: Driver) -> None:
    zombie = Producer(driver)
    zombie.init()
    Producer(driver).init()
    assert code(send(zombie, 0)) is ErrorCode.INVALID_PRODUCER_EPOCH
    stranger = Producer(driver, "s")
    stranger.id, stranger.epoch = 99, 0
    assert code(send(stranger, 0, transactional_id="s")) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_the_leader_asks_again_while_the_last_transaction_is_not_complete(
    driver: Driver, leaders: FakeLeaders
) -> None:
    producer = Producer(driver)
    producer.init()
    producer.add(0, version=5)
    leaders.refusals["t", 0] = ErrorCode.NOT_ENOUGH_REPLICAS
    producer.end(commit=True)
    first, second = send(producer, 0), send(producer, 1)
    driver.advance(20)
    assert not first.done
    leaders.refusals.clear()
    driver.advance(RETRY_BACKOFF_MS)
    assert (code(first), code(second)) == (ErrorCode.NONE, ErrorCode.NONE)
    assert values(fetch(driver, "t", 0)) == [b"0", b"1"]


def test_it_asks_for_a_tenth_of_a_second(driver: Driver, leaders: FakeLeaders) -> None:
    producer = Producer(driver)
    producer.init()
    producer.add(0, version=5)
    leaders.refusals["t", 0] = ErrorCode.NOT_ENOUGH_REPLICAS
    producer.end(commit=True)
    asked = send(producer, 0)
    driver.advance(100)
    assert code(asked) is ErrorCode.CONCURRENT_TRANSACTIONS
    verified = produced(send(producer, 0, version=VERIFIES).response)
    assert verified.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert verified.error_message == (
        "Unable to verify the partition has been added to the transaction. Underlying error: "
        "CONCURRENT_TRANSACTIONS"
    )


def test_batches_that_wait_for_the_verification_keep_their_order(driver: Driver) -> None:
    producer = Producer(driver)
    producer.init()
    others = [each for each in (1, 2, 3) if each != producer.coordinator]
    for each in others:
        driver.broker(each).replica_manager.hold("__transaction_state", 0, None)
    asked = [send(producer, 0), send(producer, 1), send(producer, 2, acks=0)]
    assert not any(each.done for each in asked)
    for each in others:
        driver.broker(each).replica_manager.release("__transaction_state", 0)
    driver.cluster.scheduler.run_due()
    assert [code(each) for each in asked[:2]] == [ErrorCode.NONE, ErrorCode.NONE]
    assert (asked[2].done, asked[2].hung_up) == (True, False)
    assert values(fetch(driver, "t", 0)) == [b"0", b"1", b"2"]


def test_a_coordinator_that_was_replaced_does_not_hold_up_those_who_connect_again(
    driver: Driver,
) -> None:
    producer = Producer(driver)
    producer.init()
    leader = driver.partition("t").leader
    old, new = (each for each in (1, 2, 3) if each != leader)
    driver.elect("__transaction_state", 0, old)
    driver.hold(leader, new)  # what the coordinator writes from now on is not committed
    asked = send(producer, 0)
    operator_actions.isolate(driver.cluster, old, from_controller=True)
    driver.release(leader, new)
    assert driver.partition("__transaction_state").leader != old
    assert not send(producer, 0).done  # it waits for the request before it
    again = send(producer, 0, connection="c2")
    assert (code(again), asked.done) == (ErrorCode.NONE, False)


def test_without_a_coordinator_the_producer_tries_again(driver: Driver) -> None:
    producer = Producer(driver)
    producer.init()
    network, leader = driver.cluster.network, driver.broker(driver.partition("t").leader)
    if leader.broker_id == producer.coordinator:
        driver.elect("__transaction_state", 0, leader.broker_id % 3 + 1)
    coordinator = driver.broker(producer.coordinator)
    network.cut_link(leader.broker_id, coordinator.broker_id)
    answer = produced(send(producer, 0).response)
    assert answer.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert answer.error_message is not None
    assert answer.error_message.endswith("NETWORK_EXCEPTION")
    network.restore_link(leader.broker_id, coordinator.broker_id)
    assert code(send(producer, 0)) is ErrorCode.NONE
