"""ListTransactions (66), versions 0-2: the transactional ids that a broker coordinates (KIP-664).

They are filtered by state, producer id, how long the transaction has been open (v1, KIP-994) and a
pattern of the whole id (v2, KIP-1152). A name that is no state is told as an unknown filter, and
matches nothing. COORDINATOR_LOAD_IN_PROGRESS while a partition is loaded.

As in Kafka an id without an open transaction has a start of -1, and so is older than any duration.
The patterns are of Kafka's RE2; here they are Python's, and those that are not valid as such are
INVALID_REGULAR_EXPRESSION.
"""

import re
from collections.abc import Iterable
from typing import Final, TypeVar

from fencepost.broker.core.outcomes import Steps, take_turns
from fencepost.broker.core.waits import Wait
from fencepost.broker.handlers.context import Context
from fencepost.broker.transactions.transaction_metadata import TransactionMetadata
from fencepost.broker.transactions.transaction_state import BY_TITLE
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

T = TypeVar("T")
_ANY: Final = re.compile(".*", re.DOTALL)


def handle(
    ctx: Context, request: ListTransactionsRequest
) -> ListTransactionsResponse | Wait[ListTransactionsResponse]:
    """List the ids that match all filters."""
    if ctx.broker.transactions.runtime.is_loading:
        return refuse(request, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    pattern = _ANY
    if request.transactional_id_pattern:
        try:
            pattern = re.compile(request.transactional_id_pattern)
        except re.error:
            return refuse(request, ErrorCode.INVALID_REGULAR_EXPRESSION)
    return take_turns(ctx.broker.scheduler, _list(ctx, request, pattern))


def refuse(_request: ListTransactionsRequest, error_code: int) -> ListTransactionsResponse:
    """The error."""
    return ListTransactionsResponse(error_code=error_code)


def _list(
    ctx: Context, request: ListTransactionsRequest, pattern: re.Pattern[str]
) -> Steps[ListTransactionsResponse]:
    states = yield from _distinct(request.state_filters)
    producer_ids = yield from _distinct(request.producer_id_filters)
    shortest_ms = request.duration_filter

    def matches(transactional_id: str, metadata: TransactionMetadata) -> bool:
        return (
            (not producer_ids or metadata.producer_id in producer_ids)
            and (not states or metadata.state.title in states)
            and (shortest_ms < 0 or ctx.wall_ms - metadata.start_ms > shortest_ms)
            and pattern.fullmatch(transactional_id) is not None
        )

    listed: list[TransactionState] = []
    for shard in list(ctx.broker.transactions.runtime.shards.values()):
        for transactional_id, metadata in list(shard.visible_ids()):
            if matches(transactional_id, metadata):
                listed.append(
                    TransactionState(
                        transactional_id=transactional_id,
                        producer_id=metadata.producer_id,
                        transaction_state=metadata.state.title,
                    )
                )
            yield
    return ListTransactionsResponse(
        unknown_state_filters=tuple(each for each in states if each not in BY_TITLE),
        transaction_states=tuple(listed),
    )


def _distinct(elements: Iterable[T]) -> Steps[dict[T, None]]:
    """Each element once, in order."""
    found: dict[T, None] = {}
    for element in elements:
        found[element] = None
        yield
    return found
