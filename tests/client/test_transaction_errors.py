"""Which answers end a transaction, which end its producer, and which say that it was fenced."""

from __future__ import annotations

import pytest

from fencepost.client.transaction_errors import (
    RETRIED,
    ProducerFenced,
    TransactionAbortable,
    TransactionFailed,
    error_of_coordinator,
    error_of_produce,
)
from fencepost.protocol.errors import ErrorCode


@pytest.mark.parametrize(
    ("code", "of_coordinator", "of_produce"),
    [
        (ErrorCode.PRODUCER_FENCED, ProducerFenced, ProducerFenced),
        (ErrorCode.INVALID_PRODUCER_EPOCH, ProducerFenced, TransactionAbortable),
        (ErrorCode.TRANSACTION_ABORTABLE, TransactionAbortable, TransactionAbortable),
        (ErrorCode.ILLEGAL_GENERATION, TransactionAbortable, TransactionAbortable),
        (ErrorCode.INVALID_TXN_STATE, TransactionFailed, TransactionAbortable),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, TransactionAbortable, TransactionFailed),
        (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, TransactionFailed, TransactionAbortable),
        (
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            TransactionFailed,
            TransactionFailed,
        ),
    ],
)
def test_an_answer_means_what_kafkas_producer_takes_it_for(
    code: ErrorCode, of_coordinator: type, of_produce: type
) -> None:
    assert type(error_of_coordinator("EndTxn", code)) is of_coordinator
    assert type(error_of_produce(code)) is of_produce
    assert code not in RETRIED


def test_the_error_says_which_request_was_refused_and_why() -> None:
    error = error_of_coordinator("EndTxn", ErrorCode.PRODUCER_FENCED)
    assert str(error) == "EndTxn: PRODUCER_FENCED"
    assert (error.request, error.error) == ("EndTxn", ErrorCode.PRODUCER_FENCED)
