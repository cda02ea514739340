"""Whether a segment's sparse indexes tell what is so.

An entry of the offset index says that a batch begins at its position, and the last offset of it;
older Kafkas say the last offset of what was appended there in one go. One of the time index says
the largest timestamp so far, and an offset in the batch that has it. Zeros at the end are no
entries. A closed segment's time index ends with its largest timestamp, and its offset index has no
zeros at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from fencepost.pipeline.datasource.batch_headers import Integers
from fencepost.pipeline.datasource.schemas import Problem
from fencepost.storage.formats import indexes
from fencepost.storage.formats import indexes as formats_indexes
from fencepost.storage.formats.indexes import CorruptIndex, strip_padding

_OFFSET_ENTRY: Final = np.dtype([("offset", ">i4"), ("position", ">i4")])
_TIME_ENTRY: Final = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])
_LARGEST: Final = np.iinfo(np.int64).max
_NOTHING: Final = np.iinfo(np.int64).min
_MAX_FAULTS: Final = 100
"""False entries of an index that are listed: more say nothing new."""

Marks: TypeAlias = npt.NDArray[np.bool_]
Indexes: TypeAlias = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentOutline:
    """Of each batch of a segment, in order."""

    positions: Integers
    base_offsets: Integers
    last_offsets: Integers
    max_timestamps: Integers


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFault:
    """An entry that is not so.

    :ivar position: Its byte in the index; None where it is the index as a whole.
    :ivar size: Its bytes.
    """

    problem: Problem
    position: int | None
    size: int | None
    message: str


def check_offset_index(
    data: bytes, base_offset: int, outline: SegmentOutline, *, closed: bool
) -> Iterator[IndexFault]:
    """What is wrong with an offset index.

    :param data: Of the file.
    :param base_offset: Of the segment.
    :param closed: Whether nothing is appended to the segment any more.
    """
    index = _Index(Problem.OFFSET_INDEX, indexes.OFFSET_ENTRY_SIZE)
    try:
        used = strip_padding(data, index.entry_size)
        entries = np.frombuffer(used, _OFFSET_ENTRY)
    except CorruptIndex as error:
        yield index.whole_index_fault(str(error))
        return
    if not data:
        return
    offsets = entries["offset"].astype(np.int64) + base_offset
    positions = entries["position"].astype(np.int64)
    number, begins = _find(outline.positions, positions)
    last, ends = _find(outline.last_offsets, offsets)
    following = np.append(positions[1:], _LARGEST)
    near = (last >= number) & (_at(outline.positions, last) < following)
    reasons = {
        "does not follow on the one before it": ~_rise(offsets, base_offset) | ~_rise(positions, 1),
        "says that a batch begins where none does": ~begins,
        "says that the batch there ends at an offset at which it does not": ~(ends & near),
    }
    yield from index.faults(reasons, ("offset", offsets), ("position", positions))
    if closed and len(used) < len(data):
        # A broker cuts what it has reserved when it closes the segment.
        yield index.whole_index_fault(f"{len(data) - len(used)} bytes of zeros end the index")


def check_time_index(
    data: bytes, base_offset: int, outline: SegmentOutline, *, closed: bool
) -> Iterator[IndexFault]:
    """What is wrong with a time index.

    :param data: Of the file.
    :param base_offset: Of the segment.
    :param closed: Whether nothing is appended to the segment any more.
    """
    index = _Index(Problem.TIME_INDEX, formats_indexes.TIME_ENTRY_SIZE)
    try:
        # The only entry may be one of zeros: a record of 1970 that is the segment's first.
        used = data if len(data) == index.entry_size else strip_padding(data, index.entry_size)
        entries = np.frombuffer(used, _TIME_ENTRY)
    except CorruptIndex as error:
        yield index.whole_index_fault(str(error))
        return
    times = entries["timestamp"].astype(np.int64)
    offsets = entries["offset"].astype(np.int64) + base_offset
    latest = np.maximum.accumulate(outline.max_timestamps)
    holder = np.searchsorted(outline.last_offsets, offsets)
    exists = _at(outline.base_offsets, holder) <= offsets
    exists &= holder < len(outline.last_offsets)
    reasons = {
        "does not follow on the one before it": ~_rise(times, 0) | ~_rise(offsets, base_offset),
        "names an offset that no batch has": ~exists,
        "says a timestamp that is not the batch's": _at(outline.max_timestamps, holder) != times,
        "says a timestamp that is not the largest so far": _at(latest, holder) != times,
    }
    yield from index.faults(reasons, ("timestamp", times), ("offset", offsets))
    reached = max(int(times[-1]) if len(times) else -1, -1)
    if closed and len(latest) and int(latest[-1]) > reached:
        yield index.whole_index_fault(
            f"the index ends with timestamp {reached}, and the segment with {latest[-1]}"
        )


@dataclass(frozen=True, slots=True)
class _Index:
    problem: Problem
    entry_size: int

    def whole_index_fault(self, message: str) -> IndexFault:
        """A fault that is not one entry's."""
        return IndexFault(problem=self.problem, position=None, size=None, message=message)

    def faults(
        self, reasons: Mapping[str, Marks], *fields: tuple[str, Integers]
    ) -> Iterator[IndexFault]:
        """Each false entry with the first reason why it is; of very many the first ones.

        :param fields: What entries say: the name of each field, and its number in each entry.
        """
        wrong = np.flatnonzero(np.logical_or.reduce(list(reasons.values()))).tolist()
        for number in wrong[:_MAX_FAULTS]:
            why = next(what for what, marks in reasons.items() if marks[number])
            values = ", ".join(f"{name} {column[number]}" for name, column in fields)
            yield IndexFault(
                problem=self.problem,
                position=number * self.entry_size,
                size=self.entry_size,
                message=f"entry {number} ({values}) {why}",
            )
        if len(wrong) > _MAX_FAULTS:
            yield self.whole_index_fault(f"{len(wrong) - _MAX_FAULTS} more entries are false")


def _rise(numbers: Integers, least: int) -> Marks:
    """Whether each is above the one before it, and the first `least` or more."""
    return np.diff(numbers, prepend=least - 1) > 0


def _find(rising: Integers, wanted: Integers) -> tuple[Indexes, Marks]:
    """Where each would be, and whether it is there."""
    number = np.searchsorted(rising, wanted)
    return number, _at(rising, number) == wanted


def _at(column: Integers, number: Indexes) -> Integers:
    """The numbers at indexes; one that equals nothing where the column has ended."""
    if not len(column):
        return np.full(len(number), _NOTHING)
    found = column[np.minimum(number, len(column) - 1)]
    return np.where(number < len(column), found, _NOTHING)
