"""Rows of Arrow as Kafka's batches, many at a time, without a step of Python for each row.

The lengths and deltas of all rows are written at once, as columns of varints; then the columns are
joined row by row by Arrow, whose buffer is the batches. What stands for a record is, in its order:

    length, attributes, timestamp delta, offset delta, key length    varints, side by side
    key                                                              as it is
    value length                                                     varint
    value                                                            as it is
    number of headers, headers                                       0, mostly

The rows of one partition are cut into chunks, each the batches of one request. Where a batch ends
and where a chunk ends depends on the rows and their order alone, whether they come all at once or a
few at a time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.client.batches import EncodedBatch, EncodedRecords
from fencepost.protocol.compression import Codec, compress
from fencepost.protocol.records import HEADER_SIZE, build_header

Ints: TypeAlias = npt.NDArray[np.int64]
Bytes: TypeAlias = npt.NDArray[np.uint8]

MAX_RECORD_OVERHEAD: Final = 36
"""The most that lengths, attributes, deltas and the number of headers of a record take."""
MAX_HEADER_OVERHEAD: Final = 10
"""The most that the two lengths of a record header take."""
_NO_HEADERS: Final = b"\x00"
_ATTRIBUTES: Final = 0
_NULL: Final = -1
"""The length of what is null."""


def max_record_sizes(rows: pa.RecordBatch) -> Ints:
    """What each row takes as a record, at most, before compression."""
    size = (
        MAX_RECORD_OVERHEAD
        + np.maximum(_lengths(rows["key"]), 0)
        + np.maximum(_lengths(rows["value"]), 0)
    )
    headers = _headers(rows)
    if headers is not None:
        of_headers, offsets = _header_sizes(headers)
        sums = np.concatenate([[0], np.cumsum(of_headers + MAX_HEADER_OVERHEAD)])
        size += sums[offsets[1:]] - sums[offsets[:-1]]
    return size


def encode_batches(
    rows: pa.RecordBatch, bounds: Sequence[int], codec: Codec = Codec.NONE
) -> list[EncodedBatch]:
    """Rows as batches, each at base offset 0.

    :param rows: At least one; the columns ``key``, ``value`` (binary), ``timestamp`` (int64, ms)
        and, where there are any, ``headers`` (list of key and value).
    :param bounds: Which row each batch begins with, and behind which the last one ends: of all.
    """
    places: Ints = np.asarray(bounds, np.int64)
    timestamps: Ints = rows["timestamp"].to_numpy()
    first, latest = timestamps[places[:-1]], np.maximum.reduceat(timestamps, places[:-1])
    body, ends = _bodies(rows, timestamps, places)
    batches = []
    for at, count in enumerate(np.diff(places).tolist()):
        packed = body[ends[at] : ends[at + 1]]
        if codec is not Codec.NONE:
            packed = memoryview(compress(codec, packed))
        header = build_header(
            packed,
            count=count,
            base_timestamp=int(first[at]),
            max_timestamp=int(latest[at]),
            codec=codec,
        )
        batches.append(EncodedBatch(header, packed))
    return batches


def encode_varints(columns: Sequence[Ints]) -> pa.BinaryArray:
    """Numbers as zigzag varints, those of a row side by side."""
    parts = [_varint_bytes(each) for each in columns]
    data = np.hstack([data for data, _ in parts])
    used = np.hstack([used for _, used in parts])
    return _binary(data[used], used.sum(axis=1))


def varint_sizes(numbers: Ints) -> Ints:
    """How many bytes each number takes as a varint."""
    rest = _zigzag(numbers)
    sizes = np.ones(len(numbers), np.int64)
    while (rest := rest >> np.uint64(7)).any():
        sizes += rest != 0
    return sizes


# -- the body of a batch ------------------------------------------------------------------------


def _bodies(
    rows: pa.RecordBatch, timestamps: Ints, places: Ints
) -> tuple[memoryview, Sequence[int]]:
    """The records of all batches, and where in them each batch begins, and the last one ends."""
    counts = np.diff(places)
    keys, values = _lengths(rows["key"]), _lengths(rows["value"])
    headers = _headers(rows)
    suffix = None if headers is None else _encoded_headers(headers)
    inside = [
        timestamps - np.repeat(timestamps[places[:-1]], counts),
        np.arange(rows.num_rows, dtype=np.int64) - np.repeat(places[:-1], counts),
        keys,
    ]
    length = 1 + np.maximum(keys, 0) + np.maximum(values, 0) + varint_sizes(values)
    length += len(_NO_HEADERS) if suffix is None else _lengths(suffix)
    for column in inside:
        length += varint_sizes(column)
    attributes = np.full(rows.num_rows, _ATTRIBUTES, np.int64)
    joined = pc.binary_join_element_wise(
        encode_varints([length, attributes, *inside]),
        _filled(rows["key"]),
        encode_varints([values]),
        _filled(rows["value"]),
        _NO_HEADERS if suffix is None else suffix,
        b"",
    )
    _, ends, data = joined.buffers()
    starts: list[int] = np.frombuffer(ends, np.int32)[joined.offset + places].tolist()
    return memoryview(data), starts


def _lengths(column: pa.Array) -> Ints:
    """Of each value in bytes, -1 where it is null."""
    lengths: Ints = pc.fill_null(pc.binary_length(column), _NULL).to_numpy().astype(np.int64)
    return lengths


def _filled(column: pa.Array) -> pa.Array:
    return column.fill_null(b"") if column.null_count else column


# -- headers ------------------------------------------------------------------------------------


def _headers(rows: pa.RecordBatch) -> pa.ListArray | None:
    """The column of headers, None where no row has any."""
    if "headers" not in rows.schema.names:
        return None
    column = rows["headers"]
    return column if len(column.flatten()) else None


def _header_bounds(headers: pa.ListArray) -> Ints:
    """Where each row's headers begin among all of them, and where the last row's end."""
    counts = pc.fill_null(pc.list_value_length(headers), 0).to_numpy()
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _header_sizes(headers: pa.ListArray) -> tuple[Ints, Ints]:
    names, values = headers.flatten().flatten()
    size = _lengths(_as_binary(names)) + np.maximum(_lengths(_as_binary(values)), 0)
    return size, _header_bounds(headers)


def _encoded_headers(headers: pa.ListArray) -> pa.BinaryArray:
    """Of each row: how many there are, and the headers themselves."""
    names, values = (_as_binary(each) for each in headers.flatten().flatten())
    each = pc.binary_join_element_wise(
        encode_varints([_lengths(names)]),
        names,
        encode_varints([_lengths(values)]),
        _filled(values),
        b"",
    )
    bounds = _header_bounds(headers)
    ends = np.frombuffer(each.buffers()[1], np.int32)[: len(each) + 1]
    of_row = pa.BinaryArray.from_buffers(
        pa.binary(),
        len(headers),
        [None, pa.py_buffer(ends[bounds].astype(np.int32)), each.buffers()[2]],
    )
    return pc.binary_join_element_wise(encode_varints([np.diff(bounds)]), of_row, b"")


def _as_binary(column: pa.Array) -> pa.Array:
    return column.cast(pa.binary())


# -- varints ------------------------------------------------------------------------------------


def _zigzag(numbers: Ints) -> npt.NDArray[np.uint64]:
    return ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)


def _varint_bytes(numbers: Ints) -> tuple[Bytes, npt.NDArray[np.bool_]]:
    """The bytes of each number in a row as long as the longest, and which of them are used."""
    rest = _zigzag(numbers)
    columns, used = [], [np.ones(len(numbers), np.bool_)]
    while True:
        more = rest >> np.uint64(7)
        goes_on = more != 0
        low = (rest & np.uint64(0x7F)).astype(np.uint8)
        columns.append(low | (goes_on.astype(np.uint8) << 7))
        if not goes_on.any():
            return np.column_stack(columns), np.column_stack(used)
        used.append(goes_on)
        rest = more


def _binary(data: Bytes, lengths: Ints) -> pa.BinaryArray:
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.BinaryArray.from_buffers(pa.binary(), len(lengths), buffers)


DEFAULT_BATCH_RECORDS: Final = 10_000
DEFAULT_BATCH_BYTES: Final = 1 << 18
DEFAULT_CHUNK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """Where one batch ends, and where one chunk does. Bytes are those before compression."""

    batch_records: int = DEFAULT_BATCH_RECORDS
    batch_bytes: int = DEFAULT_BATCH_BYTES
    """At most, unless one record is larger by itself."""
    chunk_bytes: int = DEFAULT_CHUNK_BYTES
    """A chunk ends with the batch that reaches it."""
    codec: Codec = Codec.NONE

    def __post_init__(self) -> None:
        if min(self.batch_records, self.batch_bytes, self.chunk_bytes) < 1:
            raise ValueError("a batch holds one record at least")


class ChunkBuilder:
    """Takes rows, and gives chunks as soon as it is clear where they end."""

    def __init__(self, limits: BatchLimits) -> None:
        self._limits = limits
        self._rest: pa.RecordBatch | None = None
        """Rows whose batch may go on."""
        self._batches: list[EncodedBatch] = []
        self._bytes = 0

    def add(self, rows: pa.RecordBatch) -> Iterator[EncodedRecords]:
        """The chunks that these rows complete."""
        if self._rest is not None:
            rows = pa.concat_batches([self._rest, rows])
        sums = np.concatenate([[0], np.cumsum(max_record_sizes(rows))])
        bounds = [0]
        while (end := self._end(sums, bounds[-1])) is not None:
            bounds.append(end)
        whole = bounds[-1]
        self._rest = rows.slice(whole) if whole < rows.num_rows else None
        if whole:
            yield from self._encode(rows.slice(0, whole), bounds, np.diff(sums[bounds]).tolist())

    def finish(self) -> Iterator[EncodedRecords]:
        """The chunk that is left, if there is one."""
        if self._rest is not None:
            rest, self._rest = self._rest, None
            yield from self._encode(rest, [0, rest.num_rows], [0])
        if self._batches:
            yield self._chunk()

    def _end(self, sums: "np.ndarray[tuple[int], np.dtype[np.int64]]", start: int) -> int | None:
        """Where the batch ends that begins with a row (exclusive), None while it may go on."""
        room = sums[start] + self._limits.batch_bytes - HEADER_SIZE
        fits = int(np.searchsorted(sums, room, side="right")) - 1
        end = min(max(fits, start + 1), start + self._limits.batch_records)
        # With all rows in it, the next one could still fit, unless one row alone is too large.
        return end if end < len(sums) - 1 else None

    def _encode(
        self, rows: pa.RecordBatch, bounds: Sequence[int], sizes: Sequence[int]
    ) -> Iterator[EncodedRecords]:
        for batch, size in zip(
            encode_batches(rows, bounds, self._limits.codec), sizes, strict=True
        ):
            self._batches.append(batch)
            self._bytes += size
            if self._bytes >= self._limits.chunk_bytes:
                yield self._chunk()

    def _chunk(self) -> EncodedRecords:
        batches, self._batches, self._bytes = self._batches, [], 0
        return EncodedRecords(batches)
