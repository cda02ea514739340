"""When a broker writes down the state of its logs, and which rows of its inventory hold.

Kafka's checkpoints are written by timers (`fencepost.broker.data_dir.persistence`), and at an end
in order. So is the inventory, and besides when a log has changed more than by an append: at the end
of the turn, in one line. A start takes it up, unless it is damaged or of an earlier start than the
last one.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Final
from uuid import UUID

from fencepost.broker.data_dir.log_inventory import (
    ClusterPosition,
    CorruptInventory,
    InventoryFile,
    InventoryRow,
)
from fencepost.broker.data_dir.offset_checkpoints import Key, OffsetCheckpoints
from fencepost.broker.replication.replica import Replica
from fencepost.storage.files.file_log import FileLog
from fencepost.storage.files.file_system import StorageFailure
from fencepost.storage.files.flush import PendingSync
from fencepost.storage.files.inventory import LogInventory
from fencepost.storage.files.process_limits import ProcessLimits

RunSync = Callable[[Callable[[], None], Callable[[OSError | None], None]], None]
"""Does what takes long (the first) beside all else, and then says how it went (the second) where
the core runs."""
_EPOCHS_IN_A_TURN: Final = 4
"""Epoch checkpoints that are written in one turn of the event loop."""


class LogInventories:
    """What was and is there of the logs of one broker.

    :param position: How far the cluster's metadata have come; it moves on.
    :ivar flush_soon: Asks for `write_changed` at the end of the turn.
    """

    def __init__(self, file: InventoryFile, position: ClusterPosition) -> None:
        self.position = position
        self.flush_soon: Callable[[], None] = _never
        self._file = file
        self._topic_ids: dict[Key, UUID] = {}
        self._changed: set[Key] = set()
        """Logs of which more has changed than their offsets since they were written down."""
        self._written: dict[Key, tuple[int, ...]] = {}
        """The offsets of each log when they were written down."""

    @property
    def rows(self) -> Mapping[Key, InventoryRow]:
        """What is written down of each log."""
        return self._file.rows

    @property
    def found(self) -> ClusterPosition:
        """How far the metadata had come when it was last written to."""
        return self._file.found

    @property
    def report_problem(self) -> Callable[[str], None]:
        """Told what can't be written."""
        return self._file.report_problem

    @report_problem.setter
    def report_problem(self, complain: Callable[[str], None]) -> None:
        self._file.report_problem = complain

    # -- a start --------------------------------------------------------------------------------

    def begin(self, *, has_logs: bool, is_clean: bool) -> str | None:
        """The broker starts: take up what was written down.

        :param has_logs: Whether there are logs.
        :param is_clean: Whether the broker had ended in order, and the file with it.
        :returns: Why nothing is known of the logs, where something should be; None otherwise.
        """
        problem = self._problem(has_logs=has_logs, is_clean=is_clean)
        if problem is not None:
            self._file.rows = {}
        self._begin()
        return problem

    def begin_without_rows(self) -> None:
        """The broker starts after another program has used its logs."""
        self._file.rows = {}
        self._begin()

    def _begin(self) -> None:
        self._changed.clear()
        self._written.clear()
        self._file.begin()

    def _problem(self, *, has_logs: bool, is_clean: bool) -> str | None:
        file, position = self._file, self.position
        try:
            file.read()
        except (CorruptInventory, OSError) as error:
            return str(error)
        if not position.has_inventories:
            # An upgrade did not end, and since then an older fencepost may have used the logs.
            file.rows = {}
            return None
        if not file.exists:
            return f"{file.path} is not there" if has_logs else None
        if is_clean and file.is_torn:
            return f"{file.path} does not end with a whole line, and the broker had ended in order"
        if is_clean and has_logs and not file.rows:
            return f"{file.path} has no log, and the broker had ended in order with some"
        if file.rows and file.found.starts < position.restored_starts:
            return (
                f"{file.path} is of an earlier start of the cluster ({file.found.starts}, and "
                f"{position.restored_starts} was the last one)"
            )
        return None

    # -- changes --------------------------------------------------------------------------------

    def watch(self, key: Key, topic_id: UUID, log: FileLog) -> None:
        """A log is open: write it down, now and when it changes."""
        on_change = partial(self._on_change, key)
        log.watch_files(partial(self._before_loss, key), on_change)
        self._topic_ids[key] = topic_id
        row = self._file.rows.get(key)
        if row is not None:
            self._file.rows[key] = row._replace(is_closed=False)
        on_change()

    def _on_change(self, key: Key) -> None:
        self._changed.add(key)
        self.flush_soon()

    def _before_loss(self, key: Key, bases: Sequence[int]) -> None:
        self._file.before_loss(key, list(bases))
        self._on_change(key)

    def write_changed(
        self, logs: Mapping[Key, FileLog], high_watermarks: Mapping[Key, int]
    ) -> Sequence[Key]:
        """Write down the logs that have changed more than by appends; which they are."""
        changed = sorted(self._changed)
        for key in changed:
            self._put(key, logs.get(key), high_watermarks)
        self._file.flush()
        return changed

    def write(self, logs: Mapping[Key, FileLog], high_watermarks: Mapping[Key, int]) -> None:
        """Write down all logs that have changed."""
        for key, log in logs.items():
            offsets = (
                log.log_end_offset,
                high_watermarks.get(key, 0),
                log.recovery_point,
                log.log_start_offset,
                log.cleaned_until,
            )
            if self._written.get(key) != offsets or key in self._changed:
                self._written[key] = offsets
                self._put(key, log, high_watermarks)
        self._file.flush()

    def _put(self, key: Key, log: FileLog | None, high_watermarks: Mapping[Key, int]) -> None:
        self._changed.discard(key)
        if log is not None and log.failure is None:
            inventory = log.inventory(high_watermarks.get(key, 0))
            self._file.put(key, InventoryRow(self._topic_ids[key], inventory))

    def put_closed(
        self, key: Key, topic_id: UUID, inventory: LogInventory, *, is_closed: bool
    ) -> None:
        """A log was closed, and nothing is written to it any more, if that went well."""
        self._file.put(key, InventoryRow(topic_id, inventory, is_closed))

    def put_adopted(self, key: Key, row: InventoryRow) -> None:
        """A copy of another directory's log is a log of this one: it is written down at once."""
        self._file.put(key, row)
        self._file.flush()

    def remove(self, key: Key) -> None:
        """A log is about to be deleted."""
        self._file.remove(key)

    # -- an end ---------------------------------------------------------------------------------

    def rewrite(self) -> None:
        """Write all of it, durably.

        :raises OSError: When that fails.
        """
        self._file.rewrite()

    def close(self) -> None:
        """Let go of the file: the broker has crashed."""
        self._file.close()


class LogCheckpoints:
    """Writes the checkpoints and the inventory of one broker's logs.

    :param logs: Those that are open; they come and go.
    :param soon: Calls something at the end of this turn.
    :ivar offsets: As they are to be written.
    :ivar inventory: As it is written.
    :ivar run_sync: The edge sets what does it on a thread of its own.
    :ivar on_log_failed: Called with a log that failed while it was written to here.
    """

    def __init__(
        self,
        offsets: OffsetCheckpoints,
        inventory: LogInventories,
        logs: Mapping[Key, FileLog],
        *,
        soon: Callable[[Callable[[], None]], None],
        shared: ProcessLimits,
    ) -> None:
        self.run_sync: RunSync = run_sync_inline
        self.on_log_failed: Callable[[Key, StorageFailure], None] = _ignore_failure
        self.offsets = offsets
        self.inventory = inventory
        self._logs = logs
        self._soon = soon
        self._shared = shared
        self._recovery_points_are_due = False
        """Whether a recovery point has moved that is not written yet."""
        self._inventory_is_due = False
        self._outdated_epochs: dict[Key, None] = {}
        """Logs whose epoch checkpoint waits to be written."""
        self._is_syncing = False
        """Whether closed segments are being made durable."""
        inventory.flush_soon = self._flush_inventory_soon

    def report_problems_to(self, complain: Callable[[str], None]) -> None:
        """Report what can't be read or written to a callback from now on."""
        self.offsets.report_problem = self.inventory.report_problem = complain

    def begin(self, *, has_logs: bool, is_clean: bool, is_ours: bool) -> str | None:
        """The broker starts: read what was written down.

        :param has_logs: Whether there are logs.
        :param is_clean: Whether the broker had ended in order.
        :param is_ours: Whether no other program has used the logs since.
        :returns: See `LogInventories.begin`.
        """
        self.offsets.read()
        if is_ours:
            return self.inventory.begin(has_logs=has_logs, is_clean=is_clean)
        self.inventory.begin_without_rows()
        return None

    def on_opened(self, key: Key, topic_id: UUID, log: FileLog, row: InventoryRow | None) -> None:
        """A log is open: write down what changes.

        :param row: What the inventory has had of it.
        """
        offsets = self.offsets
        log.on_truncated = self._on_recovery_point_changed
        log.write_epochs_later = partial(self._write_epochs_later, key)
        self.inventory.watch(key, topic_id, log)
        if log.recovery_point < offsets.recovery_points.get(key, 0):
            # What is appended from now on is not durable, although the file says that it is.
            self._on_recovery_point_changed()
        if row is not None:
            offsets.high_watermarks[key] = row.inventory.high_watermark
            offsets.recovery_points[key] = log.recovery_point
            offsets.record_log_start(key, log)

    def on_closed(self, key: Key, replica: Replica, log: FileLog, *, is_closed: bool) -> None:
        """A log was closed, and nothing is written to it any more, if that went well."""
        inventory = log.inventory(replica.high_watermark)
        self.inventory.put_closed(key, replica.topic_id, inventory, is_closed=is_closed)
        self.offsets.high_watermarks[key] = replica.high_watermark
        self.offsets.recovery_points[key] = log.recovery_point
        self.offsets.record_log_start(key, log)

    def remove(self, key: Key) -> None:
        """A log is about to be deleted."""
        self.offsets.remove(key)
        self.inventory.remove(key)

    def write_all(self) -> None:
        """Write all of it, durably, as at an end in order.

        :raises OSError: When that fails.
        """
        self.offsets.write_all()
        self.inventory.rewrite()

    def write_high_watermarks(self, replicas: Mapping[Key, Replica]) -> None:
        """Write ``replication-offset-checkpoint``, if it would say anything new."""
        for key, replica in replicas.items():
            self.offsets.high_watermarks[key] = replica.high_watermark
        self.offsets.write_high_watermarks()
        self._write_inventory()

    def write_recovery_points(self) -> None:
        """Write ``recovery-point-offset-checkpoint``, if it would say anything new."""
        for key, log in self._logs.items():
            self.offsets.recovery_points[key] = log.recovery_point
        self.offsets.write_recovery_points()
        self._write_inventory()

    def write_log_starts(self) -> None:
        """Write ``log-start-offset-checkpoint``, if it would say anything new."""
        for key, log in self._logs.items():
            self.offsets.record_log_start(key, log)
        self.offsets.write_log_starts()
        self._write_inventory()

    def _on_recovery_point_changed(self) -> None:
        """A recovery point has fallen with its log's end, or risen: soon it is written."""
        if not self._recovery_points_are_due:
            self._recovery_points_are_due = True
            self._soon(self._write_due_recovery_points)

    def _write_due_recovery_points(self) -> None:
        self._recovery_points_are_due = False
        self.write_recovery_points()
        self.write_log_starts()  # and up to where compaction has been

    def _write_epochs_later(self, key: Key) -> None:
        if not self._outdated_epochs:
            self._shared.in_later_turn(self._write_outdated_epochs)
        self._outdated_epochs[key] = None

    def _write_outdated_epochs(self) -> None:
        keys = list(islice(self._outdated_epochs, _EPOCHS_IN_A_TURN))
        for key in keys:
            del self._outdated_epochs[key]
            log = self._logs.get(key)
            if log is not None and log.failure is None:
                try:
                    log.write_outdated_epochs()
                except StorageFailure as failure:
                    self.on_log_failed(key, failure)
        if self._outdated_epochs:
            self._shared.in_later_turn(self._write_outdated_epochs)

    def _flush_inventory_soon(self) -> None:
        if not self._inventory_is_due:
            self._inventory_is_due = True
            self._soon(self._flush_inventory)

    def _flush_inventory(self) -> None:
        """Write down which files logs have, and up to where compaction has been, as in Kafka."""
        self._inventory_is_due = False
        for key in self.inventory.write_changed(self._logs, self.offsets.high_watermarks):
            log = self._logs.get(key)
            if log is not None:
                self.offsets.record_cleaned(key, log)
        self.offsets.write_cleaned()

    def _write_inventory(self) -> None:
        self.inventory.write(self._logs, self.offsets.high_watermarks)

    # -- making logs durable ----------------------------------------------------------------------

    def flush_overdue(self, now_ms: int) -> Iterator[tuple[Key, StorageFailure]]:
        """Flush the logs whose records have waited for flush.ms; tells those that failed."""
        for key, log in list(self._logs.items()):
            try:
                log.flush_due(now_ms)
            except StorageFailure as failure:
                yield key, failure

    def sync_closed_segments(self) -> None:
        """Begin to make the closed segments durable that are not, beside all else.

        A few segments of one log are synced at a time, because their files are open meanwhile; the
        others follow. The recovery point of a log moves on with them, and is written.
        """
        for key, log in list(self._logs.items()):
            if self._is_syncing:
                return
            try:
                pending = log.closed_segments_to_sync()
            except StorageFailure as failure:
                self.on_log_failed(key, failure)
                continue
            if pending is not None:
                self._is_syncing = True
                self._shared.open_files.lend(pending.open_files)
                self.run_sync(pending.run, partial(self._synced, key, log, pending))

    def _synced(self, key: Key, log: FileLog, pending: PendingSync, error: OSError | None) -> None:
        self._is_syncing = False
        self._shared.open_files.lend(-pending.open_files)
        self._soon(self.sync_closed_segments)
        if self._logs.get(key) is not log:
            return
        try:
            log.on_synced(pending, error)
        except StorageFailure as failure:
            self.on_log_failed(key, failure)
        else:
            self._on_recovery_point_changed()


def _never() -> None:
    """The default: it is written with the checkpoints only."""


def _ignore_failure(_key: Key, _failure: StorageFailure) -> None:
    """The default: the next use of the log fails."""


def run_sync_inline(work: Callable[[], None], then: Callable[[OSError | None], None]) -> None:
    """An `RunSync` that is here."""
    try:
        work()
    except OSError as error:
        then(error)
    else:
        then(None)
