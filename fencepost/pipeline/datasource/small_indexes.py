"""Whether the sparse indexes of many segments are certainly right (`index_checks`), at once.

Numbers within a segment are less than 2^31, so that a segment's number and one of these are one key
that rises from batch to batch and from segment to segment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from fencepost.pipeline.datasource.batch_headers import Integers
from fencepost.storage.formats.indexes import OFFSET_ENTRY_SIZE, TIME_ENTRY_SIZE

Marks = npt.NDArray[np.bool_]

_OFFSET_ENTRY: Final = np.dtype([("offset", ">i4"), ("position", ">i4")])
_TIME_ENTRY: Final = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])
_NOTHING: Final = np.iinfo(np.int64).min
_BITS: Final = 32
_MAX_WITHIN: Final = 1 << 31
_TIME_BITS: Final = 46
"""Milliseconds until the year 4199."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlines:
    """The batches of segments, in order: those of each segment follow on one another.

    :ivar segment: Of each batch the number of its segment.
    :ivar base: Its base offset, less that of the segment; the others likewise.
    """

    segments: int
    segment: Integers
    position: Integers
    base: Integers
    last: Integers
    max_timestamp: Integers

    def select(self, which: Marks) -> Outlines:
        """Some of the batches."""
        return Outlines(
            segments=self.segments,
            segment=self.segment[which],
            position=self.position[which],
            base=self.base[which],
            last=self.last[which],
            max_timestamp=self.max_timestamp[which],
        )

    @property
    def is_plain(self) -> Marks:
        """Of each segment whether its offsets rise, and all numbers fit into keys."""
        follows = np.append(False, self.segment[1:] == self.segment[:-1])[: len(self.segment)]
        least = np.where(follows, np.append(-1, self.last[:-1])[: len(self.last)], -1)
        right = (self.base > least) & (self.last >= self.base) & (self.last < _MAX_WITHIN)
        right &= (self.max_timestamp >= -1) & (self.max_timestamp < 1 << _TIME_BITS)
        return _none(self.segments, self.segment, ~right)


def offset_indexes_are_right(contents: Sequence[bytes], outlines: Outlines) -> Marks:
    """Of each segment whether its offset index has no fault; of some that is not told.

    :param contents: Of the index of each segment; empty without one.
    :param outlines: Of segments that are plain; of others nothing that is told is true.
    """
    segment, entries, whole = _entries(contents, _OFFSET_ENTRY, OFFSET_ENTRY_SIZE)
    offsets, positions = (entries[name].astype(np.int64) for name in ("offset", "position"))
    at = _keys(outlines.segment, outlines.position)
    number = np.searchsorted(at, _keys(segment, positions))
    last = np.searchsorted(_keys(outlines.segment, outlines.last), _keys(segment, offsets))
    right = _is(outlines, number, segment, outlines.position, positions)
    right &= _is(outlines, last, segment, outlines.last, offsets) & (last >= number)
    following = np.append(segment[1:] == segment[:-1], False)[: len(segment)]
    behind = np.where(following, np.append(positions[1:], 0)[: len(positions)], _MAX_WITHIN)
    right &= _at(outlines.position, last) < behind
    right &= _rise(segment, offsets, 0) & _rise(segment, positions, 1)
    return whole & _none(len(contents), segment, ~right)


def time_indexes_are_right(contents: Sequence[bytes], ends: Marks, outlines: Outlines) -> Marks:
    """Of each segment whether its time index has no fault, likewise.

    :param ends: Of each segment whether the index must end with its largest timestamp.
    """
    segment, entries, whole = _entries(contents, _TIME_ENTRY, TIME_ENTRY_SIZE)
    times, offsets = (entries[name].astype(np.int64) for name in ("timestamp", "offset"))
    holder = np.searchsorted(_keys(outlines.segment, outlines.last), _keys(segment, offsets))
    latest = np.maximum.accumulate((outlines.segment << _TIME_BITS) + outlines.max_timestamp)
    latest -= outlines.segment << _TIME_BITS
    right = _at(outlines.segment, holder) == segment
    right &= _at(outlines.base, holder) <= offsets
    right &= (_at(outlines.max_timestamp, holder) == times) & (_at(latest, holder) == times)
    right &= _rise(segment, times, 0) & _rise(segment, offsets, 0)
    found = whole & _none(len(contents), segment, ~right)
    reached, largest = np.full((2, len(contents)), -1)
    reached[segment] = times
    largest[outlines.segment] = latest
    return found & (~ends | (largest <= reached))


def _entries(
    contents: Sequence[bytes], kind: np.dtype[np.void], size: int
) -> tuple[Integers, npt.NDArray[np.void], Marks]:
    """All entries, each with the number of its segment; and whether those of each are whole.

    One of zeros at the end may be what was reserved for others.
    """
    zeros = bytes(size)
    whole = np.array([not len(each) % size and each[-size:] != zeros for each in contents], bool)
    sound = [each if is_whole else b"" for each, is_whole in zip(contents, whole, strict=True)]
    counts = [len(each) // size for each in sound]
    return np.repeat(np.arange(len(sound)), counts), np.frombuffer(b"".join(sound), kind), whole


def _keys(segment: Integers, within: Integers) -> Integers:
    """Numbers that rise by segment, and then by what is within; those below 0 count as 0."""
    keys: Integers = (segment << _BITS) + np.maximum(within, 0)
    return keys


def _at(column: Integers, number: npt.NDArray[np.intp]) -> Integers:
    """The numbers at indexes; one that equals nothing, and is below all, where it has ended."""
    found: Integers = np.append(column, _NOTHING)[np.minimum(number, len(column))]
    return found


def _is(
    outlines: Outlines,
    number: npt.NDArray[np.intp],
    segment: Integers,
    column: Integers,
    wanted: Integers,
) -> Marks:
    """Whether a batch of the segment is there, and says what is wanted."""
    found: Marks = (_at(outlines.segment, number) == segment) & (_at(column, number) == wanted)
    return found


def _rise(segment: Integers, numbers: Integers, least: int) -> Marks:
    """Whether each is above the one before it, and the first of a segment `least` or more."""
    follows = np.append(False, segment[1:] == segment[:-1])[: len(segment)]
    before = np.where(follows, np.append(0, numbers[:-1])[: len(numbers)], least - 1)
    found: Marks = numbers > before
    return found


def _none(count: int, segment: Integers, flags: Marks) -> Marks:
    """Of each segment whether none of its flags is set."""
    found: Marks = np.bincount(segment[flags], minlength=count) == 0
    return found
