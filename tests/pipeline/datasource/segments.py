"""Segments in files of their own, written as a broker writes them."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from fencepost.pipeline.datasource.schemas import BATCHES, RECORDS, Place
from fencepost.pipeline.datasource.segment_scan import Checks, scan_batches, scan_records
from fencepost.pipeline.datasource.segments import SegmentFiles
from fencepost.protocol.compression import Codec
from fencepost.protocol.records import (
    BatchHeader,
    Record,
    iter_headers,
    stamp_timestamps,
)
from fencepost.storage.files.index_lookup import SegmentEnd, SegmentIndexes
from fencepost.storage.formats.file_names import FileKind, segment_file_name
from tests.harness.records import batch as batch_of

T: Final = 1_700_000_000_000
INTERVAL: Final = 300
"""Bytes between entries of the indexes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A segment that is there."""

    files: SegmentFiles
    batches: tuple[bytes, ...]

    @property
    def log(self) -> Path:
        return Path(self.files.log)

    @property
    def offset_index(self) -> Path:
        assert self.files.offset_index is not None
        return Path(self.files.offset_index)

    @property
    def time_index(self) -> Path:
        assert self.files.time_index is not None
        return Path(self.files.time_index)

    def position(self, number: int) -> int:
        """Where a batch begins."""
        return sum(map(len, self.batches[:number]))

    def rows(self, checks: Checks = Checks.RECORDS) -> pa.Table:
        return pa.Table.from_batches(scan_batches(self.files, checks=checks), BATCHES)

    def records(self) -> pa.Table:
        return pa.Table.from_batches(scan_records(self.files), RECORDS)

    def problems(self, checks: Checks = Checks.RECORDS) -> list[tuple[str, int | None, int | None]]:
        """What is wrong: problem, position and size."""
        return [
            (row["problem"], row["position"], row["size"])
            for row in self.rows(checks).to_pylist()
            if row["problem"] is not None
        ]

    def change(self, path: Path, at: int, data: bytes) -> None:
        """Overwrite bytes of a file."""
        content = bytearray(path.read_bytes())
        content[at : at + len(data)] = data
        path.write_bytes(content)


def batch(base_offset: int, count: int = 3, *, codec: Codec = Codec.NONE, size: int = 40) -> bytes:
    """A batch of records, each a second after the one before it."""
    records = [
        Record(offset, T + 1000 * offset, b"key %d" % offset, b"v" * size, (("h", b"%d" % offset),))
        for offset in range(base_offset, base_offset + count)
    ]
    return bytes(batch_of(*records, base_offset=base_offset, leader_epoch=0, codec=codec))


def rebuilt(header: BatchHeader, body: bytes) -> bytes:
    """A batch with a header and what follows it, and the checksum of both."""
    data = bytearray(struct.pack(">qiibIhiqqqhii", *header) + body)
    stamp_timestamps(
        data,
        0,
        header,
        log_append_time=header.is_log_append_time,
        max_timestamp=header.max_timestamp,
    )
    return bytes(data)


def some_batches(count: int = 20, *, base_offset: int = 0) -> list[bytes]:
    """Batches of one to five records, of every codec."""
    dice = random.Random(count)
    found, offset = [], base_offset
    for number in range(count):
        records = dice.randint(1, 5)
        found.append(batch(offset, records, codec=Codec(number % 5)))
        offset += records
    return found


def write(
    folder: Path, batches: Sequence[bytes], *, base_offset: int = 0, closed: bool = True
) -> Written:
    """The files of a segment: ``.log``, ``.index`` and ``.timeindex``."""
    folder.mkdir(parents=True, exist_ok=True)
    indexes, end, position = SegmentIndexes.empty(base_offset), SegmentEnd(base_offset), 0
    for _, header in iter_headers(b"".join(batches)):
        end.add_batch(header, position, indexes, INTERVAL)
        position += header.size
    indexes.close(end)
    paths = {kind: folder / segment_file_name(base_offset, kind) for kind in FileKind}
    paths[FileKind.LOG].write_bytes(b"".join(batches))
    paths[FileKind.OFFSET_INDEX].write_bytes(indexes.offsets.encode())
    paths[FileKind.TIME_INDEX].write_bytes(indexes.times.encode())
    files = SegmentFiles(
        topic="t",
        partition=0,
        place=Place.LOG,
        broker=1,
        segment=base_offset,
        segment_id=None,
        log=str(paths[FileKind.LOG]),
        offset_index=str(paths[FileKind.OFFSET_INDEX]),
        time_index=str(paths[FileKind.TIME_INDEX]),
        size=position,
        closed=closed,
    )
    return Written(files=files, batches=tuple(batches))
