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
from functools import partial
from pathlib import PurePath
from typing import Final
from uuid import UUID

from msgspec.structs import replace

from fencepost.broker.data_dir.log_checkpoints import LogCheckpoints, LogInventories
from fencepost.broker.data_dir.log_inventory import ClusterPosition, InventoryRow
from fencepost.broker.data_dir.log_opening import (
    CheckpointedOffsets,
    LogDamage,
    LogOpening,
    Repair,
)
from fencepost.broker.data_dir.offset_checkpoints import Key, OffsetCheckpoints
from fencepost.broker.data_dir.partition_directories import PartitionDirectories
from fencepost.broker.data_dir.restart import ReplicaState, repair_alone
from fencepost.broker.metadata.image import ClusterImage, TopicImage
from fencepost.broker.replication.replica import Replica
from fencepost.broker.replication.replica_storage import FreeLogs, free_now
from fencepost.storage.files.file_log import FileLog
from fencepost.storage.files.file_system import FileSystem, StorageFailure
from fencepost.storage.files.inventory import LogInventory
from fencepost.storage.files.open_log import OpenedLog
from fencepost.storage.files.process_limits import ProcessLimits
from fencepost.storage.files.recovery import LogRecoveryReport
from fencepost.storage.formats import file_names
from fencepost.storage.formats.checkpoints import decode_clean_shutdown, encode_clean_shutdown
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.interface import Log

OnRecovered = Callable[[Key, LogRecoveryReport, int], None]
"""Told what opening a log took, and where it ends now (exclusive)."""
_BROKER_EPOCH: Final = -1
"""In ``.kafka_cleanshutdown``: who registers here need not say when it last did."""


class LogDir:
    """The part of a broker's `ReplicaStorage` that is in one directory.

    :ivar syncs: Whether what it writes is to outlive the machine.
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
        self.syncs = sync
        self._now_ms = now_ms
        self._shared = shared
        self._ends_cleanly = True
        """Whether every log could be closed so far."""
        self._failed: set[Key] = set()
        """Logs that failed since: their files are as the failure left them."""
        self.directories = PartitionDirectories(fs, directory, sync=sync, unique=unique)
        self._stored = self.directories.paths
        """Every log of the directory, open or not."""
        self._open: dict[Key, FileLog] = {}
        """The logs that replicas have."""
        self.on_recovered: OnRecovered = _ignore_recovery
        self.broker_id = broker_id
        self._closed: dict[Key, FileLog] = {}
        """Logs of the broker's last life, to be looked at only."""
        offsets = OffsetCheckpoints(fs, directory, sync=sync, complain=self.problems.append)
        self.checkpoints = LogCheckpoints(offsets, inventory, self._open, soon=soon, shared=shared)
        self.report_problems_to(self.problems.append)
        self._ready: dict[Key, OpenedLog] = {}
        """Logs that are open and have no replica yet."""
        self._repairs: dict[tuple[UUID, int], tuple[Repair, int]] = {}
        """What was decided about logs that miss records, and where they have to end at least. It
        holds when a log is opened once more, because files could not be opened meanwhile."""

    @property
    def log_count(self) -> int:
        """How many logs are here."""
        return len(self._stored)

    def report_problems_to(self, complain: Callable[[str], None]) -> None:
        """Report what can't be read or written besides logs to a callback from now on."""
        self._report_problem = self.directories.report_problem = complain
        self.checkpoints.report_problems_to(complain)

    # -- a process's beginning and end ----------------------------------------------------------

    def on_broker_start(self) -> None:
        """List the logs, and delete the mark of a clean shutdown."""
        fs, directory = self._fs, self.directory
        for known in (self._open, self._closed, self._failed, self._ready, self._repairs):
            known.clear()
        for removal in self.directories.find():
            self.free_logs(removal)
        mark = directory / file_names.CLEAN_SHUTDOWN
        self.clean, self._ends_cleanly = fs.exists(mark), True
        # With an epoch of its own, a real Kafka has ended here.
        is_ours = not self.clean or decode_clean_shutdown(fs.read(mark)) == _BROKER_EPOCH
        problem = self.checkpoints.begin(
            has_logs=bool(self._stored), is_clean=self.clean, is_ours=is_ours
        )
        # A process that was killed may have deleted logs that the checkpoints name.
        self.checkpoints.offsets.keep_only({*self._stored, *self.checkpoints.inventory.rows})
        if problem is not None:
            self.clean = False
            self._report_problem(f"{problem}: the logs are recovered by the checkpoints")
        if self.clean:
            fs.remove(mark)
            if self.syncs:
                fs.sync_dir(directory)

    def on_broker_stop(self, *, crash: bool) -> None:
        """Write the checkpoints, and that the end was an orderly one, unless it was none.

        It was none either where a log has failed: then all are recovered, from their ends on.
        """
        if crash:
            self.checkpoints.inventory.close()
            return
        try:
            self._fs.sync_all()  # one for all logs: thousands of single ones would take a minute
            self.checkpoints.write_all()
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
            alone = (repair_alone(topic.partitions[index], self.broker_id), 0)
            repair, end = self._repairs.get((topic.topic_id, index), alone)
            try:
                opened = self._open_or_make(topic, index, config, repair, end)
            except LogDamage as damage:
                raise StorageFailure(file_names.directory_name(*key), damage.why) from damage
            if repair is Repair.FOLLOW:  # from now on its records may be counted on
                self._repairs.pop((topic.topic_id, index), None)
        return opened.log, self.checkpoints.offsets.high_watermarks.get(key, 0)

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
        end = opened.log.log_end_offset
        return replace(known, epoch=-1 if latest is None else latest, end=end)

    def decide(self, topic: TopicImage, index: int, repair: Repair, end: int) -> None:
        """What to do about a log when it is opened, after `examine` has looked at it."""
        if self._ready.pop((topic.name, index), None) is not None:
            self._open.pop((topic.name, index)).abandon()
        self._repairs[topic.topic_id, index] = (repair, end)

    def _open_or_make(
        self, topic: TopicImage, index: int, config: LogConfig, repair: Repair, end: int
    ) -> OpenedLog:
        """The log in its directory, which is made if it is missing.

        :raises LogDamage: See `LogOpening.open`.
        :raises StorageFailure: When that fails.
        """
        key = (topic.name, index)
        row = self._row(key, topic)
        try:
            self._check_topic_id(key, topic, row)
            opening = self._opening(key, config, row)
            if not opening.is_there and (row is None or repair is not Repair.REFUSE):
                self.directories.make(key, topic.topic_id)
            opened = opening.open(repair, end_at_least=end)
            if key not in self._stored:
                self.directories.make(key, topic.topic_id)
        except OSError as error:
            raise StorageFailure(file_names.directory_name(*key), error) from error
        log = opened.log
        self._failed.discard(key)
        if opened.recovery:
            self.recoveries.append((log.name, opened.recovery))
            self.on_recovered(key, opened.recovery, log.log_end_offset)
        self._open[key] = log
        self.checkpoints.on_opened(key, topic.topic_id, log, row)
        return opened

    def _opening(self, key: Key, config: LogConfig, row: InventoryRow | None) -> LogOpening:
        is_there = key in self._stored
        is_as_closed = self.clean and key not in self._failed and (row is None or row.is_closed)
        return LogOpening(
            fs=self._fs,
            path=self.directories.path(key),
            name=file_names.directory_name(*key),
            config=config,
            now_ms=self._now_ms(),
            shared=self._shared,
            is_there=is_there,
            is_clean=not is_there or is_as_closed,
            inventory=None if row is None else row.inventory,
            checkpointed=self.checkpoints.offsets.of(key),
            is_thorough=self.checkpoints.inventory.position.accepts_loss,
        )

    def _row(self, key: Key, topic: TopicImage) -> InventoryRow | None:
        row = self.checkpoints.inventory.rows.get(key)
        return row if row is not None and row.topic_id == topic.topic_id else None

    def _check_topic_id(self, key: Key, topic: TopicImage, row: InventoryRow | None) -> None:
        """Lose a log of an earlier topic of the name; where the inventory has it, it is no such."""
        if key not in self._stored:
            return
        topic_id = self.directories.topic_id(key)
        if topic_id == topic.topic_id:
            return
        if topic_id is None or row is not None:
            self.directories.write_topic_id(key, topic.topic_id)
        else:
            self._delete_log(key)

    # -- copies of logs of another directory ----------------------------------------------------

    def open_future_log(self, key: Key, topic_id: UUID, config: LogConfig) -> FileLog:
        """An empty log, to copy one of another directory into; nothing is written down of it.

        :raises StorageFailure: When it can't be made.
        """
        name = file_names.directory_name(*key)
        try:
            path = self.directories.make_future(key, topic_id)
        except OSError as error:
            raise StorageFailure(name, error) from error
        opening = LogOpening(
            fs=self._fs,
            path=path,
            name=name,
            config=config,
            now_ms=self._now_ms(),
            shared=self._shared,
            is_there=False,
            is_clean=True,
            inventory=None,
            checkpointed=CheckpointedOffsets(),
        )
        return opening.open(Repair.REFUSE).log

    def adopt_future_log(self, replica: Replica, future: FileLog) -> FileLog:
        """Close a copy that is whole, and open it as the replica's log.

        :raises StorageFailure: When that fails.
        """
        key, name = (replica.topic, replica.index), future.name
        future.close(sync=self.syncs)
        inventory = future.inventory(replica.high_watermark)
        if not self.syncs:  # then nothing of it is durable
            inventory = replace(inventory, recovery_point=0)
        row = InventoryRow(replica.topic_id, inventory, is_closed=True)
        try:
            self.directories.adopt_future(key)
            self.checkpoints.inventory.put_adopted(key, row)
            opening = replace(self._opening(key, future.config, row), is_clean=True)
        except OSError as error:
            raise StorageFailure(name, error) from error
        log = self._open[key] = opening.open(Repair.REFUSE).log
        self._closed.pop(key, None)
        self.checkpoints.on_opened(key, replica.topic_id, log, row)
        return log

    def delete_future_log(self, key: Key) -> None:
        """Lose a copy; there may be none."""
        try:
            self.directories.delete_future(key)
        except OSError as error:
            self._report_problem(str(error))

    def has_open(self, key: Key) -> bool:
        """Whether a replica has a log of this directory."""
        return key in self._open

    def is_recorded(self, key: Key) -> bool:
        """Whether the inventory has a log, be it there or not."""
        return key in self.checkpoints.inventory.rows

    def close_log(self, key: Key, replica: Replica, *, crash: bool) -> None:
        """Close a replica's log; after a crash it is only let go of."""
        log = self._open.pop(key)
        self._closed[key] = log
        if crash:
            log.abandon()
            return
        is_closed = True
        try:
            log.close(sync=False)
        except StorageFailure as failure:
            self._ends_cleanly = is_closed = False
            self._report_problem(str(failure))
        self.checkpoints.on_closed(key, replica, log, is_closed=is_closed)

    def abandon_log(self, replica: Replica) -> None:
        """Let go of a log that failed; its files stay as they are, and are looked at next time."""
        key = (replica.topic, replica.index)
        log = self._open.pop(key, None)
        if log is not None:
            self._ends_cleanly = False
            self._failed.add(key)
            self.checkpoints.offsets.recovery_points[key] = log.recovery_point
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
        for topic, index in list(self._stored):
            try:
                topic_id = self._topic_id_of((topic, index))
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
                topic_id = self._topic_id_of(key)
            except OSError as error:
                self._report_problem(str(error))
                continue
            if topic_id in known or (topic_id is None and key[0] in known.values()):
                continue
            if topic_id in deleted:
                self._delete_log(key)
                continue
            strays.append(path.name)
            row = self.checkpoints.inventory.rows.get(key)
            offsets = "" if row is None else f", with offsets up to {row.inventory.log_end_offset},"
            self._report_problem(f"{path}{offsets} belongs to no topic: it is kept as a stray")
            self.checkpoints.inventory.remove(key)
            self.directories.rename_stray(key)
        return strays

    def _delete_log(self, key: Key, log: FileLog | None = None) -> None:
        self.checkpoints.remove(key)
        try:
            removal = self.directories.delete(key, log)
        except (OSError, StorageFailure) as error:
            self._report_problem(str(error))
            return
        delay_ms = 0 if log is None else log.config.directory_delete_delay_ms
        if delay_ms:
            self._shared.call_later(delay_ms, partial(self._free, removal))
        else:
            self._free(removal)

    def _free(self, removal: Iterator[None]) -> None:
        try:
            self.free_logs(removal)
        except (OSError, StorageFailure) as error:
            self._report_problem(str(error))

    # -- what the logs know ---------------------------------------------------------------------

    @property
    def metadata_seen(self) -> ClusterPosition:
        """How far the metadata had come when the inventory was last written to."""
        return self.checkpoints.inventory.found

    def next_producer_id(self) -> int:
        """The first producer id that is above all which the logs that replicas have know of."""
        ids = (p.producer_id for log in self._open.values() for p in log.producers())
        return max(ids, default=-1) + 1

    def _topic_id_of(self, key: Key) -> UUID | None:
        """The id of a log's topic: what the inventory says, or else what the log says."""
        row = self.checkpoints.inventory.rows.get(key)
        return self.directories.topic_id(key) if row is None else row.topic_id


def _ignore_recovery(_key: Key, _report: LogRecoveryReport, _end: int) -> None:
    """The default: no listener."""
