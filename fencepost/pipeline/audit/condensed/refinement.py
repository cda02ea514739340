"""Reads the batches of windows once more where a rule has to look at each.

Rules compare copies of a partition with one another, with checkpoints and with metadata. A window
tells all that they ask where every copy that has any of its batches has the same window, and where
no offset that a rule asks for lies within. All others are read again, in all copies, some at a
time, and become as few rows as they can be (`reread_batches`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit.batch_arrays import (
    Batches,
    BoolArray,
    Int64Array,
    TracedBatches,
    batches_of,
    is_trusted,
    traced_batches_of,
    trusted_rows,
)
from fencepost.pipeline.audit.condensed.reread_batches import Interest, run_starts
from fencepost.pipeline.audit.condensed.window_rows import (
    DIGEST_MASK,
    batch_hashes,
    digest_sums,
    merged_rows,
)
from fencepost.pipeline.audit.partition_logs import may_be_compacted
from fencepost.pipeline.audit.rule import PartitionEvidence, PartitionMetadata
from fencepost.pipeline.audit.rules.expected_offsets import is_refused
from fencepost.pipeline.datasource.schemas import TRACES, Problem

ReadWindow: TypeAlias = Callable[[dict[str, Any]], pa.Table]
"""The rows of the batches of a window, by its row; raises OSError."""
_ACKS_ALL: Final = -1
_COLUMNS: Final = ("broker", "segment_id", "problem", "batches", *Batches.columns().values())
_MAX_OFFSET: Final = np.iinfo(np.int64).max
_NO_BATCHES: Final = traced_batches_of(pa.Table.from_batches([], TRACES))
MAX_REREAD: Final = 1 << 15
"""Batches that are in memory together when windows are read again, but for the last window."""
_SEGMENT: Final = ("topic", "partition", "place", "broker", "segment", "segment_id")


def no_windows(window: dict[str, Any]) -> pa.Table:
    """For rows without windows."""
    raise LookupError(f"nothing reads {window['log']}")


def has_windows(rows: pa.Table) -> bool:
    """Whether any row is a window."""
    return "batches" in rows.column_names and rows["batches"].null_count < rows.num_rows


def refine(found: Sequence[PartitionEvidence], read: ReadWindow) -> Iterator[pa.Table]:
    """The rows of partitions; windows that don't tell enough are replaced by smaller ones.

    All partitions are looked at together, as a call of a library takes as long for each.

    :param found: With rows of `WINDOWS`, those of each in any order.
    :returns: Of each partition in any order; the same table where nothing is replaced.
    """
    with_windows = [number for number, each in enumerate(found) if has_windows(each.batches)]
    unclear = dict(zip(with_windows, _unclear([found[each] for each in with_windows]), strict=True))
    for number, evidence in enumerate(found):
        rows, replaced = evidence.batches, np.array(unclear.get(number, []), np.int64)
        if not len(replaced):
            yield rows
            continue
        kept = rows.take(pa.array(np.setdiff1d(np.arange(rows.num_rows), replaced)))
        again = _read_again(kept, rows.take(pa.array(replaced)), read, _interest(evidence))
        yield pa.concat_tables([kept, *again]).combine_chunks()


def _interest(evidence: PartitionEvidence) -> Interest:
    traced = evidence.traces is not None
    offsets = {each for each in _asked(evidence.metadata) if abs(each) <= _MAX_OFFSET}
    return Interest(
        offsets=np.array(sorted(offsets), np.int64),
        acknowledged=acknowledged_batches(evidence) if traced else _NO_BATCHES,
        refused=refused_batches(evidence).crc if traced else _NO_BATCHES.crc,
        compacted=may_be_compacted(evidence),
    )


def _asked(metadata: PartitionMetadata) -> Iterator[int]:
    """Offsets that rules compare with those of batches."""
    for replica in metadata.replicas:
        yield from (start for _, start in replica.epochs or ())
        known = (replica.high_watermark, replica.recovery_point, replica.log_start)
        yield from (each for each in known if each is not None)
        yield from (offset for span in replica.replaced for offset in span)
    for segment in metadata.tier:
        yield from (segment.start_offset, segment.end_offset + 1)
        yield from (start for _, start in segment.epochs)
    yield from (each.end for each in metadata.absent if each.end is not None)


def _unclear(found: Sequence[PartitionEvidence]) -> list[list[int]]:
    """Of each partition the numbers of the windows that don't tell enough."""
    if not found:
        return []
    rows = pa.concat_tables([each.batches.select(_COLUMNS) for each in found]).combine_chunks()
    lengths = [each.batches.num_rows for each in found]
    trusted = is_trusted(rows)
    numbers = np.flatnonzero(trusted.to_numpy())
    partition = np.repeat(np.arange(len(found)), lengths)[numbers]
    which = numbers[_unclear_windows(rows.filter(trusted), partition, found)]
    which.sort()
    edges = np.searchsorted(which, np.cumsum([0, *lengths])).tolist()
    firsts = np.cumsum([0, *lengths]).tolist()
    return [
        (which[start:end] - first).tolist()
        for first, (start, end) in zip(firsts[:-1], pairwise(edges), strict=True)
    ]


def _unclear_windows(
    rows: pa.Table, partition: Int64Array, found: Sequence[PartitionEvidence]
) -> Int64Array:
    """The numbers of the windows that don't tell enough.

    :param rows: Batches and windows.
    :param partition: Of each row the number.
    """
    batches, copy = batches_of(rows), _copies(rows, partition)
    order = np.lexsort((copy, batches.base, partition))
    batches, copy, partition = batches.select(order), copy[order], partition[order]
    is_window = batches.batches > 1
    asked, of_asked = _numbered(_asked(each.metadata) for each in found)
    acknowledged = _acknowledged(found)
    place = _Places(batches.base, batches.last, asked, acknowledged.base)
    base, last = place(partition, batches.base), place(partition, batches.last)
    wanted = np.sort(place(of_asked, asked))
    # Whether one of them lies behind the first offset of a window, and not behind its last one.
    # Where a copy begins or ends within a window, its batches share offsets with it.
    asks = np.searchsorted(wanted, base, side="right") < np.searchsorted(wanted, last, side="right")
    begins = place(acknowledged.partition, acknowledged.base)
    behind = np.searchsorted(begins, last, side="right")
    asks |= acknowledged.is_partly(batches, np.searchsorted(begins, base), behind)
    asks |= acknowledged.unknown[partition]
    # Those that share offsets, whichever copy they are of, are a group.
    reached = np.maximum.accumulate(last)
    group = np.cumsum(np.append(False, base[1:] > reached[:-1])[: len(base)])
    unclear = np.union1d(group[is_window & asks], group[_differs_in_group(batches, copy, group)])
    return order[is_window & np.isin(group, unclear)]


class _Places:
    """Numbers for offsets of partitions, in the order of both.

    :param offsets: All that are asked for.
    """

    def __init__(self, *offsets: Int64Array) -> None:
        self._offsets = np.unique(np.concatenate(offsets))

    def __call__(self, partition: Int64Array, offset: Int64Array) -> Int64Array:
        """The number of each."""
        found: Int64Array = partition * len(self._offsets) + np.searchsorted(self._offsets, offset)
        return found


def _numbered(offsets: Iterable[Iterable[int]]) -> tuple[Int64Array, Int64Array]:
    """Offsets of partitions in one array, and of each the number of its partition.

    Where no array holds one, no batch has it.
    """
    found = [
        (offset, number)
        for number, own in enumerate(offsets)
        for offset in own
        if abs(offset) <= _MAX_OFFSET
    ]
    columns = np.array(found, np.int64).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Acknowledged:
    """The batches of partitions that were acknowledged."""

    partition: Int64Array
    """Of each batch the number; they are in order of it, and then of their offsets."""
    base: Int64Array
    hashes: npt.NDArray[np.uint64]
    unknown: BoolArray
    """Of each partition whether each batch is to be looked at."""

    def is_partly(self, batches: Batches, first: Int64Array, behind: Int64Array) -> BoolArray:
        """Of each window whether it has acknowledged batches, and others beside them.

        Of any other, all of its batches were acknowledged or none.

        :param first: Of each the number of the first acknowledged batch that may be in it.
        :param behind: Of each the number of the first one behind it.
        """
        # Sums of what wraps are differences of sums that wrap.
        sums = np.append(np.zeros(1, np.uint64), np.cumsum(self.hashes, dtype=np.uint64))
        digests = (sums[behind] - sums[first]) & DIGEST_MASK
        partly: BoolArray = (behind > first) & (digests.astype(np.int64) != batches.crc)
        return partly


def _acknowledged(found: Sequence[PartitionEvidence]) -> _Acknowledged:
    known = [
        (number, acknowledged_batches(evidence))
        for number, evidence in enumerate(found)
        if evidence.traces is not None
    ]
    unknown = np.zeros(len(found), bool)
    for number, _ in known:
        unknown[number] = len(refused_batches(found[number])) > 0
    none = np.zeros(0, np.int64)
    base, last, epoch, crc = (
        np.concatenate([none, *(getattr(traced, name) for _, traced in known)])
        for name in ("base", "last", "epoch", "crc")
    )
    sizes = [len(traced) for _, traced in known]
    return _Acknowledged(
        partition=np.repeat(np.array([number for number, _ in known], np.int64), sizes),
        base=base,
        hashes=batch_hashes(base, last, epoch, crc),
        unknown=unknown,
    )


def acknowledged_batches(evidence: PartitionEvidence) -> TracedBatches:
    """The batches of the logs' topic that were acknowledged to acks=all, each once, by offset.

    Those are left out of which the trace does not tell where they were appended.
    """
    incarnation = evidence.last_incarnation
    if incarnation is None:
        return _NO_BATCHES
    rows = incarnation.succeeded("Produce")
    traced = traced_batches_of(rows.filter(pc.equal(rows["acks"], _ACKS_ALL)))
    traced = traced.select(traced.is_appended_as_sent)
    columns = np.stack((traced.base, traced.last, traced.epoch, traced.crc), axis=1)
    _, firsts = np.unique(columns, axis=0, return_index=True)
    return traced.select(firsts)


def refused_batches(evidence: PartitionEvidence) -> TracedBatches:
    """Batches that may have been refused for the offsets that they expected (KIP-27).

    They are looked for by their checksums, wherever they may be.
    """
    incarnation = evidence.last_incarnation
    if incarnation is None:
        return _NO_BATCHES
    rows = incarnation.exchanges("Produce")
    refused = pc.fill_null(is_refused(incarnation, rows), fill_value=False)
    return traced_batches_of(rows.filter(refused))


def _copies(rows: pa.Table, partition: Int64Array) -> Int64Array:
    """A number of each batch for the log or the segment of the tier that it is in."""
    ids = rows["segment_id"].combine_chunks().dictionary_encode().indices
    in_tier = pc.fill_null(ids.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
    brokers = pc.fill_null(rows["broker"].cast(pa.int64()), -1).to_numpy()
    order = np.lexsort((in_tier, brokers, partition))
    changes = np.zeros(len(order), bool)
    for column in (partition[order], brokers[order], in_tier[order]):
        changes[1:] |= column[1:] != column[:-1]
    copies = np.empty(len(order), np.int64)
    copies[order] = np.cumsum(changes)
    return copies


def _differs_in_group(batches: Batches, copy: Int64Array, group: Int64Array) -> BoolArray:
    """Of each batch whether it is not the one before it in its group, in another copy.

    :param batches: By their partitions, first offsets and copies.
    """
    columns = (batches.base, batches.last, batches.epoch, batches.crc, batches.batches)
    differs = np.zeros(len(batches), bool)
    for column in columns:
        differs[1:] |= column[1:] != column[:-1]
    differs[1:] |= copy[1:] == copy[:-1]
    differs[1:] &= group[1:] == group[:-1]
    return differs


def _read_again(
    kept: pa.Table, windows: pa.Table, read: ReadWindow, interest: Interest
) -> Iterator[pa.Table]:
    """The rows that windows become.

    :param kept: The other rows of the partition.
    :param windows: By no order.
    """
    windows = windows.take(pc.sort_indices(windows["base_offset"]))
    batches = batches_of(windows)
    part = np.cumsum(batches.batches) // MAX_REREAD
    edges = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(part)]
    others = trusted_rows(kept)
    beside = batches_of(others)
    reached = -_MAX_OFFSET
    for first, behind in pairwise(edges):
        start = int(batches.base[first])
        stop = int(batches.base[behind]) if behind < len(part) else _MAX_OFFSET
        near = (beside.base < stop) & (beside.last >= start)
        made = _Reread(rows=[others.filter(pa.array(near))], logs=[None] * int(near.sum()))
        for number in range(first, behind):
            made.add(windows.slice(number, 1), read)
        yield from made.condensed(int(near.sum()), (reached, stop), interest)
        reached = max(reached, int(batches.last[first:behind].max()) + 1)


@dataclass(slots=True, kw_only=True)
class _Reread:
    """Windows that are read again together."""

    rows: list[pa.Table]
    """First those beside them, which stay; then the batches of windows."""
    logs: list[str | None]
    """Of each row the file that it is in."""
    left: list[pa.Table] = field(default_factory=list)
    """The windows that can't be read any more, and problems that tell of it."""

    def add(self, row: pa.Table, read: ReadWindow) -> None:
        """Have the batches of a window."""
        (window,) = row.to_pylist()
        try:
            found = read(window)
            changed = None if _is_same(window, found) else "is another file by now"
        except OSError as error:
            changed = f"can't be read any more: {error.strerror or error}"
        if changed is not None:
            problem: dict[str, Any] = {name: window[name] for name in _SEGMENT}
            problem["problem"] = Problem.MISSING.value
            problem["message"] = f"{Path(window['log']).name} {changed}"
            self.left += [row, pa.Table.from_pylist([problem], row.schema)]
            return
        for name in row.column_names:
            if name not in found.column_names:
                column = pa.repeat(row[name][0], found.num_rows)
                found = found.append_column(row.schema.field(name), column)
        self.rows.append(found.select(row.column_names).cast(row.schema))
        self.logs += [window["log"]] * found.num_rows

    def condensed(
        self, beside: int, bounds: tuple[int, int], interest: Interest
    ) -> Iterator[pa.Table]:
        """What becomes of the windows.

        :param beside: How many rows stay.
        :param bounds: Where the windows before these end, and where those behind begin: what
            reaches beyond is compared with none of theirs, and is a row of its own.
        """
        yield from self.left
        if len(self.rows) == 1:
            return
        windows = self.left[::2]
        rows = pa.concat_tables([*self.rows, *windows]).combine_chunks()
        is_new = np.zeros(rows.num_rows, bool)
        is_new[beside : len(self.logs)] = True
        batches, copy = batches_of(rows), _copies(rows, np.zeros(rows.num_rows, np.int64))
        order = np.lexsort((batches.base, copy))
        batches, is_new = batches.select(order), is_new[order]
        reached, stop = bounds
        keeps_row = ~is_new | (batches.base < reached) | (batches.last >= stop)
        begins = run_starts(batches, copy[order], keeps_row, interest)
        numbers = np.flatnonzero(is_new)
        firsts = np.flatnonzero(begins[numbers])
        logs = pa.array(self.logs, pa.string()).take(pa.array(order[numbers][firsts]))
        own = rows.take(pa.array(order[numbers]))
        yield merged_rows(own, batches.select(numbers), firsts, logs)


def _is_same(window: dict[str, Any], found: pa.Table) -> bool:
    """Whether these are the batches that the window was made of."""
    batches = batches_of(found)
    if len(batches) != window["batches"]:
        return False
    hashes = batch_hashes(batches.base, batches.last, batches.epoch, batches.crc)
    (digest,) = digest_sums(hashes, np.zeros(1, np.int64)).tolist()
    return bool(digest == window["crc"])
