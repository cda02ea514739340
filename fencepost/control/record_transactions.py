"""The state of the transaction that a record was written in, as its partition's leader knows it."""

import asyncio
from typing import Literal, TypeAlias

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.node import record_actions
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.node.record_actions import ReadableRange
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import BatchHeader
from fencepost.storage.log.transactions import AbortedTransaction

RecordTransaction: TypeAlias = Literal["ongoing", "committed", "aborted"] | None
"""None of a record that is part of no transaction."""


class TransactionsInRange:
    """The transactions of a range of a log that are open, or were aborted."""

    def __init__(
        self, ongoing: dict[int, int], aborted: tuple[AbortedTransaction, ...] = ()
    ) -> None:
        """:param ongoing: The first offset of each open transaction by producer id."""
        self._ongoing = ongoing
        self._aborted = aborted

    def state_of(self, header: BatchHeader) -> RecordTransaction:
        """The state of the transaction of a batch."""
        if not header.is_transactional:
            return None
        producer_id, offset = header.producer_id, header.base_offset
        if self._ongoing.get(producer_id, header.next_offset) <= offset:
            return "ongoing"
        is_aborted = any(
            each.producer_id == producer_id and each.first_offset <= offset <= each.last_offset
            for each in self._aborted
        )
        return "aborted" if is_aborted else "committed"


async def transactions_in(
    cluster: Cluster, readable: ReadableRange, start: int
) -> TransactionsInRange:
    """The transactions from an offset on (inclusive), of the log and of the tier.

    :raises ControllerError: When the index of a segment cannot be read.
    """
    replica = readable.replica
    ongoing = {
        each.producer_id: each.txn_first_offset
        for each in replica.log.producers()
        if each.txn_first_offset is not None
    }
    answer: asyncio.Future[tuple[AbortedTransaction, ...] | ErrorCode]
    answer = asyncio.get_running_loop().create_future()

    def set_result(result: tuple[AbortedTransaction, ...] | ErrorCode) -> None:
        if not answer.done():  # the client may be gone
            answer.set_result(result)

    record_actions.aborted_transactions(cluster, replica, start, readable.end, then=set_result)
    found = await answer
    if isinstance(found, ErrorCode):
        raise ControllerError(
            found, f"{replica.log.name}: its transactions cannot be read: {found.name}"
        )
    return TransactionsInRange(ongoing, found)
