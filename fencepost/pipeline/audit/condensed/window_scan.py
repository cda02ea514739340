"""Reads a segment into rows of windows, and windows into rows of batches again."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from fencepost.pipeline.audit.condensed.segment_folds import FoldBuilder, files_beside, to_json
from fencepost.pipeline.audit.condensed.window_rows import (
    WINDOWS,
    WindowCondenser,
    WindowPlan,
    plan_windows,
    widened,
)
from fencepost.pipeline.datasource.schemas import BATCHES, Place
from fencepost.pipeline.datasource.segment_scan import Checks, scan_batches, scan_range
from fencepost.pipeline.datasource.segments import SegmentFiles, list_segments
from fencepost.pipeline.datasource.small_segments import scan_small_segments
from fencepost.pipeline.datasource.tier import Tier
from fencepost.storage.formats.file_names import FileKind

_FEW_ROWS: Final = 16
_SEGMENT: Final = ("topic", "partition", "place", "broker", "segment", "segment_id")


def scan_windows(
    files: SegmentFiles,
    plan: WindowPlan,
    tier: Tier | None = None,
    *,
    checks: Checks = Checks.BATCHES,
) -> Iterator[pa.RecordBatch]:
    """A segment's rows of `WINDOWS`; the one with its folds comes last.

    A segment of few rows keeps them, and has no folds: these would take more.

    :param tier: Where it is, if it is there.
    """
    left = scan_batches(files, tier, checks=checks, beside=True)
    first: list[pa.Table] = []
    while sum(each.num_rows for each in first) <= _FEW_ROWS:
        batch = next(left, None)
        if batch is None:
            for rows in first:
                yield from widened(rows).to_batches()
            return
        first.append(pa.Table.from_batches([batch]))
    condenser, folder = WindowCondenser(files.log, plan), _Folder(files)
    for rows in chain(first, (pa.Table.from_batches([batch]) for batch in left)):
        folder.add(rows)
        for made in condenser.add(rows):
            yield from made.to_batches()
    for made in condenser.finish():
        yield from made.to_batches()
    if folder.builder is not None:
        yield from _folds_row(files, folder.builder).to_batches()


def scan_small_windows(
    segments: Sequence[SegmentFiles], checks: Checks
) -> tuple[list[pa.RecordBatch], list[SegmentFiles]]:
    """The rows of `WINDOWS` of sound segments of few rows, and all other segments."""
    found, others = scan_small_segments(segments, checks=checks, max_rows=_FEW_ROWS)
    rows = (widened(pa.Table.from_batches([batch])) for batch in found)
    return [batch for table in rows for batch in table.to_batches()], others


class _Folder:
    """Folds the rows of a segment, those of the files beside it first."""

    def __init__(self, files: SegmentFiles) -> None:
        self._segment = files.segment
        self._names: list[str] = []
        self._contents: list[bytes] = []
        self.builder: FoldBuilder | None = None
        """None until a row has come."""

    def add(self, rows: pa.Table) -> None:
        if rows["file"].null_count < rows.num_rows:
            self._names += rows["file"].to_pylist()
            self._contents += rows["content"].to_pylist()
            self.builder = self._new_builder()
            return
        if self.builder is None:
            self.builder = self._new_builder()
        self.builder.add(rows)

    def _new_builder(self) -> FoldBuilder:
        return FoldBuilder(
            self._segment,
            self._files(FileKind.PRODUCER_SNAPSHOT),
            self._files(FileKind.TRANSACTION_INDEX).get(self._segment, b""),
        )

    def _files(self, kind: FileKind) -> dict[int, bytes]:
        return files_beside(self._names, self._contents, kind, self._segment)


def _folds_row(files: SegmentFiles, builder: FoldBuilder) -> pa.Table:
    row: dict[str, Any] = {name: getattr(files, name) for name in _SEGMENT}
    row["place"] = files.place.value
    row["folds"] = to_json(builder.finished())
    return pa.Table.from_pylist([row], WINDOWS)


def scan_folder_windows(
    folder: str | Path | None,
    *,
    remote: str | None = None,
    topics: Collection[str] | None = None,
    checks: Checks = Checks.BATCHES,
) -> pa.Table:
    """All rows of `WINDOWS`, read by this process without Spark.

    :param folder: As `find_log_dirs` takes it; None for the tier alone.
    :param remote: The URL of a tier.
    :raises UnreadableSource: When either can't be read.
    """
    tier = None if remote is None else Tier.open(remote)
    found = list_segments(None if folder is None else str(folder), tier, topics)
    return pa.Table.from_batches(
        [
            batch
            for files, plan in zip(found, plan_windows(found), strict=True)
            for batch in scan_windows(files, plan, tier, checks=checks)
        ],
        WINDOWS,
    )


class WindowReader:
    """Reads the batches of windows where the scan has read them.

    :param remote: The URL of the tier; None where there is none.
    """

    def __init__(self, remote: str | None) -> None:
        self._remote = remote
        self._tier: Tier | None = None

    def __call__(self, window: dict[str, Any]) -> pa.Table:
        """The rows of `WINDOWS` of its batches.

        :param window: A row of `WINDOWS`.
        :raises OSError: When they can't be read.
        """
        files = SegmentFiles(
            **{name: window[name] for name in _SEGMENT if name != "place"},
            place=Place(window["place"]),
            log=window["log"],
            offset_index=None,
            time_index=None,
            size=window["size"],
            closed=True,
        )
        if files.place is Place.TIER and self._tier is None and self._remote is not None:
            self._tier = Tier.open(self._remote)
        start, end = window["position"], window["position"] + window["size"]
        return widened(pa.Table.from_batches(scan_range(files, start, end, self._tier), BATCHES))
