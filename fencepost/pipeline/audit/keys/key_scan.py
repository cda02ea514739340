"""Reads the keys of a segment: the newest record of each, and what tells which records count."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fencepost.pipeline.audit.batch_arrays import Int64Array
from fencepost.pipeline.audit.keys.newest_records import (
    DECIDED,
    HEAD,
    KEYED,
    MARKER,
    Rows,
    decided,
    first_markers,
    newest,
)
from fencepost.pipeline.audit.keys.span_hashes import field_hashes, field_heads
from fencepost.pipeline.datasource.batch_bodies import DecodedBatches, decode_bodies
from fencepost.pipeline.datasource.batch_headers import Batches, Findings
from fencepost.pipeline.datasource.control_records import NO_MARKER, read_markers
from fencepost.pipeline.datasource.segment_scan import scan_sound, sound_batches
from fencepost.pipeline.datasource.segments import SegmentFiles, Window
from fencepost.protocol.records import CONTROL_FLAG, LOG_APPEND_TIME_FLAG, TRANSACTIONAL_FLAG

RECORD, TOMBSTONE, ENDED, SEGMENT, UNREAD = range(5)
"""Kinds of rows: of a key; of one whose value is null; the end of a transaction; offsets of a
segment; a segment that could not be read."""
KEYS: Final = pa.schema(
    (
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("part", pa.int32()),  # of the keys of the partition; rows that are of no key are in each
        ("broker", pa.int32()),
        ("kind", pa.int8()),
        ("hash", pa.int64()),  # of the key
        ("offset", pa.int64()),  # of the record or the marker; the first of a segment
        ("value", pa.int64()),  # a hash of the value; 1 where a transaction was committed, 0 where
        # not; of a segment the offset behind its last record
        ("time", pa.int64()),
        ("producer", pa.int64()),  # of a marker, or of a record whose transaction is open
        ("size", pa.int64()),  # of the key, in bytes
        *((name, pa.int64()) for name in HEAD),
    )
)
"""Rows of a segment, which go to tasks by ``topic``, ``partition`` and ``part``."""
OF_RECORD: Final = ("hash", "offset", "value", "time", "producer", "size", *HEAD)
"""Columns of a record that `KEYED` has too."""
_MOST: Final = 1 << 18


def scan_keys(files: SegmentFiles, parts: int, *, most: int = _MOST) -> Iterator[pa.RecordBatch]:
    """A segment's rows of `KEYS`, of its sound batches.

    :param parts: How many the keys of the partition are divided into.
    :param most: Records that are held at once: where a segment has more keys, rows are made of
        stretches of it as if these were segments.
    """
    stretch, end = _Stretch(), files.segment
    try:
        for window, batches, findings in scan_sound(files):
            numbers = sound_batches(batches, findings)
            if len(numbers):
                end = max(end, int(batches.last_offsets[numbers].max()) + 1)
                stretch.add(window, batches, findings)
            if stretch.is_full(most):
                yield from _stretch_rows(files, stretch, parts)
                stretch = _Stretch()
    except OSError:
        yield _rows(files, _everywhere(parts), UNREAD)
        return
    yield from _stretch_rows(files, stretch, parts)
    yield _rows(files, _everywhere(parts), SEGMENT, offset=files.segment, value=end)


def _stretch_rows(files: SegmentFiles, stretch: _Stretch, parts: int) -> Iterator[pa.RecordBatch]:
    records, markers = stretch.condensed()
    hashes = records["hash"].view(np.uint64)
    yield _rows(
        files,
        (hashes % np.uint64(parts)).astype(np.int32),
        np.where(records["tombstone"], TOMBSTONE, RECORD),
        **{name: records[name] for name in OF_RECORD},
    )
    at_once = max(_MOST // parts, 1)
    for some in (markers[at : at + at_once] for at in range(0, len(markers), at_once)):
        yield _rows(
            files,
            np.repeat(_everywhere(parts), len(some)),
            ENDED,
            offset=np.tile(some["offset"], parts),
            value=np.tile(some["committed"], parts),
            producer=np.tile(some["producer"], parts),
        )


class _Stretch:
    """The records and markers of a stretch of a segment.

    Only the newest records of a key are held, and what came since these were last looked for.
    """

    def __init__(self) -> None:
        self._records: list[Rows] = []
        self._markers: list[Rows] = []

    def add(self, window: Window, batches: Batches, findings: Findings) -> None:
        """Take in what comes next."""
        numbers = sound_batches(batches, findings)
        plain = numbers[(batches.field("attributes")[numbers] & CONTROL_FLAG) == 0]
        for opened in decode_bodies(window, batches, plain):
            self._records.append(_keyed(batches, opened))
        self._markers.append(_markers(window, batches, findings))

    def is_full(self, most: int) -> bool:
        """Whether so many records are held, and half of them or more are needed."""
        if sum(map(len, self._records)) < most:
            return False
        return 2 * len(self.condensed()[0]) >= most

    def condensed(self) -> tuple[Rows, Rows]:
        """The newest records of each key, and of each producer the first marker."""
        markers = np.concatenate((np.zeros(0, MARKER), *self._markers))
        records = np.concatenate((np.zeros(0, KEYED), *self._records))
        records, markers = newest(decided(records, markers)), first_markers(markers)
        self._records, self._markers = [records], [markers]
        return records, markers


def _markers(window: Window, batches: Batches, findings: Findings) -> Rows:
    kinds = read_markers(window, batches, findings).kinds
    which = np.flatnonzero(kinds != NO_MARKER)
    markers = np.zeros(len(which), MARKER)
    markers["producer"] = batches.field("producer_id")[which]
    markers["offset"] = batches.field("base_offset")[which]
    markers["committed"] = kinds[which]
    return markers


def _keyed(batches: Batches, opened: DecodedBatches) -> Rows:
    records, data = opened.records, opened.bodies.data
    which = np.flatnonzero(records.keys.sizes >= 0)
    batch = opened.numbers[records.batch[which]]
    attributes = batches.field("attributes")[batch]
    values = records.values.select(which)
    by_broker = (attributes & LOG_APPEND_TIME_FLAG) != 0
    times = records.times[which] + batches.field("base_timestamp")[batch]
    is_transactional = (attributes & TRANSACTIONAL_FLAG) != 0
    found = np.zeros(len(which), KEYED)
    keys = records.keys.select(which)
    found["hash"] = field_hashes(data, keys).view(np.int64)
    found["size"] = keys.sizes
    for name, head in zip(HEAD, field_heads(data, keys, len(HEAD)), strict=True):
        found[name] = head.view(np.int64)
    found["offset"] = batches.field("base_offset")[batch] + records.offsets[which]
    found["value"] = field_hashes(data, values).view(np.int64)
    found["tombstone"] = values.sizes < 0
    found["time"] = np.where(by_broker, batches.field("max_timestamp")[batch], times)
    found["producer"] = np.where(is_transactional, batches.field("producer_id")[batch], DECIDED)
    return found


def _everywhere(parts: int) -> npt.NDArray[np.int32]:
    return np.arange(parts, dtype=np.int32)


def _rows(
    files: SegmentFiles,
    part: npt.NDArray[np.int32],
    kind: int | Int64Array,
    **columns: npt.NDArray[np.generic] | int,
) -> pa.RecordBatch:
    """Rows of `KEYS`, as many as there are parts said.

    :param columns: Those that are not null; a number is that of each.
    """
    constant = {"topic": files.topic, "partition": files.partition, "broker": files.broker}
    given = {"part": part, "kind": kind, **columns}
    arrays = []
    for field in KEYS:
        if field.name in constant:
            value = pa.scalar(constant[field.name], field.type)
            arrays.append(pa.repeat(value, len(part)))
        elif field.name in given:
            array = np.broadcast_to(np.asarray(given[field.name]), part.shape)
            arrays.append(pa.array(array.astype(field.type.to_pandas_dtype()), field.type))
        else:
            arrays.append(pa.nulls(len(part), field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=KEYS)
