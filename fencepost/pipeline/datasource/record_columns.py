"""The records of many batches at once, as columns: their numbers, and where their bytes lie.

No record becomes a Python object. The sizes that lead from a record to the next are read for all
batches in step, the first record of each, then the second; where only few batches are left, each
is walked alone. After that every field is read for all records together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from fencepost.pipeline.datasource.batch_headers import Integers
from fencepost.pipeline.datasource.segments import Bytes
from fencepost.protocol.byte_utils import MalformedField, read_varint

MAX_VARINT_BYTES: Final = 10
"""Bytes of the longest varint."""
_CONTINUATION_BIT: Final = 0x80


def read_varints(data: Bytes, at: Integers) -> tuple[Integers, Integers]:
    """The varints at positions, and where each ends.

    :param data: Goes on for `MAX_VARINT_BYTES` bytes behind the last position.
    :returns: Where one has more than `MAX_VARINT_BYTES` bytes, any value, and an end so many bytes
    on.
    """
    first = data[at]
    end = at + 1
    long = np.flatnonzero(first >= _CONTINUATION_BIT)
    raw = (first & 0x7F).astype(np.uint64)
    if len(long):
        raw[long], end[long] = _read_continuation(data, raw[long], end[long])
    return (raw >> np.uint64(1)).view(np.int64) ^ -(raw & np.uint64(1)).view(np.int64), end


def _read_continuation(
    data: Bytes, raw: npt.NDArray[np.uint64], end: Integers
) -> tuple[npt.NDArray[np.uint64], Integers]:
    """The same of those that have more than one byte.

    :param raw: What the first byte says.
    :param end: Behind it.
    """
    left = np.arange(len(raw))
    for index in range(1, MAX_VARINT_BYTES):
        byte = data[end[left]]
        raw[left] |= (byte & 0x7F).astype(np.uint64) << np.uint64(7 * index)
        end[left] += 1
        left = left[byte >= _CONTINUATION_BIT]
        if not len(left):
            return raw, end
    end[left] += 1  # one byte more than there may be, which tells
    return raw, end


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of each record.

    :ivar at: Where its bytes begin.
    :ivar sizes: How many they are; -1 where it is null.
    """

    at: Integers
    sizes: Integers

    def select(self, records: npt.NDArray[np.intp]) -> Self:
        """That of some records."""
        return type(self)(at=self.at[records], sizes=self.sizes[records])


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordHeaders:
    """The headers of some records, in order.

    :ivar record: Whose each is.
    :ivar wrong: Whether those of a record do not parse. They have no meaning then.
    """

    record: Integers
    names: Field
    values: Field
    wrong: npt.NDArray[np.bool_]


def read_field(data: Bytes, at: Integers, ends: Integers) -> tuple[Field, Integers]:
    """A field at positions, and where it ends.

    :param ends: Where the records end (exclusive).
    :returns: Where a field reaches beyond its record, an end that does, too.
    """
    sizes, begin = read_varints(data, np.minimum(at, ends))
    sizes = np.maximum(sizes, -1)
    beyond = (at > ends) | (begin - at > MAX_VARINT_BYTES) | (sizes > ends - begin)
    after = np.where(beyond, ends + 1, begin + np.maximum(sizes, 0))
    return Field(at=np.minimum(begin, ends), sizes=np.where(beyond, -1, sizes)), after


def read_headers(data: Bytes, at: Integers, ends: Integers, counts: Integers) -> RecordHeaders:
    """The headers of records, in step: the first of each, then the second.

    :param at: Where the first begins.
    :param ends: Where the records end (exclusive).
    :param counts: How many headers each has; no more than it has bytes.
    """
    total = int(counts.sum())
    columns = [np.zeros(total, np.int64) for _ in range(4)]
    first = np.cumsum(counts) - counts
    after = at.copy()
    lanes, step = np.flatnonzero(counts > 0), 0
    while len(lanes):
        names, end = read_field(data, after[lanes], ends[lanes])
        values, end = read_field(data, end, ends[lanes])
        place = first[lanes] + step
        for column, part in zip(
            columns, (names.at, names.sizes, values.at, values.sizes), strict=True
        ):
            column[place] = part
        after[lanes] = np.where(names.sizes < 0, ends[lanes] + 1, end)
        step += 1
        lanes = lanes[(counts[lanes] > step) & (after[lanes] <= ends[lanes])]
    return RecordHeaders(
        record=np.repeat(np.arange(len(counts)), counts),
        names=Field(at=columns[0], sizes=columns[1]),
        values=Field(at=columns[2], sizes=columns[3]),
        wrong=after != ends,
    )


Marks = npt.NDArray[np.bool_]

_MIN_RECORD_BYTES: Final = 7
"""Bytes of the smallest record: its size, attributes, time, offset, key, value and headers."""
_MIN_LANES: Final = 32
"""So many batches are walked faster in step than one after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordBodies:
    """The uncompressed records of some batches.

    :ivar data: Holds them, and goes on behind the last one for some bytes.
    :ivar starts: Where those of each batch begin.
    :ivar ends: Where they end (exclusive).
    :ivar counts: How many there should be.
    """

    data: Bytes
    starts: Integers
    ends: Integers
    counts: Integers


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """Records, in order. Where one is at fault, the others of its batch are left out as well.

    :ivar batch: The number of its batch.
    :ivar times: Timestamp less the batch's base timestamp.
    :ivar offsets: Offset less the batch's base offset.
    :ivar headers_at: Where the first header begins.
    :ivar header_counts: How many headers it has.
    :ivar ends: Behind the record.
    :ivar problems: What is wrong with the records of a batch, by its number.
    """

    batch: Integers
    times: Integers
    offsets: Integers
    keys: Field
    values: Field
    headers_at: Integers
    header_counts: Integers
    ends: Integers
    problems: dict[int, str]

    def __len__(self) -> int:
        return len(self.batch)

    def without(self, problems: dict[int, str]) -> Self:
        """The records of the other batches.

        :param problems: What is wrong, by the number of the batch; added to what there is.
        """
        problems = problems | self.problems
        keep = np.flatnonzero(~np.isin(self.batch, np.array(list(problems), np.int64)))
        if len(keep) == len(self.batch):
            return self
        return type(self)(
            batch=self.batch[keep],
            times=self.times[keep],
            offsets=self.offsets[keep],
            keys=self.keys.select(keep),
            values=self.values.select(keep),
            headers_at=self.headers_at[keep],
            header_counts=self.header_counts[keep],
            ends=self.ends[keep],
            problems=problems,
        )


class _BatchProblems:
    """Notes the first thing that is wrong with each batch."""

    def __init__(self, batch: Integers) -> None:
        self.problems: dict[int, str] = {}
        self._batch = batch

    def record(self, wrong: Marks, what: str) -> None:
        """:param wrong: Whether it is, of each record."""
        for number in np.unique(self._batch[wrong]).tolist():
            self.problems.setdefault(number, what)


def read_records(bodies: RecordBodies) -> Records:
    """The records of batches, as far as they parse.

    Whether headers parse is not looked at here.
    """
    data = bodies.data
    counts = np.where(
        bodies.counts * _MIN_RECORD_BYTES > bodies.ends - bodies.starts,
        0,
        np.maximum(bodies.counts, 0),
    )
    batch = np.repeat(np.arange(len(counts)), counts)
    at, ends = _bounds(bodies, counts)
    faults = _BatchProblems(batch)
    faults.record(ends < 0, "the records are cut short")
    ends = np.maximum(ends, at)
    times, after = _limited(data, at + 1, ends)
    offsets, after = _limited(data, after, ends)
    keys, after = read_field(data, after, ends)
    values, after = read_field(data, after, ends)
    header_counts, after = _limited(data, after, ends)
    faults.record(after > ends, "a record has another size than its fields")
    plain = (header_counts == 0) & (after < ends)
    faults.record(plain, "a record has another size than its fields")
    many = (header_counts < 0) | (header_counts > ends - after)
    faults.record(many, "a record has an impossible number of headers")
    found = Records(
        batch=batch,
        times=times,
        offsets=offsets,
        keys=keys,
        values=values,
        headers_at=after,
        header_counts=header_counts,
        ends=ends,
        problems=faults.problems,
    )
    return found.without(_miscounted(bodies, counts, ends))


def _miscounted(bodies: RecordBodies, counts: Integers, ends: Integers) -> dict[int, str]:
    """What is wrong with batches that hold more or fewer records than their headers say."""
    reached = bodies.starts.copy()
    some = np.flatnonzero(counts)
    reached[some] = ends[np.cumsum(counts)[some] - 1]
    wrong: dict[int, str] = {}
    for number in np.flatnonzero(counts != bodies.counts).tolist():
        wrong[number] = "there are fewer records than the header counts"
    for number in np.flatnonzero(reached != bodies.ends).tolist():
        wrong.setdefault(number, "records remain after the last one that the header counts")
    return wrong


def _limited(data: Bytes, at: Integers, ends: Integers) -> tuple[Integers, Integers]:
    """Varints, and where they end; more than the record's end where they reach beyond it."""
    values, after = read_varints(data, np.minimum(at, ends))
    after = np.where(after - at > MAX_VARINT_BYTES, ends + 1, after)
    return values, np.where(at > ends, ends + 1, after)


def _bounds(bodies: RecordBodies, counts: Integers) -> tuple[Integers, Integers]:
    """Behind the size of each record, and behind the record; -1 where that is beyond the batch."""
    total = int(counts.sum())
    at, ends = np.zeros(total, np.int64), np.zeros(total, np.int64)
    order = np.argsort(-counts, kind="stable")
    first = (np.cumsum(counts) - counts)[order]
    cursor, limit, left = bodies.starts[order], bodies.ends[order], counts[order]
    step = 0
    active = int(np.count_nonzero(left > step))
    while active >= _MIN_LANES:
        size, begin = read_varints(bodies.data, cursor[:active])
        end = begin + size  # may overflow; it is of no account then
        room = limit[:active] - begin
        wrong = (size < 0) | (size > room) | (begin - cursor[:active] > MAX_VARINT_BYTES)
        place = first[:active] + step
        at[place] = np.minimum(begin, limit[:active])
        ends[place] = np.where(wrong, -1, end)
        cursor[:active] = np.where(wrong, limit[:active], end)
        step += 1
        active = int(np.searchsorted(-left, -step, "left"))
    for lane in range(active):
        begun = int(first[lane]) + step
        alone = slice(begun, begun + int(left[lane]) - step)
        at[alone], ends[alone] = _walk_one_batch(
            bodies.data, int(cursor[lane]), int(limit[lane]), int(left[lane]) - step
        )
    return at, ends


def _walk_one_batch(
    data: Bytes, cursor: int, limit: int, count: int
) -> tuple[list[int], list[int]]:
    """The same of one batch."""
    body = data[cursor : limit + MAX_VARINT_BYTES].tobytes()
    at, ends = [limit] * count, [-1] * count
    position, limit, base = 0, limit - cursor, cursor
    try:
        for number in range(count):
            size = body[position]
            if size < 0x80 and not size & 1:
                begin = position + 1
                size >>= 1
            else:
                size, begin = read_varint(body, position)
            position = begin + size
            if size < 0 or position > limit:
                break
            at[number], ends[number] = base + begin, base + position
    except (IndexError, MalformedField):
        pass
    return at, ends
