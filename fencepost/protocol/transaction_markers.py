"""Transaction markers: the control batches that end a transaction in a partition (KIP-98).

A marker is a control batch of one record, which is transactional and has the producer's id and
epoch. Its key is a version (i16, 0) and a type (i16: 0 abort, 1 commit); its value is a version
(i16, 0) and the epoch of the transaction coordinator that decided (i32).
"""

import struct
from typing import Final, NamedTuple

from msgspec import Struct

from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import (
    CODEC_MASK,
    CONTROL_FLAG,
    LOG_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_SEQUENCE,
    TRANSACTIONAL_FLAG,
    write_checksum,
)

FIRST_WITH_EPOCH_BUMP: Final = 2
"""The ``transaction.version`` from which a marker has a newer epoch than the records (KIP-890)."""
_KEY: Final = struct.Struct(">hh")
_VALUE: Final = struct.Struct(">hi")
_BATCH: Final = struct.Struct(">8xi4xb4xh34xi5bhhbhib")
"""A whole batch as `encode_marker` and Kafka write it: batch length, magic, attributes and count of
the header, then its record, whose lengths take a byte each."""
_WHOLE_BATCH: Final = struct.Struct(">qiibIhiqqqhii5bhhbhib")
"""The same with every field of the header."""
_BATCH_LENGTH: Final = _BATCH.size - LOG_OVERHEAD
_LENGTHS: Final = (2 * (_KEY.size + _VALUE.size + 6), 2 * _KEY.size, 2 * _VALUE.size)
"""Of the record, its key and its value, as varints; 6 is the size of the record's other fields."""
_VERSION: Final = 0
_ABORT: Final = 0
_COMMIT: Final = 1


class TransactionMarker(Struct, frozen=True, kw_only=True):
    """The end of a transaction, as its coordinator sends it to the leaders of the partitions.

    :ivar coordinator_epoch: The leader epoch of the coordinator's partition.
    :ivar transaction_version: The level of ``transaction.version`` by which the epoch is judged;
        it is not in the log.
    """

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    committed: bool
    transaction_version: int

    def to_batch(self, timestamp_ms: int) -> bytearray:
        """The control batch, which can be appended."""
        return encode_marker(self, timestamp_ms)


class EndTransactionMarker(NamedTuple):
    """The record of a marker."""

    committed: bool
    coordinator_epoch: int


def encode_marker(marker: TransactionMarker, timestamp_ms: int) -> bytearray:
    """The control batch of a marker, at base offset 0."""
    size, key_size, value_size = _LENGTHS
    batch = bytearray(_WHOLE_BATCH.size)
    _WHOLE_BATCH.pack_into(
        batch,
        0,
        0,
        _BATCH_LENGTH,
        NO_LEADER_EPOCH,
        MAGIC,
        0,
        TRANSACTIONAL_FLAG | CONTROL_FLAG,
        0,
        timestamp_ms,
        timestamp_ms,
        marker.producer_id,
        marker.producer_epoch,
        NO_SEQUENCE,
        1,
        *(size, 0, 0, 0, key_size),
        *(_VERSION, _COMMIT if marker.committed else _ABORT),
        value_size,
        *(_VERSION, marker.coordinator_epoch),
        0,
    )
    write_checksum(batch)
    return batch


def decode_marker(batch: Buffer, at: int = 0) -> EndTransactionMarker | None:
    """The marker in the control batch that begins at a position.

    :returns: None for a batch of which compaction has left the header alone, and for control
        records of another type.
    :raises InvalidRecords: When the record is cut short.
    """
    if len(batch) - at >= _BATCH.size:
        length, magic, attributes, count, size, _, _, _, key, _, kind, value, _, epoch, headers = (
            _BATCH.unpack_from(batch, at)
        )
        if (
            (length, magic, count, headers) == (_BATCH_LENGTH, MAGIC, 1, 0)
            and (size, key, value) == _LENGTHS
            and not attributes & CODEC_MASK
            and kind in (_ABORT, _COMMIT)
        ):
            return EndTransactionMarker(kind == _COMMIT, epoch)
    record = next(iter_records(batch, at), None)
    if record is None or record.key is None or record.value is None:
        return None
    if len(record.key) < _KEY.size or len(record.value) < _VALUE.size:
        return None
    _, kind = _KEY.unpack_from(record.key)
    if kind not in (_ABORT, _COMMIT):
        return None
    _, coordinator_epoch = _VALUE.unpack_from(record.value)
    return EndTransactionMarker(kind == _COMMIT, coordinator_epoch)
