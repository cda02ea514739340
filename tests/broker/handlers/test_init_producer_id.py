"""InitProducerId: ids for idempotent producers, of the whole cluster."""

from __future__ import annotations

import pytest

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from tests.harness.driver import NEWEST, Driver
from tests.harness.driver_requests import create
from tests.harness.records import batch
from tests.harness.typed_requests import produce_request, produced


def init(
    driver: Driver,
    broker_id: int = 1,
    version: int = NEWEST,
    *,
    transactional_id: str | None = None,
    producer: tuple[int, int] = (-1, -1),
) -> InitProducerIdResponse:
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=60_000,
        producer_id=producer[0],
        producer_epoch=producer[1],
    )
    response = driver.ask(broker_id, "init_producer_id", version, request)
    assert isinstance(response, InitProducerIdResponse)
    return response


@pytest.mark.parametrize("version", [0, 2, 4, 6])
def test_no_broker_gives_an_id_that_another_gave(version: int) -> None:
    driver = Driver(3)
    answers = [init(driver, broker_id, version) for broker_id in (1, 2, 3, 1, 2, 3)]
    assert len({answer.producer_id for answer in answers}) == 6
    assert all(answer.producer_id >= 0 for answer in answers)
    assert {(answer.error_code, answer.producer_epoch) for answer in answers} == {(0, 0)}


def test_a_producer_with_an_id_starts_over_with_another() -> None:
    driver = Driver(1)
    first = init(driver)
    again = init(driver, producer=(first.producer_id, 0))
    assert (again.error_code, again.producer_epoch) == (ErrorCode.NONE, 0)
    assert again.producer_id != first.producer_id


@pytest.mark.parametrize("producer", [(5, -1), (-1, 5)])
def test_id_and_epoch_come_together(producer: tuple[int, int]) -> None:
    answer = init(Driver(1), producer=producer)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (
        ErrorCode.INVALID_REQUEST,
        -1,
        -1,
    )


def test_a_transactional_id_is_not_empty_and_has_a_coordinator() -> None:
    driver = Driver(1)
    assert init(driver, transactional_id="").error_code == ErrorCode.INVALID_REQUEST
    answer = init(driver, transactional_id="t1")
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (
        ErrorCode.NOT_COORDINATOR,
        -1,
        -1,
    )


def test_what_is_sent_twice_under_an_id_is_stored_once() -> None:
    driver = Driver(1)
    create(driver, "t")
    producer_id = init(driver).producer_id
    answers = []
    for sequence in (0, 1, 1):
        records = batch(b"v", producer=(producer_id, 0, sequence))
        response = driver.ask(1, "produce", 12, produce_request(("t", 0, records)))
        answers.append(produced(response))
    assert [(a.error_code, a.base_offset) for a in answers] == [(0, 0), (0, 1), (0, 1)]
    assert driver.replica(1, "t").log.log_end_offset == 2


def test_ids_are_not_given_again_after_a_reset() -> None:
    driver = Driver(1)
    before = init(driver).producer_id
    driver.cluster.reset()
    assert init(driver).producer_id > before
