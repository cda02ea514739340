"""Record batches of the current format (magic 2), built and read without the server's code."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import crc32c

from tests.harness.wire import Body, Reader, varint

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
"""Names of the compression codecs, at the place of their number in a batch's attributes."""

TransmitRecord = tuple[int, bytes | None, bytes | None]
"""Timestamp (ms), key, value."""

_HEADER = ">qiibIhiqqqhii"
_HEADER_BYTES = struct.calcsize(_HEADER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The header of a stored batch. ``last_offset`` is inclusive, timestamps are ms."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    attributes: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records: int

    @property
    def codec(self) -> str:
        return CODECS[self.attributes & 7]

    @property
    def log_append_time(self) -> bool:
        return bool(self.attributes & 8)


def build(
    records: Sequence[TransmitRecord],
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    attributes: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes:
    """An uncompressed batch with a right checksum, whatever ``attributes`` says."""
    first = records[0][0]
    body = b"".join(
        _record(i, ts - first, key, value) for i, (ts, key, value) in enumerate(records)
    )
    checked = struct.pack(
        ">hiqqqhii",
        attributes,
        len(records) - 1,
        first,
        max(ts for ts, _, _ in records),
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    checked += body
    head = struct.pack(">ibI", leader_epoch, 2, crc32c.crc32c(checked))
    return struct.pack(">qi", base_offset, len(head) + len(checked)) + head + checked


def produce_body(topic: str, batch: bytes, *, partition: int = 0, acks: int = -1) -> Body:
    """A Produce request of one batch, for versions with topic names (up to 12)."""
    data = {"Name": topic, "PartitionData": [{"Index": partition, "Records": batch}]}
    return {"TransactionalId": None, "Acks": acks, "TimeoutMs": 60_000, "TopicData": [data]}


def _record(index: int, timestamp_delta: int, key: bytes | None, value: bytes | None) -> bytes:
    content = (
        b"\0" + varint(timestamp_delta) + varint(index) + _bytes(key) + _bytes(value) + varint(0)
    )
    return varint(len(content)) + content


def _bytes(value: bytes | None) -> bytes:
    return varint(-1) if value is None else varint(len(value)) + value


def parse(data: bytes) -> tuple[list[Batch], int]:
    """The whole batches of a fetch, and how many bytes of a cut one follow them."""
    reader = Reader(data)
    found: list[Batch] = []
    while reader.left >= _HEADER_BYTES:
        start = reader.position
        header = struct.unpack(_HEADER, reader.take(_HEADER_BYTES))
        size = header[1] + 12
        if size > len(data) - start:
            reader.position = start
            break
        reader.position = start + size
        found.append(_batch(header))
    return found, reader.left


def _batch(header: tuple[int, ...]) -> Batch:
    return Batch(
        base_offset=header[0],
        last_offset=header[0] + header[6],
        leader_epoch=header[2],
        attributes=header[5],
        base_timestamp=header[7],
        max_timestamp=header[8],
        producer_id=header[9],
        producer_epoch=header[10],
        base_sequence=header[11],
        records=header[12],
    )
