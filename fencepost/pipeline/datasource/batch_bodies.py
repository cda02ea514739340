"""The records behind the headers of batches: unpacked, read, and compared with the headers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from fencepost.pipeline.datasource.batch_headers import Batches, Integers
from fencepost.pipeline.datasource.blobs import PADDING, Window
from fencepost.pipeline.datasource.record_columns import (
    RecordBodies,
    RecordHeaders,
    Records,
    read_headers,
    read_records,
)
from fencepost.protocol.compression import CompressionError, decompress
from fencepost.protocol.records import CODEC_MASK, HEADER_SIZE, LOG_APPEND_TIME_FLAG

MAX_DECOMPRESSED_BYTES: Final = 16 << 20
"""Bytes after which no further batch is unpacked until those are done with."""
_MAX_BATCH_BYTES: Final = 1 << 30
"""What a batch may unpack to: Kafka knows no bound but that of an array."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedBatches:
    """The records of some batches of a window.

    :ivar numbers: Which batches, by their number in the window; `records.batch` and the like are
        indexes into it.
    :ivar headers: Of the records, where `Records.header_counts` says so.
    :ivar problems: What is wrong with a batch's records, by its number in the window. Such have
        no records here.
    """

    numbers: Integers
    bodies: RecordBodies
    records: Records
    headers: RecordHeaders
    problems: dict[int, str]


def decode_bodies(window: Window, batches: Batches, numbers: Integers) -> Iterator[DecodedBatches]:
    """The records of batches, some batches at a time, in their order.

    :param numbers: Which batches, rising: those that have their checksum.
    """
    codecs = batches.field("attributes") & CODEC_MASK
    if not codecs[numbers].any():
        if len(numbers):
            yield _decode(batches, numbers, _in_place(window, batches, numbers), {})
        return
    parts: list[bytes | memoryview] = []
    chosen: list[int] = []
    problems: dict[int, str] = {}
    unpacked = 0
    for number in numbers.tolist():
        start = int(batches.at[number])
        body = window.view[start + HEADER_SIZE : start + int(batches.sizes[number])]
        try:
            packed = len(body) > 0
            plain = (
                decompress(int(codecs[number]), body, limit=_MAX_BATCH_BYTES) if packed else body
            )
        except CompressionError as error:
            problems[number] = f"the records do not unpack: {error}"
            continue
        parts.append(memoryview(plain))
        chosen.append(number)
        unpacked += len(plain)
        if unpacked >= MAX_DECOMPRESSED_BYTES:
            yield _decode(batches, np.array(chosen), _joined(batches, parts, chosen), problems)
            parts, chosen, problems, unpacked = [], [], {}, 0
    yield _decode(batches, np.array(chosen, np.int64), _joined(batches, parts, chosen), problems)


def _in_place(window: Window, batches: Batches, numbers: Integers) -> RecordBodies:
    at = batches.at[numbers]
    return RecordBodies(
        data=window.data,
        starts=at + HEADER_SIZE,
        ends=at + batches.sizes[numbers],
        counts=batches.field("count")[numbers],
    )


def _joined(batches: Batches, parts: list[bytes | memoryview], numbers: list[int]) -> RecordBodies:
    ends = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return RecordBodies(
        data=np.frombuffer(b"".join([*parts, bytes(PADDING)]), np.uint8),
        starts=ends[:-1],
        ends=ends[1:],
        counts=batches.field("count")[np.array(numbers, np.int64)],
    )


def _decode(
    batches: Batches, numbers: Integers, bodies: RecordBodies, problems: dict[int, str]
) -> DecodedBatches:
    records = read_records(bodies)
    records = records.without(_header_mismatches(batches, numbers, records))
    headers = _headers(bodies, records)
    if headers.wrong.any():
        wrong = np.unique(records.batch[headers.wrong]).tolist()
        records = records.without(dict.fromkeys(wrong, "the headers of a record do not parse"))
        headers = _headers(bodies, records)
    found = {int(numbers[at]): what for at, what in records.problems.items()}
    return DecodedBatches(
        numbers=numbers,
        bodies=bodies,
        records=records,
        headers=headers,
        problems=problems | found,
    )


def _headers(bodies: RecordBodies, records: Records) -> RecordHeaders:
    return read_headers(bodies.data, records.headers_at, records.ends, records.header_counts)


def _header_mismatches(batches: Batches, numbers: Integers, records: Records) -> dict[int, str]:
    """What headers say of offsets and times that the records do not."""
    if not len(records):
        return {}
    starts = np.flatnonzero(np.diff(records.batch, prepend=-1))
    which = records.batch[starts]
    number = numbers[which]
    ends = np.append(starts[1:], len(records)) - 1
    step = np.diff(records.offsets, prepend=-1)
    step[starts] = 1
    rises = np.minimum.reduceat(step, starts) > 0
    within = (records.offsets[starts] >= 0) & (
        records.offsets[ends] <= batches.field("last_offset_delta")[number]
    )
    latest = np.maximum.reduceat(records.times, starts) + batches.field("base_timestamp")[number]
    by_broker = (batches.field("attributes")[number] & LOG_APPEND_TIME_FLAG) != 0
    timely = by_broker | (latest == batches.field("max_timestamp")[number])
    wrong: dict[int, str] = {}
    for right, what in (
        (rises, "the offsets of the records do not rise"),
        (within, "offsets of records lie outside of their batch"),
        (timely, "the largest timestamp of the records is not the one in the header"),
    ):
        for at in which[~right].tolist():
            wrong.setdefault(at, what)
    return wrong
