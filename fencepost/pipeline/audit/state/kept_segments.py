"""Which segments an audit reads, and of which it takes what an earlier one has kept.

Kept of a segment are its rows of `WINDOWS`. They are what a scan would make of it again where

- its files have the stamp that they had before they were read,
- it was looked at as closely,
- and its windows would be cut at the same offsets: no copy of the partition has another segment
  begin within it, and the next one of its log begins where it did.

The width of windows is no reason to read again. It grows with a partition, and what is read again
takes that of the kept windows at the same offsets, so that copies stay comparable.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import ceil
from typing import Final, Self
from zlib import crc32

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit.condensed.window_rows import WINDOWS, PlannedSegment, WindowPlan
from fencepost.pipeline.audit.rule import TopicPartition
from fencepost.pipeline.datasource.schemas import Place, Problem
from fencepost.pipeline.datasource.segment_scan import Checks
from fencepost.pipeline.datasource.segments import SegmentFiles

KEPT: Final = pa.schema(
    (
        *WINDOWS,
        ("segment_key", pa.string()),
        ("summary", pa.string()),  # `KeptSegment` as JSON; null but in one row of a kept segment
    )
)
"""`WINDOWS`, and one more row for each segment that the next audit need not read."""
CIRCLE: Final = 1 << 32
"""Segments that are read again are chosen by where the hashes of their keys lie on a circle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptSegment:
    """Under which conditions the rows of a segment were made."""

    key: str
    """Of the segment, see `segment_key`."""
    digest: str
    """Of its stamp."""
    checks: Checks
    segment: int
    """Its base offset."""
    behind: int
    """Behind its last offset (exclusive); its base offset where it has no batch."""
    width: int
    """As in `WindowPlan`, like the following."""
    cuts: tuple[int, ...]
    """Those between its first and its last offset."""
    end: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanExtent:
    """What an audit reads of segments, and what it takes as it was."""

    trusted: int = 0
    """Segments that did not change, and were not read."""
    read: int = 0
    """Segments that are new, have changed, are not closed, or are read whatever they are."""
    reread: int = 0
    """Segments that did not change, and were read because it was their turn."""
    trusted_files: int = 0
    read_files: int = 0
    """Also those of segments that were their turn."""
    trusted_bytes: int = 0
    read_bytes: int = 0

    def __add__(self, other: ScanExtent) -> ScanExtent:
        """Both together."""
        return ScanExtent(
            **{
                each.name: getattr(self, each.name) + getattr(other, each.name)
                for each in fields(self)
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """Which kept summaries an audit takes."""

    checks: Checks
    """How closely it looks."""
    full: bool = False
    """Whether it reads all there is."""
    start: int = 0
    """Where on the circle the segments begin that are read again."""
    length: int = 0
    """How much of the circle is read again."""

    def is_turn_of(self, key: str) -> bool:
        """Whether a segment is read again."""
        return (crc32(key.encode()) - self.start) % CIRCLE < self.length

    @property
    def next_start(self) -> int:
        """Where the next audit begins."""
        return (self.start + self.length) % CIRCLE

    @classmethod
    def rereading(cls, share: float, start: int, *, checks: Checks, full: bool) -> Self:
        """An audit that reads a share (0 to 1) of what did not change.

        After as many runs as it takes for the shares to be 1 in sum, each segment was read.
        """
        return cls(checks=checks, full=full, start=start, length=ceil(share * CIRCLE))


def segment_key(files: SegmentFiles) -> str:
    """What names a segment, wherever its directory is."""
    copy = files.broker if files.place is Place.LOG else files.segment_id
    return f"{files.topic}-{files.partition}/{files.place}/{copy}/{files.segment}"


@dataclass(slots=True)
class SegmentChoice:
    """Which segments are read, and how; and which are not."""

    read: list[PlannedSegment] = field(default_factory=list)
    trusted: dict[TopicPartition, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    """By partition the logs of the segments by their keys."""
    extent: ScanExtent = ScanExtent()


def choose_segments(
    planned: Sequence[PlannedSegment], kept: Mapping[str, KeptSegment], trust: Trust
) -> SegmentChoice:
    """Divide segments into those that are read and those that are not.

    :param planned: All segments of some partitions, with their stamps; the plans are as if all of
        them were read.
    :param kept: Of any of them, by key.
    """
    keys = [segment_key(files) for files, _ in planned]
    unchanged = [
        _unchanged(files, kept.get(key), trust)
        for (files, _), key in zip(planned, keys, strict=True)
    ]
    known = _known_windows(planned, unchanged)
    choice = SegmentChoice()
    for (files, plan), key, own in zip(planned, keys, unchanged, strict=True):
        partition = files.topic, files.partition
        adapted = known[partition].adapt(files, plan) if partition in known else plan
        is_same = own is not None and _is_cut_alike(own, adapted)
        is_turn = is_same and trust.is_turn_of(key)
        if is_same and not is_turn:
            choice.trusted[partition][key] = files.log
        else:
            choice.read.append((files, adapted))
        choice.extent += _extent(files, is_trusted=is_same and not is_turn, is_turn=is_turn)
    return choice


def _unchanged(files: SegmentFiles, kept: KeptSegment | None, trust: Trust) -> KeptSegment | None:
    """What is kept of a segment whose files are those that were read."""
    if kept is None or trust.full or not files.closed or files.stamp is None:
        return None
    is_same = kept.digest == files.stamp.digest and kept.checks is trust.checks
    return kept if is_same else None


def _is_cut_alike(kept: KeptSegment, plan: WindowPlan) -> bool:
    """Whether a scan by a plan would cut the windows where they were cut."""
    return kept.end == plan.end and kept.cuts == cuts_within(plan, kept.segment, kept.behind)


def cuts_within(plan: WindowPlan, base: int, behind: int) -> tuple[int, ...]:
    """The cuts of a plan between the first offset of a segment and the last."""
    return tuple(each for each in plan.cuts if base < each < behind)


def _extent(files: SegmentFiles, *, is_trusted: bool, is_turn: bool) -> ScanExtent:
    count, size = (0, 0) if files.stamp is None else (files.stamp.files, files.stamp.bytes)
    if is_trusted:
        return ScanExtent(trusted=1, trusted_files=count, trusted_bytes=size)
    return ScanExtent(read=int(not is_turn), reread=int(is_turn), read_files=count, read_bytes=size)


class _KnownWindows:
    """How the segments of a partition that did not change were cut, in all copies.

    :param kept: At least one.
    """

    def __init__(self, kept: Sequence[KeptSegment]) -> None:
        self._kept = sorted(kept, key=lambda each: (each.segment, each.behind))
        self._bases = [each.segment for each in self._kept]
        self._cuts = sorted({cut for each in kept for cut in each.cuts})

    def adapt(self, files: SegmentFiles, plan: WindowPlan) -> WindowPlan:
        """A plan that cuts a segment as other copies were cut at the same offsets."""
        first = bisect_right(self._cuts, files.segment)
        behind = len(self._cuts) if plan.end is None else bisect_left(self._cuts, plan.end)
        cuts = sorted({*plan.cuts, *self._cuts[first:behind]})
        return replace(plan, cuts=tuple(cuts), width=self._width(files, plan))

    def _width(self, files: SegmentFiles, plan: WindowPlan) -> int:
        number = bisect_right(self._bases, files.segment)
        before, following = self._kept[:number][-1:], self._kept[number : number + 1]
        for each in (*before, *following):
            is_behind = plan.end is not None and each.segment >= plan.end
            if each.behind > files.segment and not is_behind:
                return each.width
        return plan.width


def _known_windows(
    planned: Sequence[PlannedSegment], unchanged: Sequence[KeptSegment | None]
) -> Mapping[TopicPartition, _KnownWindows]:
    found: dict[TopicPartition, list[KeptSegment]] = defaultdict(list)
    for (files, _), kept in zip(planned, unchanged, strict=True):
        if kept is not None:
            found[files.topic, files.partition].append(kept)
    return {key: _KnownWindows(own) for key, own in found.items()}


# -- rows ----------------------------------------------------------------------------------------


def keep_rows(
    files: SegmentFiles, plan: WindowPlan, checks: Checks, rows: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The rows of a segment as `KEPT`, and behind them the one that says when they are as good.

    That one is left out where something can be appended to the segment, or a file of it could not
    be read: the next audit reads it again.

    :param rows: Those that a scan makes of it, `WINDOWS`.
    """
    key = segment_key(files)
    is_whole, behind = files.closed and files.stamp is not None, files.segment
    for each in rows:
        is_whole &= not pc.any(pc.equal(each["problem"], Problem.MISSING)).as_py()
        behind = max(behind, (pc.max(each["last_offset"]).as_py() or 0) + 1)
        yield _with_keys(each, pa.repeat(key, each.num_rows))
    if is_whole:
        yield _summaries([_summary_row(files, plan, checks, behind)])


def keep_small_rows(
    segments: Sequence[PlannedSegment], checks: Checks, rows: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The rows of many segments of logs as `KEPT`, and behind them those of `keep_rows`.

    :param segments: Sound ones: every file of them could be read.
    :param rows: Those that a scan makes of all of them together, `WINDOWS`.
    """
    ends: dict[str, int] = {}
    for each in rows:
        keyed = _with_keys(each, _keys(each))
        yield keyed
        last = pa.Table.from_batches([keyed.select(["segment_key", "last_offset"])])
        last = last.group_by("segment_key", use_threads=False).aggregate([("last_offset", "max")])
        for key, offset in zip(*(column.to_pylist() for column in last.columns), strict=True):
            ends[key] = max(ends.get(key, 0), (offset or 0) + 1)
    summaries = [
        _summary_row(files, plan, checks, max(files.segment, ends.get(segment_key(files), 0)))
        for files, plan in segments
        if files.closed and files.stamp is not None
    ]
    if summaries:
        yield _summaries(summaries)


def _keys(rows: pa.RecordBatch) -> pa.Array:
    """The `segment_key` of each row of logs."""
    names = ("topic", "partition", "place", "broker", "segment")
    topic, partition, *others = (rows[name].cast(pa.string()) for name in names)
    return pc.binary_join_element_wise(
        pc.binary_join_element_wise(topic, partition, "-"), *others, "/"
    )


def _summary_row(
    files: SegmentFiles, plan: WindowPlan, checks: Checks, behind: int
) -> Mapping[str, object]:
    """The row that says when those of a segment, which has a stamp, are as good.

    :param behind: As `KeptSegment` has it.
    """
    assert files.stamp is not None, "it is not kept without one"
    key = segment_key(files)
    kept = KeptSegment(
        key=key,
        digest=files.stamp.digest,
        checks=checks,
        segment=files.segment,
        behind=behind,
        width=plan.width,
        cuts=cuts_within(plan, files.segment, behind),
        end=plan.end,
    )
    row = {"topic": files.topic, "partition": files.partition, "place": files.place.value}
    return {**row, "segment_key": key, "summary": msgspec.json.encode(kept).decode()}


def _summaries(rows: Sequence[Mapping[str, object]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, KEPT)


def _with_keys(rows: pa.RecordBatch, keys: pa.Array) -> pa.RecordBatch:
    more = [keys, pa.nulls(rows.num_rows, pa.string())]
    return pa.RecordBatch.from_arrays([*rows.columns, *more], schema=KEPT)


_DECODER: Final = msgspec.json.Decoder(KeptSegment)


def kept_segment(summary: str) -> KeptSegment:
    """What a row of `KEPT` says in its column ``summary``."""
    return _DECODER.decode(summary)
