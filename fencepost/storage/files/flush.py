"""How far a log is durable: its recovery point, and the flushes that move it.

After ``flush.messages`` records or ``flush.ms`` the log is synced. Closed segments are synced on
another thread, because a gigabyte takes seconds.
"""

from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

from fencepost.storage.files.file_system import File, FileSystem
from fencepost.storage.files.inventory import LogInventory
from fencepost.storage.files.segment_store import FileSegmentStore
from fencepost.storage.formats.checkpoints import encode_epochs
from fencepost.storage.formats.file_names import LEADER_EPOCHS
from fencepost.storage.log.leader_epoch_cache import EpochEntry
from fencepost.storage.log.segmented_log import SegmentedLog
from fencepost.storage.log.segments import LogSegment

SYNCED_AT_ONCE: Final = 4
"""Segments of a log that are synced together; each has up to four files, which are open."""


class PendingSync:
    """Closed segments that another thread syncs, so that the log can be used meanwhile.

    Their files are open already, so that a rename or a removal does not disturb the sync.
    `FileLog.closed_segments_to_sync` returns it, and `FileLog.on_synced` takes it back.

    :ivar end: All before this offset (exclusive) is durable after `run`.
    :ivar epochs: The entries of the epoch checkpoint, which is synced as well.
    :ivar truncations: How often the log had been truncated.
    """

    __slots__ = ("_directory", "_files", "_opened", "end", "epochs", "segments", "truncations")

    def __init__(
        self,
        files: FileSystem,
        directory: PurePath,
        opened: Sequence[File],
        *,
        segments: Sequence[LogSegment],
        end: int,
        epochs: tuple[EpochEntry, ...],
        truncations: int,
    ) -> None:
        self._files = files
        self._directory = directory
        self._opened = opened
        self.segments = segments
        self.end = end
        self.epochs = epochs
        self.truncations = truncations

    @property
    def open_files(self) -> int:
        """How many files are open for it."""
        return len(self._opened)

    def run(self) -> None:
        """Sync; on any thread, once.

        :raises OSError: Then it is unknown which files are durable.
        """
        try:
            for file in self._opened:
                file.sync()
            self._files.sync_dir(self._directory)
            self._files.sync_dir(self._directory.parent)
        finally:
            for file in self._opened:
                file.close()


class LogFlusher:
    """Syncs one log and knows its recovery point. Any method may raise OSError.

    :param recovery_point: Everything before this offset is durable.
    :param is_durable: Whether the names of the log's files and the epoch checkpoint are as well.
    :param now_ms: flush.ms counts from now.
    :param written_epochs: What the epoch checkpoint has; None where that is not to be relied on.
    :ivar recovery_point: Everything before this offset is durable.
    :ivar epochs_changed: Whether the epoch checkpoint is outdated.
    """

    __slots__ = (
        "_epochs_synced",
        "_flushed_ms",
        "_is_named",
        "_log",
        "_store",
        "_truncations",
        "_written_epochs",
        "epochs_changed",
        "recovery_point",
    )

    def __init__(
        self,
        log: SegmentedLog,
        store: FileSegmentStore,
        *,
        recovery_point: int,
        is_durable: bool,
        now_ms: int,
        written_epochs: tuple[EpochEntry, ...] | None,
    ) -> None:
        self._log = log
        self._store = store
        self.recovery_point = recovery_point
        self._flushed_ms = now_ms
        self._truncations = 0
        self._written_epochs = written_epochs
        self.epochs_changed = written_epochs != log.epoch_entries()
        self._epochs_synced = is_durable
        self._is_named = False
        if not is_durable:
            store.mark_names_unsynced()

    @property
    def end(self) -> int:
        """The log end, less offsets behind the last batch: files can't tell them from lost ones."""
        end: int = self._log.log_end_offset
        return min(end, self._log.batches_end_offset)

    def inventory(self, high_watermark: int) -> LogInventory:
        """The present state of the log's files: see `FileLog.inventory`."""
        log, end = self._log, self.end
        return LogInventory(
            segments=self._store.entries(),
            log_start_offset=log.log_start_offset,
            log_end_offset=end,
            high_watermark=min(high_watermark, end),
            recovery_point=min(self.recovery_point, end),
            cleaned_until=log.cleaned_until,
            epochs=_begun_before(end, log.epoch_entries()),
            checksums=dict(self._store.home.checksums),
        )

    def flush(self) -> None:
        """Make everything durable that is not."""
        if self.end != self.recovery_point or not self._epochs_synced:
            self.sync_all()

    def sync_all(self) -> None:
        """Make everything durable, even if only the names of files may not be."""
        if not self._epochs_synced:
            self._write_epochs(sync=True)
        self._store.sync(self._log.local_segments.all, self.recovery_point)
        if not self._is_named:
            home = self._store.home
            home.files.sync_dir(home.directory.parent)
            self._is_named = True
        self.recovery_point = self.end

    def flush_due(self, now_ms: int) -> None:
        """Flush if flush.ms have passed since the last flush."""
        self._flushed_ms = min(self._flushed_ms, now_ms)  # the clock may have been set back
        if now_ms - self._flushed_ms >= self._log.config.flush_ms:
            self.flush()
            self._flushed_ms = now_ms

    def flush_if_many(self, now_ms: int) -> None:
        """Flush if flush.messages records were appended since the last flush."""
        if self._log.log_end_offset - self.recovery_point >= self._log.config.flush_messages:
            self.flush()
            self._flushed_ms = now_ms

    def close(self) -> None:
        """Make everything durable, indexes too."""
        self.flush()
        self._store.sync(self._log.local_segments.all, self._log.log_end_offset)

    # On another thread.

    def closed_segments_to_sync(self) -> PendingSync | None:
        """The oldest closed segments that are not durable, `SYNCED_AT_ONCE` at most.

        :returns: None where all are durable.
        """
        segments = self._log.local_segments
        if len(segments) == 1 or segments.active.base_offset <= self.recovery_point:
            return None
        first = segments.index_of(self.recovery_point)
        last = min(first + SYNCED_AT_ONCE, len(segments) - 1)
        closed = segments.all[:last]
        home = self._store.home
        return PendingSync(
            home.files,
            home.directory,
            self._store.open_unsynced(closed, LEADER_EPOCHS),
            segments=closed,
            end=segments.all[last].base_offset,
            epochs=self._log.epoch_entries(),
            truncations=self._truncations,
        )

    def on_synced(self, pending: PendingSync) -> None:
        """Move the recovery point on, unless the log was truncated meanwhile."""
        if pending.truncations != self._truncations:
            return
        self._store.mark_synced(pending.segments)
        self._epochs_synced = self._epochs_synced or pending.epochs == self._log.epoch_entries()
        self._is_named = True
        self.recovery_point = max(self.recovery_point, pending.end)

    # Changes of the log.

    def on_truncated(self) -> bool:
        """Move the recovery point back to the log end; returns whether it was beyond."""
        self._truncations += 1
        end = self.end
        if self.recovery_point <= end:
            return False
        self.recovery_point = end
        return True

    def on_epochs_changed(self) -> None:
        """Note that the epoch checkpoint is outdated."""
        self.epochs_changed = True
        self._epochs_synced = False

    @property
    def epochs_are_urgent(self) -> bool:
        """Whether the epoch checkpoint is outdated in an epoch that has records.

        Opening the log drops those that have none: they begin where the log ends.
        """
        written, end = self._written_epochs, self.end
        if written is None:
            return True
        return _begun_before(end, written) != _begun_before(end, self._log.epoch_entries())

    def write_epochs(self) -> None:
        """Write the epoch checkpoint.

        Where a crash of the machine undoes that, or leaves an empty file, the epochs are read from
        the batches; but not those of records that are only in the tier.
        """
        self._write_epochs(sync=self._log.config.remote_storage_enable)

    def _write_epochs(self, *, sync: bool) -> None:
        self.epochs_changed = False
        home, epochs = self._store.home, self._log.epoch_entries()
        data = encode_epochs(epochs)
        home.files.write_atomic(home.directory / LEADER_EPOCHS, data, sync=sync)
        self._written_epochs = epochs
        self._epochs_synced = sync


def _begun_before(end: int, epochs: tuple[EpochEntry, ...]) -> tuple[EpochEntry, ...]:
    """The epochs that have records in a log which ends at ``end`` (exclusive)."""
    if not epochs or epochs[-1].start_offset < end:
        return epochs
    return tuple(entry for entry in epochs if entry.start_offset < end)
