"""A snapshot of a log's producers (``.snapshot``), named by the offset that it was taken before.

Version 1, big endian: version (i16), CRC-32C of all that follows (u32), count (i32), and for each
producer id (i64), epoch (i16), last sequence (i32), last offset (i64), offset delta (i32),
timestamp (i64), coordinator epoch (i32), start of its open transaction (i64, -1 without one). Of
the batches it thus keeps the last one only.
"""

import struct
from collections.abc import Iterable
from typing import Final

from fencepost.protocol.byte_utils import Buffer, crc32c
from fencepost.protocol.records import NO_SEQUENCE
from fencepost.storage.log.producer_state import BatchMetadata, ProducerStateEntry

_VERSION: Final = 1
_HEAD: Final = struct.Struct(">hI")
_COUNT: Final = struct.Struct(">i")
_PRODUCER: Final = struct.Struct(">qhiqiqiq")
_NONE: Final = -1
_NO_BATCH: Final = BatchMetadata(NO_SEQUENCE, -1, 0, -1)


class CorruptSnapshot(ValueError):
    """A snapshot of another version, of another length than it says, or that fails its CRC."""


def encode_snapshot(producers: Iterable[ProducerStateEntry]) -> bytes:
    """The bytes of the file."""
    rows = [_encode(producer) for producer in producers]
    body = _COUNT.pack(len(rows)) + b"".join(rows)
    return _HEAD.pack(_VERSION, crc32c(body)) + body


def _encode(producer: ProducerStateEntry) -> bytes:
    batch = producer.batches[-1] if producer.batches else _NO_BATCH
    begun = producer.txn_first_offset
    return _PRODUCER.pack(
        producer.producer_id,
        producer.producer_epoch,
        batch.last_sequence,
        batch.last_offset,
        batch.offset_delta,
        producer.last_timestamp,
        producer.coordinator_epoch,
        _NONE if begun is None else begun,
    )


def decode_snapshot(data: Buffer) -> tuple[ProducerStateEntry, ...]:
    """The producers in a file's bytes, in its order; each has one batch at most.

    :raises CorruptSnapshot: When it is no snapshot of version 1.
    """
    try:
        version, checksum = _HEAD.unpack_from(data)
        (count,) = _COUNT.unpack_from(data, _HEAD.size)
    except struct.error as error:
        raise CorruptSnapshot(f"A producer snapshot of {len(data)} bytes") from error
    if version != _VERSION:
        raise CorruptSnapshot(f"A producer snapshot of version {version}, not {_VERSION}")
    body = memoryview(data)[_HEAD.size :]
    if crc32c(body) != checksum:
        raise CorruptSnapshot("A producer snapshot fails its CRC")
    rows = body[_COUNT.size :]
    if len(rows) != count * _PRODUCER.size:
        raise CorruptSnapshot(f"{len(rows)} bytes are not {count} producers")
    return tuple(_decode(row) for row in _PRODUCER.iter_unpack(rows))


def _decode(row: tuple[int, ...]) -> ProducerStateEntry:
    producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, begun = row
    batch = BatchMetadata(sequence, offset, delta, timestamp)
    return ProducerStateEntry(
        producer_id=producer_id,
        producer_epoch=epoch,
        last_timestamp=timestamp,
        coordinator_epoch=coordinator_epoch,
        txn_first_offset=None if begun == _NONE else begun,
        batches=(batch,) if offset >= 0 else (),
    )
