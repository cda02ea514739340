"""Decisions of AddPartitionsToTxn: add partitions to a transaction, or verify that they are in it.

A leader verifies the first batch of a transaction before it appends it, so that a late write cannot
open a transaction that no coordinator knows (KIP-890). In the flow of ``transaction.version`` 2 it
adds the partition instead, for the producer.
"""

from collections.abc import Collection, Mapping
from typing import Final

from fencepost.broker.transactions.transaction_metadata import (
    ProducerIdAndEpoch,
    TopicPartition,
    TransactionMetadata,
)
from fencepost.broker.transactions.transaction_state import PREPARING, TransactionState
from fencepost.protocol.errors import ErrorCode

_NONE: Final = ErrorCode.NONE


def check_producer(current: TransactionMetadata, producer: ProducerIdAndEpoch) -> ErrorCode:
    """Whether a producer may write under its transactional id now."""
    if current.producer_id != producer.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if current.producer_epoch != producer.epoch:
        return ErrorCode.PRODUCER_FENCED
    if current.state in PREPARING:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return _NONE


def decide_addition(
    current: TransactionMetadata,
    producer: ProducerIdAndEpoch,
    partitions: Collection[TopicPartition],
    *,
    client_version: int,
    now_ms: int,
) -> TransactionMetadata | ErrorCode:
    """The metadata with the partitions, or an error; NONE where they are in the transaction.

    :param client_version: The ``transaction.version`` of the flow that the producer follows.
    """
    error = check_producer(current, producer)
    if error is not _NONE:
        return error
    if current.state is TransactionState.ONGOING and current.partitions.issuperset(partitions):
        return ErrorCode.NONE
    return current.with_partitions(partitions, client_version, now_ms)


def verify(
    current: TransactionMetadata,
    producer: ProducerIdAndEpoch,
    partitions: Collection[TopicPartition],
) -> Mapping[TopicPartition, ErrorCode]:
    """For each partition NONE if it is in the transaction, or else an error."""
    error = check_producer(current, producer)
    if error is not _NONE:
        return dict.fromkeys(partitions, error)
    known, missing = current.partitions, ErrorCode.TRANSACTION_ABORTABLE
    if known.issuperset(partitions):
        return dict.fromkeys(partitions, _NONE)
    return {each: _NONE if each in known else missing for each in partitions}
