"""Reads a segment from its beginning to its end, in one pass, and tells what is wrong with it.

The result is Arrow, some thousand rows at a time, and only a window of the segment is in memory.
Comparisons with other segments, other replicas or a checkpoint are made elsewhere (`audit`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fencepost.pipeline.datasource.batch_bodies import (
    ProblemRow,
    batch_rows,
    decode_bodies,
    file_rows,
    problem_rows,
    record_rows,
)
from fencepost.pipeline.datasource.batch_headers import (
    MAX_OFFSET_SPAN,
    Batches,
    Findings,
    Integers,
    check_batches,
    concat_windows,
    find_next_batch,
    walk_batches,
)
from fencepost.pipeline.datasource.control_records import Markers, read_markers
from fencepost.pipeline.datasource.index_checks import (
    IndexFault,
    SegmentOutline,
    check_offset_index,
    check_time_index,
)
from fencepost.pipeline.datasource.schemas import BATCHES, Place, Problem
from fencepost.pipeline.datasource.segments import (
    Blob,
    FileBlob,
    SegmentFiles,
    TierBlob,
    Window,
    list_segments,
)
from fencepost.pipeline.datasource.tier import Tier

MIN_ROWS: Final = 8192
"""So many rows are handed on at a time, or as many as a window has: few at a time cost more."""
_Part: TypeAlias = tuple[int, Batches, Findings, Markers]
"""A window: its position, its batches, what is wrong with them, and the markers among them."""
_DAMAGES: Final = (Problem.CRC, Problem.STRUCTURE)


class Checks(StrEnum):
    """How deep the level ``batches`` looks."""

    BATCHES = "batches"
    """Headers, checksums and indexes."""
    RECORDS = "records"
    """Also whether records parse, and are as the headers say."""


def scan_batches(
    files: SegmentFiles,
    tier: Tier | None = None,
    *,
    checks: Checks = Checks.BATCHES,
    beside: bool = False,
) -> Iterator[pa.RecordBatch]:
    """A segment's rows of the level ``batches``, in order of position.

    What is wrong with its indexes comes last.

    :param tier: Where it is, if it is there.
    :param beside: Whether its producer snapshots and its transaction index have rows: they come
        first.
    """
    if beside:
        yield from _beside(files, tier)
    outlines = _Outlines()
    try:
        yield from _scan(files, tier, checks, outlines)
    except OSError as error:
        yield problem_rows(files, [(None, None, Problem.MISSING, _file_error(files.log, error))])
        return
    rows = list(_in_indexes(files, tier, outlines.combined()))
    if rows:
        yield problem_rows(files, rows)


def scan_range(
    files: SegmentFiles, start: int, end: int, tier: Tier | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of the batches in a range of bytes that was scanned before, and found to be sound.

    :param start: Where the first one begins.
    :param end: Behind the last one (exclusive).
    :raises OSError: When they can't be read.
    """
    blob = _open(files, tier)
    try:
        window = Window(blob)
        window.size = min(window.size, end)
        position, wanted = start, 0
        while position < window.size:
            batches = walk_batches(window.move(position, wanted))
            if not batches.end and not batches.bytes_needed:
                break  # it is another file by now
            position, wanted = position + batches.end, batches.bytes_needed
            if len(batches):
                whole, _ = concat_windows([(window.position, batches, {})])
                yield batch_rows(files, whole, {}, read_markers(window, batches, {}))
    finally:
        blob.close()


def _scan(
    files: SegmentFiles, tier: Tier | None, checks: Checks, outlines: _Outlines
) -> Iterator[pa.RecordBatch]:
    """The rows of its records' file.

    :raises OSError: When it can't be read.
    """
    blob = _open(files, tier)
    parts: list[_Part] = []
    try:
        for window, batches, gap in _windows(blob, files.segment):
            if gap is None:
                findings = check_batches(window, batches)
                if checks is Checks.RECORDS:
                    findings |= _in_records(window, batches, findings)
                markers = read_markers(window, batches, findings)
                parts.append((window.position, batches, findings, markers))
            if gap is not None or sum(len(each) for _, each, _, _ in parts) >= MIN_ROWS:
                yield from _rows(files, parts, outlines)
                parts = []
            if gap is not None:
                yield problem_rows(files, [gap])
        yield from _rows(files, parts, outlines)
    except OSError:
        yield from _rows(files, parts, outlines)  # what was read before
        raise
    finally:
        blob.close()


def _rows(
    files: SegmentFiles, parts: Sequence[_Part], outlines: _Outlines
) -> Iterator[pa.RecordBatch]:
    if parts:
        batches, findings = concat_windows([part[:3] for part in parts])
        outlines.add(batches, findings)
        yield batch_rows(files, batches, findings, Markers.concat([part[3] for part in parts]))


def scan_records(files: SegmentFiles, tier: Tier | None = None) -> Iterator[pa.RecordBatch]:
    """A segment's rows of the level ``records``: those of its sound batches, in order.

    :raises OSError: When the segment can't be read.
    """
    for window, batches, findings in scan_sound(files, tier):
        for opened in decode_bodies(window, batches, sound_batches(batches, findings)):
            yield record_rows(files, batches, opened)


def scan_sound(
    files: SegmentFiles, tier: Tier | None = None
) -> Iterator[tuple[Window, Batches, Findings]]:
    """The windows of a segment that have batches, with what is wrong with some of these.

    A window counts until the next one is asked for.

    :raises OSError: When the segment can't be read.
    """
    blob = _open(files, tier)
    try:
        for window, batches, gap in _windows(blob, files.segment):
            if gap is None:
                yield window, batches, check_batches(window, batches)
    finally:
        blob.close()


def scan_folder(
    folder: str | Path | None,
    *,
    remote: str | None = None,
    topics: Collection[str] | None = None,
    checks: Checks = Checks.BATCHES,
    beside: bool = True,
) -> pa.Table:
    """All rows of the level ``batches``, read by this process without Spark.

    :param folder: As `find_log_dirs` takes it; None for the tier alone.
    :param remote: The URL of a tier.
    :param beside: As `scan_batches` takes it.
    :raises UnreadableSource: When either can't be read.
    """
    tier = None if remote is None else Tier.open(remote)
    found = list_segments(None if folder is None else str(folder), tier, topics)
    return pa.Table.from_batches(
        [
            batch
            for files in found
            for batch in scan_batches(files, tier, checks=checks, beside=beside)
        ],
        BATCHES,
    )


class _Outlines:
    """Gathers what the indexes are compared with, a window after the other."""

    def __init__(self) -> None:
        self._columns: list[tuple[npt.NDArray[np.int64], ...]] = []

    def add(self, batches: Batches, findings: Findings) -> None:
        """:param batches: By their positions in the segment."""
        damaged = np.zeros(len(batches), np.int64)
        damaged[[at for at, (problem, _) in findings.items() if problem in _DAMAGES]] = 1
        columns = (
            batches.field("base_offset"),
            batches.last_offsets,
            batches.field("max_timestamp"),
        )
        self._columns.append((damaged, batches.at, *columns))

    def combined(self) -> SegmentOutline:
        """All of it. What damaged batches say is taken where it fits to the others."""
        none = (np.zeros(0, np.int64),) * 5
        columns = [np.concatenate(part) for part in zip(none, *self._columns, strict=True)]
        damaged, _, base, last, _ = columns
        if damaged.any() and not (np.all(base <= last) and np.all(base[1:] > last[:-1])):
            columns = [column[damaged == 0] for column in columns]
        _, positions, base, last, times = columns
        return SegmentOutline(
            positions=positions, base_offsets=base, last_offsets=last, max_timestamps=times
        )


def _open(files: SegmentFiles, tier: Tier | None) -> Blob:
    if files.place is Place.LOG:
        return FileBlob(Path(files.log))
    assert tier is not None, "who finds segments in the tier has it"
    return TierBlob(tier, files.log)


def _windows(blob: Blob, base_offset: int) -> Iterator[tuple[Window, Batches, ProblemRow | None]]:
    """Windows that begin with batches; and what lies between, which is none."""
    window = Window(blob)
    position = wanted = 0
    least = base_offset
    while position < window.size:
        batches = walk_batches(window.move(position, wanted))
        position, wanted = position + batches.end, batches.bytes_needed
        if len(batches):
            behind = int(batches.last_offsets[-1]) + 1
            least = behind if base_offset < behind <= base_offset + MAX_OFFSET_SPAN else base_offset
            yield window, batches, None
        if wanted or position >= window.size:
            continue
        found = find_next_batch(blob, position + 1, least=least)
        stop = window.size if found is None else found
        yield window, batches, _gap(position, stop, is_end=found is None)
        position = stop


def _gap(position: int, stop: int, *, is_end: bool) -> ProblemRow:
    size = stop - position
    if is_end:
        return position, size, Problem.TRAILING, f"{size} bytes at the end are no whole batch"
    return position, size, Problem.STRUCTURE, f"{size} bytes are no batch, and others follow them"


def sound_batches(batches: Batches, findings: Findings) -> Integers:
    """The numbers of those with which nothing is wrong."""
    sound: Integers = np.delete(np.arange(len(batches)), list(findings))
    return sound


def _in_records(window: Window, batches: Batches, findings: Findings) -> Findings:
    return {
        number: (Problem.RECORDS, what)
        for opened in decode_bodies(window, batches, sound_batches(batches, findings))
        for number, what in opened.problems.items()
    }


def _in_indexes(
    files: SegmentFiles, tier: Tier | None, outline: SegmentOutline
) -> Iterator[ProblemRow]:
    for name in (files.offset_index, files.time_index):
        if name is None:
            continue
        try:
            data = _read(files, name, tier)
        except OSError as error:
            if files.closed and len(outline.positions):
                yield None, None, Problem.MISSING, _file_error(name, error)
            continue
        for each in _false_entries(files, name, data, outline):
            yield each.position, each.size, each.problem, each.message


def _beside(files: SegmentFiles, tier: Tier | None) -> Iterator[pa.RecordBatch]:
    """The rows of the producer snapshots and the transaction index that are there."""
    contents: dict[str, bytes] = {}
    problems: list[ProblemRow] = []
    index = () if files.transaction_index is None else (files.transaction_index,)
    for name in (*files.snapshots, *index):
        try:
            contents[Path(name).name] = _read(files, name, tier)
        except FileNotFoundError:
            pass  # none was written, or it has gone since it was listed
        except OSError as error:
            problems.append((None, None, Problem.MISSING, _file_error(name, error)))
    if contents:
        yield file_rows(files, contents)
    if problems:
        yield problem_rows(files, problems)


def _read(files: SegmentFiles, name: str, tier: Tier | None) -> bytes:
    if files.place is Place.LOG:
        return Path(name).read_bytes()
    assert tier is not None, "who finds segments in the tier has it"
    return tier.read(name)


def _false_entries(
    files: SegmentFiles, name: str, data: bytes, outline: SegmentOutline
) -> Iterator[IndexFault]:
    if name == files.offset_index:
        return check_offset_index(data, files.segment, outline, closed=files.closed)
    return check_time_index(data, files.segment, outline, closed=files.closed)


def _file_error(name: str, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{Path(name).name} is not there"
    return f"{Path(name).name} can't be read: {error.strerror or error}"
