"""Segments read as a task of an audit reads them, by this process alone: what a core does.

Batches of 16 records of 1,024 random bytes, as an idempotent Java producer sends them, in files
that the page cache holds. What counts is this process's time on a processor, in user and system
mode. Beside both levels stands the parser of records by itself, on bytes that are in memory.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench import servers
from bench.pipeline_audit import BATCH_RECORDS
from bench.pipeline_large_partition import Batches

if TYPE_CHECKING:
    import pyarrow as pa

    from fencepost.pipeline.datasource.segment_scan import Checks
    from fencepost.pipeline.datasource.segments import SegmentFiles

SEGMENT_MEBIBYTES: Final = 64
TURNS: Final = 5
"""The best of them counts: what others do to the processor's caches only adds."""
_EPOCH: Final = 3
_EPOCH_AT: Final = 12


def measure(_: servers.Kind, mebibytes: int) -> Mapping[str, float]:
    """Megabytes for a second of a core (headers, records, and the parser of records), and the
    kilobytes of rows that are left of the partition.

    :param mebibytes: How much is read.
    """
    from fencepost.pipeline.datasource.segment_scan import Checks

    with tempfile.TemporaryDirectory(prefix="fencepost-bench-") as folder:
        segments = list(write(Path(folder), mebibytes))
        megabytes = sum(each.size for each in segments) / 1e6
        ways: dict[str, Callable[[], float]] = {
            "pipeline_scan_headers": lambda: scan(segments, Checks.BATCHES),
            "pipeline_scan_records": lambda: scan(segments, Checks.RECORDS),
            "pipeline_parse_records": lambda: parse(segments),
        }
        best = {name: min(way() for _ in range(TURNS)) for name, way in ways.items()}
        kept = sum(rows.nbytes for rows in windows(segments, Checks.BATCHES))
    rates = {name: megabytes / seconds for name, seconds in best.items()}
    return {**rates, "pipeline_scan_kept": kept / 1e3}


def write(folder: Path, mebibytes: int) -> Iterator[SegmentFiles]:
    """The segments of a partition, without indexes."""
    from fencepost.pipeline.datasource.schemas import Place
    from fencepost.pipeline.datasource.segments import SegmentFiles

    made = Batches()
    for first in range(0, mebibytes, SEGMENT_MEBIBYTES):
        size = min(SEGMENT_MEBIBYTES, mebibytes - first) << 20
        base = made.offset
        path = folder / f"{base:020d}.log"
        with path.open("wb") as file:
            while file.tell() < size:
                batch = bytearray(made.next())
                offset = made.offset - BATCH_RECORDS
                batch[:8] = offset.to_bytes(8)
                batch[_EPOCH_AT : _EPOCH_AT + 4] = _EPOCH.to_bytes(4)
                file.write(batch)
        yield SegmentFiles(
            topic="scanned",
            partition=0,
            place=Place.LOG,
            broker=1,
            segment=base,
            segment_id=None,
            log=str(path),
            offset_index=None,
            time_index=None,
            size=path.stat().st_size,
            closed=True,
        )


def scan(segments: list[SegmentFiles], checks: Checks) -> float:
    """Seconds of a core that it takes to make windows and folds of them."""
    begin = time.process_time()
    for rows in windows(segments, checks):
        if rows["problem"].null_count < rows.num_rows:
            raise ValueError(f"{rows['problem'].drop_null()[0]} in a sound segment")
    return time.process_time() - begin


def windows(segments: list[SegmentFiles], checks: Checks) -> Iterator[pa.RecordBatch]:
    """Their rows of windows and folds."""
    from fencepost.pipeline.audit.condensed.window_rows import plan_windows
    from fencepost.pipeline.audit.condensed.window_scan import scan_windows

    for files, plan in zip(segments, plan_windows(segments), strict=True):
        yield from scan_windows(files, plan, checks=checks)


def parse(segments: list[SegmentFiles]) -> float:
    """Seconds of a core that it takes to parse their records, once they are in memory."""
    import numpy as np

    from fencepost.pipeline.datasource.batch_bodies import decode_bodies
    from fencepost.pipeline.datasource.batch_headers import walk_batches
    from fencepost.pipeline.datasource.segments import FileBlob, Window

    spent = 0.0
    for files in segments:
        blob = FileBlob(Path(files.log))
        window, position = Window(blob), 0
        while position < window.size:
            batches = walk_batches(window.move(position))
            position += batches.end
            begin = time.process_time()
            for decoded in decode_bodies(window, batches, np.arange(len(batches))):
                if decoded.problems:
                    raise ValueError(f"{decoded.problems} in {files.log}")
            spent += time.process_time() - begin
        blob.close()
    return spent
