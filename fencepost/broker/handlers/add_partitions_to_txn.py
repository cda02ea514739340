"""AddPartitionsToTxn (24), versions 0-5: add partitions to a transaction (KIP-98, KIP-890).

All partitions of a transaction are added, or none: where one does not exist it is
UNKNOWN_TOPIC_OR_PARTITION, one of Kafka's own topics is TOPIC_AUTHORIZATION_FAILED for a producer,
and the others are OPERATION_NOT_ATTEMPTED.

Up to v3 a producer adds partitions to its transaction. Versions 4 and 5 are for brokers: the leader
of a partition verifies that it is in the transaction (``VerifyOnly``) before it appends a batch of
it, or adds it for a producer of ``transaction.version`` 2. They name several transactions. A
partition that is not in its transaction is TRANSACTION_ABORTABLE.

Versions: v2 PRODUCER_FENCED, which is INVALID_PRODUCER_EPOCH before (KIP-588); v3 compact types; v4
several transactions, and verification; v5 TRANSACTION_ABORTABLE.
"""

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from fencepost.broker.core.outcomes import gather_responses, map_response
from fencepost.broker.core.waits import Wait
from fencepost.broker.handlers.context import Context
from fencepost.broker.metadata.image import INTERNAL_TOPICS
from fencepost.broker.transactions import requests
from fencepost.broker.transactions.transaction_coordinator import TransactionCoordinatorShard
from fencepost.broker.transactions.transaction_metadata import (
    EPOCH_BUMP_VERSION,
    ProducerIdAndEpoch,
    TopicPartition,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

_FIRST_WITH_FENCED: Final = 2
_FIRST_OF_BROKERS: Final = 4
_Results: TypeAlias = tuple[AddPartitionsToTxnTopicResult, ...]


def handle(
    ctx: Context, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse | Wait[AddPartitionsToTxnResponse]:
    """Add or verify the partitions of each transaction."""
    if ctx.version < _FIRST_OF_BROKERS:
        return map_response(
            _result(ctx, _transaction_of_client(request)),
            lambda result: AddPartitionsToTxnResponse(
                results_by_topic_v3_and_below=result.topic_results
            ),
        )
    if len(request.transactions) == 1:  # as of a leader, for each Produce that begins a transaction
        return map_response(
            _result(ctx, request.transactions[0]),
            lambda result: AddPartitionsToTxnResponse(results_by_transaction=(result,)),
        )
    # A Kafka adds the partitions that are named last for an id each time that the id is named. Here
    # each id counts once, or the work would rise with the square of what a request names.
    transactions = {each.transactional_id: each for each in reversed(request.transactions)}
    return gather_responses(
        [_result(ctx, each) for each in reversed(transactions.values())],
        lambda results: AddPartitionsToTxnResponse(results_by_transaction=tuple(results)),
    )


def refuse(request: AddPartitionsToTxnRequest, error_code: int) -> AddPartitionsToTxnResponse:
    """The error for every partition, and as that of the whole request."""
    return AddPartitionsToTxnResponse(
        error_code=error_code,
        results_by_topic_v3_and_below=_as_named(request.v3_and_below_topics, error_code),
    )


def _transaction_of_client(request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )


def _result(
    ctx: Context, transaction: AddPartitionsToTxnTransaction
) -> AddPartitionsToTxnResult | Wait[AddPartitionsToTxnResult]:
    partitions = tuple(
        [(topic.name, index) for topic in transaction.topics for index in topic.partitions]
    )

    def respond(results: _Results) -> AddPartitionsToTxnResult:
        return AddPartitionsToTxnResult(
            transactional_id=transaction.transactional_id, topic_results=results
        )

    refused = _refused(ctx, partitions)
    if refused:
        untried = dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED)
        return respond(_by_partition(untried | refused))
    if transaction.verify_only:
        return respond(_by_partition(_verify(ctx, transaction, partitions)))
    answer = _add(ctx, transaction, partitions)
    return map_response(answer, lambda code: respond(_as_named(transaction.topics, code)))


def _refused(ctx: Context, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, ErrorCode]:
    """The partitions that are in no transaction of who asks."""
    refused: dict[TopicPartition, ErrorCode] = {}
    view, is_client = ctx.broker.view, ctx.version < _FIRST_OF_BROKERS
    for partition in partitions:
        if is_client and partition[0] in INTERNAL_TOPICS:
            refused[partition] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif view.partition(*partition) is None:
            refused[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return refused


def _shard(ctx: Context, transactional_id: str) -> TransactionCoordinatorShard | ErrorCode:
    if not transactional_id:
        return ErrorCode.INVALID_REQUEST
    return ctx.broker.transactions.shard_for(transactional_id)


def _verify(
    ctx: Context,
    transaction: AddPartitionsToTxnTransaction,
    partitions: tuple[TopicPartition, ...],
) -> Mapping[TopicPartition, ErrorCode]:
    shard = _shard(ctx, transaction.transactional_id)
    if isinstance(shard, ErrorCode):
        return dict.fromkeys(partitions, shard)
    return requests.verify_partitions(
        shard, transaction.transactional_id, _producer(transaction), partitions
    )


def _add(
    ctx: Context,
    transaction: AddPartitionsToTxnTransaction,
    partitions: tuple[TopicPartition, ...],
) -> ErrorCode | Wait[ErrorCode]:
    shard = _shard(ctx, transaction.transactional_id)
    if isinstance(shard, ErrorCode):
        return shard
    version = EPOCH_BUMP_VERSION if ctx.version >= _FIRST_OF_BROKERS else 0

    def in_version(code: ErrorCode) -> ErrorCode:
        is_fenced = code is ErrorCode.PRODUCER_FENCED
        return (
            ErrorCode.INVALID_PRODUCER_EPOCH
            if is_fenced and ctx.version < _FIRST_WITH_FENCED
            else code
        )

    answer = requests.add_partitions(
        shard, transaction.transactional_id, _producer(transaction), partitions, version
    )
    return map_response(answer, in_version)


def _producer(transaction: AddPartitionsToTxnTransaction) -> ProducerIdAndEpoch:
    return ProducerIdAndEpoch(producer_id=transaction.producer_id, epoch=transaction.producer_epoch)


def _by_partition(codes: Mapping[TopicPartition, ErrorCode]) -> _Results:
    """One entry for each topic of a partition."""
    results: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}
    for (topic, index), code in codes.items():
        results.setdefault(topic, []).append(_partition_result(index, code))
    return tuple(
        [
            AddPartitionsToTxnTopicResult(name=name, results_by_partition=tuple(of_topic))
            for name, of_topic in results.items()
        ]
    )


def _as_named(topics: Iterable[AddPartitionsToTxnTopic], code: int) -> _Results:
    """One code for all: as in Kafka, with topics without partitions, and each as often as named."""
    return tuple(
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=tuple(
                _partition_result(index, code) for index in topic.partitions
            ),
        )
        for topic in topics
    )


def _partition_result(index: int, code: int) -> AddPartitionsToTxnPartitionResult:
    return AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
