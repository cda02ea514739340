"""DescribeTransactions (65), version 0: transactional ids, by their coordinator (KIP-664).

The partitions of a transaction that is being ended are those that have no marker yet. An id that is
not known, or that is about to expire, is TRANSACTIONAL_ID_NOT_FOUND, an empty one INVALID_REQUEST.
"""

from fencepost.broker.core.outcomes import answer_in_slices
from fencepost.broker.core.waits import Wait
from fencepost.broker.handlers.context import Context
from fencepost.broker.transactions.transaction_coordinator import TransactionCoordinatorShard
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)


def handle(
    ctx: Context, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse | Wait[DescribeTransactionsResponse]:
    """Describe each transactional id, in the request's order."""
    return answer_in_slices(
        ctx.broker.scheduler,
        request.transactional_ids,
        lambda transactional_id: _described(ctx, transactional_id),
        lambda states: DescribeTransactionsResponse(transaction_states=tuple(states)),
    )


def refuse(request: DescribeTransactionsRequest, error_code: int) -> DescribeTransactionsResponse:
    """The error for each transactional id."""
    return DescribeTransactionsResponse(
        transaction_states=tuple(_refused(each, error_code) for each in request.transactional_ids)
    )


def _described(ctx: Context, transactional_id: str) -> TransactionState:
    if not transactional_id:
        return _refused(transactional_id, ErrorCode.INVALID_REQUEST)
    shard = ctx.broker.transactions.shard_for(transactional_id)
    if isinstance(shard, ErrorCode):
        return _refused(transactional_id, shard)
    return _state(shard, transactional_id)


def _state(shard: TransactionCoordinatorShard, transactional_id: str) -> TransactionState:
    metadata = shard.find_visible(transactional_id)
    if metadata is None:
        return _refused(transactional_id, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(shard.remaining_partitions(transactional_id, metadata)):
        topics.setdefault(topic, []).append(index)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=metadata.state.title,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_start_time_ms=metadata.start_ms,
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        topics=tuple(
            TopicData(topic=topic, partitions=tuple(indexes)) for topic, indexes in topics.items()
        ),
    )


def _refused(transactional_id: str, error_code: int) -> TransactionState:
    return TransactionState(error_code=error_code, transactional_id=transactional_id)
