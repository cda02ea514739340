"""What a broker keeps when its process ends: its replicas' logs and their high watermarks."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar
from uuid import UUID

from fencepost.broker.metadata.image import ClusterImage, TopicImage
from fencepost.broker.replication.log_dir_placement import Key, LogDirPlacement
from fencepost.broker.replication.replica import Replica
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.interface import Log

T = TypeVar("T")
_DROPPED_IN_A_STEP: Final = 20
"""Elements of a dictionary, such as replicas, that are freed in one step."""
MakeLog = Callable[[str, LogConfig], Log]
"""Makes a log by its name (``topic-0``) and configs."""
FreeLogs = Callable[[Iterator[None]], None]
"""Takes the steps that free what is lost: quick ones, now or bit by bit."""


class ReplicaStorage(Protocol):
    """One broker's logs while no replica has them.

    A replica takes its log from it. The log comes back when the broker ends (`put`), or is lost
    with the replica (`remove`).
    """

    free_logs: FreeLogs
    """Frees what is lost; the edge sets it, to have it done bit by bit."""
    placement: LogDirPlacement
    """Where new logs go."""
    interrupted_moves: dict[Key, str]
    """The directories that logs were being moved to when the broker ended."""

    def on_broker_start(self) -> None:
        """The broker's process starts: list the logs."""

    def open_log(
        self,
        topic: TopicImage,
        index: int,
        config: LogConfig,
        cordoned: Collection[str] = (),
    ) -> tuple[Log, int]:
        """A replica's log and high watermark; a new log where there is none of this topic id.

        :param cordoned: Directories that take no new logs: the value of ``cordoned.log.dirs``.
        :raises StorageFailure: When it can't be opened or made.
        """

    def close_log(self, key: tuple[str, int], replica: Replica, *, crash: bool) -> None:
        """Keep a replica's log, by topic and index.

        :param crash: Whether its high watermark was written at the last checkpoint only.
        """

    def on_broker_stop(self, *, crash: bool) -> None:
        """The broker's process has ended; all its replicas' logs are here.

        :param crash: Whether it had no time to say so.
        """

    def abandon_log(self, replica: Replica) -> None:
        """Let go of a log that failed, and keep what there is of it."""

    def can_open_files(self) -> bool:
        """Whether files can be opened again, after one could not for lack of descriptors."""

    def delete_logs(self, replicas: Sequence[Replica]) -> None:
        """Lose the logs of replicas that are gone."""

    def delete_unused_log(self, topic: str, index: int) -> None:
        """Lose a log that no replica has; it may not be there."""

    def delete_logs_not_in(self, image: ClusterImage) -> None:
        """Lose the logs of topics that were deleted while the broker was down."""

    def delete_all_logs(self, replicas: Sequence[Replica]) -> None:
        """Lose everything.

        :param replicas: All that there were.
        """

    def peek_log(self, topic: str, index: int) -> Log | None:
        """The log of a replica whose broker is down, to be looked at only."""

    def directory_of(self, key: Key) -> str | None:
        """The directory that a log is in; None where there is no log."""

    def open_future_log(self, replica: Replica, directory: str) -> Log:
        """An empty log in another directory, to copy a replica into.

        :raises StorageFailure: When it can't be made.
        """

    def replace_with_future_log(self, replica: Replica, future: Log) -> Log:
        """Delete a replica's log; the future one takes its place, and is returned.

        :raises StorageFailure: When that fails. Which of the two is the replica's is known then
            when its log is opened again.
        """

    def delete_future_log(self, key: Key, future: Log) -> None:
        """Lose a copy that is not whole."""

    def interrupt_move(self, key: Key, future: Log) -> None:
        """The broker ends while a log is being moved."""


class _StoredLog(NamedTuple):
    topic_id: UUID
    log: Log
    high_watermark: int


class MemoryReplicaStorage:
    """A `ReplicaStorage` of logs in memory, which are as durable as the process."""

    def __init__(self, make_log: MakeLog, placement: LogDirPlacement) -> None:
        self.placement = placement
        self.interrupted_moves: dict[Key, str] = {}
        self._make_log = make_log
        self._directories: dict[Key, str] = {}
        """The directory that each log is in, by name: there are no directories in memory."""
        self._counts: Counter[str] = Counter()
        """How many logs each has."""
        self._futures: dict[Key, str] = {}
        """Where the future logs are."""
        self._stored: dict[tuple[str, int], _StoredLog] = {}
        self.free_logs: FreeLogs = _free_by_reference

    def on_broker_start(self) -> None:
        """Nothing: what was kept is here."""

    def close_log(self, key: tuple[str, int], replica: Replica, *, crash: bool) -> None:
        """Keep a replica's log.

        :param crash: Whether its high watermark was written at the last checkpoint only.
        """
        high_watermark = replica.checkpointed_high_watermark if crash else replica.high_watermark
        self._stored[key] = _StoredLog(replica.topic_id, replica.log, high_watermark)

    def on_broker_stop(self, *, crash: bool) -> None:
        """Nothing: there is nothing to write."""

    def open_log(
        self,
        topic: TopicImage,
        index: int,
        config: LogConfig,
        cordoned: Collection[str] = (),
    ) -> tuple[Log, int]:
        """A replica's log and high watermark; a new log where there is none of this topic id."""
        key = (topic.name, index)
        kept = self._stored.pop(key, None)
        if kept is not None:
            if kept.topic_id == topic.topic_id:
                return kept.log, kept.high_watermark
            self._forget(key)
            self.free_logs(free_in_steps([kept.log]))
        self._put(key, self.placement.choose(key, cordoned, self._counts.__getitem__))
        return self._make_log(f"{topic.name}-{index}", config), 0

    def abandon_log(self, replica: Replica) -> None:
        """Keep a log that failed, as it is."""
        self.close_log((replica.topic, replica.index), replica, crash=True)

    def can_open_files(self) -> bool:
        """Always: there are none."""
        return True

    def delete_logs(self, replicas: Sequence[Replica]) -> None:
        """Lose the logs of replicas that are gone."""
        for replica in replicas:
            self._forget((replica.topic, replica.index))
        self.free_logs(free_in_steps([replica.log for replica in replicas]))

    def delete_unused_log(self, topic: str, index: int) -> None:
        """Lose a log that no replica has; it may not be there."""
        kept = self._stored.pop((topic, index), None)
        if kept is not None:
            self._forget((topic, index))
            self.free_logs(free_in_steps([kept.log]))

    def delete_logs_not_in(self, image: ClusterImage) -> None:
        """Lose the logs of topics that were deleted while the broker was down."""
        for (topic, index), kept in list(self._stored.items()):
            if kept.topic_id not in image.names:
                self.delete_unused_log(topic, index)

    def delete_all_logs(self, replicas: Sequence[Replica]) -> None:
        """Lose everything.

        :param replicas: All that there were.
        """
        lost = [each.log for each in self._stored.values()]
        lost += [replica.log for replica in replicas]
        directories, self._directories = self._directories, {}
        for forgotten in (self._stored, self._counts, self.interrupted_moves):
            forgotten.clear()
        self.free_logs(drop_in_steps(directories))
        self.free_logs(free_in_steps(lost))

    def peek_log(self, topic: str, index: int) -> Log | None:
        """The log of a replica whose broker is down."""
        kept = self._stored.get((topic, index))
        return None if kept is None else kept.log

    # -- directories ----------------------------------------------------------------------------

    def directory_of(self, key: Key) -> str | None:
        """The directory that a log is in; None where there is no log."""
        return self._directories.get(key)

    def open_future_log(self, replica: Replica, directory: str) -> Log:
        """An empty log in another directory, to copy a replica into."""
        self._futures[replica.topic, replica.index] = directory
        return self._make_log(replica.log.name, replica.log.config)

    def replace_with_future_log(self, replica: Replica, future: Log) -> Log:
        """Delete a replica's log; the future one takes its place, and is returned."""
        key = (replica.topic, replica.index)
        self._forget(key)
        self._put(key, self._futures.pop(key))
        self.free_logs(free_in_steps([replica.log]))
        return future

    def delete_future_log(self, key: Key, future: Log) -> None:
        """Lose a copy that is not whole."""
        del self._futures[key]
        self.free_logs(free_in_steps([future]))

    def interrupt_move(self, key: Key, future: Log) -> None:
        """The broker ends while a log is being moved."""
        self.interrupted_moves[key] = self._futures[key]
        self.delete_future_log(key, future)

    def _put(self, key: Key, directory: str) -> None:
        self._directories[key] = directory
        self._counts[directory] += 1

    def _forget(self, key: Key) -> None:
        directory = self._directories.pop(key, None)
        if directory is not None:
            self._counts[directory] -= 1
            self.interrupted_moves.pop(key, None)


def drop_in_steps(objects: dict[Key, T]) -> Iterator[None]:
    """Let go of what is in a dictionary that nothing else has, a little with each step."""
    while objects:
        for _ in range(min(_DROPPED_IN_A_STEP, len(objects))):
            objects.popitem()
        yield


def free_in_steps(logs: list[Log]) -> Iterator[None]:
    """Free logs that are gone, a little with each step."""
    while logs:
        yield from logs.pop().dismantle()
        yield


def free_now(steps: Iterable[None]) -> None:
    """Free what is lost at once."""
    for _ in steps:
        pass


def _free_by_reference(_steps: Iterator[None]) -> None:
    """Do nothing: logs are freed with their last reference."""
