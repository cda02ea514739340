"""The offset index of a segment (``.index``): where in the ``.log`` some of its batches begin.

Entries of 8 bytes, big endian, both rising: offset less the segment's base offset (i32), position
in bytes (i32). Kafka adds one before the batch that it appends when more than
``index.interval.bytes`` were appended since the last entry, or since the beginning: the *last*
offset of that batch, and the position of its first byte. So the first batch never has an entry,
and no entry has position 0. Zeros at the end of the file are no entries.
"""

import sys
from array import array
from bisect import bisect_left, bisect_right
from typing import Final, NamedTuple

from fencepost.protocol.buffers import Buffer
from fencepost.storage.formats.index_file import MAX_RELATIVE, check_rising, unpadded

ENTRY_SIZE: Final = 8
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
        numbers = array("i", unpadded(data, ENTRY_SIZE))
        if _SWAPPED:
            numbers.byteswap()
        index = cls(base_offset)
        index._offsets, index._positions = numbers[0::2], numbers[1::2]
        check_rising(index._offsets, 0)
        check_rising(index._positions, 1)
        return index

    def encode(self, start: int = 0) -> bytes:
        """The bytes of the file; of the entries from number `start` on."""
        entries = array("i", bytes(ENTRY_SIZE * (len(self._offsets) - start)))
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
