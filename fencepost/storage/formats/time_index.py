"""The time index of a segment (``.timeindex``): how late the records up to some offset are.

Entries of 12 bytes, big endian: timestamp in ms (i64), offset less the segment's base offset
(i32). An entry says that the largest timestamp so far is in the batch whose last offset that is;
records with larger timestamps come behind it. Kafka adds one with each entry of the offset index,
and when the segment is closed, where the timestamp is larger than in the last entry: timestamps
rise and offsets do too. Zeros at the end are no entries, as in the offset index.
"""

import sys
from array import array
from bisect import bisect_left, bisect_right
from typing import Final, NamedTuple

from fencepost.protocol.buffers import Buffer
from fencepost.protocol.records import NO_TIMESTAMP
from fencepost.storage.formats.index_file import MAX_RELATIVE, check_rising, unpadded

ENTRY_SIZE: Final = 12
_SWAPPED: Final = sys.byteorder == "little"
# Entries are taken apart as arrays: a time has two halves, and this is where they are in one.
_HIGH: Final = 1 if _SWAPPED else 0
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
        used = data if len(data) == ENTRY_SIZE else unpadded(data, ENTRY_SIZE)
        numbers = array("i", bytes(used))
        if _SWAPPED:
            numbers.byteswap()
        halves = array("i", bytes(len(numbers) // 3 * 8))
        halves[_HIGH::2], halves[_LOW::2] = numbers[0::3], numbers[1::3]
        index = cls(base_offset)
        index._timestamps, index._offsets = array("q", halves.tobytes()), numbers[2::3]
        check_rising(index._timestamps, 0)
        check_rising(index._offsets, 0)
        return index

    def encode(self, start: int = 0) -> bytes:
        """The bytes of the file; of the entries from number `start` on."""
        halves = array("i", self._timestamps[start:].tobytes())
        numbers = array("i", bytes(ENTRY_SIZE * (len(self._offsets) - start)))
        numbers[0::3], numbers[1::3] = halves[_HIGH::2], halves[_LOW::2]
        numbers[2::3] = self._offsets[start:]
        if _SWAPPED:
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
