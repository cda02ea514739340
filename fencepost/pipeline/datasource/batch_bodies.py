"""The records of batches: decompressed, parsed, compared with the headers, and as Arrow columns.

`schemas` has the columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fencepost.pipeline.datasource.batch_headers import Batches, Findings, Integers
from fencepost.pipeline.datasource.control_records import Markers
from fencepost.pipeline.datasource.record_columns import (
    Field,
    RecordBodies,
    RecordHeaders,
    Records,
    read_headers,
    read_records,
)
from fencepost.pipeline.datasource.schemas import BATCHES, RECORDS, Problem
from fencepost.pipeline.datasource.segments import PADDING, Bytes, SegmentFiles, Window
from fencepost.protocol.compression import CompressionError, decompress
from fencepost.protocol.records import (
    CODEC_MASK,
    CONTROL_FLAG,
    HEADER_SIZE,
    LOG_APPEND_TIME_FLAG,
    MAX_SEQUENCE,
    NO_SEQUENCE,
    TRANSACTIONAL_FLAG,
)

MAX_DECOMPRESSED_BYTES: Final = 16 << 20
"""Bytes after which no further batch is unpacked until those are done with."""
_FEW: Final = 64
"""Rows, such as a small segment has batches: columns of nulls are kept that are no longer."""
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


ProblemRow = tuple[int | None, int | None, Problem, str]
"""A problem that is not one batch's: position, size, problem and message."""

_COPIED: Final = (
    "base_offset",
    "count",
    "epoch",
    "crc",
    "attributes",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
)
"""Columns of `BATCHES` that are fields of the header, of the same name."""


def batch_rows(
    files: SegmentFiles, batches: Batches, findings: Findings, markers: Markers
) -> pa.RecordBatch:
    """A row for each batch.

    :param batches: By their positions in the segment.
    """
    columns = _null_columns(files, len(batches)) | _header_columns(batches, markers)
    columns["problem"] = _sparse(
        {at: problem.value for at, (problem, _) in findings.items()}, len(batches)
    )
    columns["message"] = _sparse({at: what for at, (_, what) in findings.items()}, len(batches))
    return _in_order(columns, BATCHES)


def rows_of_segments(
    segments: Sequence[SegmentFiles], counts: Integers, batches: Batches, markers: Markers
) -> pa.RecordBatch:
    """A row for each batch of several segments, without problems.

    :param counts: How many batches each has.
    :param batches: By segment, and by their positions in it.
    """
    columns = _nulls(len(batches)) | _columns_of_segments(segments, counts)
    return _in_order(columns | _header_columns(batches, markers), BATCHES)


def _header_columns(batches: Batches, markers: Markers) -> dict[str, pa.Array]:
    columns = {name: _numbers(BATCHES, name, batches.field(name)) for name in _COPIED}
    columns["position"] = pa.array(batches.at)
    columns["size"] = pa.array(batches.sizes)
    columns["last_offset"] = pa.array(batches.last_offsets)
    columns["marker"] = markers.kind_column()
    columns["coordinator_epoch"] = markers.epoch_column()
    return columns


def problem_rows(files: SegmentFiles, rows: Sequence[ProblemRow]) -> pa.RecordBatch:
    """A row for each problem that is not one batch's."""
    positions, sizes, problems, messages = zip(*rows, strict=True)
    columns = _null_columns(files, len(rows))
    columns["position"] = pa.array(positions, pa.int64())
    columns["size"] = pa.array(sizes, pa.int64())
    columns["problem"] = pa.array([problem.value for problem in problems], pa.string())
    columns["message"] = pa.array(messages, pa.string())
    return _in_order(columns, BATCHES)


def file_rows(files: SegmentFiles, contents: Mapping[str, bytes]) -> pa.RecordBatch:
    """A row for each file beside a segment.

    :param contents: By their names.
    """
    columns = _null_columns(files, len(contents))
    columns["file"] = pa.array(contents.keys(), pa.string())
    columns["content"] = pa.array(contents.values(), pa.binary())
    return _in_order(columns, BATCHES)


def rows_of_files(beside: Sequence[tuple[SegmentFiles, Mapping[str, bytes]]]) -> pa.RecordBatch:
    """A row for each file beside several segments, as `file_rows`."""
    counts = np.array([len(contents) for _, contents in beside])
    columns = _nulls(int(counts.sum())) | _columns_of_segments([f for f, _ in beside], counts)
    names = [name for _, contents in beside for name in contents]
    columns["file"] = pa.array(names, pa.string())
    columns["content"] = pa.array([c for _, own in beside for c in own.values()], pa.binary())
    return _in_order(columns, BATCHES)


def _null_columns(files: SegmentFiles, count: int) -> dict[str, pa.Array]:
    """Rows of `BATCHES` that say their segment alone."""
    nulls = _few_nulls(count) if count <= _FEW else _nulls(count)
    return {**nulls, **_segment_columns(files, count, BATCHES)}


def _nulls(count: int) -> dict[str, pa.Array]:
    return {name: pa.nulls(count, BATCHES.field(name).type) for name in BATCHES.names}


_few_nulls: Final = lru_cache(maxsize=_FEW + 1)(_nulls)
"""Made once: where segments are small, they take as long as to read these."""


def record_rows(files: SegmentFiles, batches: Batches, opened: DecodedBatches) -> pa.RecordBatch:
    """A row for each record."""
    records, data = opened.records, opened.bodies.data
    batch = opened.numbers[records.batch]
    base = batches.field("base_offset")[batch]
    attributes = batches.field("attributes")[batch]
    by_broker = (attributes & LOG_APPEND_TIME_FLAG) != 0
    times = records.times + batches.field("base_timestamp")[batch]
    sequence = batches.field("base_sequence")[batch]
    numbered = (sequence + records.offsets) & MAX_SEQUENCE
    columns: dict[str, pa.Array] = dict(_segment_columns(files, len(records), RECORDS))
    numbers = {
        "base_offset": base,
        "offset": base + records.offsets,
        "epoch": batches.field("epoch")[batch],
        "timestamp": np.where(by_broker, batches.field("max_timestamp")[batch], times),
        "producer_id": batches.field("producer_id")[batch],
        "producer_epoch": batches.field("producer_epoch")[batch],
        "sequence": np.where(sequence == NO_SEQUENCE, NO_SEQUENCE, numbered),
    }
    columns |= {name: _numbers(RECORDS, name, column) for name, column in numbers.items()}
    columns["key"] = binary(data, records.keys)
    columns["value"] = binary(data, records.values)
    columns["headers"] = _header_column(data, opened)
    columns["control"] = pa.array((attributes & CONTROL_FLAG) != 0)
    columns["transactional"] = pa.array((attributes & TRANSACTIONAL_FLAG) != 0)
    return _in_order(columns, RECORDS)


def binary(data: Bytes, field: Field) -> pa.BinaryArray:
    """The bytes of a field of each record, copied; null where it is null.

    :param field: Rising: each lies behind the one before it.
    """
    count = len(field.at)
    if not count:
        return pa.array([], pa.binary())
    # Every second element of an array over all the bytes: Arrow copies runs, not single bytes.
    bounds = np.empty(2 * count + 1, np.int32)
    bounds[0] = 0
    bounds[1::2] = field.at
    bounds[2::2] = field.at + np.maximum(field.sizes, 0)
    whole = pa.Array.from_buffers(
        pa.binary(), 2 * count, [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    )
    wanted = pa.array(np.arange(1, 2 * count, 2), mask=field.sizes < 0)
    found: pa.BinaryArray = whole.take(wanted)
    return found


def _header_column(data: Bytes, opened: DecodedBatches) -> pa.ListArray:
    headers = opened.headers
    kind = RECORDS.field("headers").type
    bounds = np.zeros(len(opened.records) + 1, np.int32)
    np.cumsum(opened.records.header_counts, out=bounds[1:])
    columns = [text(binary(data, headers.names)), binary(data, headers.values)]
    found: pa.ListArray = pa.ListArray.from_arrays(
        pa.array(bounds),
        pa.StructArray.from_arrays(columns, fields=list(kind.value_type)),
        type=kind,
    )
    return found


def text(names: pa.BinaryArray) -> pa.StringArray:
    """Names as text; what is no UTF-8 in them is replaced, as Java does."""
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([name.as_py().decode("utf-8", "replace") for name in names], pa.string())


def _segment_columns(files: SegmentFiles, count: int, schema: pa.Schema) -> Mapping[str, pa.Array]:
    """The columns that say which segment it is."""
    texts = {
        "topic": files.topic,
        "partition": files.partition,
        "place": files.place.value,
        "broker": files.broker,
        "segment": files.segment,
        "segment_id": files.segment_id,
    }
    return {
        name: pa.repeat(pa.scalar(value, schema.field(name).type), count)
        for name, value in texts.items()
    }


def _columns_of_segments(segments: Sequence[SegmentFiles], counts: Integers) -> dict[str, pa.Array]:
    """The columns that say which segment each row is of."""
    of_row = pa.array(np.repeat(np.arange(len(segments)), counts))
    found = {}
    for name in ("topic", "partition", "place", "broker", "segment", "segment_id"):
        values = [getattr(files, name) for files in segments]
        found[name] = pa.array(values, BATCHES.field(name).type).take(of_row)
    return found


def _numbers(schema: pa.Schema, name: str, column: Integers) -> pa.Array:
    return pa.array(column.astype(_numpy_type(schema.field(name).type), copy=False))


@cache
def _numpy_type(kind: pa.DataType) -> type[np.generic]:
    found: type[np.generic] = kind.to_pandas_dtype()
    return found


def _sparse(texts: Mapping[int, str], count: int) -> pa.StringArray:
    if not texts:
        return pa.nulls(count, pa.string())
    column: npt.NDArray[np.object_] = np.full(count, None, object)
    for at, value in texts.items():
        column[at] = value
    return pa.array(column, pa.string())


def _in_order(columns: Mapping[str, pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
