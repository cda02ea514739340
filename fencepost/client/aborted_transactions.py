"""Which batches of a Fetch with ``read_committed`` belong to transactions that were aborted.

A broker sends them, with a list of the transactions: only the client leaves them out. A transaction
is in the list by its producer id and the offset of its first record, and it ends with its abort
marker, behind which the same producer may have others.
"""

from collections.abc import Iterable
from typing import NamedTuple

from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.messages.fetch import PartitionData
from fencepost.protocol.records import BatchHeader
from fencepost.protocol.transaction_markers import decode_marker


class AbortedTransaction(NamedTuple):
    """A transaction that was aborted, as a Fetch answers it (from version 4 on)."""

    producer_id: int
    first_offset: int


def aborted_transactions(answer: PartitionData) -> tuple[AbortedTransaction, ...]:
    """The aborted transactions that a partition's part of a Fetch names."""
    return tuple(
        AbortedTransaction(each.producer_id, each.first_offset)
        for each in answer.aborted_transactions or ()
    )


class AbortedBatches:
    """Tells the batches of aborted transactions, which it is shown in the order of their offsets.

    :param transactions: Those of the answer, in any order.
    """

    def __init__(self, transactions: Iterable[AbortedTransaction] = ()) -> None:
        self._upcoming = sorted(transactions, key=lambda each: -each.first_offset)
        """The last one is the first in the log."""
        self._open: set[int] = set()
        """Producer ids whose present transaction is aborted."""

    def contains(self, buffer: Buffer, at: int, header: BatchHeader) -> bool:
        """Whether the records of a batch are aborted; a marker has none.

        :param at: The place of the batch in the buffer.
        """
        while self._upcoming and self._upcoming[-1].first_offset <= header.last_offset:
            self._open.add(self._upcoming.pop().producer_id)
        if header.is_control:
            marker = decode_marker(buffer, at) if header.producer_id in self._open else None
            if marker is not None and not marker.committed:
                self._open.discard(header.producer_id)
            return False
        return header.is_transactional and header.producer_id in self._open
