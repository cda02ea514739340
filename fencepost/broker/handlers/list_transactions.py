"""ListTransactions (66), versions 0-2: the transactional ids that a broker coordinates (KIP-664).

They are filtered by state, producer id, how long the transaction has been open (v1, KIP-994) and a
pattern of the whole id (v2, KIP-1152). A name that is no state is told as an unknown filter, and
matches nothing. COORDINATOR_LOAD_IN_PROGRESS while a partition is loaded.

As in Kafka an id without an open transaction has a start of -1, and so is older than any duration.
The patterns are of Kafka's RE2; here they are Python's, and those that are not valid as such are
INVALID_REGULAR_EXPRESSION.
"""

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from fencepost.broker.handlers.context import Context
from fencepost.broker.transactions.transaction_metadata import TransactionMetadata
from fencepost.broker.transactions.transaction_state import BY_TITLE
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

_Matches: TypeAlias = Callable[[str, TransactionMetadata], bool]


def handle(ctx: Context, request: ListTransactionsRequest) -> ListTransactionsResponse:
    """List the ids that match all filters."""
    if ctx.broker.transactions.runtime.is_loading:
        return refuse(request, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    try:
        pattern = re.compile(request.transactional_id_pattern or ".*", re.DOTALL)
    except re.error:
        return refuse(request, ErrorCode.INVALID_REGULAR_EXPRESSION)
    states = {BY_TITLE[each] for each in request.state_filters if each in BY_TITLE}
    shortest_ms = request.duration_filter

    def matches(transactional_id: str, metadata: TransactionMetadata) -> bool:
        return (
            (not request.producer_id_filters or metadata.producer_id in request.producer_id_filters)
            and (not request.state_filters or metadata.state in states)
            and (shortest_ms < 0 or ctx.wall_ms - metadata.start_ms > shortest_ms)
            and pattern.fullmatch(transactional_id) is not None
        )

    return ListTransactionsResponse(
        unknown_state_filters=tuple(each for each in request.state_filters if each not in BY_TITLE),
        transaction_states=tuple(_listed(ctx, matches)),
    )


def refuse(_request: ListTransactionsRequest, error_code: int) -> ListTransactionsResponse:
    """The error."""
    return ListTransactionsResponse(error_code=error_code)


def _listed(ctx: Context, matches: _Matches) -> Iterator[TransactionState]:
    for shard in ctx.broker.transactions.runtime.shards.values():
        for transactional_id, metadata in shard.visible_ids():
            if matches(transactional_id, metadata):
                yield TransactionState(
                    transactional_id=transactional_id,
                    producer_id=metadata.producer_id,
                    transaction_state=metadata.state.title,
                )
