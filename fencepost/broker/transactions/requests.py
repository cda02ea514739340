"""Each API on the shard of its transactional id: find the metadata, decide, write, respond."""

from collections.abc import Collection, Mapping
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from fencepost.broker.core.waits import Wait
from fencepost.broker.transactions import transaction_partitions
from fencepost.broker.transactions.end_transaction import TransactionEnd, decide_end
from fencepost.broker.transactions.producer_epochs import decide_producer, is_fenced
from fencepost.broker.transactions.transaction_coordinator import TransactionCoordinatorShard
from fencepost.broker.transactions.transaction_metadata import (
    NO_PRODUCER,
    ProducerIdAndEpoch,
    TopicPartition,
    TransactionMetadata,
    new_metadata,
)
from fencepost.broker.transactions.transaction_state import PREPARING, TransactionState
from fencepost.protocol.errors import ErrorCode


class ProducerResult(NamedTuple):
    """The producer id and epoch that a producer goes on with; none with an error."""

    error: ErrorCode
    producer: ProducerIdAndEpoch = NO_PRODUCER


Code: TypeAlias = ErrorCode | Wait[ErrorCode]


def init_producer_id(
    shard: TransactionCoordinatorShard,
    transactional_id: str,
    timeout_ms: int,
    expected: ProducerIdAndEpoch | None,
) -> ProducerResult | Wait[ProducerResult]:
    """InitProducerId: the producer's id and next epoch.

    An open transaction is aborted and its producer fenced first: CONCURRENT_TRANSACTIONS when that
    is durable, and the producer asks again.
    """
    if shard.is_in_transition(transactional_id):
        return ProducerResult(ErrorCode.CONCURRENT_TRANSACTIONS)
    current = shard.find(transactional_id) or _new(shard, timeout_ms)
    if current is None:
        return ProducerResult(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    if is_fenced(current, expected):
        return ProducerResult(ErrorCode.PRODUCER_FENCED)
    if current.state in PREPARING:
        return ProducerResult(ErrorCode.CONCURRENT_TRANSACTIONS)
    if current.state is TransactionState.ONGOING:
        return _fence(shard, transactional_id, current)
    decision = decide_producer(
        current,
        expected,
        timeout_ms=timeout_ms,
        now_ms=shard.scheduler.wall_ms(),
        generate_producer_id=shard.coordinator.generate_producer_id,
    )
    if isinstance(decision, ErrorCode):
        return ProducerResult(decision)
    return _change(shard, transactional_id, decision, decision.producer)


def _new(shard: TransactionCoordinatorShard, timeout_ms: int) -> TransactionMetadata | None:
    producer_id = shard.coordinator.generate_producer_id()
    if producer_id is None:
        return None
    return new_metadata(producer_id, timeout_ms, shard.scheduler.wall_ms())


def _fence(
    shard: TransactionCoordinatorShard, transactional_id: str, current: TransactionMetadata
) -> Wait[ProducerResult]:
    wait: Wait[ProducerResult] = Wait()

    def done(error: ErrorCode) -> None:
        is_aborted = error is ErrorCode.NONE
        wait.complete(ProducerResult(ErrorCode.CONCURRENT_TRANSACTIONS if is_aborted else error))

    shard.abort(transactional_id, current, done)
    return wait


def end_transaction(
    shard: TransactionCoordinatorShard, transactional_id: str, end: TransactionEnd
) -> ProducerResult | Wait[ProducerResult]:
    """EndTxn: answered when the decision is durable, and before any marker is written.

    :returns: In the flow of version 2 the id and epoch that the producer goes on with.
    """
    if shard.is_in_transition(transactional_id):
        return ProducerResult(ErrorCode.CONCURRENT_TRANSACTIONS)
    current = shard.find(transactional_id)
    if current is None:
        return ProducerResult(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    now_ms = shard.scheduler.wall_ms()
    decision = decide_end(
        current,
        end,
        now_ms=now_ms,
        generate_producer_id=shard.coordinator.generate_producer_id,
    )
    if not isinstance(decision, ErrorCode):
        producer = decision.completed(now_ms).producer if decision.bumps_epoch else NO_PRODUCER
        return _change(shard, transactional_id, decision, producer)
    if decision is ErrorCode.NONE and end.bumps_epoch:
        return ProducerResult(decision, current.producer)
    return ProducerResult(decision)


def _change(
    shard: TransactionCoordinatorShard,
    transactional_id: str,
    decision: TransactionMetadata,
    producer: ProducerIdAndEpoch,
) -> ProducerResult | Wait[ProducerResult]:
    wait: Wait[ProducerResult] = Wait()

    def done(error: ErrorCode) -> None:
        is_committed = error is ErrorCode.NONE
        wait.complete(ProducerResult(error, producer if is_committed else NO_PRODUCER))

    shard.change(transactional_id, decision, done)
    return wait


def add_partitions(
    shard: TransactionCoordinatorShard,
    transactional_id: str,
    producer: ProducerIdAndEpoch,
    partitions: Collection[TopicPartition],
    client_version: int,
) -> Code:
    """AddPartitionsToTxn and AddOffsetsToTxn: one error code for all partitions."""
    if shard.is_in_transition(transactional_id):
        return ErrorCode.CONCURRENT_TRANSACTIONS
    current = shard.find(transactional_id)
    if current is None:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    decision = transaction_partitions.decide_addition(
        current,
        producer,
        partitions,
        client_version=client_version,
        now_ms=shard.scheduler.wall_ms(),
    )
    if decision is ErrorCode.NONE and shard.has_given_up(transactional_id):
        decision = replace(current)  # else what was given up may end the transaction by its commit
    if isinstance(decision, ErrorCode):
        return decision
    wait: Wait[ErrorCode] = Wait()
    shard.change(transactional_id, decision, wait.complete)
    return wait


def verify_partitions(
    shard: TransactionCoordinatorShard,
    transactional_id: str,
    producer: ProducerIdAndEpoch,
    partitions: Collection[TopicPartition],
) -> Mapping[TopicPartition, ErrorCode]:
    """AddPartitionsToTxn that only verifies: an error code for each partition.

    A partition counts as added when that is committed: what an election may still take back would
    let a leader append to a transaction that no coordinator knows.
    """
    current = shard.find(transactional_id)
    if current is None:
        return dict.fromkeys(partitions, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    codes = transaction_partitions.verify(current, producer, partitions)
    committed = shard.committed.transactions.get(transactional_id)
    other = committed
    if committed is current:
        if not shard.has_given_up(transactional_id):
            return codes
        other = shard.latest.transactions[transactional_id]  # it may be committed at any time
    busy = ErrorCode.CONCURRENT_TRANSACTIONS
    if other is None:
        return dict.fromkeys(partitions, busy)
    others = transaction_partitions.verify(other, producer, partitions)
    return {each: codes[each] if codes[each] is others[each] else busy for each in partitions}
