"""A batch set: records of one partition as several batches, which one request carries."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from fencepost.client.batches import NewRecord, encode_records
from fencepost.client.comparing import Own
from fencepost.client.encoded import EncodedRecords
from fencepost.protocol.compression import Codec
from fencepost.protocol.records import HEADER_SIZE

DEFAULT_MAX_RECORDS: Final = 10_000
DEFAULT_MAX_BATCH_BYTES: Final = 1 << 18
_RECORD_OVERHEAD: Final = 36
"""The most that length, attributes, deltas, lengths of key and value, and count take."""
_HEADER_OVERHEAD: Final = 10
"""The most that the two lengths of a record header take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """Where one batch ends and the next begins."""

    max_records: int = DEFAULT_MAX_RECORDS
    max_bytes: int = DEFAULT_MAX_BATCH_BYTES
    """Before compression. A record that is larger by itself is a batch by itself."""
    codec: Codec = Codec.NONE

    def __post_init__(self) -> None:
        if self.max_records < 1 or self.max_bytes < 1:
            raise ValueError("a batch holds one record at least")


def encode_set(own: Own, start: int, limits: BatchLimits) -> bytearray:
    """The records from an offset on, each batch with the offset that is expected as its base."""
    if isinstance(own.records, EncodedRecords):
        whole = own.records.encoded(start - own.first_offset, base_offset=start)
        if whole is not None:
            return whole
    encoded = bytearray()
    at = start
    for batch in cut(own.records[start - own.first_offset :], limits):
        encoded += encode_records(
            batch, base_offset=at, codec=limits.codec, sequenced=own.sequenced_at(at)
        )
        at += len(batch)
    return encoded


def cut(records: Sequence[NewRecord], limits: BatchLimits) -> Iterator[Sequence[NewRecord]]:
    """The records in batches, each as large as may be; cut the same way however often."""
    start, size = 0, HEADER_SIZE
    for at, record in enumerate(records):
        needed = _most_bytes(record)
        if at > start and (at - start == limits.max_records or size + needed > limits.max_bytes):
            yield records[start:at]
            start, size = at, HEADER_SIZE
        size += needed
    if start < len(records):
        yield records[start:]


def _most_bytes(record: NewRecord) -> int:
    size = _RECORD_OVERHEAD + len(record.key or b"") + len(record.value or b"")
    for name, value in record.headers:
        size += _HEADER_OVERHEAD + len(name.encode("utf-8", "surrogateescape")) + len(value or b"")
    return size
