"""Reads the batches of windows once more where a rule has to look at each.

Rules compare copies of a partition with one another, with checkpoints and with metadata. A window
tells all that they ask where every copy that has any of its batches has the same window, and where
no offset that a rule asks for lies within. All others are read again, in all copies, some at a
time, and become as few rows as they can be (`reread_batches`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit.batch_arrays import (
    Batches,
    Int64Array,
    batches_of,
    trusted_rows,
)
from fencepost.pipeline.audit.condensed.compacted_copies import (
    EVERYWHERE,
    NOWHERE,
    agree_across_gaps,
    ends_of,
    epochs_part_at,
)
from fencepost.pipeline.audit.condensed.reread_batches import (
    Interest,
    Stretches,
    first_difference,
    runs_of,
)
from fencepost.pipeline.audit.condensed.unclear_windows import (
    MAX_OFFSET,
    NO_BATCHES,
    acknowledged_in_place,
    asked_offsets,
    copy_numbers,
    refused_batches,
    unclear_windows,
)
from fencepost.pipeline.audit.condensed.window_rows import batch_hashes, digest_sums, merged_rows
from fencepost.pipeline.audit.partition_logs import may_be_compacted
from fencepost.pipeline.audit.rule import PartitionEvidence
from fencepost.pipeline.datasource.schemas import Problem

ReadWindow: TypeAlias = Callable[[dict[str, Any]], pa.Table]
"""The rows of the batches of a window, by its row; raises OSError."""
MAX_REREAD: Final = 1 << 15
"""Batches that are in memory together when windows are read again, but for the last window; three
times as many of compacted copies."""
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
    unclear = dict(
        zip(with_windows, unclear_windows([found[each] for each in with_windows]), strict=True)
    )
    for number, evidence in enumerate(found):
        rows, replaced = evidence.batches, np.array(unclear.get(number, []), np.int64)
        if not len(replaced):
            yield rows
            continue
        kept = rows.take(pa.array(np.setdiff1d(np.arange(rows.num_rows), replaced)))
        parts_at, ends = _compacted_until(evidence, kept)
        windows, interest = rows.take(pa.array(replaced)), _interest(evidence, ends)
        again = _read_again(kept, windows, read, interest, parts_at)
        yield pa.concat_tables([kept, *again]).combine_chunks()


def _compacted_until(evidence: PartitionEvidence, kept: pa.Table) -> tuple[int, Int64Array]:
    """From which offset on copies are put to each other by batch, and where copies begin and end.

    :param kept: The rows that stay.
    """
    if not agree_across_gaps(evidence):
        return EVERYWHERE, np.zeros(0, np.int64)
    rows = trusted_rows(evidence.batches)
    brokers = pc.fill_null(rows["broker"].cast(pa.int64()), -1).to_numpy()
    parts_at = min(
        epochs_part_at(evidence.metadata, batches_of(rows), brokers),
        first_difference(*_by_copy(trusted_rows(kept))),
    )
    return parts_at, ends_of(*_by_copy(rows))


def _by_copy(rows: pa.Table) -> tuple[Batches, Int64Array]:
    """Batches by copy and offset, and of each the number of its copy."""
    batches, copy = batches_of(rows), copy_numbers(rows, np.zeros(rows.num_rows, np.int64))
    order = np.lexsort((batches.base, copy))
    return batches.select(order), copy[order]


def _interest(evidence: PartitionEvidence, ends: Int64Array) -> Interest:
    traced = evidence.traces is not None
    offsets = {each for each in asked_offsets(evidence.metadata) if abs(each) <= MAX_OFFSET}
    return Interest(
        offsets=np.union1d(np.array(sorted(offsets), np.int64), ends),
        acknowledged=acknowledged_in_place(evidence) if traced else NO_BATCHES,
        refused=refused_batches(evidence).crc if traced else NO_BATCHES.crc,
        compacted=may_be_compacted(evidence),
    )


def _read_again(
    kept: pa.Table, windows: pa.Table, read: ReadWindow, interest: Interest, parts_at: int
) -> Iterator[pa.Table]:
    """The rows that windows become.

    :param kept: The other rows of the partition.
    :param windows: By no order.
    :param parts_at: From which offset on copies are put to each other by batch at the latest.
    """
    windows = windows.take(pc.sort_indices(windows["base_offset"]))
    batches = batches_of(windows)
    edges = _part_edges(batches, together=parts_at > EVERYWHERE)
    others = trusted_rows(kept)
    beside = batches_of(others)
    reached = -MAX_OFFSET
    for first, behind in pairwise(edges):
        start = int(batches.base[first])
        stop = int(batches.base[behind]) if behind < len(batches) else MAX_OFFSET
        near = (beside.base < stop) & (beside.last >= start)
        made = _Reread(
            rows=[others.filter(pa.array(near))], logs=[None] * int(near.sum()), parts_at=parts_at
        )
        for number in range(first, behind):
            made.add(windows.slice(number, 1), read)
        yield from made.condensed(int(near.sum()), (reached, stop), interest)
        parts_at = made.parts_at
        reached = max(reached, int(batches.last[first:behind].max()) + 1)


def _part_edges(batches: Batches, *, together: bool) -> list[int]:
    """Where the windows begin that are read again together; the last edge is behind all.

    :param batches: The windows, by offset.
    :param together: Whether those are together that share offsets, where they are not too many.
    """
    until = np.cumsum(batches.batches)
    edges = np.flatnonzero(np.diff(until // MAX_REREAD)) + 1
    if not together:
        return [0, *edges.tolist(), len(batches)]
    reached = np.maximum.accumulate(batches.last)
    apart = np.append(np.flatnonzero(batches.base[1:] > reached[:-1]) + 1, len(batches))
    following = apart[np.searchsorted(apart, edges)]
    near = until[following - 1] - until[edges - 1] <= 2 * MAX_REREAD
    return [0, *np.unique(np.append(np.where(near, following, edges), len(batches))).tolist()]


@dataclass(slots=True, kw_only=True)
class _Reread:
    """Windows that are read again together."""

    rows: list[pa.Table]
    """First those beside them, which stay; then the batches of windows."""
    logs: list[str | None]
    """Of each row the file that it is in."""
    parts_at: int
    """From which offset on copies are put to each other by batch."""
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
        batches, copy = batches_of(rows), copy_numbers(rows, np.zeros(rows.num_rows, np.int64))
        stretches = Stretches.of(batches, copy)
        order = stretches.order
        batches, is_new = batches.select(order), is_new[order]
        reached, stop = bounds
        reaches_beyond = is_new & ((batches.base < reached) | (batches.last >= stop))
        parts_at = min(self.parts_at, int(batches.base[reaches_beyond].min(initial=NOWHERE)))
        runs = runs_of(batches, stretches, ~is_new | reaches_beyond, interest, parts_at)
        self.parts_at = runs.parts_at
        numbers = np.flatnonzero(is_new)
        firsts = np.flatnonzero(runs.begins[numbers])
        logs = pa.array(self.logs, pa.string()).take(pa.array(order[numbers][firsts]))
        own = rows.take(pa.array(order[numbers]))
        yield merged_rows(own, batches.select(numbers), firsts, logs, runs.agrees[numbers])


def _is_same(window: dict[str, Any], found: pa.Table) -> bool:
    """Whether these are the batches that the window was made of."""
    batches = batches_of(found)
    if len(batches) != window["batches"]:
        return False
    hashes = batch_hashes(batches.base, batches.last, batches.epoch, batches.crc)
    (digest,) = digest_sums(hashes, np.zeros(1, np.int64)).tolist()
    return bool(digest == window["crc"])
