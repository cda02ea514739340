"""A log in files: a `SegmentedLog` whose segments are files, flushed, and closed to the outside
when the disk fails.

When an append returns, the operating system has the data, so the end of the process loses
nothing of it. A crash of the machine loses only what lies behind the recovery point: a
`LogFlusher` moves it. When the log is opened after an unclean end, everything from there on is
validated.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import wraps
from operator import attrgetter
from pathlib import PurePath
from typing import Concatenate, ParamSpec, TypeVar, final

from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.record_reader import ReadBudget
from fencepost.storage.files.file_system import StorageFailure
from fencepost.storage.files.flush import LogFlusher, PendingSync
from fencepost.storage.files.inventory import LogInventory
from fencepost.storage.files.segment_files import BeforeLoss
from fencepost.storage.files.segment_store import FileSegmentStore
from fencepost.storage.log.append_result import AppendOrigin, AppendRejected, AppendResult
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.leader_epoch_cache import EpochEntry
from fencepost.storage.log.producer_state import ProducerStateEntry
from fencepost.storage.log.segmented_log import SegmentedLog
from fencepost.storage.log.segments import InitialLogState, SegmentInfo
from fencepost.storage.log.staging import StagedRecords, Staging
from fencepost.storage.log.verification import VerificationGuard

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _guarded(
    method: Callable[Concatenate["FileLog", _P], _R],
) -> Callable[Concatenate["FileLog", _P], _R]:
    """Let a method fail once the log's files have failed, and note when it finds that they do.

    Epochs that changed are written to their checkpoint when it ends, after records were cut: a
    crash in between must not leave records whose epochs are in no file. Those without a record can
    wait: see `FileLog.write_epochs_later`.
    """

    @wraps(method)
    def guarded(self: "FileLog", /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        if self._failure is not None:
            raise StorageFailure(self.name, self._failure)
        try:
            try:
                return method(self, *args, **kwargs)
            finally:
                if self._flusher.epochs_changed:
                    self._on_epochs_outdated()
        except OSError as error:
            # It is kept for as long as the log: the frames of its traceback are not.
            self._failure = error.with_traceback(None)
            raise StorageFailure(self.name, error) from error

    return guarded


def _delegated(
    method: Callable[Concatenate[SegmentedLog, _P], _R],
) -> Callable[Concatenate["FileLog", _P], _R]:
    """A method of the `SegmentedLog`, guarded."""

    @_guarded
    @wraps(method)
    def delegated(self: "FileLog", /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        return method(self._log, *args, **kwargs)

    return delegated


@final
class FileLog:
    """A `Log` in one directory; `fencepost.storage.files.open_log.open_log` makes one.

    The contract of its methods stands in `fencepost.storage.log.interface.Log`. Beyond that every
    method raises `StorageFailure` when the disk fails, and from then on. The offsets, epochs and
    producers are in memory and stay available.

    :param recovery_point: Everything before this offset is durable, and will be found so.
    :param is_durable: Whether the names of its files and the epoch checkpoint are as well.
    :param written_epochs: What the epoch checkpoint has; None where that is not to be relied on.
    :param now_ms: flush.ms counts from now.
    :ivar on_truncated: Called when the recovery point has moved back: a checkpoint that a later
        start reads must follow at once.
    :ivar write_epochs_later: Has `write_outdated_epochs` called soon; None writes at once. Where a
        broker begins to lead thousands of partitions, it would be busy for seconds with epochs
        without a record, which opening the log drops. With its first record an epoch is written.
    """

    __slots__ = (
        "_failure",
        "_flusher",
        "_log",
        "_on_epochs_changed",
        "_store",
        "on_truncated",
        "write_epochs_later",
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
        written_epochs: tuple[EpochEntry, ...] | None,
        now_ms: int,
    ) -> None:
        self._store = store
        self._log = SegmentedLog(name, config, store, contents)
        self._flusher = LogFlusher(
            self._log,
            store,
            recovery_point=recovery_point,
            is_durable=is_durable,
            now_ms=now_ms,
            written_epochs=written_epochs,
        )
        self._failure: OSError | None = None
        self.on_truncated = self._on_epochs_changed = _ignore_change
        self.write_epochs_later: Callable[[], None] | None = None
        self._log.on_truncated = self._after_truncation
        contents.epochs.on_change = self._flusher.on_epochs_changed

    def _after_truncation(self) -> None:
        if self._flusher.on_truncated():
            self.on_truncated()
        if self._flusher.epochs_changed:
            self.write_epochs()

    def _on_epochs_outdated(self) -> None:
        if self.write_epochs_later is None or self._flusher.epochs_are_urgent:
            self.write_epochs()
        else:
            self.write_epochs_later()

    # In memory: available after a failure.

    @property
    def config(self) -> LogConfig:
        """The configs of the log; new segments are made by them."""
        return self._log.config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._log.config = self._store.home.config = config

    @property
    def name(self) -> str:
        """Topic and partition: ``topic-0``."""
        return self._log.name

    @property
    def directory(self) -> PurePath:
        """Where its files are."""
        return self._store.home.directory

    @property
    def failure(self) -> StorageFailure | None:
        """Why it can't be used any more, None while it can."""
        return None if self._failure is None else StorageFailure(self.name, self._failure)

    @property
    def rebuilt(self) -> Sequence[str]:
        """Names of the missing or broken files that were rebuilt since the log is open."""
        return self._store.home.rebuilt

    @property
    def recovery_point(self) -> int:
        """Everything before this offset is durable."""
        return self._flusher.recovery_point

    @property
    def cleaned_until(self) -> int:
        """Compaction has cleaned everything before this offset."""
        return self._log.cleaned_until

    # As in `SegmentedLog`.
    log_start_offset = property(attrgetter("_log.log_start_offset"))
    """The first offset that may be read."""
    log_end_offset = property(attrgetter("_log.log_end_offset"))
    """The offset that the next record gets."""

    @property
    def local_log_start_offset(self) -> int:
        """The first offset in the files."""
        return self._log.local_log_start_offset

    @property
    def batches_end_offset(self) -> int:
        """The offset behind the last batch."""
        return self._log.batches_end_offset

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments."""
        return self._log.size_bytes

    @property
    def latest_epoch(self) -> int | None:
        """The newest leader epoch known."""
        return self._log.latest_epoch

    def epoch_for_offset(self, offset: int) -> int | None:
        """The leader epoch that `offset` was, or will be, written in."""
        return self._log.epoch_for_offset(offset)

    def epoch_entries(self) -> tuple[EpochEntry, ...]:
        """The leader-epoch cache, oldest first."""
        return self._log.epoch_entries()

    def producers(self) -> tuple[ProducerStateEntry, ...]:
        """The producers known, in order of their ids."""
        return self._log.producers()

    def expire_producers(self, now_ms: int) -> int:
        """Forget the producers that have been silent for producer.id.expiration.ms."""
        return self._log.expire_producers(now_ms)

    def last_stable_offset(self, high_watermark: int) -> int:
        """Exclusive end of what a read_committed consumer may read."""
        return self._log.last_stable_offset(high_watermark)

    def has_ongoing_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether a producer has an open transaction in this epoch."""
        return self._log.has_ongoing_transaction(producer_id, producer_epoch)

    def maybe_start_verification(
        self, producer_id: int, sequence: int, epoch: int, *, supports_epoch_bump: bool
    ) -> VerificationGuard | ErrorCode | None:
        """Begin to verify a transactional producer before its first record is appended."""
        return self._log.maybe_start_verification(
            producer_id, sequence, epoch, supports_epoch_bump=supports_epoch_bump
        )

    # Reading and changing the segments.

    read = _delegated(SegmentedLog.read)
    size_between = _delegated(SegmentedLog.size_between)
    aborted_transactions = _delegated(SegmentedLog.aborted_transactions)
    key_offsets = _delegated(SegmentedLog.key_offsets)
    offset_for_timestamp = _delegated(SegmentedLog.offset_for_timestamp)
    offset_of_max_timestamp = _delegated(SegmentedLog.offset_of_max_timestamp)
    assign_epoch_start = _delegated(SegmentedLog.assign_epoch_start)
    end_offset_for_epoch = _delegated(SegmentedLog.end_offset_for_epoch)
    truncate_to = _delegated(SegmentedLog.truncate_to)
    truncate_fully_and_start_at = _delegated(SegmentedLog.truncate_fully_and_start_at)
    advance_log_start = _delegated(SegmentedLog.advance_log_start)
    roll = _delegated(SegmentedLog.roll)
    delete_expired = _delegated(SegmentedLog.delete_expired)
    compact = _delegated(SegmentedLog.compact)
    segment_to_upload = _delegated(SegmentedLog.segment_to_upload)
    delete_local = _delegated(SegmentedLog.delete_local)

    @_guarded
    def segments(self) -> tuple[SegmentInfo, ...]:
        """All segments, oldest first; the last is the active one."""
        return self._log.segments(self._call_guarded)

    @_guarded
    def _call_guarded(self, number: Callable[[], int]) -> int:
        return number()

    def stage(self, *, now_ms: int) -> Staging:
        """Begin to check the batches that a client's request has for this log (KIP-27)."""
        return self._log.stage(now_ms=now_ms, key_offsets=self.key_offsets)

    @_guarded
    def append_as_leader(
        self,
        records: Buffer,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        allow_zstd: bool = True,
        budget: ReadBudget | None = None,
        guard: VerificationGuard | None = None,
        transaction_version: int = 0,
    ) -> AppendResult | AppendRejected:
        """Check one batch, give it offsets and the leader's epoch, and keep it."""
        result = self._log.append_as_leader(
            records,
            leader_epoch=leader_epoch,
            now_ms=now_ms,
            origin=origin,
            allow_zstd=allow_zstd,
            budget=budget,
            guard=guard,
            transaction_version=transaction_version,
        )
        self._flusher.flush_if_many(now_ms)
        return result

    @_guarded
    def append_staged(
        self, staged: StagedRecords, *, leader_epoch: int, now_ms: int
    ) -> AppendResult:
        """Append as leader the batches that `stage` has checked, in the order of the checks."""
        result = self._log.append_staged(staged, leader_epoch=leader_epoch, now_ms=now_ms)
        self._flusher.flush_if_many(now_ms)
        return result

    @_guarded
    def append_as_follower(
        self, records: Sequence[Buffer], *, now_ms: int, high_watermark: int = 0
    ) -> AppendResult:
        """Keep batches as their leader sent them; a partial one at an end is left out."""
        result = self._log.append_as_follower(records, now_ms=now_ms, high_watermark=high_watermark)
        self._flusher.flush_if_many(now_ms)
        return result

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
        """Drop everything and go on at `offset`; the records before it are in the tier."""
        self._log.start_from_tier(
            offset,
            log_start_offset=log_start_offset,
            epochs=epochs,
            producers=producers,
            now_ms=now_ms,
        )
        self._flusher.sync_all()  # no batch in the files has these epochs

    # Durability.

    @_guarded
    def flush(self) -> None:
        """Make everything durable."""
        self._flusher.flush()

    @_guarded
    def flush_due(self, now_ms: int) -> None:
        """Make everything durable if flush.ms have passed since that was done last."""
        self._flusher.flush_due(now_ms)

    @_guarded
    def closed_segments_to_sync(self) -> PendingSync | None:
        """The closed segments that are not durable, None where all are.

        Another thread calls `run`; then `on_synced` is to be called.
        """
        return self._flusher.closed_segments_to_sync()

    @_guarded
    def on_synced(self, pending: PendingSync, error: OSError | None) -> None:
        """Move the recovery point on behind the segments that were synced.

        :param error: What `run` raised; it fails the log.
        """
        if error is not None:
            raise error
        self._flusher.on_synced(pending)

    def write_epochs(self) -> None:
        """Write the epoch checkpoint, which differs from the epochs of the log."""
        self._flusher.write_epochs()
        self._on_epochs_changed()

    def write_epochs_if_urgent(self) -> None:
        """Write the epoch checkpoint if it is outdated in an epoch that has records."""
        if self._flusher.epochs_are_urgent:
            self.write_epochs()

    @_guarded
    def write_outdated_epochs(self) -> None:
        """Write the epoch checkpoint if it differs from the epochs of the log."""
        if self._flusher.epochs_changed:
            self.write_epochs()

    def inventory(self, high_watermark: int) -> LogInventory:
        """The state of its files, of which none is read, with its replica's high watermark."""
        return self._flusher.inventory(high_watermark)

    def watch_files(self, before_loss: BeforeLoss, on_change: Callable[[], None]) -> None:
        """Be told before segments are removed, replaced or cut, and of new segments and epochs."""
        self._store.home.before_loss = before_loss
        self._store.home.on_new_segment = self._on_epochs_changed = on_change

    # Closing and deleting.

    @_guarded
    def close(self, *, sync: bool = True) -> None:
        """Write everything, durably, so that opening the log again reads next to nothing.

        It must not be used any more.

        :param sync: False leaves it to the caller to make many logs durable at once
            (`FileSystem.sync_all`); the recovery point is true only from then on.
        """
        log, store = self._log, self._store
        if self._flusher.epochs_changed:
            self.write_epochs()
        store.finish()
        producers = log.producers()
        if log.size_bytes or producers:
            # Where a batch that lay across an offset was cut off, the log is opened as ending here.
            store.snapshots.write(log.batches_end_offset, producers, sync=sync)
        log.checkpoint_keys(sync=sync)
        if sync:
            self._flusher.close()
        self._flusher.recovery_point = self._flusher.end
        store.release()
        self._failure = OSError("it is closed")

    def abandon(self) -> None:
        """Let go of open files and memory as the end of a process does, and write nothing."""
        self._store.release()
        self._failure = self._failure or OSError("it is closed")

    def delete(self, aside: str) -> None:
        """Take its directory out of the way, so that a new log may have the name.

        The log must not be used any more; `dismantle` removes the files.

        :param aside: The directory's new name: see `formats.file_names.deleted_directory_name`.
        :raises StorageFailure: When the directory stays where it is.
        """
        self.abandon()
        try:
            self._store.home.rename(aside)
        except OSError as error:
            raise StorageFailure(self.name, error) from error

    def dismantle(self) -> Iterator[None]:
        """Remove its directory, a file before each step; the log must not be used any more."""
        self.abandon()
        with suppress(OSError):  # a file that can't be removed stays: the broker goes on without it
            yield from self._store.home.dismantle()


def _ignore_change() -> None:
    """The default: nothing is kept of it."""
