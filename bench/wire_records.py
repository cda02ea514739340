"""Produce and Fetch on the raw client: one batch in, one batch out, and their answers."""

from __future__ import annotations

import struct
from typing import Final

from bench import wire
from tests.harness.batches import build

PRODUCE: Final = 0
FETCH: Final = 1
_ARRAY_OF_ONE: Final = b"\0\0\0\1"


def batch(records: int, size: int) -> bytes:
    """A batch of so many records, each with a value of ``size`` zeros and no key."""
    return build([(1, None, bytes(size))] * records)


def produce_request(topic: str, partition: int, records: bytes, acks: int = 1) -> bytes:
    """Produce v8 of one batch."""
    head = struct.pack(">hhi", -1, acks, 30_000) + _ARRAY_OF_ONE + wire.string(topic)
    head += _ARRAY_OF_ONE + struct.pack(">ii", partition, len(records))
    return wire.frame(PRODUCE, 8, head + records, flexible=False)


def decode_produce(answer: bytes | bytearray) -> int:
    """The base offset in a Produce v8 answer of one partition.

    :raises bench.wire.BadAnswer: When the partition carries an error.
    """
    reader = wire.Reader(bytes(answer), 8)
    reader.string()
    reader.take(8)  # one partition, and its index
    error = reader.int16()
    if error:
        raise wire.BadAnswer(f"Produce answered error {error}")
    return reader.int64()


def fetch_request(topic: str, partition: int, offset: int, limit: int = 1 << 20) -> bytes:
    """Fetch v11 of one partition, without a session: at most ``limit`` bytes, or one batch."""
    body = struct.pack(">iiiibii", -1, 500, 1, limit, 0, 0, -1) + _ARRAY_OF_ONE
    body += wire.string(topic) + _ARRAY_OF_ONE
    body += struct.pack(">iiqqi", partition, -1, offset, -1, limit)
    body += b"\0\0\0\0" + wire.string("")  # forgotten topics, rack
    return wire.frame(FETCH, 11, body, flexible=False)


def decode_fetch(answer: bytes | bytearray) -> int:
    """The bytes of records in a Fetch v11 answer of one partition.

    :raises bench.wire.BadAnswer: When the partition carries an error.
    """
    reader = wire.Reader(bytes(answer[:200]), 8)
    error = reader.int16()
    reader.take(8)  # session, topics
    reader.string()
    reader.take(8)  # one partition, and its index
    error = error or reader.int16()
    if error:
        raise wire.BadAnswer(f"Fetch answered error {error}")
    reader.take(24)  # high watermark, last stable offset, log start
    aborted = reader.int32()
    reader.take(16 * max(aborted, 0) + 4)  # and the preferred replica
    return max(reader.int32(), 0)
