"""What the files of a log were, and what of them is missing when the log is opened again.

A log's files can't tell by themselves that one of them is gone: a log without its last segment is a
shorter log. So a broker keeps an inventory of each log (`fencepost.broker.data_dir.log_inventory`):
the names and sizes of its segments, the offsets up to which records are known to be there, and the
checksums of the small files. `examine` compares it with the directory:

- A segment that is not there, is shorter than it was, or begins with another batch: its records are
  missing. What follows it is there, and yet the log may not be used as if it were whole.
- A segment that the inventory does not have: it may have been begun later. After an end in order it
  can't have been, nor can one have before the log end: then it is surplus, such as an old copy of a
  segment that retention or compaction had removed, or one of another log.

The contents of segments are not read. The checksums of their batches are checked from the recovery
point on after a kill, and by the readers otherwise.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Final, NamedTuple
from zlib import crc32

from msgspec import Struct, field

from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.records import HEADER_SIZE
from fencepost.storage.files.file_system import DamagedSegment, FileSystem
from fencepost.storage.files.index_lookup import scan_headers
from fencepost.storage.formats.file_names import (
    FileKind,
    FileState,
    parse_segment_file_name,
    segment_file_name,
)
from fencepost.storage.log.leader_epoch_cache import EpochEntry


class SegmentEntry(NamedTuple):
    """One segment.

    :ivar size: Bytes of the ``.log``.
    :ivar head: The checksum of its first batch's header; None where that is not known.
    """

    base_offset: int
    size: int
    head: int | None


class LogInventory(Struct, frozen=True, kw_only=True):
    """What was there of a log. All offsets but the log start are exclusive ends."""

    segments: tuple[SegmentEntry, ...] = ()
    """Oldest first."""
    log_start_offset: int = 0
    log_end_offset: int = 0
    high_watermark: int = 0
    recovery_point: int = 0
    cleaned_until: int = 0
    epochs: tuple[EpochEntry, ...] = ()
    """The leader-epoch cache."""
    checksums: Mapping[str, int] = field(default_factory=dict)
    """CRC-32 of indexes, producer snapshots and the key offsets, by name."""
    unsettled: tuple[int, ...] = ()
    """Base offsets, in order, of segments that were about to be removed, replaced or cut. Each may
    be there as it was, be another one, or be gone."""

    @property
    def safe_until(self) -> int:
        """No failure may take records before this offset (exclusive)."""
        return min(max(self.high_watermark, self.recovery_point), self.log_end_offset)

    def without(self, bases: Sequence[int]) -> "LogInventory":
        """What is sure to be there while segments of these base offsets are removed or cut."""
        gone = frozenset(bases)
        kept = tuple(each for each in self.segments if each.base_offset not in gone)
        unsettled = tuple(sorted(gone.union(self.unsettled)))
        if self.segments and self.segments[-1].base_offset not in gone:
            return _replaced(self, kept, unsettled, self.log_end_offset)
        if not kept:
            return LogInventory(checksums=self.checksums, unsettled=unsettled)
        cut = (each.base_offset for each in self.segments if each.base_offset in gone)
        end = min(base for base in cut if base > kept[-1].base_offset)
        return _replaced(self, kept, unsettled, end)


def _replaced(
    inventory: LogInventory,
    segments: tuple[SegmentEntry, ...],
    unsettled: tuple[int, ...],
    end: int,
) -> LogInventory:
    return LogInventory(
        segments=segments,
        unsettled=unsettled,
        log_start_offset=min(inventory.log_start_offset, end),
        log_end_offset=end,
        high_watermark=min(inventory.high_watermark, end),
        recovery_point=min(inventory.recovery_point, end),
        cleaned_until=min(inventory.cleaned_until, end),
        epochs=tuple(each for each in inventory.epochs if each.start_offset <= end),
        checksums=inventory.checksums,
    )


class MissingRecords(NamedTuple):
    """Records that were there and are not.

    :ivar end: Exclusive.
    :ivar reason: Which file is not what it was, for a person.
    :ivar is_foreign: Whether the file is there, and is another one.
    """

    start: int
    end: int
    reason: str
    is_foreign: bool = False


class Examination(NamedTuple):
    """How a log's directory differs from its inventory.

    :ivar surplus: Base offsets of segments that do not belong to the log.
    :ivar grown: Base offsets of segments that have more bytes than they can have.
    :ivar foreign: Base offsets of segments that begin with another batch than they did.
    """

    missing: tuple[MissingRecords, ...] = ()
    surplus: tuple[int, ...] = ()
    grown: tuple[int, ...] = ()
    foreign: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.missing or self.surplus or self.grown)


def describe_missing(missing: Sequence[MissingRecords]) -> str:
    """One line of which offsets are missing and why."""
    return "; ".join(
        f"offsets {each.start} to {each.end - 1} are missing: {each.reason}" for each in missing
    )


def head_checksum(data: Buffer) -> int:
    """The checksum of the header that a segment begins with."""
    return crc32(memoryview(data)[:HEADER_SIZE])


def examine(
    files: FileSystem,
    directory: PurePath,
    inventory: LogInventory,
    *,
    exact: bool,
    every_head: bool = False,
) -> Examination:
    """Compare a log's directory with its inventory; no file is changed.

    :param exact: Whether nothing was written since the inventory: after an end in order.
    :param every_head: Whether the first batch of each segment is looked at, not only of the last
        one and of those that are suspect. The others are looked at when they are first used.
    :raises OSError: When a file can't be read.
    """
    sizes = dict(_segment_sizes(files, directory))
    missing = tuple(_missing(files, directory, inventory, sizes, every_head=every_head))
    last = inventory.segments[-1].base_offset if inventory.segments else -1
    known = {each.base_offset: each for each in inventory.segments}
    end = inventory.log_end_offset  # a later segment can't begin before it
    # Compaction removes segments only when those that replace them are complete: after a kill
    # before that moment the old ones are all that there is.
    is_known = known.keys() | set(inventory.unsettled)
    surplus = tuple(b for b in sizes if b not in is_known and (exact or b < end))
    grown = tuple(
        base
        for base, size in sizes.items()
        if base in known and size > known[base].size and (exact or base < last)
    )
    foreign = tuple(each.start for each in missing if each.is_foreign)
    return Examination(missing, surplus, grown, foreign)


def _segment_sizes(files: FileSystem, directory: PurePath) -> Iterator[tuple[int, int]]:
    for name in files.names(directory):
        file = parse_segment_file_name(name)
        if file is not None and file.kind is FileKind.LOG and file.state is FileState.LIVE:
            yield file.offset, files.size(directory / name)


def _missing(
    files: FileSystem,
    directory: PurePath,
    inventory: LogInventory,
    sizes: Mapping[int, int],
    *,
    every_head: bool,
) -> Iterator[MissingRecords]:
    for entry, end in _with_ends(inventory):
        base = entry.base_offset
        if not entry.size or end <= base:
            continue
        path = directory / segment_file_name(base, FileKind.LOG)
        size = sizes.get(base)
        if size is None:
            yield MissingRecords(base, end, f"{path} is not there")
            continue
        is_suspect = every_head or entry is inventory.segments[-1] or size != entry.size
        if size and is_suspect and entry.head not in (None, _head_of(files, path)):
            yield MissingRecords(base, end, f"{path} begins with another batch", is_foreign=True)
        elif size < entry.size:
            found = _end_of(files, path, base, size)
            if found < end:
                reason = f"{path} has {size} bytes, and had {entry.size}"
                yield MissingRecords(found, end, reason)


def _with_ends(inventory: LogInventory) -> Iterator[tuple[SegmentEntry, int]]:
    """Each segment with the offset behind its last record; none where all of them were to go."""
    bases = (each.base_offset for each in inventory.segments[1:])
    return zip(inventory.segments, (*bases, inventory.log_end_offset), strict=False)


def _end_of(files: FileSystem, path: PurePath, base_offset: int, size: int) -> int:
    """The offset behind the last whole batch."""
    file, end = files.open(path), base_offset
    try:
        for _, header in scan_headers(file.read, 0, size):
            end = header.next_offset
    except DamagedSegment:
        pass
    finally:
        file.close()
    return end


def _head_of(files: FileSystem, path: PurePath) -> int:
    file = files.open(path)
    try:
        return head_checksum(file.read(0, min(file.size, HEADER_SIZE)))
    finally:
        file.close()


_SIDE_KINDS: Final = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX)


def remove_segments(files: FileSystem, directory: PurePath, bases: Sequence[int]) -> list[str]:
    """Remove segments that do not belong to a log; the names of the removed ``.log`` files."""
    removed = []
    for base in sorted(bases, reverse=True):
        for kind in (FileKind.LOG, *_SIDE_KINDS):
            path = directory / segment_file_name(base, kind)
            if files.exists(path):
                files.remove(path)
        removed.append(segment_file_name(base, FileKind.LOG))
    if removed:
        files.sync_dir(directory)
    return removed


def remove_from(
    files: FileSystem, directory: PurePath, offset: int, surplus: Sequence[int]
) -> list[str]:
    """Remove the segments that begin at or behind an offset, so that a follower fetches them.

    :param surplus: Base offsets of segments that go as well: they may have later offsets.
    :returns: The names of the removed ``.log`` files.
    """
    bases = {base for base, _ in _segment_sizes(files, directory) if base >= offset}
    return remove_segments(files, directory, sorted(bases.union(surplus)))


def set_aside(files: FileSystem, directory: PurePath, bases: Sequence[int]) -> list[str]:
    """Rename segments that are not this log's, so that a person may look at them.

    :returns: The names of the ``.log`` files as they were.
    """
    for base in bases:
        path = directory / segment_file_name(base, FileKind.LOG)
        files.rename(path, path.with_name(f"{path.name}.foreign"))
    return [segment_file_name(base, FileKind.LOG) for base in bases]


def unknown_segments(
    files: FileSystem, directory: PurePath, inventory: LogInventory
) -> tuple[int, ...]:
    """The base offsets of the segments that the inventory does not have."""
    known = {entry.base_offset for entry in inventory.segments}
    return tuple(base for base, _ in _segment_sizes(files, directory) if base not in known)
