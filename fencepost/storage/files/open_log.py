"""Opens a log from the files of its directory.

A log that was closed is opened by the names and sizes of its files. Closed segments are read when
they are first used; of the active one the indexes, the batches behind their last entry and the
producer snapshot at its end are read. A log that was not closed is recovered first: see
`fencepost.storage.files.recovery`.
"""

from bisect import bisect_left
from collections.abc import Sequence
from pathlib import PurePath
from typing import NamedTuple

from fencepost.storage.files.file_log import FileLog
from fencepost.storage.files.file_segment import FileSegment
from fencepost.storage.files.file_system import FileSystem, StorageFailure
from fencepost.storage.files.inventory import LogInventory
from fencepost.storage.files.process_limits import ProcessLimits
from fencepost.storage.files.recovery import (
    LogRecovery,
    LogRecoveryReport,
    TruncatedSegment,
    clean_up,
    epochs_from_batches,
    replay_producer_state,
)
from fencepost.storage.files.segment_store import FileSegmentStore
from fencepost.storage.formats.checkpoints import CorruptCheckpoint, decode_epochs
from fencepost.storage.formats.file_names import (
    LEADER_EPOCHS,
    FileKind,
    FileState,
    parse_segment_file_name,
    segment_file_name,
)
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.leader_epoch_cache import EpochEntry, LeaderEpochCache
from fencepost.storage.log.producer_state import ProducerStateManager
from fencepost.storage.log.segments import InitialLogState


class OpenedLog(NamedTuple):
    """A log, and what had to be done for it."""

    log: FileLog
    recovery: LogRecoveryReport


def open_log(
    files: FileSystem,
    directory: PurePath,
    name: str,
    config: LogConfig,
    *,
    now_ms: int,
    shared: ProcessLimits,
    clean: bool,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    cleaned_until: int = 0,
    inventory: LogInventory | None = None,
    safe_until: int = 0,
    end_at_least: int = 0,
) -> OpenedLog:
    """The log in a directory, which is made if it is missing.

    :param name: Topic and partition: ``topic-0``.
    :param shared: What this process's logs hold together.
    :param clean: Whether it was closed, and nothing was written since.
    :param recovery_point: What was durable before this offset (exclusive), as the checkpoint
        says; of no account where `clean`.
    :param log_start_offset: As the checkpoint says. Of a log that is not tiered the first
        segment's base offset counts where that is higher.
    :param cleaned_until: Where compaction ended (exclusive), as the checkpoint says.
    :param inventory: What was there when that was last written down; None where it was not. Files
        beside the segments that are not as it says are rebuilt.
    :param safe_until: Before this offset (exclusive) no damage may be cut away.
    :param end_at_least: The log ends there or behind it, so that no offset is given out twice: what
        is missing before it is left out.
    :raises StorageFailure: When the files can't be read, or are damaged before the recovery
        point or ``safe_until``.
    """
    opening = _Opening(
        files, directory, name, config, shared=shared, now_ms=now_ms, inventory=inventory
    )
    try:
        return opening.run(
            clean=clean,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            cleaned_until=cleaned_until,
            safe_until=safe_until,
            end_at_least=end_at_least,
        )
    except OSError as error:
        opening.store.release()
        raise StorageFailure(name, error) from error


class _Opening:
    """One log's way from its files to what it knows."""

    def __init__(
        self,
        files: FileSystem,
        directory: PurePath,
        name: str,
        config: LogConfig,
        *,
        shared: ProcessLimits,
        now_ms: int,
        inventory: LogInventory | None,
    ) -> None:
        self._inventory = inventory or LogInventory()
        self._files = files
        self._directory = directory
        self._name = name
        self._config = config
        self._now_ms = now_ms
        self.store = FileSegmentStore(files, directory, config, shared)
        self.store.home.checksums.update(self._inventory.checksums)
        self._report = LogRecoveryReport(rebuilt=self.store.home.rebuilt)
        self._segments: list[FileSegment] = []
        self._epochs = LeaderEpochCache()
        self._producers = ProducerStateManager()
        self._gap: int | None = None

    def run(
        self,
        *,
        clean: bool,
        recovery_point: int,
        log_start_offset: int,
        cleaned_until: int,
        safe_until: int,
        end_at_least: int,
    ) -> OpenedLog:
        """The log."""
        self._files.make_dirs(self._directory)
        self._report.tidied += clean_up(self._files, self._directory)
        self._adopt_segments()
        first = len(self._segments) if clean else self._first_unsafe(recovery_point)
        known = self._read_epochs(self._segments[:first])
        if self._segments:
            if clean:
                self._read_producers()
            else:
                self._recover(first, recovery_point, safe_until)
            if self._end < log_start_offset:
                self._start_over(log_start_offset)
        if not self._segments:
            start = max(log_start_offset, end_at_least)
            self._segments = [self.store.create(start, now_ms=self._now_ms)]
        elif self._end < end_at_least:
            producers = self._producers.snapshot()
            begun = self.store.create(end_at_least, now_ms=self._now_ms, producers=producers)
            self._segments.append(begun)
        log = self._make_log(
            self._log_start(log_start_offset),
            recovery_point=self._end if clean else min(recovery_point, self._end),
            cleaned_until=cleaned_until,
            is_durable=clean,
            written_epochs=known,
        )
        log.write_epochs_if_urgent()
        return OpenedLog(log, self._report)

    def _make_log(
        self,
        log_start_offset: int,
        *,
        recovery_point: int,
        cleaned_until: int,
        is_durable: bool,
        written_epochs: tuple[EpochEntry, ...],
    ) -> FileLog:
        """The log of the segments that there are now, and nothing beside them that is not of it."""
        self._producers.expire(self._now_ms, self._config.producer_id_expiration_ms)
        self._epochs.truncate_from_end(self._end)
        self._epochs.truncate_from_start(log_start_offset)
        self.store.keys.load(self._end if self._gap is None else self._gap, self._epochs)
        self.store.snapshots.keep_only(segment.base_offset for segment in self._segments)
        contents = InitialLogState(
            segments=self._segments,
            epochs=self._epochs,
            producers=self._producers,
            log_start_offset=log_start_offset,
            log_end_offset=self._end,
            cleaned_until=min(cleaned_until, self._segments[-1].base_offset),
        )
        return FileLog(
            self._name,
            self._config,
            self.store,
            contents,
            recovery_point=recovery_point,
            is_durable=is_durable,
            written_epochs=written_epochs,
            now_ms=self._now_ms,
        )

    @property
    def _end(self) -> int:
        return self._segments[-1].next_offset

    def _log_start(self, checkpoint: int) -> int:
        """What the checkpoint says; without a tier not less than what is here."""
        if self._config.remote_storage_enable:
            return checkpoint
        return max(checkpoint, self._segments[0].base_offset)

    def _adopt_segments(self) -> None:
        names = frozenset(self._files.names(self._directory))
        files = [file for file in map(parse_segment_file_name, names) if file is not None]
        for file in files:
            if file.state is FileState.DELETED:  # a process ended before its time came
                name = segment_file_name(file.offset, file.kind, file.state)
                self._files.remove(self._directory / name)
        bases = sorted(
            file.offset
            for file in files
            if file.kind is FileKind.LOG and file.state is FileState.LIVE
        )
        heads = {entry.base_offset: entry.head for entry in self._inventory.segments}
        for base in bases:
            segment = self.store.open_existing(base, now_ms=self._now_ms, head=heads.get(base))
            self._segments.append(segment)

    def _first_unsafe(self, recovery_point: int) -> int:
        """Index of the first segment that may not be durable.

        The one that ends at the recovery point is: its indexes may be younger than that.
        """
        bases = [segment.base_offset for segment in self._segments]
        return max(bisect_left(bases, recovery_point) - 1, 0)

    def _read_epochs(self, safe: Sequence[FileSegment]) -> tuple[EpochEntry, ...]:
        """What the checkpoint says; where it says nothing the batches do.

        :param safe: The segments that need no recovery, which learns the others' epochs itself.
        """
        try:
            known = decode_epochs(self._files.read(self._directory / LEADER_EPOCHS))
        except (FileNotFoundError, CorruptCheckpoint):
            known = ()
        had = self._inventory.epochs
        if had and known[: len(had)] != had:
            # Not the file that was written: an old copy, or another log's, or a damaged one.
            self._report.rebuilt.append(LEADER_EPOCHS)
            self._epochs = LeaderEpochCache(had)
            return ()
        if known:
            self._epochs = LeaderEpochCache(known)
            return known
        # A crash may have left it empty; with records it never is.
        if self._config.keeps_leader_epochs and any(s.size for s in self._segments):
            self._report.rebuilt.append(LEADER_EPOCHS)
            self._epochs = epochs_from_batches(safe)
        return ()

    def _read_producers(self) -> None:
        """The producers at the end of a log that was closed."""
        end = self._end
        views = self.store.snapshots.read(end)
        if views is not None:
            self._producers.restore(views)
            return
        active = self._segments[-1]
        self._producers.restore(active.producer_snapshot)
        if active.size:
            replay_producer_state([active], self._producers)
            self._report.rebuilt.append(self.store.snapshots.path(end).name)

    def _recover(self, first: int, recovery_point: int, safe_until: int) -> None:
        """Validate what may not be durable."""
        self._producers.restore(self._segments[first].producer_snapshot)
        recovering = LogRecovery(
            recovery_point=recovery_point,
            safe_until=safe_until,
            epochs=self._epochs,
            producers=self._producers,
            snapshots=self.store.snapshots,
            report=self._report,
        )
        left = first + recovering.run(self._segments[first:])
        self._gap = recovering.gap
        self._drop_from(left, "what was before it is cut")

    def _start_over(self, log_start_offset: int) -> None:
        """Lose all: the log ends before its start."""
        self._drop_from(0, f"the log starts at {log_start_offset}")
        self._epochs.clear()
        self._producers.clear()

    def _drop_from(self, index: int, reason: str) -> None:
        gone = self._segments[index:]
        self._report.cut += [
            TruncatedSegment(s.files.name, 0, s.size, s.base_offset, reason) for s in gone
        ]
        self.store.discard(gone)
        del self._segments[index:]
