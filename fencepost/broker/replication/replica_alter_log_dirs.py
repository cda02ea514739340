"""Moves of replicas between the log directories of one broker (KIP-113).

A replica is copied into a future log in the other directory, a few batches in a turn. It reads from
the current log as a follower reads from its leader: what the current log has truncated meanwhile is
truncated, and what it has deleted at its start is left out. In the turn in which the future log
reaches the current one's end it takes its place, and the old log is deleted. Until then the replica
is served from the old one. Compaction and the tier leave a log alone that is being moved.

``replica.alter.log.dirs.io.max.bytes.per.second`` throttles all moves of a broker together: beyond
the rate, measured in the windows of ``alter.log.dirs.replication.quota.window.*``, they wait, and
look again each ``replica.fetch.backoff.ms``. Kafka's counterpart is ReplicaAlterLogDirsManager.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

from fencepost.broker.core.events import Kind
from fencepost.broker.core.sampled_rate import SampledRate
from fencepost.broker.replication.log_dir_placement import Key, is_cordoned
from fencepost.broker.replication.node import ReplicaNode
from fencepost.broker.replication.replica import Replica
from fencepost.broker.replication.replica_storage import ReplicaStorage
from fencepost.protocol.errors import ErrorCode
from fencepost.storage.files.file_system import StorageFailure
from fencepost.storage.formats.file_names import MAX_FUTURE_TOPIC
from fencepost.storage.log.interface import Log

_CHUNK: Final = 1 << 20
"""Bytes that are copied of one replica in a turn."""
_RETRY_MS: Final = 100
"""How long a move waits for the current log, where that ends behind its last batch."""
_SECOND_MS: Final = 1000


class FutureReplica:
    """The copy of a replica in another directory, until it takes the replica's place.

    :ivar directory: By its name.
    """

    __slots__ = ("directory", "log")

    def __init__(self, directory: str, log: Log) -> None:
        self.directory = directory
        self.log = log


class ReplicaAlterLogDirsManager:
    """The moves of one broker's replicas.

    :param replicas: Of the broker, by topic and index; they come and go.
    :ivar futures: The moves in progress.
    """

    def __init__(
        self, node: ReplicaNode, storage: ReplicaStorage, replicas: Mapping[Key, Replica]
    ) -> None:
        self.futures: dict[Key, FutureReplica] = {}
        self._node = node
        self._storage = storage
        self._replicas = replicas
        configs = node.configs
        self._copied = SampledRate(
            configs.alter_log_dirs_replication_quota_window_num,
            configs.alter_log_dirs_replication_quota_window_size_seconds * _SECOND_MS,
        )

    def alter(self, topic: str, index: int, directory: str) -> ErrorCode:
        """Move a replica into a directory, or remember where it is to be made."""
        key, placement = (topic, index), self._storage.placement
        if len(topic) + len(str(index)) > MAX_FUTURE_TOPIC:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        if directory not in placement.names:
            return ErrorCode.LOG_DIR_NOT_FOUND
        if is_cordoned(directory, self._node.configs.cordoned_log_dirs):
            return ErrorCode.INVALID_REPLICA_ASSIGNMENT
        if key in self._node.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        future, replica = self.futures.get(key), self._replicas.get(key)
        if future is not None and future.directory != directory:
            self.cancel(key)
        if replica is None:
            placement.prefer(key, directory)
            known = self._node.view.partition(topic, index) is not None
            return (
                ErrorCode.REPLICA_NOT_AVAILABLE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
        if key in self.futures or self._storage.directory_of(key) == directory:
            return ErrorCode.NONE
        if replica.log.local_log_start_offset > replica.log.log_start_offset:
            return ErrorCode.KAFKA_STORAGE_ERROR  # its first records are in the tier alone
        return self._begin(replica, directory)

    def is_moving(self, replica: Replica) -> bool:
        """Whether a replica is being moved."""
        return (replica.topic, replica.index) in self.futures

    def on_replica_opened(self, replica: Replica) -> None:
        """A replica's log is open: go on with a move that the broker's end interrupted."""
        directory = self._storage.interrupted_moves.pop((replica.topic, replica.index), None)
        if directory is not None and self._storage.directory_of(_key(replica)) != directory:
            self._begin(replica, directory)

    def cancel(self, key: Key) -> None:
        """Give up a move: the replica stays where it is, or is gone."""
        future = self.futures.pop(key, None)
        if future is not None:
            self._storage.delete_future_log(key, future.log)

    def stop(self) -> None:
        """The broker stops; it goes on with its moves when it starts again."""
        for key, future in self.futures.items():
            self._storage.interrupt_move(key, future.log)
        self.futures.clear()

    def offset_lag(self, key: Key) -> int:
        """How many offsets a future log is behind the current one."""
        return self._replicas[key].log.log_end_offset - self.futures[key].log.log_end_offset

    # -- copying --------------------------------------------------------------------------------

    def _begin(self, replica: Replica, directory: str) -> ErrorCode:
        key = _key(replica)
        try:
            log = self._storage.open_future_log(replica, directory)
        except StorageFailure as failure:
            self._report(key, failure)
            return ErrorCode.KAFKA_STORAGE_ERROR
        future = self.futures[key] = FutureReplica(directory, log)
        self._node.scheduler.in_later_turn(partial(self._copy, key, future))
        return ErrorCode.NONE

    def _copy(self, key: Key, future: FutureReplica) -> None:
        """Copy a few batches, and replace the current log if there are no more."""
        if self.futures.get(key) is not future:
            return
        scheduler, replica = self._node.scheduler, self._replicas[key]
        wait_ms = self._throttled_ms()
        if not wait_ms:
            try:
                copied = self._copy_chunk(replica, future)
            except StorageFailure as failure:  # of the future log
                self.cancel(key)
                self._report(key, failure)
                return
            if self.futures.get(key) is not future:
                return
            if future.log.log_end_offset >= replica.log.log_end_offset:
                self._replace(key, replica, future)
                return
            wait_ms = self._throttled_ms() if copied else _RETRY_MS
        if wait_ms:
            scheduler.at(scheduler.now_ms() + wait_ms, partial(self._copy, key, future))
        else:
            scheduler.in_later_turn(partial(self._copy, key, future))

    def _copy_chunk(self, replica: Replica, moved: FutureReplica) -> int:
        """Copy once; returns the bytes.

        :raises StorageFailure: When the future log fails; if the current one does, the replica is
            offline, and no longer moved.
        """
        current, future = replica.log, moved.log
        now_ms = self._node.scheduler.wall_ms()
        _align(current, future, now_ms)
        rate = self._node.configs.replica_alter_log_dirs_io_max_bytes_per_second
        try:
            read = current.read(
                future.log_end_offset,
                max_bytes=max(min(_CHUNK, rate), 1),
                upper_bound=current.log_end_offset,
                min_one_batch=True,
            )
        except StorageFailure as failure:
            self._node.mark_offline(replica, failure)
            return 0
        if read.size:
            future.append_as_follower(read.buffers, now_ms=now_ms)
        _copy_epochs(current, future)
        self._copied.record(read.size, self._node.scheduler.now_ms())
        return read.size

    def _throttled_ms(self) -> int:
        """How long until it looks again whether more may be copied; 0 while the rate allows it."""
        configs = self._node.configs
        rate = configs.replica_alter_log_dirs_io_max_bytes_per_second
        delay_ms = self._copied.delay_ms(rate, self._node.scheduler.now_ms())
        return min(delay_ms, max(1, configs.replica_fetch_backoff_ms))

    def _replace(self, key: Key, replica: Replica, future: FutureReplica) -> None:
        del self.futures[key]
        with self._node.offline_on_failure(replica):
            replica.log = self._storage.replace_with_future_log(replica, future.log)

    def _report(self, key: Key, failure: StorageFailure) -> None:
        self._node.events.emit(
            Kind.STORAGE_FAILED,
            broker=self._node.broker_id,
            error=f"{key[0]}-{key[1]} is not moved to another directory: {failure.why}",
        )


def _key(replica: Replica) -> Key:
    return replica.topic, replica.index


def _align(current: Log, future: Log, now_ms: int) -> None:
    """Let a future log begin where the current one does, and forget what that has truncated."""
    start = current.log_start_offset
    if future.log_end_offset < start:
        future.truncate_fully_and_start_at(start, now_ms=now_ms)
        return
    while (end := _common_end(current, future)) < future.log_end_offset:
        future.truncate_to(end)
    future.advance_log_start(start)


def _common_end(current: Log, future: Log) -> int:
    """The offset (exclusive) up to which both may have the same records, by the newest epoch."""
    entries = future.epoch_entries()
    if not entries:
        return current.log_end_offset
    known = current.end_offset_for_epoch(entries[-1].epoch)
    if known.epoch != entries[-1].epoch:
        return min(current.log_end_offset, entries[-1].start_offset)
    return min(current.log_end_offset, known.end_offset)


def _copy_epochs(current: Log, future: Log) -> None:
    """Note the epochs that began at offsets which the future log has reached."""
    for entry in current.epoch_entries():
        latest = future.latest_epoch
        if entry.start_offset <= future.log_end_offset and (latest is None or entry.epoch > latest):
            future.assign_epoch_start(entry.epoch, entry.start_offset)
