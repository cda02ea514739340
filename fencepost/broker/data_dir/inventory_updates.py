"""When a broker's inventory is read and written, and which of its rows hold.

A start takes it up, unless it is damaged or of an earlier start than the last one. From then on
rows are written when a log has changed more than by an append (at the end of the turn, in one
line), and with the checkpoints.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from uuid import UUID

from fencepost.broker.data_dir.log_inventory import (
    ClusterPosition,
    CorruptInventory,
    InventoryFile,
    InventoryRow,
)
from fencepost.broker.data_dir.offset_checkpoints import Key
from fencepost.storage.files.file_log import FileLog
from fencepost.storage.files.inventory import LogInventory


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

    def begin(self, *, has_logs: bool) -> str | None:
        """The broker starts: take up what was written down.

        :param has_logs: Whether there are logs.
        :returns: Why nothing is known of the logs, where something should be; None otherwise.
        """
        problem = self._problem(has_logs=has_logs)
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

    def _problem(self, *, has_logs: bool) -> str | None:
        file, position = self._file, self.position
        try:
            file.read()
        except (CorruptInventory, OSError) as error:
            return str(error)
        if not file.exists:
            is_expected = position.has_inventories and has_logs
            return f"{file.path} is not there" if is_expected else None
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
        log.on_epochs_changed = on_change
        log.watch_files(before_loss=partial(self._before_loss, key), on_new_segment=on_change)
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
    ) -> None:
        """Write down the logs that have changed more than by appends."""
        for key in sorted(self._changed):
            self._put(key, logs.get(key), high_watermarks)
        self._file.flush()

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


def _never() -> None:
    """The default: it is written with the checkpoints only."""
