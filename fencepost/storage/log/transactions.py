"""The transactions of one log: those that are open, and those whose marker is not committed yet.

A transaction is open in a log from its first record on until its marker. Of a completed one the
records are stable once the marker is below the high watermark: a new leader may lack the marker
until then, and a read_committed consumer would have seen records of an open transaction (KIP-98).
The last stable offset lies at or before the first record of any such transaction.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

_new_tuple: Final = tuple.__new__


class AbortedTransaction(NamedTuple):
    """An aborted transaction, as a segment's transaction index has it.

    :ivar first_offset: Of its first record.
    :ivar last_offset: Of its marker.
    :ivar last_stable_offset: Of the log when the marker was appended (exclusive): no transaction
        of a later entry begins before it.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class CompletedTransaction(NamedTuple):
    """A transaction with its marker.

    :ivar last_offset: Of the marker.
    """

    first_offset: int
    last_offset: int


class Transactions:
    """Those of one log."""

    __slots__ = ("completed", "open")

    def __init__(self) -> None:
        self.open: dict[int, int] = {}
        """The first offset of each open transaction by producer id, in order of the offsets."""
        self.completed: list[CompletedTransaction] = []
        """In order of their markers; those below the high watermark are dropped in time."""

    def begin(self, producer_id: int, first_offset: int) -> None:
        """A transactional record was appended; it begins a transaction where none is open."""
        self.open.setdefault(producer_id, first_offset)

    def complete(self, producer_id: int, marker_offset: int) -> CompletedTransaction | None:
        """A marker was appended; None where the producer has no open transaction."""
        first = self.open.pop(producer_id, None)
        if first is None:
            return None
        completed = _new_tuple(CompletedTransaction, (first, marker_offset))
        self.completed.append(completed)
        return completed

    def first_open_offset(self) -> int | None:
        """Where the oldest open transaction begins; None without one."""
        return next(iter(self.open.values()), None)

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """The first offset of the transactions that are open or have no committed marker.

        :param high_watermark: Transactions whose markers lie below it are forgotten.
        """
        first = self.first_open_offset() if self.open else None
        if not self.completed:
            return first
        self.completed = [each for each in self.completed if each.last_offset >= high_watermark]
        if not self.completed:
            return first
        uncommitted = [each.first_offset for each in self.completed]
        return min(uncommitted if first is None else [first, *uncommitted], default=None)

    def restore(self, first_offsets: Iterable[tuple[int, int]], *, keep_below: int = 0) -> None:
        """Forget all but these open transactions.

        :param first_offsets: Producer id and first offset of each.
        :param keep_below: Completed ones whose markers lie before this offset stay.
        """
        self.open = dict(sorted(first_offsets, key=lambda each: each[1]))
        self.completed = [each for each in self.completed if each.last_offset < keep_below]
