"""What a segment says of producers, summarized while it is read.

The batches of a segment come in any number of tables, in their order. Each is summarized as a
stretch and merged with what came before, so that memory does not grow with the segment, but with
its producers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit import (
    sequence_fold,
    sequence_stretch,
    snapshot_fold,
    transaction_fold,
    transaction_index_fold,
)
from fencepost.pipeline.audit.producer_batches import NO_MARKER, Stretch, stretch_of
from fencepost.pipeline.audit.sequence_stretch import SequenceSummary
from fencepost.pipeline.audit.snapshot_fold import SnapshotSummary
from fencepost.pipeline.audit.transaction_fold import TransactionSummary
from fencepost.pipeline.audit.transaction_index_fold import ENTRY, IndexSummary
from fencepost.storage.formats.checkpoints import CorruptSnapshot, decode_snapshot
from fencepost.storage.formats.file_names import FileKind, parse_segment_file_name
from fencepost.storage.formats.indexes import CorruptIndex, decode_transactions


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFolds:
    """The summaries of a segment."""

    sequences: SequenceSummary | None
    """None, as `transactions` and `index`, where it has no batch."""
    transactions: TransactionSummary | None
    index: IndexSummary | None
    snapshots: SnapshotSummary

    @property
    def is_empty(self) -> bool:
        """Whether they say nothing: there is no producer, no entry of a file, and no finding."""
        sequences, transactions, index = self.sequences, self.transactions, self.index
        snapshots = self.snapshots
        return not (
            (sequences is not None and (sequences.producers or sequences.findings))
            or (transactions is not None and (transactions.producers or transactions.findings))
            or (index is not None and (index.endings or index.open or index.claims))
            or (index is not None and index.findings)
            or (snapshots.head or snapshots.tail or snapshots.findings)
            or (snapshots.first is not None and snapshots.first.entries)
        )


class FoldBuilder:
    """Makes the summaries of a segment.

    :param base_offset: Of the segment.
    :param snapshots: Contents of the producer snapshots of its offsets, by these.
    :param transaction_index: Content of the index; empty without one.
    """

    def __init__(
        self, base_offset: int, snapshots: Mapping[int, bytes], transaction_index: bytes
    ) -> None:
        entries = {offset: _entries(content) for offset, content in snapshots.items()}
        # Each part begins where the segment or a snapshot does.
        self._starts = sorted({base_offset, *(each for each in entries if each > base_offset)})
        self._parts = [
            snapshot_fold.summarize(None, start, entries.get(start)) for start in self._starts
        ]
        self._is_begun = [False] * len(self._parts)
        self._entries = {start: entries.get(start) for start in self._starts}
        self._index = _index_entries(transaction_index, base_offset)
        self._sequences: SequenceSummary | None = None
        self._transactions: TransactionSummary | None = None
        self._aborted: IndexSummary | None = None

    def add(self, rows: pa.Table) -> None:
        """:param rows: `BATCHES` that come next; those that are no batch count for nothing."""
        stretch = stretch_of(rows)
        if stretch is None:
            return
        sequences = sequence_stretch.summarize(stretch)
        transactions = transaction_fold.summarize(stretch)
        aborted = transaction_index_fold.summarize(stretch, self._named_in(stretch))
        if self._sequences is not None:
            sequences = sequence_fold.merge(self._sequences, sequences)
        if self._transactions is not None:
            transactions = transaction_fold.merge(self._transactions, transactions)
        if self._aborted is not None:
            aborted = transaction_index_fold.merge(self._aborted, aborted)
        self._sequences, self._transactions, self._aborted = sequences, transactions, aborted
        self._add_to_parts(rows, stretch)

    def finished(self) -> SegmentFolds:
        """The summaries of all that was added."""
        aborted = self._aborted
        if aborted is not None and self._index is not None and len(self._index):
            # Entries that name none of the markers.
            left = transaction_index_fold.without_marker(self._index)
            aborted = replace(aborted, findings=aborted.findings | left)
        return SegmentFolds(
            sequences=self._sequences,
            transactions=self._transactions,
            index=aborted,
            snapshots=reduce(snapshot_fold.merge, self._parts),
        )

    def _named_in(self, stretch: Stretch) -> transaction_index_fold.Entries | None:
        """The entries of the markers in a stretch, taken from those that are left."""
        if self._index is None:
            return None
        batches = stretch.batches
        markers = batches.base[batches.marker != NO_MARKER]
        named = np.isin(self._index["last"], markers)
        found = self._index[named]
        self._index = self._index[~named]
        return found

    def _add_to_parts(self, rows: pa.Table, stretch: Stretch) -> None:
        if len(self._starts) == 1:
            self._add_to_part(0, stretch)
            return
        begins = pc.fill_null(rows["base_offset"], self._starts[0]).to_numpy()
        numbers = np.searchsorted(self._starts, begins, side="right") - 1
        for number in np.unique(numbers[numbers >= 0]).tolist():
            within = stretch_of(rows.filter(pa.array(numbers == number)))
            if within is not None:
                self._add_to_part(number, within)

    def _add_to_part(self, number: int, stretch: Stretch) -> None:
        if self._is_begun[number]:
            further = snapshot_fold.summarize(stretch, stretch.start, None)
            self._parts[number] = snapshot_fold.merge(self._parts[number], further)
            return
        start = self._starts[number]
        self._parts[number] = snapshot_fold.summarize(stretch, start, self._entries[start])
        self._is_begun[number] = True


def folds_of(
    rows: pa.Table, base_offset: int, snapshots: Mapping[int, bytes], transaction_index: bytes
) -> SegmentFolds:
    """The summaries of a segment whose batches are all there.

    :param rows: `BATCHES`; the other parameters are those of `FoldBuilder`.
    """
    builder = FoldBuilder(base_offset, snapshots, transaction_index)
    builder.add(rows)
    return builder.finished()


def files_beside(
    names: Iterable[str], contents: Iterable[bytes], kind: FileKind, base_offset: int
) -> dict[int, bytes]:
    """What files of a kind beside a segment hold, by the offset in their names.

    The names of a tier's objects have the segment's id as well: theirs is that of the segment.
    """
    found: dict[int, bytes] = {}
    for name, content in zip(names, contents, strict=True):
        parsed = parse_segment_file_name(name)
        if parsed is None and name.endswith(kind.value):
            found[base_offset] = content
        elif parsed is not None and parsed.kind is kind:
            found[parsed.offset] = content
    return found


def _entries(content: bytes) -> snapshot_fold.Entries | None:
    try:
        return decode_snapshot(content)
    except CorruptSnapshot:
        return None  # the rule tells of it


def _index_entries(content: bytes, base_offset: int) -> transaction_index_fold.Entries | None:
    try:
        decode_transactions(content, base_offset)
        return np.frombuffer(content, ENTRY)
    except CorruptIndex:
        return None  # the rule tells of it


_DECODER: Final = msgspec.json.Decoder(SegmentFolds)


def to_json(folds: SegmentFolds) -> bytes:
    """Summaries as JSON."""
    return msgspec.json.encode(folds)


def from_json(data: bytes) -> SegmentFolds:
    """What `to_json` made."""
    return _DECODER.decode(data)
