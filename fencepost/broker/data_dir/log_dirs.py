"""A broker's log directories: one `LogDir`, or several with ``--log-dirs`` (KIP-113).

Each has its own logs, checkpoints and inventory, as in Kafka. A log is in one of them. While it is
moved to another one, its copy is there, ``<topic>-<partition>.<unique>-future``. When the copy is
whole it takes the log's name, the inventory of its directory has it from then on, and only then is
the old log deleted.

A copy that a process finds when it starts says that a move was going on. The copy is not trusted:
it is deleted, and the move begins again. Where a process has ended between the two last steps, a
log is there twice; the one that an inventory has is kept, and both are whole if both have it.
"""

from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Final
from uuid import UUID

from fencepost.broker.data_dir.log_dir import LogDir, OnRecovered
from fencepost.broker.data_dir.log_opening import Repair
from fencepost.broker.data_dir.offset_checkpoints import Key
from fencepost.broker.data_dir.restart import ReplicaState
from fencepost.broker.metadata.image import ClusterImage, TopicImage
from fencepost.broker.replication.log_dir_placement import LogDirPlacement
from fencepost.broker.replication.replica import Replica
from fencepost.broker.replication.replica_storage import FreeLogs
from fencepost.storage.files.file_log import FileLog
from fencepost.storage.files.recovery import LogRecoveryReport
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.interface import Log


class LogDirs:
    """A `ReplicaStorage` in files.

    :ivar dirs: In the order of ``log.dirs``; at least one.
    """

    def __init__(self, dirs: Sequence[LogDir]) -> None:
        self.dirs: Final = tuple(dirs)
        self.placement = LogDirPlacement(str(each.directory) for each in dirs)
        self.interrupted_moves: dict[Key, str] = {}
        self._by_name: Final = dict(zip(self.placement.names, self.dirs, strict=True))
        self._futures: dict[Key, LogDir] = {}
        """Where the future logs are."""

    # -- all of them ----------------------------------------------------------------------------

    @property
    def directory(self) -> PurePath:
        """The first one, where a broker with one directory has its logs."""
        return self.dirs[0].directory

    @property
    def syncs(self) -> bool:
        """Whether what is written is to outlive the machine."""
        return self.dirs[0].syncs

    @property
    def clean(self) -> bool:
        """Whether the broker had ended in order, or had no logs, in every directory."""
        return all(each.clean or not each.log_count for each in self.dirs)

    @property
    def log_count(self) -> int:
        """How many logs are here."""
        return sum(each.log_count for each in self.dirs)

    @property
    def recoveries(self) -> list[tuple[str, LogRecoveryReport]]:
        """What opening logs took, by their names, of those that were not just opened."""
        return [found for each in self.dirs for found in each.recoveries]

    @property
    def problems(self) -> list[str]:
        """What could not be read or written besides logs, a line each."""
        return [problem for each in self.dirs for problem in each.problems]

    @property
    def free_logs(self) -> FreeLogs:
        """Frees what is lost."""
        return self.dirs[0].free_logs

    @free_logs.setter
    def free_logs(self, free: FreeLogs) -> None:
        for each in self.dirs:
            each.free_logs = free

    def report_problems_to(self, complain: Callable[[str], None]) -> None:
        """Report what can't be read or written besides logs to a callback from now on."""
        for each in self.dirs:
            each.report_problems_to(complain)

    def report_recoveries_to(self, on_recovered: OnRecovered) -> None:
        """Report what opening a log took to a callback from now on."""
        for each in self.dirs:
            each.on_recovered = on_recovered

    def next_producer_id(self) -> int:
        """The first producer id that is above all which the logs that replicas have know of."""
        return max(each.next_producer_id() for each in self.dirs)

    # -- a process's beginning and end ----------------------------------------------------------

    def on_broker_start(self) -> None:
        """List the logs; of one that is there twice, one is kept."""
        for each in self.dirs:
            each.on_broker_start()
        self._futures.clear()
        self._delete_twins()
        self.interrupted_moves = {
            key: str(each.directory) for each in self.dirs for key in each.directories.futures
        }
        for key in [key for key in self.interrupted_moves if self._holder(key) is None]:
            self._by_name[self.interrupted_moves.pop(key)].delete_future_log(key)

    def _delete_twins(self) -> None:
        counted: dict[Key, list[LogDir]] = {}
        for each in self.dirs:
            for key in each.directories.paths:
                counted.setdefault(key, []).append(each)
        for key, holders in counted.items():
            kept = next((each for each in holders if each.is_recorded(key)), holders[0])
            for each in holders:
                if each is not kept:
                    each.delete_unused_log(*key)

    def on_broker_stop(self, *, crash: bool) -> None:
        """Write the checkpoints, and that the end was an orderly one, unless it was none."""
        for each in self.dirs:
            each.on_broker_stop(crash=crash)

    # -- logs -----------------------------------------------------------------------------------

    def open_log(
        self,
        topic: TopicImage,
        index: int,
        config: LogConfig,
        cordoned: Collection[str] = (),
    ) -> tuple[Log, int]:
        """A replica's log, opened or made, and its high watermark."""
        key = (topic.name, index)
        holder = self._holder(key)
        if holder is None:
            holder = self._by_name[self.placement.choose(key, cordoned, self._count)]
        return holder.open_log(topic, index, config)

    def _count(self, directory: str) -> int:
        return self._by_name[directory].log_count

    def _holder(self, key: Key) -> LogDir | None:
        """The directory that has a log, or had it."""
        stored = (each for each in self.dirs if key in each.directories.paths)
        return next(stored, None) or next((d for d in self.dirs if d.is_recorded(key)), None)

    def examine(self, topic: TopicImage, index: int, config: LogConfig) -> ReplicaState:
        """Open a replica's log before anything is decided about its partition, if it is whole."""
        return self._holder_or_first(topic, index).examine(topic, index, config)

    def decide(self, topic: TopicImage, index: int, repair: Repair, end: int) -> None:
        """What to do about a log when it is opened, after `examine` has looked at it."""
        self._holder_or_first(topic, index).decide(topic, index, repair, end)

    def _holder_or_first(self, topic: TopicImage, index: int) -> LogDir:
        return self._holder((topic.name, index)) or self.dirs[0]

    def close_log(self, key: Key, replica: Replica, *, crash: bool) -> None:
        """Close a replica's log; after a crash it is only let go of."""
        for each in self.dirs:
            if each.has_open(key):
                each.close_log(key, replica, crash=crash)

    def abandon_log(self, replica: Replica) -> None:
        """Let go of a log that failed; its files stay as they are, and are looked at next time."""
        for each in self.dirs:
            each.abandon_log(replica)

    def can_open_files(self) -> bool:
        """Whether the directories can be listed, which takes a descriptor."""
        return all(each.can_open_files() for each in self.dirs)

    def peek_log(self, topic: str, index: int) -> Log | None:
        """The log of a replica whose broker is down, as it was."""
        found = (each.peek_log(topic, index) for each in self.dirs)
        return next((log for log in found if log is not None), None)

    # -- losing ---------------------------------------------------------------------------------

    def delete_logs(self, replicas: Sequence[Replica]) -> None:
        """Lose the logs of replicas that are gone, and their files."""
        for each in self.dirs:
            each.delete_logs(replicas)

    def delete_unused_log(self, topic: str, index: int) -> None:
        """Lose a log that no replica has; it may not be there."""
        for each in self.dirs:
            each.delete_unused_log(topic, index)
            each.delete_future_log((topic, index))

    def delete_logs_not_in(self, image: ClusterImage) -> None:
        """Lose the logs of topics that were deleted while the broker was down."""
        for each in self.dirs:
            each.delete_logs_not_in(image)

    def delete_all_logs(self, replicas: Sequence[Replica]) -> None:
        """Lose everything.

        :param replicas: All that there were.
        """
        for each in self.dirs:
            each.delete_unused_logs()
            each.delete_logs(replicas)

    def rename_strays(self, known: Mapping[UUID, str], deleted: Container[UUID]) -> list[str]:
        """Lose the logs of topics that were deleted, and rename the unknown ones."""
        return [name for each in self.dirs for name in each.rename_strays(known, deleted)]

    # -- moves between them ---------------------------------------------------------------------

    def directory_of(self, key: Key) -> str | None:
        """The directory that a log is in; None where there is no log."""
        holder = self._holder(key)
        return None if holder is None else str(holder.directory)

    def open_future_log(self, replica: Replica, directory: str) -> Log:
        """An empty log in another directory, to copy a replica into."""
        key = (replica.topic, replica.index)
        target = self._futures[key] = self._by_name[directory]
        return target.open_future_log(key, replica.topic_id, replica.log.config)

    def replace_with_future_log(self, replica: Replica, future: Log) -> Log:
        """Delete a replica's log; the future one takes its place, and is returned."""
        key = (replica.topic, replica.index)
        source, target = self._holder(key), self._futures.pop(key)
        assert isinstance(future, FileLog)
        log = target.adopt_future_log(replica, future)
        if source is not None:
            source.delete_logs([replica])
        return log

    def delete_future_log(self, key: Key, future: Log) -> None:
        """Lose a copy that is not whole."""
        assert isinstance(future, FileLog)
        future.abandon()
        self._futures.pop(key).delete_future_log(key)

    def interrupt_move(self, key: Key, future: Log) -> None:
        """The broker ends while a log is being moved; its copy says so when it starts again."""
        assert isinstance(future, FileLog)
        future.abandon()
        self._futures.pop(key)


def all_dirs(log_dirs: Mapping[int, LogDirs]) -> Iterator[LogDir]:
    """Every directory of several brokers."""
    for each in log_dirs.values():
        yield from each.dirs
