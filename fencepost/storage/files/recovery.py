"""Recovery of a log that was not closed: leftover files are removed, and data is validated.

From the segment that holds the recovery point on every batch is scanned, and from the recovery
point on its checksum is computed. The log is truncated at the first batch that is cut short or
corrupt, and the segments behind it are removed. Indexes, producer snapshots and the leader epochs
of that part are rebuilt from its batches.

The data before the recovery point was durable and stays: where its batches can't be scanned, the
log is not opened, because a truncation there would lose acknowledged records.

Files that the end of the process left are cleaned up by Kafka's rules:

- ``.cleaned``: compaction was writing it; it is removed. So are all ``.swap`` from its offset on:
  the renaming goes from the last to the first, so some are not ``.swap`` yet.
- ``.swap`` otherwise: all of them are complete. The segments between the first's beginning and the
  last's end are those that they replace; they are removed, and the swaps get their names.
- ``.deleted`` and the temporary files of `write_atomic` are removed.
- An index without its ``.log`` is removed.
"""

from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import NamedTuple

from msgspec import Struct, field

from fencepost.protocol.records import MAX_SEQUENCE, NO_LEADER_EPOCH, BatchHeader, crc_ok
from fencepost.storage.files.file_segment import FileSegment
from fencepost.storage.files.file_system import TEMPORARY_SUFFIX, DamagedSegment, FileSystem
from fencepost.storage.files.index_lookup import scan_batches, scan_headers
from fencepost.storage.files.segment_files import ProducerSnapshots
from fencepost.storage.formats.file_names import (
    FileKind,
    FileState,
    SegmentFile,
    parse_segment_file_name,
    segment_file_name,
)
from fencepost.storage.log.leader_epoch_cache import LeaderEpochCache
from fencepost.storage.log.producer_state import ProducerStateManager


def clean_up(files: FileSystem, directory: PurePath) -> list[str]:
    """Bring a directory into order.

    :returns: Names of the files that were removed, or are in use now.
    """
    changed = [name for name in files.names(directory) if name.endswith(TEMPORARY_SUFFIX)]
    found = _segment_files(files, directory)
    changed += [_name(file) for file in found if file.state is FileState.DELETED]
    cleaned = [file for file in found if file.state is FileState.CLEANED]
    swaps = [file for file in found if file.state is FileState.SWAP]
    changed += map(_name, cleaned)
    if cleaned:
        first = min(file.offset for file in cleaned)
        changed += [_name(file) for file in swaps if file.offset >= first]
        swaps = [file for file in swaps if file.offset < first]
    _remove(files, directory, changed)
    if swaps:
        changed += _finish_swap(files, directory, swaps)
    orphans = _orphans(_segment_files(files, directory))
    _remove(files, directory, orphans)
    changed += orphans
    if changed:
        files.sync_dir(directory)
    return changed


def _finish_swap(files: FileSystem, directory: PurePath, swaps: list[SegmentFile]) -> list[str]:
    logs = [file for file in swaps if file.kind is FileKind.LOG]
    if logs:
        first = min(file.offset for file in logs)
        end = max(_end_of(files, directory / _name(file), file.offset) for file in logs)
        replaced = [
            _name(file)
            for file in _segment_files(files, directory)
            if file.state is FileState.LIVE
            and first <= file.offset < end
            and not (file.kind is FileKind.PRODUCER_SNAPSHOT and file.offset == first)
            and (file.kind is not FileKind.PRODUCER_SNAPSHOT or file.offset not in _bases(logs))
        ]
        _remove(files, directory, replaced)
        files.sync_dir(directory)
    for file in sorted(swaps, key=lambda file: file.kind is FileKind.LOG):
        live = segment_file_name(file.offset, file.kind)
        files.rename(directory / _name(file), directory / live)
    return [_name(file) for file in swaps]


def _bases(logs: list[SegmentFile]) -> set[int]:
    return {file.offset for file in logs}


def _end_of(files: FileSystem, path: PurePath, base_offset: int) -> int:
    file = files.open(path)
    try:
        end = base_offset
        for _, header in scan_headers(file.read, 0, file.size):
            end = header.next_offset
        return end
    finally:
        file.close()


def _orphans(found: Iterable[SegmentFile]) -> list[str]:
    live = [file for file in found if file.state is FileState.LIVE]
    logs = {file.offset for file in live if file.kind is FileKind.LOG}
    indexes = {FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX}
    return [_name(file) for file in live if file.kind in indexes and file.offset not in logs]


def _segment_files(files: FileSystem, directory: PurePath) -> list[SegmentFile]:
    names = map(parse_segment_file_name, files.names(directory))
    return [file for file in names if file is not None]


def _name(file: SegmentFile) -> str:
    return segment_file_name(file.offset, file.kind, file.state)


def _remove(files: FileSystem, directory: PurePath, names: Iterable[str]) -> None:
    for name in names:
        files.remove(directory / name)


class TruncatedSegment(NamedTuple):
    """A segment that was cut.

    :ivar name: Of the ``.log``.
    :ivar position: Where (bytes).
    :ivar size: How many bytes went.
    :ivar offset: The log's end is here now.
    """

    name: str
    position: int
    size: int
    offset: int
    reason: str


class LogRecoveryReport(Struct):
    """The repairs when a log was opened, for a line of the process's log.

    :ivar cut: Segments that were cut, or removed because they came behind such a one.
    :ivar tidied: Files that an unfinished compaction or deletion had left, removed or finished.
    :ivar rebuilt: Files that were missing or broken, and were rebuilt. An index or a snapshot
        that is needed only later may be added later.
    :ivar checked_bytes: How much was validated.
    """

    cut: list[TruncatedSegment] = field(default_factory=list)
    tidied: list[str] = field(default_factory=list)
    rebuilt: list[str] = field(default_factory=list)
    checked_bytes: int = 0

    def __bool__(self) -> bool:
        return bool(self.cut or self.tidied or self.rebuilt or self.checked_bytes)


class LogRecovery:
    """One pass over the segments that may not be durable.

    :param recovery_point: Checksums are computed from this offset on.
    :param safe_until: Before this offset, or the recovery point, nothing may be cut.
    :param epochs: As the checkpoint says; made right here.
    :param producers: As they were before the first of the segments.
    :ivar gap: Where the first offsets begin that may have been lost, from the end of a segment
        that was not durable while a later one is there. Compaction leaves such gaps too. None
        where there is none.
    """

    def __init__(
        self,
        *,
        recovery_point: int,
        epochs: LeaderEpochCache,
        producers: ProducerStateManager,
        snapshots: ProducerSnapshots,
        report: LogRecoveryReport,
        safe_until: int = 0,
    ) -> None:
        self._recovery_point = recovery_point
        self._safe_until = max(recovery_point, safe_until)
        self._epochs = epochs
        self._known: dict[int, int] = {}
        self._producers = producers
        self._snapshots = snapshots
        self._report = report
        self._end = 0
        self.gap: int | None = None

    def run(self, segments: Sequence[FileSegment]) -> int:
        """Go over the segments, and cut the first that is damaged.

        :returns: How many of them are left.
        :raises DamagedSegment: When it is damaged before the recovery point or what is safe.
        """
        self._end = segments[0].base_offset
        self._known = dict(self._epochs.entries())
        self._epochs.truncate_from_end(self._end)
        for index, segment in enumerate(segments):
            if index:
                self._snapshots.write(segment.base_offset, self._producers.snapshot())
            if not self._recover(segment):
                return index + 1
            if index + 1 < len(segments):
                segment.finish()
        return len(segments)

    def _recover(self, segment: FileSegment) -> bool:
        """Whether all of it is sound; otherwise it is cut."""
        log = segment.files.log
        size = log.size
        try:
            self._walk(segment)
        except DamagedSegment as damage:
            if self._end < self._safe_until:
                damage.offset = self._end
                raise
            log.truncate(segment.size)
            name, lost = segment.files.name, size - log.size
            self._report.cut.append(
                TruncatedSegment(name, log.size, lost, self._end, damage.reason)
            )
            return False
        finally:
            self._report.checked_bytes += segment.size
        return True

    def _walk(self, segment: FileSegment) -> None:
        """Take note of all batches up to the first that is not sound."""
        modified = segment.last_modified_ms
        if self.gap is None and segment.base_offset > max(self._end, self._recovery_point):
            self.gap = self._end
        self._end = max(self._end, segment.base_offset)
        log = segment.files.log
        segment.files.check_head()
        whole = scan_batches(log.read, 0, log.size)
        segment.reset()
        segment.forget_aborted()
        for position, batch, header in whole:
            fault = self._fault(batch, header, segment.base_offset)
            if fault is not None:
                raise DamagedSegment(position, fault)
            segment.add_header(header, modified)
            if header.partition_leader_epoch != self._epochs.latest:
                self._note_epoch(header)
            if header.has_producer_id:
                aborted = self._producers.apply(batch, 0, header)
                if aborted is not None:
                    segment.add_aborted(aborted)
            self._end = header.next_offset

    def _fault(self, batch: memoryview, header: BatchHeader, base_offset: int) -> str | None:
        if header.base_offset < self._end or header.last_offset_delta < 0:
            return f"offsets {header.base_offset} to {header.last_offset} behind {self._end}"
        if header.last_offset - base_offset > MAX_SEQUENCE:
            return f"offset {header.last_offset} in a segment from {base_offset} on"
        if header.last_offset >= self._recovery_point and not crc_ok(batch, 0, header):
            return f"the batch from offset {header.base_offset} on fails its checksum"
        return None

    def _note_epoch(self, header: BatchHeader) -> None:
        epoch, base = header.partition_leader_epoch, header.base_offset
        if epoch == NO_LEADER_EPOCH:
            self._epochs.clear()
            return
        # Compaction may have removed the epoch's first batch; the checkpoint still knows of it.
        start = self._known.get(epoch, base)
        self._epochs.assign(epoch, start if self._end <= start <= base else base)


def replay_producer_state(segments: Iterable[FileSegment], producers: ProducerStateManager) -> None:
    """Update the producers from the batches of segments."""
    for segment in segments:
        producers.replay(segment.scan())


def epochs_from_batches(segments: Iterable[FileSegment]) -> LeaderEpochCache:
    """The leader epochs of the batches in segments."""
    epochs = LeaderEpochCache()
    for segment in segments:
        for _, header in segment.scan():
            if header.partition_leader_epoch != epochs.latest:
                epochs.assign_or_clear(header.partition_leader_epoch, header.base_offset)
    return epochs
