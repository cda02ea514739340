"""Batches of logs, of the tier and of traces as arrays: one number of each batch in every array."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.datasource.schemas import Problem

Int64Array: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
OffsetSpan: TypeAlias = tuple[int, int]
"""Offsets: the first, and behind the last (exclusive)."""

UNTRUSTED_PROBLEMS: Final = (Problem.CRC, Problem.STRUCTURE)
"""Problems of a batch whose header may be wrong itself."""
NOT_FOUND: Final = -1
DELETE_HORIZON: Final = 0x40
"""Attribute of a batch that compaction has been over (KIP-534), and of a window that has any such,
or any that lacks records."""
MAX_SEGMENT_SPAN: Final = 2**31
"""Offsets of a segment are less than so far apart: its indexes could not say them."""


_COLUMNS: Final = {
    "segment": "segment",
    "position": "position",
    "size": "size",
    "base": "base_offset",
    "last": "last_offset",
    "count": "count",
    "epoch": "epoch",
    "crc": "crc",
    "attributes": "attributes",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batches:
    """Batches whose headers may be believed, one number of each in every array."""

    segment: Int64Array
    position: Int64Array
    size: Int64Array
    base: Int64Array
    last: Int64Array
    """Inclusive."""
    count: Int64Array
    epoch: Int64Array
    crc: Int64Array
    attributes: Int64Array
    batches: Int64Array
    """How many it stands for: 1, but where a window of them has one row (`condensed`)."""

    def __len__(self) -> int:
        return len(self.base)

    @staticmethod
    def columns() -> Mapping[str, str]:
        """The column of `BATCHES` that each array is of."""
        return _COLUMNS

    def select(self, which: Int64Array | BoolArray) -> "Batches":
        """Some of them, by number or by a flag for each."""
        return Batches(**{each.name: getattr(self, each.name)[which] for each in fields(self)})

    def by_offset(self) -> "Batches":
        """All of them, in the order of their first offsets."""
        return self.select(np.argsort(self.base, kind="stable"))

    def within(self, start: int, end: int) -> "Batches":
        """Those that have no offset before `start`, nor at or behind `end`.

        They must be in the order of their offsets.
        """
        first, behind = np.searchsorted(self.base, (start, end)).tolist()
        numbers = np.arange(first, max(first, behind))
        return self.select(numbers[self.last[numbers] < end])

    def overlapping(self, other: "Batches") -> "Batches":
        """Those that may share offsets with some of another log's; of both in order."""
        if not len(self) or not len(other):
            return self.select(np.zeros(0, np.int64))
        first = int(np.searchsorted(self.base, other.base[0], side="right")) - 1
        behind = int(np.searchsorted(self.base, other.last[-1], side="right"))
        return self.select(np.arange(max(first, 0), max(behind, 0)))

    def index_of(self, offsets: Int64Array) -> Int64Array:
        """For each offset the number of the batch that holds it, `NOT_FOUND` without one.

        They must be in the order of their offsets.
        """
        if not len(self):
            return np.full(len(offsets), NOT_FOUND)
        numbers = np.searchsorted(self.base, offsets, side="right") - 1
        return np.where((numbers >= 0) & (self.last[numbers] >= offsets), numbers, NOT_FOUND)

    @property
    def is_never_compacted(self) -> BoolArray:
        """Of each whether it has all its records and compaction has written nothing into it.

        Of a window: of all its batches, though there may be none at some offsets.
        """
        whole: BoolArray = (self.count == self.last - self.base + 1) | (self.batches > 1)
        no_horizon: BoolArray = (self.attributes & DELETE_HORIZON) == 0
        return whole & no_horizon

    @property
    def is_cleaned_window(self) -> BoolArray:
        """Of each whether it is a window in which compaction has been.

        Where another copy has other batches there, they agree as far as compaction lets them
        (`condensed.reread_batches`).
        """
        found: BoolArray = (self.batches > 1) & ((self.attributes & DELETE_HORIZON) != 0)
        return found

    @property
    def has_holes(self) -> BoolArray:
        """Of each whether it is a window that lacks offsets, or in which compaction has been."""
        lacks: BoolArray = (self.batches > 1) & (self.count != self.last - self.base + 1)
        return lacks | self.is_cleaned_window

    @property
    def spans(self) -> list[OffsetSpan]:
        """What they hold, neighbours together; they must be in the order of their offsets."""
        if not len(self):
            return []
        ends = np.maximum.accumulate(self.last + 1)
        breaks = np.flatnonzero(self.base[1:] > ends[:-1]) + 1
        firsts = np.concatenate(([0], breaks))
        lasts = np.concatenate((breaks - 1, [len(self) - 1]))
        return list(zip(self.base[firsts].tolist(), ends[lasts].tolist(), strict=True))


def is_trusted(rows: pa.Table) -> pa.ChunkedArray:
    """Of each row whether it is a batch whose header may be believed."""
    doubtful = pc.is_in(rows["problem"], pa.array(UNTRUSTED_PROBLEMS))
    return pc.and_not(pc.is_valid(rows["base_offset"]), doubtful)


def trusted_rows(rows: pa.Table) -> pa.Table:
    """The rows that are batches whose headers may be believed."""
    return rows.filter(is_trusted(rows))


def counted_batches(rows: pa.Table) -> pa.Array | pa.ChunkedArray:
    """How many batches each row stands for: a window for many, any other batch for itself."""
    if "batches" not in rows.column_names:
        return pa.repeat(1, rows.num_rows)
    return pc.fill_null(rows["batches"].cast(pa.int64()), 1)


def batches_of(rows: pa.Table) -> Batches:
    """The batches among rows of `BATCHES`, without those whose headers are doubtful."""
    sound = trusted_rows(rows)
    return Batches(
        **{
            name: pc.fill_null(sound[column].cast(pa.int64()), 0).to_numpy()
            for name, column in _COLUMNS.items()
        },
        batches=counted_batches(sound).to_numpy(),
    )


def misplaced(batches: Batches) -> dict[int, int]:
    """Batches whose base offset can't be right, and the one that their neighbours leave them.

    No checksum covers a base offset. Where the batch before and the one behind leave room for
    exactly what a batch holds, and it says another place, it is the batch that is wrong.

    :param batches: Of one log, in the order of their positions.
    :returns: By number.
    """
    if not len(batches):
        return {}
    begins = np.append(True, batches.segment[1:] != batches.segment[:-1])
    expected = np.where(begins, batches.segment, np.append(0, batches.last[:-1] + 1))
    behind = np.append(np.where(begins[1:], batches.segment[1:], batches.base[1:]), NOT_FOUND)
    fits = expected + (batches.last - batches.base + 1) == behind
    absurd = np.abs(batches.base - batches.segment) >= MAX_SEGMENT_SPAN
    # Behind one that is wrong, what is right seems to be out of place.
    wrong = (batches.base != expected) & (fits | (absurd & (behind == NOT_FOUND)))
    return {number: int(expected[number]) for number in np.flatnonzero(wrong).tolist()}


def share_a_batch(some: Batches, others: Batches) -> bool:
    """Whether the same batch is in both: at one offset, of one epoch, with one checksum."""
    _, first, second = np.intersect1d(some.base, others.base, return_indices=True)
    same = (some.last[first] == others.last[second]) & (some.epoch[first] == others.epoch[second])
    return bool((same & (some.crc[first] == others.crc[second])).any())


def gaps(spans: Iterable[OffsetSpan], start: int, end: int) -> list[OffsetSpan]:
    """What spans, which may overlap, lack from `start` to `end` (exclusive)."""
    found = []
    for first, behind in sorted(spans):
        if first > start and start < end:
            found.append((start, min(first, end)))
        start = max(start, behind)
    if start < end:
        found.append((start, end))
    return found


def covers(spans: Iterable[OffsetSpan], start: int, end: int) -> bool:
    """Whether spans, which may overlap, have every offset from `start` to `end` (exclusive)."""
    return not gaps(spans, start, end)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchDifference:
    """Offsets at which both have a batch, and not the same one."""

    start: int
    end: int
    """Exclusive."""
    epoch: int
    """In the first of the two, at the start."""
    other_epoch: int
    converges_at: int | None
    """The first offset behind it where they agree; None where they never do."""


def batch_differences(
    first: Batches, second: Batches, start: int, end: int, *, compacted: bool
) -> list[BatchDifference]:
    """The differences from `start` to `end` (exclusive), in order.

    What only one of them has is none: a gap is another matter. Both must be in the order of their
    offsets.

    :param compacted: Whether cleaners may have been over either: then batches are compared that
        both have, and bytes where no cleaner has written any.
    """
    one = first.within(start, end)
    other = second.overlapping(one).within(start, end)
    if not len(one) or not len(other):
        return []
    numbers = other.index_of(one.base)
    differs = _differs(one, other, numbers, compacted=compacted)
    if not compacted:
        # One may have a gap where the other's batch begins that holds its next one.
        back = one.index_of(other.base)
        odd = (back != NOT_FOUND) & (one.base[back] != other.base)
        differs[back[odd]] = True
        numbers[back[odd]] = np.flatnonzero(odd)
    return _runs(one, other, numbers, differs)


def _differs(one: Batches, other: Batches, numbers: Int64Array, *, compacted: bool) -> BoolArray:
    found: BoolArray = numbers != NOT_FOUND
    base, last = other.base[numbers], other.last[numbers]
    epoch, crc = other.epoch[numbers], other.crc[numbers]
    bytes_differ: BoolArray = one.crc != crc
    if compacted:
        found &= (one.base == base) & ~(one.is_cleaned_window | other.is_cleaned_window[numbers])
        bytes_differ &= one.is_never_compacted & other.is_never_compacted[numbers]
    differs: BoolArray = found & (
        (one.base != base) | (one.last != last) | (one.epoch != epoch) | bytes_differ
    )
    return differs


def _runs(
    one: Batches, other: Batches, numbers: Int64Array, differs: BoolArray
) -> list[BatchDifference]:
    """Neighbours that differ are one difference."""
    common = np.flatnonzero(numbers != NOT_FOUND)
    flags = differs[common]
    # Where they begin to differ, and where they agree again.
    changes = np.flatnonzero(np.diff(flags, prepend=False, append=False))
    found = []
    for begin, stop in zip(changes[::2].tolist(), changes[1::2].tolist(), strict=True):
        number = common[begin]
        found.append(
            BatchDifference(
                start=int(one.base[number]),
                end=int(one.last[common[stop - 1]]) + 1,
                epoch=int(one.epoch[number]),
                other_epoch=int(other.epoch[numbers[number]]),
                converges_at=int(one.base[common[stop]]) if stop < len(flags) else None,
            )
        )
    return found


UNKNOWN: Final = -1
"""Where there is no such number."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TracedBatches:
    """Batches of Produce, with the answers that they got."""

    row: Int64Array
    """Which exchange brought it, of those that they were made of."""
    is_first: BoolArray
    """Whether it is the first that its request has for the partition."""
    base: Int64Array
    """As it was given, where it was appended as it came; else as it was sent."""
    last: Int64Array
    """Inclusive."""
    count: Int64Array
    epoch: Int64Array
    crc: Int64Array
    producer_id: Int64Array
    expected: Int64Array
    """What its first record expected, `UNKNOWN` where it said nothing."""
    answered: Int64Array
    """The base offset of the answer; `UNKNOWN` without one."""

    def __len__(self) -> int:
        return len(self.base)

    def select(self, which: Int64Array | BoolArray) -> "TracedBatches":
        """Some of them, by number or by a flag for each."""
        return TracedBatches(
            **{each.name: getattr(self, each.name)[which] for each in fields(self)}
        )

    @property
    def is_appended_as_sent(self) -> BoolArray:
        """Whether it was appended as it came: the leader wrote its offset and epoch into it.

        What is converted is a copy, and what was there already is not appended again.
        """
        follows = np.where(self.is_first, self.base == self.answered, self.base > self.answered)
        unanswered = self.answered == UNKNOWN
        stamped: BoolArray = (self.epoch >= 0) & (follows | unanswered)
        return stamped


def traced_batches_of(rows: pa.Table) -> TracedBatches:
    """All batches of some Produce exchanges, in their order."""
    lists = rows["batches"].combine_chunks()
    row = pc.list_parent_indices(lists).to_numpy()
    batches = lists.flatten()

    def field(name: str) -> Int64Array:
        numbers: Int64Array = pc.fill_null(batches.field(name).cast(pa.int64()), UNKNOWN).to_numpy()
        return numbers

    answered = pc.fill_null(rows["offset"], UNKNOWN).to_numpy()
    return TracedBatches(
        row=row,
        is_first=np.diff(row, prepend=UNKNOWN) != 0,
        base=field("base_offset"),
        last=field("last_offset"),
        count=field("count"),
        epoch=field("epoch"),
        crc=field("crc"),
        producer_id=field("producer_id"),
        expected=field("expected_offset"),
        answered=answered[row],
    )
