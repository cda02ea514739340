"""The formats of the three index files of a segment.

The offset index (``.index``) says where in the ``.log`` some of the batches begin. It has entries
of 8 bytes, big endian, both rising: offset less the segment's base offset (i32), position in bytes
(i32). Kafka adds one before the batch that it appends when more than ``index.interval.bytes`` were
appended since the last entry, or since the beginning: the *last* offset of that batch, and the
position of its first byte. So the first batch never has an entry, and no entry has position 0.
Zeros at the end of the file are no entries.

The time index (``.timeindex``) says how late the records up to some offset are. It has entries of
12 bytes, big endian: timestamp in ms (i64), offset less the segment's base offset (i32). An entry
says that the largest timestamp so far is in the batch whose last offset that is; records with
larger timestamps come behind it. Kafka adds one with each entry of the offset index, and when the
segment is closed, where the timestamp is larger than in the last entry: timestamps rise and offsets
do too. Zeros at the end are no entries, as in the offset index.

The transaction index (``.txnindex``) has the aborted transactions whose markers are in the segment,
in order of the markers. Its entries have 34 bytes, big endian: version (i16, 0), producer id (i64),
first offset of the transaction (i64), offset of its marker (i64), last stable offset of the log
when the marker was appended (i64). Without such a transaction there is no file.
"""

import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import islice
from operator import attrgetter, lt
from typing import Final, NamedTuple

from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.records import NO_TIMESTAMP
from fencepost.storage.log.transactions import AbortedTransaction

MAX_RELATIVE: Final = 2**31 - 1
"""The largest relative offset, and the largest position, that an entry can say."""


class CorruptIndex(ValueError):
    """An index that is none: a part of an entry, or entries that do not rise."""


def strip_padding(data: Buffer, entry_size: int) -> bytes:
    """The entries without the zeros behind them.

    Kafka allots an index beforehand, and a kill leaves it so.

    :raises CorruptIndex: When the last entry is not whole.
    """
    if len(data) % entry_size:
        raise CorruptIndex(f"{len(data)} bytes are no entries of {entry_size} bytes")
    content = bytes(data)
    used = len(content.rstrip(b"\0"))
    return content[: -(-used // entry_size) * entry_size]


def check_increasing(numbers: Sequence[int], least: int) -> None:
    """See that entries rise, each above the one before it.

    :param least: What the first may be.
    :raises CorruptIndex: When they do not.
    """
    first_is_right = not numbers or numbers[0] >= least
    if not first_is_right or not all(map(lt, numbers, islice(numbers, 1, None))):
        raise CorruptIndex("The entries of an index do not rise")


OFFSET_ENTRY_SIZE: Final = 8
_SWAPPED: Final = sys.byteorder == "little"


class OffsetPosition(NamedTuple):
    """The last offset (inclusive) of a batch, and the position of its first byte."""

    offset: int
    position: int


class OffsetIndex:
    """The entries of one segment, as two arrays.

    :ivar base_offset: The segment's.
    """

    __slots__ = ("_offsets", "_positions", "base_offset")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self._offsets = array("i")  # relative
        self._positions = array("i")

    @classmethod
    def decode(cls, data: Buffer, base_offset: int) -> "OffsetIndex":
        """The entries in a file's bytes.

        :raises CorruptIndex: When it is no index.
        """
        numbers = array("i", strip_padding(data, OFFSET_ENTRY_SIZE))
        if _SWAPPED:
            numbers.byteswap()
        index = cls(base_offset)
        index._offsets, index._positions = numbers[0::2], numbers[1::2]
        check_increasing(index._offsets, 0)
        check_increasing(index._positions, 1)
        return index

    def encode(self, start: int = 0) -> bytes:
        """The bytes of the file; of the entries from number `start` on."""
        entries = array("i", bytes(OFFSET_ENTRY_SIZE * (len(self._offsets) - start)))
        entries[0::2] = self._offsets[start:]
        entries[1::2] = self._positions[start:]
        if _SWAPPED:
            entries.byteswap()
        return entries.tobytes()

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def last(self) -> OffsetPosition:
        """The last entry; the beginning of the segment without one, as Kafka has it."""
        if not self._offsets:
            return OffsetPosition(self.base_offset, 0)
        return OffsetPosition(self.base_offset + self._offsets[-1], self._positions[-1])

    def entries(self) -> list[OffsetPosition]:
        """All entries, in order."""
        base = self.base_offset
        return [
            OffsetPosition(base + offset, position)
            for offset, position in zip(self._offsets, self._positions, strict=True)
        ]

    def append(self, offset: int, position: int) -> None:
        """Add an entry.

        :param offset: Last offset of the batch that begins at `position`.
        :raises ValueError: When it does not rise, or is 2**31 or more away from the beginning.
        """
        relative = offset - self.base_offset
        if (self._offsets and relative <= self._offsets[-1]) or relative < 0:
            raise ValueError(f"offset {offset} does not follow on {self.last.offset}")
        if position <= self.last.position:
            raise ValueError(f"position {position} does not follow on {self.last.position}")
        if relative > MAX_RELATIVE or position > MAX_RELATIVE:
            raise ValueError(f"offset {offset} or position {position} is too far from the start")
        self._offsets.append(relative)
        self._positions.append(position)

    def lookup(self, offset: int) -> int:
        """The last position known where a batch begins that ends at or before `offset`.

        From there on the batch that holds `offset` is found by reading forward. 0 where no entry
        is early enough.
        """
        after = bisect_right(self._offsets, offset - self.base_offset)
        return self._positions[after - 1] if after else 0

    def position_after(self, offset: int) -> int | None:
        """The first position known where a batch begins that ends behind `offset`, None if none.

        The batch that holds `offset` begins there at the latest.
        """
        return self.around(offset)[1]

    def around(self, offset: int) -> tuple[int, int | None]:
        """What `lookup` and `position_after` answer, for the price of one."""
        positions = self._positions
        after = bisect_right(self._offsets, offset - self.base_offset)
        return (
            positions[after - 1] if after else 0,
            positions[after] if after < len(positions) else None,
        )

    def truncate(self, offset: int) -> bool:
        """Drop the entries of batches that hold `offset` or lie behind it; whether any went."""
        keep = bisect_left(self._offsets, offset - self.base_offset)
        changed = keep < len(self._offsets)
        del self._offsets[keep:], self._positions[keep:]
        return changed


TIME_ENTRY_SIZE: Final = 12
_SWAPPED_TIME: Final = sys.byteorder == "little"
# Entries are taken apart as arrays: a time has two halves, and this is where they are in one.
_HIGH: Final = 1 if _SWAPPED_TIME else 0
_LOW: Final = 1 - _HIGH


class TimestampOffset(NamedTuple):
    """A largest timestamp so far (ms), and the last offset (inclusive) of the batch that has it."""

    timestamp: int
    offset: int


class TimeIndex:
    """The entries of one segment, as two arrays.

    :ivar base_offset: The segment's.
    """

    __slots__ = ("_offsets", "_timestamps", "base_offset")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self._timestamps = array("q")
        self._offsets = array("i")  # relative

    @classmethod
    def decode(cls, data: Buffer, base_offset: int) -> "TimeIndex":
        """The entries in a file's bytes.

        :raises CorruptIndex: When it is no index.
        """
        # The only entry may be one of zeros: a record of 1970 that is the segment's first.
        used = data if len(data) == TIME_ENTRY_SIZE else strip_padding(data, TIME_ENTRY_SIZE)
        numbers = array("i", bytes(used))
        if _SWAPPED_TIME:
            numbers.byteswap()
        halves = array("i", bytes(len(numbers) // 3 * 8))
        halves[_HIGH::2], halves[_LOW::2] = numbers[0::3], numbers[1::3]
        index = cls(base_offset)
        index._timestamps, index._offsets = array("q", halves.tobytes()), numbers[2::3]
        check_increasing(index._timestamps, 0)
        check_increasing(index._offsets, 0)
        return index

    def encode(self, start: int = 0) -> bytes:
        """The bytes of the file; of the entries from number `start` on."""
        halves = array("i", self._timestamps[start:].tobytes())
        numbers = array("i", bytes(TIME_ENTRY_SIZE * (len(self._offsets) - start)))
        numbers[0::3], numbers[1::3] = halves[_HIGH::2], halves[_LOW::2]
        numbers[2::3] = self._offsets[start:]
        if _SWAPPED_TIME:
            numbers.byteswap()
        return numbers.tobytes()

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def last(self) -> TimestampOffset:
        """The last entry; no timestamp (-1) and the base offset without one, as Kafka has it."""
        if not self._offsets:
            return TimestampOffset(NO_TIMESTAMP, self.base_offset)
        return TimestampOffset(self._timestamps[-1], self.base_offset + self._offsets[-1])

    def entries(self) -> list[TimestampOffset]:
        """All entries, in order."""
        base = self.base_offset
        return [
            TimestampOffset(timestamp, base + offset)
            for timestamp, offset in zip(self._timestamps, self._offsets, strict=True)
        ]

    def append(self, timestamp: int, offset: int) -> bool:
        """Add an entry, unless its timestamp is no larger than the last one's.

        :param timestamp: The largest so far (ms).
        :param offset: Last offset of the batch that has it.
        :returns: Whether it was added.
        :raises ValueError: When either falls, or the offset is 2**31 or more away.
        """
        last = self.last
        if timestamp < last.timestamp or offset < last.offset:
            raise ValueError(f"{timestamp} at offset {offset} does not follow on {last}")
        if timestamp == last.timestamp:
            return False
        relative = offset - self.base_offset
        if relative > MAX_RELATIVE:
            raise ValueError(f"offset {offset} is too far from the start")
        self._timestamps.append(timestamp)
        self._offsets.append(relative)
        return True

    def lookup(self, timestamp: int) -> TimestampOffset:
        """The last entry that is not later than `timestamp` (ms).

        Before the batch of its offset no record is as late as `timestamp`. No timestamp (-1) and
        the base offset where none is early enough.
        """
        after = bisect_right(self._timestamps, timestamp)
        if not after:
            return TimestampOffset(NO_TIMESTAMP, self.base_offset)
        return TimestampOffset(
            self._timestamps[after - 1], self.base_offset + self._offsets[after - 1]
        )

    def truncate(self, offset: int) -> bool:
        """Drop the entries of batches that hold `offset` or lie behind it; whether any went."""
        keep = bisect_left(self._offsets, offset - self.base_offset)
        changed = keep < len(self._offsets)
        del self._timestamps[keep:], self._offsets[keep:]
        return changed


_TRANSACTION: Final = struct.Struct(">hqqqq")
_TRANSACTION_VERSION: Final = 0
TRANSACTION_ENTRY_SIZE: Final = _TRANSACTION.size


def encode_transactions(transactions: Iterable[AbortedTransaction]) -> bytes:
    """The bytes of these entries in a transaction index."""
    return b"".join(_TRANSACTION.pack(_TRANSACTION_VERSION, *each) for each in transactions)


def decode_transactions(data: Buffer, base_offset: int) -> list[AbortedTransaction]:
    """The entries in the bytes of a transaction index.

    :param base_offset: The segment's; no marker lies before it.
    :raises CorruptIndex: When an entry is not whole, has another version, or does not follow on the
        one before it.
    """
    if len(data) % TRANSACTION_ENTRY_SIZE:
        raise CorruptIndex(f"{len(data)} bytes are no entries of {TRANSACTION_ENTRY_SIZE} bytes")
    found: list[AbortedTransaction] = []
    for version, *fields in _TRANSACTION.iter_unpack(data):
        if version != _TRANSACTION_VERSION:
            raise CorruptIndex(f"An aborted transaction of version {version}")
        found.append(AbortedTransaction(*fields))
    check_increasing([*map(attrgetter("last_offset"), found)], base_offset)
    return found
