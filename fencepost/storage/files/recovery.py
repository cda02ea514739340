"""What is done with a log that was not closed: everything that may not be durable is looked at.

From the segment that holds the recovery point on every batch is walked over, and from the
recovery point on its checksum is computed. The first that is not whole and sound ends the log:
it is cut there, and what came behind is removed. Indexes, the snapshots of producers and the
leader epochs of that part are made anew from its batches.

What lies before the recovery point was durable and stays: where it can't even be walked over, the
log is not opened, because cutting it there would lose what was promised.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fencepost.protocol.records import MAX_SEQUENCE, NO_LEADER_EPOCH, BatchHeader, crc_ok
from fencepost.storage.files.batch_scan import scan_batches
from fencepost.storage.files.file_segment import FileSegment
from fencepost.storage.files.file_system import DamagedSegment
from fencepost.storage.files.producer_snapshots import ProducerSnapshots
from fencepost.storage.log.leader_epoch_cache import LeaderEpochCache
from fencepost.storage.log.producer_state import ProducerStateManager


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


@dataclass(slots=True)
class LogRecoveryReport:
    """What was done when a log was opened, for the line that tells it.

    :ivar cut: Segments that were cut, or removed because they came behind such a one.
    :ivar tidied: Files that an unfinished compaction or deletion had left, removed or finished.
    :ivar rebuilt: Files that were missing or broken, and are made anew. An index or a snapshot
        that nobody needed yet may join them later.
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
    ) -> None:
        self._recovery_point = recovery_point
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
        :raises DamagedSegment: When it is damaged before the recovery point.
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
            if self._end < self._recovery_point:
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
        whole = scan_batches(log.read, 0, log.size)
        segment.reset()
        for position, batch, header in whole:
            fault = self._fault(batch, header, segment.base_offset)
            if fault is not None:
                raise DamagedSegment(position, fault)
            segment.add_header(header, modified)
            if header.partition_leader_epoch != self._epochs.latest:
                self._note_epoch(header)
            if header.has_producer_id:
                self._producers.update(header)
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
    """Let producers learn of the batches in segments."""
    for segment in segments:
        for _, header in segment.scan():
            if header.has_producer_id:
                producers.update(header)


def epochs_from_batches(segments: Iterable[FileSegment]) -> LeaderEpochCache:
    """The leader epochs that the batches in segments say."""
    epochs = LeaderEpochCache()
    for segment in segments:
        for _, header in segment.scan():
            epoch = header.partition_leader_epoch
            if epoch == NO_LEADER_EPOCH:
                epochs.clear()
            elif epoch != epochs.latest:
                epochs.assign(epoch, header.base_offset)
    return epochs
