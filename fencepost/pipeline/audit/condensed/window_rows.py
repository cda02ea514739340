"""Batches that follow one another as one row: a window of offsets with a digest.

A window has batches of one segment and one leader epoch between which no byte is missing, and none
of which is damaged. Its row says what one large batch would say that holds all their records; in
the place of the checksum stands the digest. So rules look at a window as at a batch. Offsets may be
missing in it, as a cleaner leaves them; its attributes say whether one has been over any batch
(`Batches.is_cleaned_window`).

Windows are cut at offsets, the same for all copies of a partition (`WindowPlan`), as each broker
rolls its segments where it likes. What a rule may tell of by itself keeps a row of its own: the
first batch of a segment and of a leader epoch, and both batches where bytes are missing or offsets
go back. Where offsets are missing and nothing was compacted, the window is read once more
(`refinement`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit.batch_arrays import (
    DELETE_HORIZON,
    MAX_SEGMENT_SPAN,
    Batches,
    BoolArray,
    Int64Array,
    batches_of,
    is_trusted,
)
from fencepost.pipeline.audit.condensed.segment_folds import SegmentFolds, from_json
from fencepost.pipeline.audit.rule import SegmentKey, TopicPartition
from fencepost.pipeline.datasource.schemas import BATCHES
from fencepost.pipeline.datasource.segment_scan import MIN_ROWS
from fencepost.pipeline.datasource.segments import SegmentFiles

WINDOWS: Final = pa.schema(
    (
        *BATCHES,
        ("batches", pa.int32()),  # how many a window has; null of what is no window
        ("log", pa.string()),  # of a window: the file or the object that its batches are in
        ("folds", pa.binary()),  # `SegmentFolds` as JSON; null but in one row of a segment
    )
)
"""`BATCHES`, and rows of windows and of folds."""
MIN_WIDTH: Final = 64
MAX_WIDTH: Final = 1 << 14
_WINDOWS: Final = 1024
"""Of a log that is not too small or too large for it."""
_LEAST_RECORD_BYTES: Final = 64
"""What a record takes, to guess from bytes how many offsets a segment has."""
DIGEST_MASK: Final = np.uint64(2**63 - 1)
"""The bits of a sum of hashes that are in a digest."""
_FACTORS: Final = tuple(
    np.uint64(each)
    for each in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xFF51AFD7ED558CCD)
)
_SHIFTS: Final = (np.uint64(29), np.uint64(32))
_KEY: Final = ("place", "broker", "segment", "segment_id")
_NULLED: Final = ("producer_id", "producer_epoch", "base_sequence", "marker", "coordinator_epoch")


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowPlan:
    """Where the windows of a segment are cut."""

    width: int
    """Each multiple of it is a cut."""
    cuts: tuple[int, ...] = ()
    """Further cuts, in order: where any copy of the partition has a segment begin."""
    end: int | None = None
    """Where the next segment of the log begins; None where there is none."""

    def intervals(self, base: Int64Array) -> tuple[Int64Array, Int64Array]:
        """For each base offset the number of cuts up to it, and of multiples of the width."""
        number = np.searchsorted(np.array(self.cuts, np.int64), base, side="right")
        return number, base // self.width


PlannedSegment: TypeAlias = tuple[SegmentFiles, WindowPlan]
"""A segment, and where its windows are cut."""


def plan_windows(segments: Sequence[SegmentFiles]) -> list[WindowPlan]:
    """The plan of each segment, of which all copies of a partition must be there."""
    partitions: dict[tuple[str, int], list[SegmentFiles]] = defaultdict(list)
    for each in segments:
        partitions[each.topic, each.partition].append(each)
    widths = {key: _width(own) for key, own in partitions.items()}
    cuts = {key: sorted({each.segment for each in own}) for key, own in partitions.items()}
    following = _following(segments)
    plans = []
    for each, end in zip(segments, following, strict=True):
        key = each.topic, each.partition
        own = np.array(cuts[key], np.int64)
        first = int(np.searchsorted(own, each.segment))
        behind = len(own) if end is None else int(np.searchsorted(own, end))
        plans.append(WindowPlan(width=widths[key], cuts=tuple(cuts[key][first:behind]), end=end))
    return plans


def _following(segments: Sequence[SegmentFiles]) -> list[int | None]:
    """Of each segment where the next one of its log begins; of the tier nothing is known."""
    bases: dict[tuple[str, int, int | None], list[int]] = defaultdict(list)
    for each in segments:
        bases[each.topic, each.partition, each.broker].append(each.segment)
    found: list[int | None] = []
    sorted_bases = {key: np.array(sorted(own), np.int64) for key, own in bases.items()}
    for each in segments:
        own = sorted_bases[each.topic, each.partition, each.broker]
        number = int(np.searchsorted(own, each.segment, side="right"))
        is_known = each.broker is not None and number < len(own)
        found.append(int(own[number]) if is_known else None)
    return found


def _width(segments: Sequence[SegmentFiles]) -> int:
    """A power of two with which a copy has about `_WINDOWS` windows, within bounds."""
    bases = [each.segment for each in segments]
    offsets = max(bases) - min(bases)
    if not offsets:
        offsets = max(each.size for each in segments) // _LEAST_RECORD_BYTES
    wanted = 1 << max(offsets // _WINDOWS, 1).bit_length() - 1
    return min(max(wanted, MIN_WIDTH), MAX_WIDTH)


def batch_hashes(
    base: Int64Array, last: Int64Array, epoch: Int64Array, crc: Int64Array
) -> npt.NDArray[np.uint64]:
    """A number for each batch; the sum of those of a window is its digest."""
    found = np.zeros(len(base), np.uint64)
    for column, factor in zip((base, last, epoch, crc), _FACTORS, strict=True):
        found = (found ^ column.astype(np.uint64)) * factor
        found ^= found >> _SHIFTS[0]
    found *= _FACTORS[0]
    return found ^ (found >> _SHIFTS[1])


def digest_sums(hashes: npt.NDArray[np.uint64], firsts: Int64Array) -> Int64Array:
    """The digest of each run of batches: one of 63 bits.

    :param firsts: The number of the first batch of each run.
    """
    sums = np.add.reduceat(hashes, firsts) if len(firsts) else np.zeros(0, np.uint64)
    return (sums & DIGEST_MASK).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Before:
    """The batch before those that are looked at."""

    end: int
    """Behind its last offset."""
    position: int
    """Behind its last byte."""
    epoch: int
    cut: int
    """How many of the cuts lie up to it."""


class WindowCondenser:
    """Makes the rows of one segment fewer; its rows come in any number of tables.

    :param log: Of the segment, as `SegmentFiles` names it.
    :param min_rows: So many are looked at together: few at a time cost more.
    """

    def __init__(self, log: str, plan: WindowPlan, *, min_rows: int = MIN_ROWS) -> None:
        self._log = log
        self._min_rows = min_rows
        self._plan = plan
        self._before: _Before | None = None
        self._held: list[pa.Table] = []
        """What comes next, of which the first window may be whole."""

    def add(self, rows: pa.Table) -> Iterator[pa.Table]:
        """The rows that are known not to change any more.

        :param rows: `BATCHES`, those that come next in the order of their positions.
        :returns: `WINDOWS`.
        """
        trusted = is_trusted(rows)
        if not pc.all(trusted).as_py():
            yield widened(rows.filter(pc.invert(trusted)))
            rows = rows.filter(trusted)
        self._held.append(rows)
        if sum(each.num_rows for each in self._held) >= self._min_rows:
            yield from self._condensed(is_end=False)

    def finish(self) -> Iterator[pa.Table]:
        """The rows that are left when the segment has ended."""
        return self._condensed(is_end=True)

    def _condensed(self, *, is_end: bool) -> Iterator[pa.Table]:
        rows = pa.concat_tables(self._held).combine_chunks() if self._held else None
        self._held = []
        if rows is None or not rows.num_rows:
            return
        batches = batches_of(rows)
        single, cut, interval = self._look(rows, batches, is_end=is_end)
        begins = single | np.append(True, single[:-1])
        for column in (cut, interval):
            begins |= np.append(True, column[1:] != column[:-1])
        firsts = np.flatnonzero(begins)
        if not is_end:
            # The last window may go on.
            held = int(firsts[-1])
            self._held = [rows.slice(held)]
            firsts = firsts[:-1]
            if not held:
                return
            rows, batches = rows.slice(0, held), batches.select(np.arange(held))
            self._before = _Before(
                end=int(batches.last[-1]) + 1,
                position=int(batches.position[-1] + batches.size[-1]),
                epoch=int(batches.epoch[-1]),
                cut=int(cut[held - 1]),
            )
        yield merged_rows(rows, batches, firsts, pa.repeat(self._log, len(firsts)))

    def _look(
        self, rows: pa.Table, batches: Batches, *, is_end: bool
    ) -> tuple[BoolArray, Int64Array, Int64Array]:
        """Of each batch whether it keeps its row; and the numbers of its cut and interval."""
        before = self._before
        cut, interval = self._plan.intervals(batches.base)
        end, position = batches.last + 1, batches.position + batches.size
        known = before or _Before(end=0, position=0, epoch=0, cut=0)
        ends, positions = np.append(known.end, end[:-1]), np.append(known.position, position[:-1])
        epochs, cuts = np.append(known.epoch, batches.epoch[:-1]), np.append(known.cut, cut[:-1])
        parts: BoolArray = (batches.base < ends) | (batches.position != positions)
        begins: BoolArray = (batches.epoch != epochs) | (cut != cuts)
        if before is None:
            parts[0], begins[0] = False, True
        # Rules tell of each batch that lies in a segment which begins behind it, or too far before.
        ordinary = (batches.base >= batches.segment) & pc.is_null(rows["problem"]).to_numpy()
        ordinary &= batches.base - batches.segment < MAX_SEGMENT_SPAN
        single: BoolArray = parts | begins | ~ordinary
        single[:-1] |= parts[1:]
        if is_end and self._plan.end is not None:
            single[-1] |= end[-1] != self._plan.end
        return single, cut, interval


def merged_rows(
    rows: pa.Table,
    batches: Batches,
    firsts: Int64Array,
    logs: pa.Array,
    cleaned: BoolArray | None = None,
) -> pa.Table:
    """A row for each run of batches; a run of one is as it was.

    :param rows: `BATCHES` or `WINDOWS`, perhaps with more columns, of the batches.
    :param firsts: The number of the first batch of each run.
    :param logs: Of each run the file or the object that it is in.
    :param cleaned: Of each batch whether its window is one in which compaction has been; None:
        where it has been over the batch.
    :returns: The columns of the rows, with those that `WINDOWS` has besides.
    """
    number = np.diff(firsts, append=len(batches))
    hashes = batch_hashes(batches.base, batches.last, batches.epoch, batches.crc)
    is_window = number > 1
    first = rows.take(pa.array(firsts))
    crc = np.where(is_window, digest_sums(hashes, firsts), batches.crc[firsts])
    replaced = {
        "size": np.add.reduceat(batches.size, firsts),
        "last_offset": batches.last[firsts + number - 1],
        "count": np.add.reduceat(batches.count, firsts).astype(np.int32),
        "max_timestamp": np.maximum.reduceat(_numbers(rows["max_timestamp"]), firsts),
        "crc": crc,
    }
    columns = {name: pa.array(column) for name, column in replaced.items()}
    plain = pa.array(~is_window)
    attributes = _attributes(batches, firsts, cleaned)
    columns["attributes"] = pc.if_else(plain, first["attributes"], attributes)
    columns |= {name: pc.if_else(plain, first[name], None) for name in _NULLED}
    columns["batches"] = pa.array(number.astype(np.int32), mask=~is_window)
    columns["log"] = pc.if_else(pa.array(is_window), logs, None)
    first = widened(first)
    return pa.Table.from_arrays(
        [columns.get(name, first[name]) for name in first.column_names], schema=first.schema
    )


def _attributes(batches: Batches, firsts: Int64Array, cleaned: BoolArray | None) -> pa.Array:
    """Those of the first batch of each run, and whether compaction has been in it."""
    flags = ~batches.is_never_compacted if cleaned is None else cleaned
    horizon = np.where(np.logical_or.reduceat(flags, firsts), DELETE_HORIZON, 0)
    own = batches.attributes[firsts] & ~np.int64(DELETE_HORIZON)
    return pa.array((own | horizon).astype(np.int16))


def _numbers(column: pa.ChunkedArray) -> Int64Array:
    """Of rows that a test makes up some may be null."""
    found: Int64Array = pc.fill_null(column, -1).to_numpy()
    return found


def widened(rows: pa.Table) -> pa.Table:
    """Rows of `BATCHES` as `WINDOWS`; those of `WINDOWS` as they are."""
    for each in WINDOWS:
        if each.name not in rows.column_names:
            rows = rows.append_column(each, pa.nulls(rows.num_rows, each.type))
    return rows


def split_folds(
    rows: pa.Table,
) -> tuple[pa.Table, Mapping[TopicPartition, Mapping[SegmentKey, SegmentFolds]]]:
    """Rows without those that have folds, and the folds by partition."""
    if "folds" not in rows.column_names or rows["folds"].null_count == rows.num_rows:
        return rows, {}
    has_folds = pc.is_valid(rows["folds"])
    columns = rows.select(["topic", "partition", *_KEY, "folds"]).filter(has_folds)
    found: dict[TopicPartition, dict[SegmentKey, SegmentFolds]] = defaultdict(dict)
    for topic, partition, *key, data in zip(*columns.to_pydict().values(), strict=True):
        place, broker, base, segment_id = key
        found[topic, partition][place, broker, base, segment_id] = from_json(data)
    return rows.filter(pc.invert(has_folds)), found
