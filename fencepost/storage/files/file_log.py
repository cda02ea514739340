"""A log in files: what a `SegmentedLog` does, made to last.

What is appended is in the operating system's hands when the append returns, so the end of the
process loses nothing of it. What a crash of the machine may not lose is synced, after
``flush.messages`` records or ``flush.ms``; the recovery point says how far that is. Whoever
opens the log after an unclean end validates everything from there on.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from pathlib import PurePath
from typing import Concatenate, ParamSpec, TypeVar, final

from fencepost.protocol.byte_utils import Buffer
from fencepost.storage.files.file_system import StorageFailure
from fencepost.storage.files.segment_store import FileSegmentStore, PendingSync
from fencepost.storage.formats.checkpoints import encode_epochs
from fencepost.storage.formats.file_names import LEADER_EPOCHS
from fencepost.storage.log.append_result import AppendOrigin, AppendRejected, AppendResult
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.key_offsets import LatestKeyOffsets
from fencepost.storage.log.leader_epoch_cache import EpochEntry
from fencepost.storage.log.producer_state import ProducerStateEntry
from fencepost.storage.log.segmented_log import SegmentedLog
from fencepost.storage.log.segments import InitialLogState, LogSegment, SegmentInfo
from fencepost.storage.log.staging import StagedRecords

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _guarded(
    method: Callable[Concatenate["FileLog", _P], _R],
) -> Callable[Concatenate["FileLog", _P], _R]:
    """What a log refuses once its files have failed, and what may find that they do.

    Epochs that changed are written down at its end: not before records were cut, or a crash in
    between would leave records of epochs that nobody knows.
    """

    @wraps(method)
    def guarded(self: "FileLog", /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        if self._failure is not None:
            raise StorageFailure(self._name, self._failure)
        try:
            try:
                return method(self, *args, **kwargs)
            finally:
                if self._epochs_changed:
                    self._write_epochs(sync=self.config.remote_storage_enable)
        except OSError as error:
            self._failure = why = str(error)
            raise StorageFailure(self._name, why) from error

    return guarded


@final
class FileLog(SegmentedLog):
    """A log in one directory; `opening.open_log` makes one.

    Every method raises `StorageFailure` when the disk fails, and from then on; what is known
    without the disk (the offsets, the epochs, the producers) can still be asked for.

    :param recovery_point: Everything before this offset is durable, and will be found so.
    :param is_durable: Whether the names of its files and the epochs' checkpoint are as well.
    :param now_ms: flush.ms counts from now.
    :ivar on_truncated: Called when the recovery point has fallen: whoever keeps it for the next
        start has to write it down now.
    """

    __slots__ = (
        "_epochs_changed",
        "_epochs_synced",
        "_failure",
        "_flushed_ms",
        "_is_named",
        "_recovery_point",
        "_segment_store",
        "_truncations",
        "on_truncated",
    )

    def __init__(
        self,
        name: str,
        config: LogConfig,
        store: FileSegmentStore,
        contents: InitialLogState,
        *,
        recovery_point: int,
        is_durable: bool,
        now_ms: int,
    ) -> None:
        super().__init__(name, config, store, contents)
        self._segment_store = store
        self._recovery_point = recovery_point
        self._flushed_ms = now_ms
        self._failure: str | None = None
        self._truncations = 0
        self._epochs_changed = False
        self._epochs_synced = is_durable
        self._is_named = False
        if not is_durable:
            store.mark_names_unsynced()
        self.on_truncated: Callable[[], None] = _ignore_truncation
        self._epochs.on_change = self._on_epochs_changed

    @property
    def directory(self) -> PurePath:
        """Where its files are."""
        return self._segment_store.home.directory

    @property
    def failure(self) -> StorageFailure | None:
        """Why it can't be used any more, None while it can."""
        return None if self._failure is None else StorageFailure(self._name, self._failure)

    @property
    def rebuilt(self) -> Sequence[str]:
        """Names of the files that were missing or broken and were made again since it is open."""
        return self._segment_store.home.rebuilt

    @property
    def cleaned_until(self) -> int:
        """Compaction has been over everything before this offset."""
        return self._cleaned_until

    # Durability.

    @property
    def recovery_point(self) -> int:
        """Everything before this offset is durable."""
        return self._recovery_point

    @_guarded
    def flush(self) -> None:
        """Make everything durable that there is."""
        self._flush()

    @_guarded
    def flush_due(self, now_ms: int) -> None:
        """Make everything durable if flush.ms have passed since that was done last."""
        if now_ms - self._flushed_ms >= self.config.flush_ms:
            self._flush()
            self._flushed_ms = now_ms

    @_guarded
    def closed_segments_to_sync(self) -> PendingSync | None:
        """What makes the closed segments durable that are not, None where all are.

        Its `run` is for another thread; then `synced` is to be called.
        """
        closed = self._segments.all[:-1]
        if not closed or self._segments.active.base_offset <= self._recovery_point:
            return None
        store = self._segment_store
        return PendingSync(
            store.home.files,
            self.directory,
            store.open_unsynced(closed, LEADER_EPOCHS),
            segments=closed,
            end=self._segments.active.base_offset,
            epochs=self._epochs.entries(),
            truncations=self._truncations,
        )

    @_guarded
    def on_synced(self, pending: PendingSync, error: OSError | None) -> None:
        """Move the recovery point on to what is durable now.

        :param error: What `run` raised; it fails the log.
        """
        if error is not None:
            raise error
        if pending.truncations != self._truncations:
            return
        self._segment_store.mark_synced(pending.segments)
        self._epochs_synced = self._epochs_synced or pending.epochs == self._epochs.entries()
        self._is_named = True
        self._recovery_point = max(self._recovery_point, pending.end)

    def _flush(self) -> None:
        if self._sound_end != self._recovery_point or not self._epochs_synced:
            self._sync_all()

    def _sync_all(self) -> None:
        if not self._epochs_synced:
            self._write_epochs(sync=True)
        self._segment_store.sync(self._segments.all, self._recovery_point)
        if not self._is_named:
            self._segment_store.home.files.sync_dir(self.directory.parent)
            self._is_named = True
        self._recovery_point = self._sound_end

    def _flush_if_many(self, now_ms: int) -> None:
        if self._end - self._recovery_point >= self.config.flush_messages:
            self._flush()
            self._flushed_ms = now_ms

    def _on_epochs_changed(self) -> None:
        self._epochs_changed = True
        self._epochs_synced = False

    def _write_epochs(self, *, sync: bool) -> None:
        self._epochs_changed = False
        path = self.directory / LEADER_EPOCHS
        self._segment_store.home.files.write_atomic(
            path, encode_epochs(self._epochs.entries()), sync=sync
        )
        self._epochs_synced = sync

    def write_epochs(self) -> None:
        """Write the epochs down: they are not what the checkpoint says.

        Where a crash of the machine takes that back, or leaves an empty file, they are found in
        the batches; but not those of records that are in the tier only.
        """
        self._write_epochs(sync=self.config.remote_storage_enable)

    def _lower_recovery_point(self) -> None:
        """See that the recovery point is not behind the end."""
        self._truncations += 1
        if self._recovery_point > self._sound_end:
            self._recovery_point = self._sound_end
            self.on_truncated()

    @property
    def _sound_end(self) -> int:
        """The end, less offsets behind the last batch: files can't tell them from lost ones."""
        return min(self._end, self.batches_end_offset)

    # Leaving.

    @_guarded
    def close(self, *, sync: bool = True) -> None:
        """Write down everything, durably, so that opening it again reads next to nothing.

        Nobody may use it any more.

        :param sync: False leaves it to the caller to make it durable, of many logs at once
            (`FileSystem.sync_all`); the recovery point is true only from then on.
        """
        store = self._segment_store
        store.finish()
        if self.size_bytes or len(self._producers):
            # Where a batch that lay across an offset was cut off, the log is opened as ending here.
            end = self._segments.active.next_offset
            store.snapshots.write(end, self._producers.snapshot(), sync=sync)
        if self._keys is not None:
            store.keys.write(self._keys, self._start, self._epochs, sync=sync)
        if sync:
            self._flush()
            store.sync(self._segments.all, self._end)
        self._recovery_point = self._sound_end
        store.release()
        self._failure = "it is closed"

    def abandon(self) -> None:
        """Let go of open files and memory as the end of a process does, and write nothing."""
        self._segment_store.release()
        self._failure = self._failure or "it is closed"

    def delete(self, aside: str) -> None:
        """Take its directory out of the way, so that a new log may have the name.

        Nobody may use it any more; `dismantle` removes the files.

        :param aside: The directory's new name: see `formats.names.deleted_directory_name`.
        :raises StorageFailure: When the directory stays where it is.
        """
        self.abandon()
        home = self._segment_store.home
        target = home.directory.with_name(aside)
        try:
            home.files.rename(home.directory, target)
        except OSError as error:
            raise StorageFailure(self._name, str(error)) from error
        home.directory = target

    def dismantle(self) -> Iterator[None]:
        """Remove its directory, a file before each step; nobody may use the log any more."""
        self.abandon()
        home = self._segment_store.home
        with suppress(OSError):  # what can't be removed stays: nobody waits for it
            for name in home.files.names(home.directory):
                home.files.remove(home.directory / name)
                yield
            home.files.remove_tree(home.directory)

    # What a `SegmentedLog` does, guarded.

    @_guarded
    def append_as_leader(
        self,
        records: Buffer,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        allow_zstd: bool = True,
    ) -> AppendResult | AppendRejected:
        """Check one batch, give it offsets and the leader's epoch, and keep it."""
        result = super().append_as_leader(
            records,
            leader_epoch=leader_epoch,
            now_ms=now_ms,
            origin=origin,
            allow_zstd=allow_zstd,
        )
        self._flush_if_many(now_ms)
        return result

    @_guarded
    def append_staged(
        self, staged: StagedRecords, *, leader_epoch: int, now_ms: int
    ) -> AppendResult:
        """Append as leader what `stage` has checked, in the order in which it was taken."""
        result = super().append_staged(staged, leader_epoch=leader_epoch, now_ms=now_ms)
        self._flush_if_many(now_ms)
        return result

    @_guarded
    def append_as_follower(self, records: Sequence[Buffer], *, now_ms: int) -> AppendResult:
        """Keep batches as their leader sent them; a partial one at an end is left out."""
        result = super().append_as_follower(records, now_ms=now_ms)
        self._flush_if_many(now_ms)
        return result

    @_guarded
    def truncate_to(self, offset: int) -> bool:
        """Drop everything from `offset` on, and of the batch that holds it all."""
        changed = super().truncate_to(offset)
        self._lower_recovery_point()
        return changed

    @_guarded
    def truncate_fully_and_start_at(
        self, offset: int, *, now_ms: int, log_start_offset: int | None = None
    ) -> None:
        """Drop everything, epochs and producers too; the next record gets `offset`."""
        super().truncate_fully_and_start_at(
            offset, now_ms=now_ms, log_start_offset=log_start_offset
        )
        self._lower_recovery_point()

    @_guarded
    def start_from_tier(
        self,
        offset: int,
        *,
        log_start_offset: int,
        epochs: Sequence[EpochEntry],
        producers: Sequence[ProducerStateEntry],
        now_ms: int,
    ) -> None:
        """Drop everything and go on at `offset`; what lies before is in the tier."""
        super().start_from_tier(
            offset,
            log_start_offset=log_start_offset,
            epochs=epochs,
            producers=producers,
            now_ms=now_ms,
        )
        self._lower_recovery_point()
        self._flush()  # no batch here says these epochs

    @_guarded
    def compact(self, now_ms: int, high_watermark: int, *, at_once: bool = False) -> int:
        """Clean the closed segments below the high watermark, if they are dirty enough."""
        return super().compact(now_ms, high_watermark, at_once=at_once)

    read = _guarded(SegmentedLog.read)
    size_between = _guarded(SegmentedLog.size_between)
    assign_epoch_start = _guarded(SegmentedLog.assign_epoch_start)
    end_offset_for_epoch = _guarded(SegmentedLog.end_offset_for_epoch)
    offset_for_timestamp = _guarded(SegmentedLog.offset_for_timestamp)
    offset_of_max_timestamp = _guarded(SegmentedLog.offset_of_max_timestamp)
    advance_log_start = _guarded(SegmentedLog.advance_log_start)
    roll = _guarded(SegmentedLog.roll)
    delete_expired = _guarded(SegmentedLog.delete_expired)
    segment_to_upload = _guarded(SegmentedLog.segment_to_upload)
    delete_local = _guarded(SegmentedLog.delete_local)

    @_guarded
    def segments(self) -> tuple[SegmentInfo, ...]:
        """All segments, oldest first; the last is the active one."""
        return tuple(SegmentInfo(segment, self._call_guarded) for segment in self._segments)

    @_guarded
    def _call_guarded(self, number: Callable[[], int]) -> int:
        return number()

    def _roll(self, now_ms: int, base_offset: int) -> LogSegment:
        store = self._segment_store
        store.home.config = self.config
        segment = super()._roll(now_ms, base_offset)
        if self._keys is not None:
            store.keys.write_if_grown(self._keys, self._start, self._epochs)
        return segment

    @_guarded
    def _last_offsets(self) -> LatestKeyOffsets:
        return super()._last_offsets()

    def _initial_last_offsets(self) -> LatestKeyOffsets:
        known = self._segment_store.keys.read(self._start)
        return super()._initial_last_offsets() if known is None else known

    def _before_cut(self, offset: int) -> None:
        super()._before_cut(offset)
        self._segment_store.keys.discard_from(offset)

    def _before_swap(self, expired: Mapping[bytes, int]) -> None:
        super()._before_swap(expired)
        if expired:
            self._segment_store.keys.discard_from(min(expired.values()))


def _ignore_truncation() -> None:
    """Nobody keeps the recovery point."""
