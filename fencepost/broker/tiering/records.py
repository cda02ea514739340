"""The records of one segment in the tier, read by ranges."""

from typing import Final

from fencepost.broker.tiering.steps import Steps, get
from fencepost.protocol.records import HEADER_SIZE, BatchHeader, CorruptBatch, peek_header
from fencepost.storage.tier.objects import ObjectStore, Part, TierError, key_of
from fencepost.storage.tier.segments import RemoteSegment

READ_AHEAD: Final = 64 << 10
"""Bytes that are read at least where a batch is looked for; twice as many each time, up to
`_MOST_AHEAD`."""
_MOST_AHEAD: Final = 4 << 20


class RemoteRecords:
    """A segment's records, as far as they have been read.

    Positions are those in its ``.log`` object, in bytes.
    """

    __slots__ = ("_ahead", "_data", "_first", "_key", "_objects", "size")

    def __init__(self, objects: ObjectStore, segment: RemoteSegment) -> None:
        self.size = segment.size_bytes
        self._objects = objects
        self._key = key_of(segment, Part.LOG)
        self._ahead = READ_AHEAD
        self._first = 0
        self._data = memoryview(b"")
        """What was read, from position `_first` on."""

    def header_at(self, position: int) -> Steps[BatchHeader | None]:
        """The header of the batch that begins there, None at the end of the segment.

        :raises TierError: When it can't be had.
        """
        if position >= self.size:
            return None
        if not self._first <= position <= self._first + len(self._data) - HEADER_SIZE:
            ahead, self._ahead = self._ahead, min(2 * self._ahead, _MOST_AHEAD)
            yield from self.between(position, position + ahead)
        data = yield from self.between(position, position + HEADER_SIZE)
        try:
            return peek_header(data)
        except CorruptBatch as error:
            raise TierError(self._key, f"{error}, at byte {position}") from error

    def between(self, start: int, end: int) -> Steps[memoryview]:
        """The bytes from `start` to `end` (exclusive), or to the end of the segment.

        What has been read and lies before `start` is let go.

        :raises TierError: When they can't be had.
        """
        end = min(end, self.size)
        known = self._first + len(self._data)
        if not self._first <= start <= known:
            self._first = known = start
            self._data = memoryview(b"")
        if end > known:
            more = yield from get(self._objects, self._key, known, end)
            if len(more) < end - known:
                raise TierError(self._key, f"it ends at byte {known + len(more)} of {self.size}")
            left = self._data[start - self._first :]
            self._data = memoryview(b"".join((left, more)) if left else more)
            self._first = start
        return self._data[start - self._first : end - self._first]
