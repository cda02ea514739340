"""Encodes a closed segment as the objects of the tier, and decodes them.

They have the formats of Kafka's files of the same suffixes. The indexes are made while the records
are iterated, so that an upload reads each byte once.
"""

from collections.abc import Iterator
from typing import Final

from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.records import NO_TIMESTAMP, iter_headers
from fencepost.storage.formats.checkpoints import (
    CorruptCheckpoint,
    CorruptSnapshot,
    decode_epochs,
    decode_snapshot,
    encode_epochs,
    encode_snapshot,
)
from fencepost.storage.formats.indexes import MAX_RELATIVE, CorruptIndex, OffsetIndex, TimeIndex
from fencepost.storage.log.interface import SegmentCopy
from fencepost.storage.log.leader_epoch_cache import EpochEntry
from fencepost.storage.log.producer_state import ProducerStateEntry
from fencepost.storage.tier.object_store import ObjectKind

CORRUPT: Final = (CorruptCheckpoint, CorruptIndex, CorruptSnapshot)
"""What reading an object that is not what it should be may raise."""


class IndexedRecords:
    """The records of a segment, indexed as they are iterated. Each iteration indexes them again.

    :ivar offset_index: Complete when all records have been taken.
    :ivar time_index: Likewise.
    """

    __slots__ = (
        "_copy",
        "_interval",
        "_largest",
        "_latest",
        "_since",
        "offset_index",
        "time_index",
    )

    def __init__(self, copy: SegmentCopy, index_interval_bytes: int) -> None:
        self._copy = copy
        self._interval = index_interval_bytes
        self._begin()

    def _begin(self) -> None:
        self.offset_index = OffsetIndex(self._copy.base_offset)
        self.time_index = TimeIndex(self._copy.base_offset)
        self._since = 0
        """Bytes since the last entry."""
        self._largest = NO_TIMESTAMP
        self._latest = self._copy.base_offset
        """Last offset of the batch that has the largest timestamp."""

    def __iter__(self) -> Iterator[Buffer]:
        """The buffers, in order; each begins with a batch and ends with one."""
        self._begin()
        position = 0
        for buffer in self._copy.records:
            self._index(buffer, position)
            position += len(buffer)
            yield buffer
        self._note_time()

    def _index(self, buffer: Buffer, position: int) -> None:
        for within, header in iter_headers(buffer):
            if header.max_timestamp > self._largest:
                self._largest, self._latest = header.max_timestamp, header.last_offset
            reach = max(position + within, header.last_offset - self._copy.base_offset)
            if self._since > self._interval and reach <= MAX_RELATIVE:
                self.offset_index.append(header.last_offset, position + within)
                self._note_time()
                self._since = 0
            self._since += header.size

    def _note_time(self) -> None:
        reach = self._latest - self._copy.base_offset
        if self._largest > self.time_index.last.timestamp and reach <= MAX_RELATIVE:
            self.time_index.append(self._largest, self._latest)


def auxiliary_objects(copy: SegmentCopy, records: IndexedRecords) -> dict[ObjectKind, bytes]:
    """All objects of a segment but its records and its metadata, in the order of their upload.

    :param records: Its records, which have all been taken.
    """
    return {
        ObjectKind.OFFSET_INDEX: records.offset_index.encode(),
        ObjectKind.TIME_INDEX: records.time_index.encode(),
        ObjectKind.PRODUCER_SNAPSHOT: encode_snapshot(copy.producers),
        ObjectKind.LEADER_EPOCHS: encode_epochs(copy.epochs),
    }


def epochs_within(copy: SegmentCopy) -> tuple[EpochEntry, ...]:
    """The leader epochs of a segment's own records; the first begins where the segment does.

    Where the log start lies within the segment, those before it are taken for the epoch there.
    """
    within: list[EpochEntry] = []
    for entry in copy.epochs:
        if not within or entry.start_offset <= copy.base_offset:
            within = [EpochEntry(entry.epoch, copy.base_offset)]
        else:
            within.append(entry)
    return tuple(within)


def read_offset_index(data: bytes, base_offset: int) -> OffsetIndex:
    """The ``.index`` object of a segment.

    :raises CorruptIndex: When it is none.
    """
    return OffsetIndex.decode(data, base_offset)


def read_time_index(data: bytes, base_offset: int) -> TimeIndex:
    """The ``.timeindex`` object of a segment.

    :raises CorruptIndex: When it is none.
    """
    return TimeIndex.decode(data, base_offset)


def read_producers(data: bytes) -> tuple[ProducerStateEntry, ...]:
    """The ``.snapshot`` object: the log's producers behind the segment's last record.

    :raises CorruptSnapshot: When it is none.
    """
    return decode_snapshot(data)


def read_epochs(data: bytes) -> tuple[EpochEntry, ...]:
    """The ``.leader-epoch-checkpoint`` object: the log's leader epochs up to the segment's end.

    :raises CorruptCheckpoint: When it is none.
    """
    return decode_epochs(data)
