"""Decisions of InitProducerId: which id and epoch a transactional producer gets.

Each call bumps the epoch, so that a producer of the same transactional id that is still at work is
fenced. A producer that goes on after an error brings the id and the epoch that it has (KIP-360): it
gets the next epoch only as long as no other producer has come meanwhile, and a repeated call gets
the epoch of the first. When the epochs of a producer id are used up, another id begins with 0.
"""

from collections.abc import Callable
from typing import TypeAlias

from fencepost.broker.transactions.transaction_metadata import (
    LAST_CLIENT_EPOCH,
    NO_PRODUCER_EPOCH,
    ProducerIdAndEpoch,
    TransactionMetadata,
)
from fencepost.protocol.errors import ErrorCode

GenerateProducerId: TypeAlias = Callable[[], int | None]
"""An unused producer id; None while the broker has none, which is COORDINATOR_LOAD_IN_PROGRESS."""


def decide_producer(
    current: TransactionMetadata,
    expected: ProducerIdAndEpoch | None,
    *,
    timeout_ms: int,
    now_ms: int,
    generate_producer_id: GenerateProducerId,
) -> TransactionMetadata | ErrorCode:
    """The metadata with the epoch that the producer gets, or an error.

    :param current: The id's metadata, without an open transaction: that is to be ended first.
    :param expected: The id and epoch that the producer has, if it goes on after an error.
    """
    if not current.is_epoch_exhausted:
        return _next_epoch(current, expected, timeout_ms, now_ms)
    if expected is not None and expected.epoch != current.producer_epoch:
        return ErrorCode.UNKNOWN_SERVER_ERROR  # as Kafka, which has no epoch left to answer
    producer_id = generate_producer_id()
    if producer_id is None:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    last_epoch = NO_PRODUCER_EPOCH if expected is None else current.producer_epoch
    return current.with_producer_id(producer_id, last_epoch, timeout_ms, now_ms)


def is_fenced(current: TransactionMetadata, expected: ProducerIdAndEpoch | None) -> bool:
    """Whether a producer that goes on after an error has lost its transactional id."""
    return expected is not None and not _is_valid_producer(current, expected)


def _is_valid_producer(current: TransactionMetadata, expected: ProducerIdAndEpoch) -> bool:
    """Whether the producer id is the present one, or the one before it, of which the producer had
    the last epoch: it may not have received the answer that rotated the ids. Any is where the
    transactional id is new, as it may have expired meanwhile.
    """
    return (
        current.producer_epoch == NO_PRODUCER_EPOCH
        or expected.producer_id == current.producer_id
        or (
            expected.producer_id == current.previous_producer_id
            and expected.epoch >= LAST_CLIENT_EPOCH
        )
    )


def _next_epoch(
    current: TransactionMetadata, expected: ProducerIdAndEpoch | None, timeout_ms: int, now_ms: int
) -> TransactionMetadata | ErrorCode:
    epoch = current.producer_epoch
    if expected is None:
        return current.with_epoch(epoch + 1, NO_PRODUCER_EPOCH, timeout_ms, now_ms)
    if epoch in (NO_PRODUCER_EPOCH, expected.epoch):
        return current.with_epoch(epoch + 1, epoch, timeout_ms, now_ms)
    if expected.epoch == current.last_producer_epoch:
        return current.with_epoch(epoch, current.last_producer_epoch, timeout_ms, now_ms)
    return ErrorCode.PRODUCER_FENCED
