"""Reads many small segments at once: sound ones, which most are.

What a segment takes besides its bytes is some hundred calls of libraries, a millisecond in all,
however small it is. Here they are made for hundreds of segments together. A segment of which
anything is peculiar is left to `segment_scan`, which tells what.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from fencepost.pipeline.datasource.batch_bodies import (
    decode_bodies,
    rows_of_files,
    rows_of_segments,
)
from fencepost.pipeline.datasource.batch_headers import (
    Batches,
    Integers,
    check_batches,
    headers_at,
    whole_batches,
)
from fencepost.pipeline.datasource.control_records import read_markers
from fencepost.pipeline.datasource.schemas import Place
from fencepost.pipeline.datasource.segment_scan import Checks
from fencepost.pipeline.datasource.segments import SegmentFiles, Window
from fencepost.pipeline.datasource.small_indexes import (
    Marks,
    Outlines,
    offset_indexes_are_right,
    time_indexes_are_right,
)

MAX_BYTES: Final = 1 << 16
"""Of a small segment: its records, and each of the files beside it."""
_TOGETHER: Final = 1 << 10
"""Segments that are looked at together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Contents:
    """A segment, and what its files hold."""

    files: SegmentFiles
    log: bytes
    at: list[int]
    """Where each batch begins."""
    offset_index: bytes
    time_index: bytes
    has_time_index: bool
    beside: dict[str, bytes]
    """By their names."""


def scan_small_segments(
    segments: Sequence[SegmentFiles], *, checks: Checks, max_rows: int
) -> tuple[list[pa.RecordBatch], list[SegmentFiles]]:
    """The rows of small segments that are sound, and all other segments, in their order.

    The rows are those of `scan_batches` with the files beside them, in another order.

    :param segments: Of logs and of the tier.
    :param max_rows: A segment of more rows is another one.
    """
    made: list[pa.RecordBatch] = []
    others: list[SegmentFiles] = []
    for first in range(0, len(segments), _TOGETHER):
        some = segments[first : first + _TOGETHER]
        read = {number: _read(files, max_rows) for number, files in enumerate(some)}
        there = {number: each for number, each in read.items() if each is not None}
        rows, sound = _rows([*there.values()], checks)
        made += rows
        taken = {number for number, is_sound in zip(there, sound, strict=True) if is_sound}
        others += [files for number, files in enumerate(some) if number not in taken]
    return made, others


def _read(files: SegmentFiles, max_rows: int) -> _Contents | None:
    """What the files of a small segment hold; None where it has to be looked at by itself."""
    if files.place is not Place.LOG or files.size > MAX_BYTES:
        return None
    try:
        log = _content(files.log)
        at = None if log is None else whole_batches(log)
        if log is None or at is None or len(at) > max_rows:
            return None
        needs_indexes = files.closed and len(at) > 0
        offset_index = _index(files.offset_index, is_needed=needs_indexes)
        time_index = _index(files.time_index, is_needed=needs_indexes)
        beside = {}
        for name in (*files.snapshots, files.transaction_index):
            content = None if name is None else _content(name)
            if name is not None and content is not None:
                beside[name.rpartition(os.sep)[2]] = content
    except (OSError, _Large):
        return None
    if len(at) + len(beside) > max_rows:
        return None
    return _Contents(
        files=files,
        log=log,
        at=at,
        offset_index=offset_index or b"",
        time_index=time_index or b"",
        has_time_index=time_index is not None,
        beside=beside,
    )


class _Large(Exception):
    """A file is not small."""


def _index(name: str | None, *, is_needed: bool) -> bytes | None:
    """What an index holds; None where it does not count, or is not there and need not be.

    :raises FileNotFoundError: When it is needed.
    """
    content = None if name is None else _content(name)
    if content is None and name is not None and is_needed:
        raise FileNotFoundError(name)
    return content


def _content(name: str) -> bytes | None:
    """What a small file holds; None where there is none.

    :raises _Large: When it is not small.
    """
    try:
        file = os.open(name, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        found = os.read(file, MAX_BYTES + 1)
    finally:
        os.close(file)
    if len(found) > MAX_BYTES:
        raise _Large
    return found


def _rows(read: Sequence[_Contents], checks: Checks) -> tuple[list[pa.RecordBatch], list[bool]]:
    """The rows of those that are sound, and whether each is."""
    if not read:
        return [], []
    window = Window(_Joined([each.log for each in read])).move(0)
    counts = np.array([len(each.at) for each in read])
    segment = np.repeat(np.arange(len(read)), counts)
    starts = np.cumsum([0, *(len(each.log) for each in read)])[:-1]
    within = np.array([at for each in read for at in each.at], np.int64)
    at = starts[segment] + within
    batches = Batches(
        at=at,
        sizes=np.diff(at, append=window.length),
        headers=headers_at(window.data, at),
        end=window.length,
        bytes_needed=0,
    )
    findings = check_batches(window, batches)
    odd = set(findings)
    if checks is Checks.RECORDS:
        undamaged = np.delete(np.arange(len(batches)), list(findings))
        for decoded in decode_bodies(window, batches, undamaged):
            odd.update(decoded.problems)
    markers = read_markers(window, batches, findings)
    sound = _has_right_indexes(read, batches, segment, within)
    sound[segment[list(odd)]] = False
    kept = sound[segment]
    own = [each for each, is_sound in zip(read, sound.tolist(), strict=True) if is_sound]
    rows = []
    if any(each.beside for each in own):
        rows.append(rows_of_files([(each.files, each.beside) for each in own]))
    if kept.any():
        whole = Batches(
            at=within[kept],
            sizes=batches.sizes[kept],
            headers=batches.headers[kept],
            end=0,
            bytes_needed=0,
        )
        files = [each.files for each in own]
        rows.append(rows_of_segments(files, counts[sound], whole, markers.select(kept)))
    return rows, sound.tolist()


def _has_right_indexes(
    read: Sequence[_Contents], batches: Batches, segment: Integers, position: Integers
) -> Marks:
    """Of each segment whether its offsets rise, and its indexes have no fault."""
    begins = np.array([each.files.segment for each in read], np.int64)[segment]
    outlines = Outlines(
        segments=len(read),
        segment=segment,
        position=position,
        base=batches.field("base_offset") - begins,
        last=batches.last_offsets - begins,
        max_timestamp=batches.field("max_timestamp"),
    )
    found = outlines.is_plain
    outlines = outlines.select(found[segment])
    found &= offset_indexes_are_right([each.offset_index for each in read], outlines)
    ends = np.array([each.files.closed and each.has_time_index for each in read], bool)
    found &= time_indexes_are_right([each.time_index for each in read], ends, outlines)
    return found


class _Joined:
    """Some bytes behind one another, as a blob."""

    def __init__(self, parts: Iterable[bytes]) -> None:
        self._data = b"".join(parts)
        self.size = self.window = len(self._data)

    def read_into(self, target: memoryview, position: int) -> int:
        """Fill a buffer."""
        found = self._data[position : position + len(target)]
        target[: len(found)] = found
        return len(found)

    def close(self) -> None:
        """Nothing is held."""
