"""Records that are encoded already: batches to be sent as they are.

Whoever has many records of a kind encodes a batch of them at once, and makes no object a record.
Only where the log must be compared record by record are they read again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, overload

from fencepost.client.batches import NewRecord
from fencepost.protocol.buffers import Buffer
from fencepost.protocol.records import (
    HEADER_SIZE,
    BatchHeader,
    iter_records,
    peek_header,
    stamp,
)

_LEADER_EPOCH_ENDS: Final = 16
"""Base offset, length and leader epoch lie before it; what a producer has settled, behind it."""


@dataclass(frozen=True, slots=True)
class EncodedBatch:
    """A batch without a producer id, at base offset 0."""

    header: bytearray
    """Its first 61 bytes, as `protocol.records.build_header` makes them."""
    packed: Buffer
    """All its records."""

    @property
    def read_header(self) -> BatchHeader:
        """The header's fields."""
        return peek_header(self.header)

    def is_at(self, buf: memoryview, pos: int, found: BatchHeader) -> bool:
        """Whether a batch of a log is this one, byte by byte; its offset is not looked at."""
        body = pos + HEADER_SIZE
        # A bytearray compares memory. Two views would compare item by item, as numbers: and bytes
        # of Arrow are signed ones.
        return (
            found.size == HEADER_SIZE + len(self.packed)
            and self.header[_LEADER_EPOCH_ENDS:] == buf[pos + _LEADER_EPOCH_ENDS : body]
            and bytearray(self.packed) == buf[body : pos + found.size]
        )


class EncodedRecords(Sequence[NewRecord]):
    """The records of some batches, in their order.

    :param batches: Each with all the records that its header counts.
    :ivar batches: The same.
    """

    __slots__ = ("_records", "_starts", "batches")

    def __init__(self, batches: Sequence[EncodedBatch]) -> None:
        self.batches = tuple(batches)
        counts = [each.read_header.record_count for each in self.batches]
        self._starts = (0, *accumulate(counts))
        self._records: tuple[NewRecord, ...] | None = None

    def __len__(self) -> int:
        return self._starts[-1]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EncodedRecords) and self.batches == other.batches

    __hash__ = None  # type: ignore[assignment]  # its batches are no keys

    @overload
    def __getitem__(self, at: int) -> NewRecord: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[NewRecord, ...]: ...

    def __getitem__(self, at: int | slice) -> NewRecord | tuple[NewRecord, ...]:
        if self._records is None:
            self._records = tuple(each for batch in self.batches for each in _records(batch))
        return self._records[at]

    @property
    def size(self) -> int:
        """Bytes of all batches, with their headers."""
        return sum(HEADER_SIZE + len(each.packed) for each in self.batches)

    def starts(self, base_offset: int) -> tuple[int, ...]:
        """The offset of each batch, and the one behind the last."""
        return tuple(base_offset + each for each in self._starts)

    def encoded(self, start: int, *, base_offset: int) -> bytearray | None:
        """The batches from a record on, each with the offset that is expected as its base.

        :param start: Index of the record; None comes of it where it is not a batch's first.
        :param base_offset: What that record's offset is to be.
        """
        if start not in self._starts:
            return None
        encoded = bytearray()
        first = self._starts.index(start)
        for batch, at in zip(self.batches[first:], self._starts[first:], strict=False):
            pos = len(encoded)
            encoded += batch.header
            encoded += batch.packed
            offset = base_offset + at - start
            header = batch.read_header
            epoch = header.partition_leader_epoch
            stamp(encoded, pos, header, base_offset=offset, leader_epoch=epoch)
        return encoded


def _records(batch: EncodedBatch) -> list[NewRecord]:
    whole = bytes(batch.header) + bytes(batch.packed)
    return [
        NewRecord(key=each.key, value=each.value, timestamp=each.timestamp, headers=each.headers)
        for each in iter_records(whole)
    ]
