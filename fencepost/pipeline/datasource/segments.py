"""The segments of logs and of the tier: listed, divided among tasks, and read by windows."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Final, Protocol, Self

import numpy as np
import numpy.typing as npt

from fencepost.pipeline.datasource.log_directories import Replica, find_log_dirs, find_replicas
from fencepost.pipeline.datasource.schemas import Place
from fencepost.pipeline.datasource.segment_stamps import SegmentStamp, stamp_of_files
from fencepost.pipeline.datasource.tier import Tier
from fencepost.protocol.byte_utils import format_uuid
from fencepost.storage.tier.object_store import ObjectKind, object_key
from fencepost.storage.tier.segment_metadata import RemoteSegment

SMALL_SEGMENTS_BYTES: Final = 4 << 20
"""Bytes that are read in less time than it takes to start a task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFiles:
    """A segment, by the names of its files or of its objects in the tier.

    :ivar broker: None in the tier.
    :ivar segment_id: None in a log.
    :ivar log: Path of the file, or key of the object; of the others likewise.
    :ivar offset_index: None where it does not count: a broker would rebuild it.
    :ivar size: Bytes of its records, about.
    :ivar closed: Whether nothing is appended to it any more: then its indexes must be there.
    :ivar transaction_index: Where it would be, if there is one.
    :ivar snapshots: Of the producers before an offset of the segment, or behind it where it is the
        last one; of logs alone.
    :ivar stamp: Of all these files; None where it is not asked for.
    """

    topic: str
    partition: int
    place: Place
    broker: int | None
    segment: int
    segment_id: str | None
    log: str
    offset_index: str | None
    time_index: str | None
    size: int
    closed: bool
    transaction_index: str | None = None
    snapshots: tuple[str, ...] = ()
    stamp: SegmentStamp | None = None


def list_segments(
    folder: str | None, tier: Tier | None, topics: Collection[str] | None = None
) -> list[SegmentFiles]:
    """All segments of log directories and of the tier that are to be relied on.

    Of the tier these are the ones whose copy is finished and whose deletion has not begun.

    :param folder: As `find_log_dirs` takes it; None for the tier alone.
    :param topics: Only of these; None for all.
    :raises UnreadableSource: When either can't be read.
    """
    logs = [] if folder is None else _in_logs(folder, topics)
    in_tier = () if tier is None else tier.segments(topics)
    return logs + [tier_segment_files(each) for each in in_tier if each.is_served]


def split_into_tasks(
    segments: Sequence[SegmentFiles],
    most: int = SMALL_SEGMENTS_BYTES,
    cost: Callable[[SegmentFiles], int] = attrgetter("size"),
) -> list[tuple[SegmentFiles, ...]]:
    """What each task reads: a segment, or some in a row.

    :param most: What the costs of some are together at most, in bytes.
    """
    found: list[list[SegmentFiles]] = []
    sum_of_costs = 0
    for segment in segments:
        own = cost(segment)
        sum_of_costs += own
        if not found or sum_of_costs > most:
            found.append([])
            sum_of_costs = own
        found[-1].append(segment)
    return [tuple(share) for share in found]


def _in_logs(folder: str, topics: Collection[str] | None) -> list[SegmentFiles]:
    replicas = find_replicas(find_log_dirs(folder), topics)
    return [files for replica in replicas for files in replica_segment_files(replica)]


def replica_segment_files(replica: Replica) -> list[SegmentFiles]:
    """The segments of a replica, in order."""
    return [
        SegmentFiles(
            topic=replica.topic,
            partition=replica.partition,
            place=Place.LOG,
            broker=replica.broker,
            segment=segment.base_offset,
            segment_id=None,
            log=str(segment.log),
            offset_index=None if segment.swapped else str(segment.offset_index),
            time_index=None if segment.swapped else str(segment.time_index),
            size=_size(segment.log),
            closed=not segment.active,
            transaction_index=str(segment.transaction_index),
            snapshots=tuple(map(str, segment.snapshots)),
        )
        for segment in replica.segments
    ]


def with_stamp(files: SegmentFiles) -> SegmentFiles:
    """A segment of a log, with the stamp of its files as they are now."""
    names = (files.log, files.offset_index, files.time_index, files.transaction_index)
    return replace(files, stamp=stamp_of_files((*names, *files.snapshots)))


def tier_segment_files(segment: RemoteSegment, stamp: SegmentStamp | None = None) -> SegmentFiles:
    """A segment of the tier.

    :param stamp: As `Tier.stamps` gives it.
    """
    return SegmentFiles(
        topic=segment.partition.topic,
        partition=segment.partition.index,
        place=Place.TIER,
        broker=None,
        segment=segment.start_offset,
        segment_id=format_uuid(segment.id),
        log=object_key(segment, ObjectKind.LOG),
        offset_index=object_key(segment, ObjectKind.OFFSET_INDEX),
        time_index=object_key(segment, ObjectKind.TIME_INDEX),
        size=segment.size_bytes,
        closed=True,
        transaction_index=object_key(segment, ObjectKind.TRANSACTION_INDEX),
        stamp=stamp,
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # the task that reads it reports the error


WINDOW: Final = 4 << 20
"""Bytes of a file at a time: few enough to be in the processor's cache when they are looked at."""
TIER_WINDOW: Final = 16 << 20
"""Bytes of an object at a time, a request each."""
PADDING: Final = 64
"""Bytes behind each window which are no part of it, so that what looks ahead needs no bounds."""

Bytes = npt.NDArray[np.uint8]


class Blob(Protocol):
    """Bytes that can be read in parts.

    :ivar size: How many there are.
    :ivar window: How many to read at a time.
    """

    size: int
    window: int

    def read_into(self, target: memoryview, position: int) -> int:
        """Fill a buffer from `position` on; fewer bytes where the end comes first.

        :raises OSError: When that fails.
        """

    def close(self) -> None:
        """Let go of it."""


class FileBlob:
    """A file, read by pread: when it is cut meanwhile, bytes are missing, and no signal comes."""

    window = WINDOW

    def __init__(self, path: Path) -> None:
        """:raises OSError: When it can't be opened."""
        self._file = os.open(path, os.O_RDONLY)
        self.size = os.fstat(self._file).st_size

    def read_into(self, target: memoryview, position: int) -> int:
        """Fill a buffer."""
        done = 0
        while done < len(target):
            count = os.preadv(self._file, [target[done:]], position + done)
            if not count:
                break
            done += count
        return done

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class TierBlob:
    """An object in the tier."""

    window = TIER_WINDOW

    def __init__(self, tier: Tier, key: str) -> None:
        """:raises OSError: When there is none."""
        self._tier = tier
        self._key = key
        self.size = tier.size_of(key)

    def read_into(self, target: memoryview, position: int) -> int:
        """Fill a buffer."""
        end = min(position + len(target), self.size)
        if end <= position:
            return 0
        data = self._tier.read_range(self._key, position, end)
        target[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Nothing is held."""


class Window:
    """A part of a blob, which moves forward.

    :ivar position: Where in the blob it begins.
    :ivar length: How many bytes it has.
    :ivar size: Of the blob; less than it said where it is cut meanwhile.
    :ivar data: They, and `PADDING` behind them. Overwritten when it moves.
    """

    def __init__(self, blob: Blob) -> None:
        self._blob = blob
        self.position = 0
        self.length = 0
        self.size = blob.size
        self.data: Bytes = np.zeros(min(blob.window, blob.size) + PADDING, np.uint8)

    @property
    def view(self) -> memoryview:
        """Its bytes, without the padding."""
        return self.data.data[: self.length]

    @property
    def is_last(self) -> bool:
        """Whether it reaches to the blob's end."""
        return self.position + self.length >= self.size

    def move(self, position: int, least: int = 0) -> Self:
        """Begin at another place, no earlier than now, with as much as there is room for.

        :param least: How many bytes are needed, if there are so many.
        :raises OSError: When they can't be read.
        """
        begin = position - self.position
        kept = max(self.length - begin, 0)
        room = max(min(max(self._blob.window, least), self.size - position), kept)
        data = self.data
        if len(data) < room + PADDING:
            data = np.zeros(room + PADDING, np.uint8)
        if kept:
            data[:kept] = self.data[begin : begin + kept]
        self.data = data
        target = data.data[kept:room]
        self.position = position
        self.length = kept + self._blob.read_into(target, position + kept)
        if self.length < room:
            self.size = position + self.length
        return self
