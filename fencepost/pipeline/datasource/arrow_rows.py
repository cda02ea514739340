"""Batches and records as Arrow: see `schemas` for the columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fencepost.pipeline.datasource.batch_bodies import DecodedBatches
from fencepost.pipeline.datasource.batch_headers import Batches, Findings, Integers
from fencepost.pipeline.datasource.blobs import Bytes
from fencepost.pipeline.datasource.record_columns import Field
from fencepost.pipeline.datasource.schemas import BATCHES, RECORDS, Problem
from fencepost.pipeline.datasource.segments import SegmentFiles
from fencepost.protocol.records import (
    CONTROL_FLAG,
    LOG_APPEND_TIME_FLAG,
    MAX_SEQUENCE,
    NO_SEQUENCE,
    TRANSACTIONAL_FLAG,
)

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


def batch_rows(files: SegmentFiles, batches: Batches, findings: Findings) -> pa.RecordBatch:
    """A row for each batch.

    :param batches: By their positions in the segment.
    """
    columns: dict[str, pa.Array] = dict(_segment_columns(files, len(batches), BATCHES))
    columns |= {name: _numbers(BATCHES, name, batches.field(name)) for name in _COPIED}
    columns["position"] = pa.array(batches.at)
    columns["size"] = pa.array(batches.sizes)
    columns["last_offset"] = pa.array(batches.last_offsets)
    columns["problem"] = _sparse(
        {at: problem.value for at, (problem, _) in findings.items()}, len(batches)
    )
    columns["message"] = _sparse({at: what for at, (_, what) in findings.items()}, len(batches))
    return _in_order(columns, BATCHES)


def problem_rows(files: SegmentFiles, rows: Sequence[ProblemRow]) -> pa.RecordBatch:
    """A row for each problem that is not one batch's."""
    positions, sizes, problems, messages = zip(*rows, strict=True)
    columns = {
        name: pa.nulls(len(rows), BATCHES.field(name).type) for name in BATCHES.names
    } | dict(_segment_columns(files, len(rows), BATCHES))
    columns["position"] = pa.array(positions, pa.int64())
    columns["size"] = pa.array(sizes, pa.int64())
    columns["problem"] = pa.array([problem.value for problem in problems], pa.string())
    columns["message"] = pa.array(messages, pa.string())
    return _in_order(columns, BATCHES)


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
    said = {
        "topic": files.topic,
        "partition": files.partition,
        "place": files.place.value,
        "broker": files.broker,
        "segment": files.segment,
        "segment_id": files.segment_id,
    }
    return {
        name: pa.repeat(pa.scalar(value, schema.field(name).type), count)
        for name, value in said.items()
    }


def _numbers(schema: pa.Schema, name: str, column: Integers) -> pa.Array:
    kind = schema.field(name).type
    return pa.array(column.astype(kind.to_pandas_dtype(), copy=False))


def _sparse(said: Mapping[int, str], count: int) -> pa.StringArray:
    if not said:
        return pa.nulls(count, pa.string())
    column: npt.NDArray[np.object_] = np.full(count, None, object)
    for at, value in said.items():
        column[at] = value
    return pa.array(column, pa.string())


def _in_order(columns: Mapping[str, pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
