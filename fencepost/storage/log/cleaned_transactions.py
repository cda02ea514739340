"""The transactions that a round of compaction comes across, and what of them may go (KIP-534).

Records of an aborted transaction go at once. A marker stays until no record of its transaction is
left, and then until its delete horizon: a consumer that has read a record must find the marker.
The transaction index of a cleaned segment has the transactions of which records were there.
"""

from collections.abc import Iterable
from typing import NamedTuple

from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.records import BatchHeader
from fencepost.protocol.transaction_markers import decode_marker
from fencepost.storage.log.transactions import AbortedTransaction


class EndedTransaction(NamedTuple):
    """A transaction at its marker.

    :ivar is_gone: Whether no record of it is left, so that the marker may go.
    :ivar aborted: Its entry for the transaction index; None where there is none to keep.
    """

    is_gone: bool
    aborted: AbortedTransaction | None


class CleanedTransactions:
    """The state of transactions as batches are passed in their order.

    :param aborted: All of those that have a record or a marker among the batches.
    """

    __slots__ = ("_aborted", "_committed", "_open", "_with_records")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._aborted = sorted(aborted, key=_last_first)
        """Those whose first record was not passed yet, the next one last."""
        self._open: dict[int, AbortedTransaction] = {}
        self._with_records: set[int] = set()
        """Producers of open aborted transactions of which a record was passed."""
        self._committed: set[int] = set()
        """Producers of other transactions of which a record was passed."""

    def is_aborted(self, header: BatchHeader) -> bool:
        """Pass a batch of data: whether it is part of an aborted transaction."""
        if not header.is_transactional:
            return False
        self._begin_up_to(header.last_offset)
        producer_id = header.producer_id
        if producer_id in self._open:
            self._with_records.add(producer_id)
            return True
        self._committed.add(producer_id)
        return False

    def end(self, batch: Buffer, header: BatchHeader) -> EndedTransaction:
        """Pass a control batch."""
        self._begin_up_to(header.last_offset)
        marker, producer_id = decode_marker(batch), header.producer_id
        if marker is None:
            # Of a marker without its record the whole transaction is gone; other types stay.
            return EndedTransaction(not header.record_count, None)
        if marker.committed:
            had_records = producer_id in self._committed
            self._committed.discard(producer_id)
            return EndedTransaction(not had_records, None)
        aborted = self._open.pop(producer_id, None)
        had_records = producer_id in self._with_records
        self._with_records.discard(producer_id)
        return EndedTransaction(not had_records, aborted if had_records else None)

    def _begin_up_to(self, offset: int) -> None:
        aborted = self._aborted
        while aborted and aborted[-1].first_offset <= offset:
            begun = aborted.pop()
            self._open.setdefault(begun.producer_id, begun)


def _last_first(transaction: AbortedTransaction) -> int:
    return -transaction.first_offset
