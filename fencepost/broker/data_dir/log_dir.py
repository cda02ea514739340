"""One broker's log directory: its replicas' logs, and what lies beside them.

It is laid out as Kafka's. What a process finds when it starts is decided here: with
``.kafka_cleanshutdown`` every log is as the checkpoints say and opened without a look at its
records; without it, each is recovered from its recovery point on. A broker that is stopped and
started within the process goes the same way through the files.

    <topic>-<partition>/               a log, and partition.metadata with the id of its topic
    meta.properties                    which cluster and which broker it is of
    recovery-point-offset-checkpoint   up to where logs are on the disk itself
    replication-offset-checkpoint      high watermarks
    log-start-offset-checkpoint        log starts that are not where a log's first segment begins
    cleaner-offset-checkpoint          up to where compaction has been
    .kafka_cleanshutdown               there only where the broker ended in order

Beside it lies its inventory, which holds where it differs from the checkpoints
(`fencepost.broker.data_dir.log_inventory`).
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import PurePath
from typing import Final
from uuid import UUID

from fencepost.broker.data_dir.inventory_updates import LogInventories
from fencepost.broker.data_dir.kafka_metadata import METADATA_LOG
from fencepost.broker.data_dir.log_inventory import ClusterPosition, InventoryRow
from fencepost.broker.data_dir.log_opening import LogDamage, LogOpening, Repair
from fencepost.broker.data_dir.offset_checkpoints import Key, OffsetCheckpoints
from fencepost.broker.data_dir.restart import ReplicaState
from fencepost.broker.metadata.image import NO_LEADER, ClusterImage, PartitionImage, TopicImage
from fencepost.broker.replication.replica import Replica
from fencepost.broker.replication.replica_storage import FreeLogs, free_in_steps, free_now
from fencepost.storage.files.file_log import FileLog
from fencepost.storage.files.file_system import FileSystem, StorageFailure
from fencepost.storage.files.flush import PendingSync
from fencepost.storage.files.inventory import LogInventory
from fencepost.storage.files.open_log import OpenedLog
from fencepost.storage.files.process_limits import ProcessLimits
from fencepost.storage.files.recovery import LogRecoveryReport
from fencepost.storage.formats import file_names
from fencepost.storage.formats.checkpoints import (
    CorruptCheckpoint,
    decode_clean_shutdown,
    decode_epochs,
    decode_partition_metadata,
    encode_clean_shutdown,
    encode_partition_metadata,
)
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.interface import Log

RunSync = Callable[[Callable[[], None], Callable[[OSError | None], None]], None]
"""Does what takes long (the first) beside all else, and then says how it went (the second) where
the core runs."""
OnRecovered = Callable[[Key, LogRecoveryReport, int], None]
"""Told what opening a log took, and where it ends now (exclusive)."""
_BROKER_EPOCH: Final = -1
"""In ``.kafka_cleanshutdown``: who registers here need not say when it last did."""


class LogDir:
    """A `Disk` in files.

    :ivar clean: Whether the broker had ended in order when it last began.
    :ivar recoveries: What opening logs took, by their names, of those that were not just opened.
    :ivar problems: What could not be read or written besides logs, a line each, until
        `report_problems_to` is called.
    """

    def __init__(
        self,
        fs: FileSystem,
        directory: PurePath,
        *,
        sync: bool,
        now_ms: Callable[[], int],
        unique: Callable[[], UUID],
        soon: Callable[[Callable[[], None]], None],
        shared: ProcessLimits,
        broker_id: int,
        inventory: LogInventories,
    ) -> None:
        """What it is given.

        :param inventory: Of what was there of its logs.
        :param sync: Whether what it writes is to outlive the machine.
        :param unique: Makes the names under which logs that are lost wait for their removal.
        :param soon: Calls something at the end of this turn.
        :param shared: What all logs of the process hold together.
        """
        self.directory = directory
        self.free_logs: FreeLogs = free_now
        self.clean = True
        self.recoveries: list[tuple[str, LogRecoveryReport]] = []
        self.problems: list[str] = []
        self._fs = fs
        self._sync = sync
        self._now_ms = now_ms
        self._unique = unique
        self._soon = soon
        self._shared = shared
        self._recovery_points_are_due = False
        """Whether a recovery point has moved that is not written yet."""
        self._is_syncing = False
        """Whether closed segments are being made durable."""
        self.run_sync: RunSync = run_sync_inline
        """The edge sets what does it on a thread of its own."""
        self._ends_cleanly = True
        """Whether every log could be closed so far."""
        self._failed: set[Key] = set()
        """Logs that failed since: their files are as the failure left them."""
        self._stored: dict[Key, PurePath] = {}
        """Every log of the directory, open or not."""
        self._open: dict[Key, FileLog] = {}
        """The logs that replicas have."""
        self.on_recovered: OnRecovered = _ignore_recovery
        self.broker_id = broker_id
        self._closed: dict[Key, FileLog] = {}
        """Logs of the broker's last life, to be looked at only."""
        self._report_problem: Callable[[str], None] = self.problems.append
        self._checkpoints = OffsetCheckpoints(
            fs, directory, sync=sync, complain=self._report_problem
        )
        self._inventory = inventory
        inventory.report_problem = self._report_problem
        inventory.flush_soon = self._flush_inventory_soon
        self._ready: dict[Key, OpenedLog] = {}
        """Logs that are open and have no replica yet."""
        self._inventory_is_due = False
        self._repairs: dict[Key, tuple[Repair, int]] = {}
        """What was decided about logs that miss records, and where they have to end at least."""

    @property
    def syncs(self) -> bool:
        """Whether what it writes is to outlive the machine."""
        return self._sync

    @property
    def log_count(self) -> int:
        """How many logs are here."""
        return len(self._stored)

    def report_problems_to(self, complain: Callable[[str], None]) -> None:
        """Report what can't be read or written besides logs to a callback from now on."""
        self._report_problem = self._checkpoints.report_problem = complain
        self._inventory.report_problem = complain

    # -- a process's beginning and end ----------------------------------------------------------

    def on_broker_start(self) -> None:
        """List the logs, and delete the mark of a clean shutdown."""
        fs, directory = self._fs, self.directory
        self._open.clear()
        self._closed.clear()
        self._stored.clear()
        self._failed.clear()
        self._ready.clear()
        self._repairs.clear()
        for name in fs.names(directory):
            found = file_names.parse_directory_name(name)
            path = directory / name
            if found is None or found.topic == METADATA_LOG or not fs.is_dir(path):
                continue
            if found.state is file_names.DirectoryState.LIVE:
                self._stored[found.topic, found.partition] = path
            elif found.state is file_names.DirectoryState.DELETED:
                self.free_logs(self._removal(path))
        self._checkpoints.read()
        mark = directory / file_names.CLEAN_SHUTDOWN
        self.clean, self._ends_cleanly = fs.exists(mark), True
        self._read_inventory(mark)
        if self.clean:
            fs.remove(mark)
            if self._sync:
                fs.sync_dir(directory)

    def on_broker_stop(self, *, crash: bool) -> None:
        """Write the checkpoints, and that the end was an orderly one, unless it was none.

        It was none either where a log has failed: then all are recovered, from their ends on.
        """
        if crash:
            self._inventory.close()
            return
        try:
            self._fs.sync_all()  # one for all logs: thousands of single ones would take a minute
            self._checkpoints.write_all()
            self._inventory.rewrite()
            if self._ends_cleanly:
                mark = encode_clean_shutdown(_BROKER_EPOCH)
                self._fs.write_atomic(self.directory / file_names.CLEAN_SHUTDOWN, mark, sync=True)
        except OSError as error:
            self._report_problem(str(error))

    # -- logs -----------------------------------------------------------------------------------

    def open_log(self, topic: TopicImage, index: int, config: LogConfig) -> tuple[Log, int]:
        """A replica's log, opened or made, and its high watermark."""
        key = (topic.name, index)
        self._closed.pop(key, None)
        opened = self._ready.pop(key, None)
        if opened is None:
            if key not in self._repairs:
                self._repairs[key] = self._repair_of(topic.partitions[index])
            repair, end = self._repairs.pop(key)
            try:
                opened = self._open_or_make(topic, index, config, repair, end)
            except LogDamage as damage:
                raise StorageFailure(file_names.directory_name(*key), damage.why) from damage
            except StorageFailure as failure:
                if failure.lacks_descriptors:  # the same holds when it is tried again
                    self._repairs[key] = (repair, end)
                raise
        return opened.log, self._checkpoints.high_watermarks.get(key, 0)

    def _repair_of(self, partition: PartitionImage) -> tuple[Repair, int]:
        """What a broker that starts alone may do: follow, where no other counts on its records."""
        counted = {*partition.isr, *partition.elr, *partition.last_known_elr}
        if partition.leader in (NO_LEADER, self.broker_id) or self.broker_id in counted:
            return Repair.REFUSE, 0
        return Repair.FOLLOW, 0

    def examine(self, topic: TopicImage, index: int, config: LogConfig) -> ReplicaState:
        """Open a replica's log before anything is decided about its partition, if it is whole."""
        key = (topic.name, index)
        row = self._row(key, topic)
        if key not in self._stored and row is None:
            return ReplicaState()
        recorded = LogInventory() if row is None else row.inventory
        known = ReplicaState(
            epoch=max((entry.epoch for entry in recorded.epochs), default=-1),
            recorded_end=recorded.log_end_offset,
            high_watermark=recorded.high_watermark,
        )
        try:
            opened = self._open_or_make(topic, index, config, Repair.REFUSE, 0)
        except LogDamage as damage:
            return replace(known, damage=damage)
        except StorageFailure as failure:
            if failure.lacks_descriptors:  # nothing says that it is damaged
                return replace(known, end=known.recorded_end)
            return replace(known, failure=failure.why)
        self._ready[key] = opened
        latest = opened.log.latest_epoch
        return replace(
            known,
            epoch=-1 if latest is None else latest,
            end=opened.log.log_end_offset,
        )

    def decide(self, key: Key, repair: Repair, end_at_least: int = 0) -> None:
        """What to do about a log that `examine` has found damaged, when it is opened."""
        self._repairs[key] = (repair, end_at_least)

    def _open_or_make(
        self, topic: TopicImage, index: int, config: LogConfig, repair: Repair, end: int
    ) -> OpenedLog:
        """The log in its directory, which is made if it is missing.

        :raises LogDamage: See `LogOpening.open`.
        :raises StorageFailure: When that fails.
        """
        key = (topic.name, index)
        name = file_names.directory_name(*key)
        try:
            row = self._row(key, topic)
            self._check_topic_id(key, topic, row)
            path = self._stored.get(key)
            is_there = path is not None
            opening = LogOpening(
                fs=self._fs,
                path=path or self.directory / name,
                name=name,
                config=config,
                now_ms=self._now_ms(),
                shared=self._shared,
                is_there=is_there,
                is_clean=not is_there or self._is_as_closed(key, row),
                inventory=None if row is None else row.inventory,
                checkpointed=self._checkpoints.of(key),
                is_thorough=self._inventory.position.accepts_loss,
            )
            if not is_there and (row is None or repair is not Repair.REFUSE):
                self._make_log_directory(topic, index)
            opened = opening.open(repair, end_at_least=end)
            if key not in self._stored:
                self._make_log_directory(topic, index)
        except OSError as error:
            raise StorageFailure(name, error) from error
        log = opened.log
        self._failed.discard(key)
        if opened.recovery:
            self.recoveries.append((name, opened.recovery))
            self.on_recovered(key, opened.recovery, log.log_end_offset)
        log.on_truncated = self._on_recovery_point_changed
        self._open[key] = log
        self._inventory.watch(key, topic.topic_id, log)
        if log.recovery_point < self._checkpoints.recovery_points.get(key, 0):
            # What is appended from now on is not durable, although the file says that it is.
            self._on_recovery_point_changed()
        if row is not None:
            self._checkpoints.high_watermarks[key] = row.inventory.high_watermark
            self._checkpoints.recovery_points[key] = log.recovery_point
            self._checkpoints.record_log_start(key, log)
        return opened

    def _is_as_closed(self, key: Key, row: InventoryRow | None) -> bool:
        """Whether nothing was written to a log since it was closed in order."""
        return self.clean and key not in self._failed and (row is None or row.is_closed)

    def _row(self, key: Key, topic: TopicImage) -> InventoryRow | None:
        row = self._inventory.rows.get(key)
        return row if row is not None and row.topic_id == topic.topic_id else None

    def _check_topic_id(self, key: Key, topic: TopicImage, row: InventoryRow | None) -> None:
        """Lose a log of an earlier topic of the name; where the inventory has it, it is no such."""
        path = self._stored.get(key)
        if path is None:
            return
        topic_id = self._topic_id(path)
        if topic_id == topic.topic_id:
            return
        if topic_id is None or row is not None:
            self._write_topic_id(path, topic.topic_id)
        else:
            self._delete_log(key)

    def close_log(self, key: Key, replica: Replica, *, crash: bool) -> None:
        """Close a replica's log; after a crash it is only let go of."""
        log = self._open.pop(key)
        self._closed[key] = log
        if crash:
            log.abandon()
            return
        self._checkpoints.high_watermarks[key] = replica.high_watermark
        is_closed = True
        try:
            log.close(sync=False)
        except StorageFailure as failure:
            self._ends_cleanly = is_closed = False
            self._report_problem(str(failure))
        inventory = log.inventory(replica.high_watermark)
        self._inventory.put_closed(key, replica.topic_id, inventory, is_closed=is_closed)
        self._checkpoints.recovery_points[key] = log.recovery_point
        self._checkpoints.record_log_start(key, log)

    def abandon_log(self, replica: Replica) -> None:
        """Let go of a log that failed; its files stay as they are, and are looked at next time."""
        key = (replica.topic, replica.index)
        log = self._open.pop(key, None)
        if log is not None:
            self._ends_cleanly = False
            self._failed.add(key)
            self._checkpoints.recovery_points[key] = log.recovery_point
            log.abandon()

    def can_open_files(self) -> bool:
        """Whether the directory can be listed, which takes a descriptor."""
        try:
            self._fs.names(self.directory)
        except OSError:
            return False
        return True

    def peek_log(self, topic: str, index: int) -> Log | None:
        """The log of a replica whose broker is down, as it was."""
        return self._closed.get((topic, index))

    # -- losing ---------------------------------------------------------------------------------

    def delete_logs(self, replicas: Sequence[Replica]) -> None:
        """Lose the logs of replicas that are gone, and their files."""
        for replica in replicas:
            key = (replica.topic, replica.index)
            log = self._open.pop(key, None)
            if log is not None:
                self._delete_log(key, log)

    def delete_unused_log(self, topic: str, index: int) -> None:
        """Lose a log that no replica has; it may not be there."""
        key = (topic, index)
        if key in self._stored and key not in self._open:
            self._closed.pop(key, None)
            self._delete_log(key)

    def delete_logs_not_in(self, image: ClusterImage) -> None:
        """Lose the logs of topics that were deleted while the broker was down."""
        for (topic, index), path in list(self._stored.items()):
            try:
                topic_id = self._topic_id_of((topic, index), path)
            except OSError as error:  # a replica that opens it will fail
                self._report_problem(str(error))
                continue
            if topic_id is not None and topic_id not in image.names:
                self.delete_unused_log(topic, index)

    def delete_unused_logs(self) -> None:
        """Lose everything that no replica has."""
        for topic, index in list(self._stored):
            self.delete_unused_log(topic, index)

    def rename_strays(self, known: Mapping[UUID, str], deleted: Container[UUID]) -> list[str]:
        """Lose the logs of topics that were deleted, and rename the unknown ones.

        As at a real broker they stay, under a name that ends in ``-stray``.

        :param known: The topics that there are, their names by their ids.
        :returns: The names of the unknown ones.
        """
        strays = []
        for key, path in list(self._stored.items()):
            try:
                topic_id = self._topic_id_of(key, path)
            except OSError as error:
                self._report_problem(str(error))
                continue
            if topic_id in known or (topic_id is None and key[0] in known.values()):
                continue
            if topic_id in deleted:
                self._delete_log(key)
                continue
            strays.append(path.name)
            row = self._inventory.rows.get(key)
            offsets = "" if row is None else f", with offsets up to {row.inventory.log_end_offset},"
            self._report_problem(f"{path}{offsets} belongs to no topic: it is kept as a stray")
            self._inventory.remove(key)
            del self._stored[key]
            aside = file_names.deleted_directory_name(*key, self._unique())
            self._fs.rename(path, path.with_name(aside.removesuffix("delete") + "stray"))
        return strays

    def _delete_log(self, key: Key, log: FileLog | None = None) -> None:
        path = self._stored.pop(key)
        self._checkpoints.remove(key)
        self._inventory.remove(key)
        aside = file_names.deleted_directory_name(*key, self._unique())
        try:
            if log is not None:
                log.delete(aside)
                self.free_logs(free_in_steps([log]))
            else:
                self._fs.rename(path, path.with_name(aside))
                self.free_logs(self._removal(path.with_name(aside)))
        except (OSError, StorageFailure) as error:
            self._report_problem(str(error))

    def _removal(self, path: PurePath) -> Iterator[None]:
        try:
            self._fs.remove_tree(path)
        except OSError as error:
            self._report_problem(str(error))
        yield

    # -- checkpoints ----------------------------------------------------------------------------

    def write_high_watermarks(self, replicas: Mapping[Key, Replica]) -> None:
        """Write ``replication-offset-checkpoint``, if it would say anything new."""
        for key, replica in replicas.items():
            self._checkpoints.high_watermarks[key] = replica.high_watermark
        self._checkpoints.write_high_watermarks()
        self._write_inventory()

    def _flush_inventory_soon(self) -> None:
        if not self._inventory_is_due:
            self._inventory_is_due = True
            self._soon(self._flush_inventory)

    def _flush_inventory(self) -> None:
        self._inventory_is_due = False
        self._inventory.write_changed(self._open, self._checkpoints.high_watermarks)

    def write_recovery_points(self) -> None:
        """Write ``recovery-point-offset-checkpoint``, if it would say anything new."""
        for key, log in self._open.items():
            self._checkpoints.recovery_points[key] = log.recovery_point
        self._checkpoints.write_recovery_points()
        self._write_inventory()

    def sync_closed_segments(self, failed: Callable[[Key, StorageFailure], None]) -> None:
        """Begin to make the closed segments durable that are not, beside all else.

        A few segments of one log are synced at a time, because their files are open meanwhile; the
        others follow. The recovery point of a log moves on with them, and is written.

        :param failed: Told which log failed by it.
        """
        for key, log in list(self._open.items()):
            if self._is_syncing:
                return
            try:
                pending = log.closed_segments_to_sync()
            except StorageFailure as failure:
                failed(key, failure)
                continue
            if pending is not None:
                self._is_syncing = True
                self._shared.open_files.lend(pending.open_files)
                self.run_sync(pending.run, partial(self._synced, key, log, pending, failed))

    def _synced(
        self,
        key: Key,
        log: FileLog,
        pending: PendingSync,
        failed: Callable[[Key, StorageFailure], None],
        error: OSError | None,
    ) -> None:
        self._is_syncing = False
        self._shared.open_files.lend(-pending.open_files)
        self._soon(partial(self.sync_closed_segments, failed))
        if self._open.get(key) is not log:
            return
        try:
            log.on_synced(pending, error)
        except StorageFailure as failure:
            failed(key, failure)
        else:
            self._on_recovery_point_changed()

    def _on_recovery_point_changed(self) -> None:
        """A recovery point has fallen with its log's end, or risen: soon it is written."""
        if not self._recovery_points_are_due:
            self._recovery_points_are_due = True
            self._soon(self._write_due_recovery_points)

    def _write_due_recovery_points(self) -> None:
        self._recovery_points_are_due = False
        self.write_recovery_points()
        self.write_log_starts()  # and up to where compaction has been

    def write_log_starts(self) -> None:
        """Write ``log-start-offset-checkpoint``, if it would say anything new."""
        for key, log in self._open.items():
            self._checkpoints.record_log_start(key, log)
        self._checkpoints.write_log_starts()
        self._write_inventory()

    # -- the inventory --------------------------------------------------------------------------

    def _read_inventory(self, mark: PurePath) -> None:
        """Take up the inventory, unless another program has used the logs since, or it is old."""
        if self.clean and decode_clean_shutdown(self._fs.read(mark)) != _BROKER_EPOCH:
            self._inventory.begin_without_rows()  # a real Kafka has ended here
            return
        problem = self._inventory.begin(has_logs=bool(self._stored))
        if problem is not None:
            self.clean = False
            self._report_problem(f"{problem}: the logs are recovered by the checkpoints")

    @property
    def metadata_seen(self) -> ClusterPosition:
        """How far the metadata had come when the inventory was last written to."""
        return self._inventory.found

    def _write_inventory(self) -> None:
        self._inventory.write(self._open, self._checkpoints.high_watermarks)

    def flush_overdue(self, now_ms: int) -> Iterator[tuple[Key, StorageFailure]]:
        """Flush the logs whose records have waited for flush.ms; tells those that failed."""
        for key, log in list(self._open.items()):
            try:
                log.flush_due(now_ms)
            except StorageFailure as failure:
                yield key, failure

    def newest_epochs(self) -> dict[Key, int]:
        """The newest leader epoch that each log knows of; those that know of none are left out."""
        newest = {}
        for key, path in self._stored.items():
            try:
                entries = decode_epochs(self._fs.read(path / file_names.LEADER_EPOCHS))
            except (OSError, CorruptCheckpoint):
                continue
            if entries:
                newest[key] = entries[-1].epoch
        return newest

    def next_producer_id(self) -> int:
        """The first producer id that is above all which the logs that replicas have know of."""
        ids = (p.producer_id for log in self._open.values() for p in log.producers())
        return max(ids, default=-1) + 1

    def topic_ids(self) -> dict[Key, UUID | None]:
        """Every log that is here, with the id of its topic, None where it does not say."""
        return {key: self._topic_id(path) for key, path in self._stored.items()}

    def write_topic_id(self, key: Key, topic_id: UUID) -> None:
        """Say which topic's a log is that did not say so."""
        self._write_topic_id(self._stored[key], topic_id)

    # -- partitions' directories ----------------------------------------------------------------

    def _make_log_directory(self, topic: TopicImage, index: int) -> PurePath:
        path = self.directory / file_names.directory_name(topic.name, index)
        self._fs.make_dirs(path)
        self._write_topic_id(path, topic.topic_id)
        if self._sync:
            self._fs.sync_dir(self.directory)
        self._stored[topic.name, index] = path
        return path

    def _topic_id_of(self, key: Key, path: PurePath) -> UUID | None:
        """The id of a log's topic: what the inventory says, or else what the log says."""
        row = self._inventory.rows.get(key)
        return self._topic_id(path) if row is None else row.topic_id

    def _topic_id(self, path: PurePath) -> UUID | None:
        """The id of the topic that a log says it is of; None where it does not say."""
        try:
            return decode_partition_metadata(self._fs.read(path / file_names.PARTITION_METADATA))
        except (FileNotFoundError, CorruptCheckpoint):
            return None

    def _write_topic_id(self, path: PurePath, topic_id: UUID) -> None:
        data = encode_partition_metadata(topic_id)
        self._fs.write_atomic(path / file_names.PARTITION_METADATA, data, sync=self._sync)


def _ignore_recovery(_key: Key, _report: LogRecoveryReport, _end: int) -> None:
    """The default: no listener."""


def run_sync_inline(work: Callable[[], None], then: Callable[[OSError | None], None]) -> None:
    """An `RunSync` that is here."""
    try:
        work()
    except OSError as error:
        then(error)
    else:
        then(None)
