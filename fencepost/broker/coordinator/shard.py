"""The shards of one internal topic on one broker (Kafka: ``CoordinatorRuntime``), each of them a
partition of the topic while this broker leads it (``CoordinatorShard``).

Every change takes the same steps: decide, append to the log, replay, and respond when the high
watermark has passed the records (acks=all). A request that changes nothing may have read state that
is not committed yet, and so waits until it is.

Only the replay of records changes state: a broker that replays the log after an election has the
same state.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from fencepost.broker.coordinator import partition_for
from fencepost.broker.coordinator.commit_queue import CommitQueue, PartitionLog
from fencepost.broker.coordinator.record_fields import MalformedRecord
from fencepost.broker.core.scheduler import Scheduler
from fencepost.broker.core.waits import Wait
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import Record, build_batch

_T = TypeVar("_T")
_RecordT = TypeVar("_RecordT")
_RecordT_contra = TypeVar("_RecordT_contra", contravariant=True)
_StateT = TypeVar("_StateT", bound="CoordinatorPlayback[Any]")

CLIENT_ERRORS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""Errors of the log, and the errors that clients of the coordinator get for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorResult(Generic[_T, _RecordT]):
    """A decision: a response, and the records that must be committed before it is sent."""

    response: _T
    records: tuple[_RecordT, ...] = ()


class CoordinatorPlayback(Protocol[_RecordT_contra]):
    """State that records change."""

    def replay(self, record: _RecordT_contra) -> None:
        """Apply a record. Records come in offset order."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorRecordSerde(Generic[_RecordT]):
    """How a coordinator's records are written as keys and values."""

    encode: Callable[[_RecordT], tuple[bytes, bytes | None]]
    """Key and value; raises MalformedRecord when a field is too long for its format."""
    decode: Callable[[bytes, bytes | None], _RecordT | None]
    """The record; None for a key of an unknown type; raises MalformedRecord for broken bytes."""


class CoordinatorShard(Generic[_StateT, _RecordT]):
    """The state of one partition. It loads at the end of the turn in which it is made.

    Subclasses add their requests, and what they keep in memory only, by four methods: `on_loaded`,
    `on_replayed`, `on_committed` and `on_unloaded`.
    """

    def __init__(
        self,
        *,
        log: PartitionLog,
        scheduler: Scheduler,
        serde: CoordinatorRecordSerde[_RecordT],
        new_state: Callable[[], _StateT],
        commit_timeout_ms: int,
    ) -> None:
        """:param commit_timeout_ms: How long a response waits for its records to be committed."""
        self.scheduler = scheduler
        self.loaded = False
        """Whether the log has been replayed."""
        self.latest = new_state()
        """The state up to the log's end. Decisions are made from it."""
        self.committed = new_state()
        """The state up to the high watermark."""
        self._log = log
        self._serde = serde
        self._closed = False
        self._commits: CommitQueue[_RecordT] = CommitQueue(
            log, scheduler, timeout_ms=commit_timeout_ms, on_commit=self._replay_committed
        )
        scheduler.soon(self._load)

    # -- for subclasses --------------------------------------------------------------------------

    def on_loaded(self) -> None:
        """The log has been replayed: the shard serves requests from now on."""

    def on_replayed(self, record: _RecordT) -> None:
        """``latest`` has changed by a record, of a decision or of the log that is loaded."""

    def on_committed(self, record: _RecordT) -> None:
        """``committed`` has changed by a record; not called for those committed at the load."""

    def on_unloaded(self) -> None:
        """This broker lost the leadership: cancel timers, end parked requests."""

    # -- changes ---------------------------------------------------------------------------------

    def write(
        self,
        records: Sequence[_RecordT],
        done: Callable[[ErrorCode], None],
        timeout_ms: int | None = None,
    ) -> None:
        """Append records and replay them.

        :param done: Called with NONE once they are committed, or with the error.
        :param timeout_ms: How long ``done`` waits; None is the commit timeout of the shard.
        """
        if self._closed:
            done(ErrorCode.NOT_COORDINATOR)
            return
        try:
            batch = self._batch(records)
        except MalformedRecord:
            done(ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        offset = self._log.append(batch)
        if isinstance(offset, ErrorCode):
            done(CLIENT_ERRORS.get(offset, offset))
            return
        for record in records:
            self._replay(record)
        self._commits.add(offset, records, done, timeout_ms)

    def commit_result(
        self, result: CoordinatorResult[_T, _RecordT], on_error: Callable[[ErrorCode, _T], _T]
    ) -> _T | Wait[_T]:
        """The result's response once its records are committed.

        Without records: once all that was written before is committed.

        :param on_error: Makes the response where the records cannot be committed.
        """
        answer: Wait[_T] = Wait()

        def done(error: ErrorCode) -> None:
            failed = error is not ErrorCode.NONE
            answer.complete(on_error(error, result.response) if failed else result.response)

        if result.records:
            self.write(result.records, done)
        else:
            self._commits.after_all(done)
        return answer if answer.result is None else answer.result

    def _batch(self, records: Sequence[_RecordT]) -> bytearray:
        now_ms = self.scheduler.wall_ms()
        encoded = [self._serde.encode(record) for record in records]
        return build_batch(
            [Record(index, now_ms, key, value) for index, (key, value) in enumerate(encoded)]
        )

    def _replay(self, record: _RecordT) -> None:
        self.latest.replay(record)
        self.on_replayed(record)

    def _replay_committed(self, record: _RecordT) -> None:
        self.committed.replay(record)
        self.on_committed(record)

    # -- leadership ------------------------------------------------------------------------------

    def close(self) -> None:
        """Unload: this broker lost the leadership. Waiting requests end with NOT_COORDINATOR."""
        self._closed = True
        self._commits.close()
        self.on_unloaded()

    def _load(self) -> None:
        if not self._closed:
            self._replay_log()
        # A log that cannot be read costs the leadership, which closes the shard.
        if not self._closed:
            self.loaded = True
            self.on_loaded()

    def _replay_log(self) -> None:
        high_watermark = self._log.high_watermark
        uncommitted: list[_RecordT] = []
        end = -1
        for stored in self._log.read_all():
            record = self._decoded(stored)
            if record is None:
                continue
            end = stored.offset
            self._replay(record)
            if end < high_watermark:
                self.committed.replay(record)
            else:
                uncommitted.append(record)
        if uncommitted:
            self._commits.add(end, uncommitted, None)

    def _decoded(self, stored: Record) -> _RecordT | None:
        """The record; None for one that this coordinator cannot read."""
        if stored.key is None:
            return None
        try:
            return self._serde.decode(stored.key, stored.value)
        except MalformedRecord:
            return None


_ShardT = TypeVar("_ShardT", bound=CoordinatorShard[Any, Any])


class CoordinatorRuntime(Generic[_ShardT]):
    """A shard for each partition of the topic that this broker leads."""

    def __init__(
        self,
        topic: str,
        *,
        partition_count: Callable[[], int],
        new_shard: Callable[[PartitionLog], _ShardT],
    ) -> None:
        """:param partition_count: Of the topic in this broker's view; 0 while it does not exist."""
        self.topic = topic
        self.shards: dict[int, _ShardT] = {}
        """By partition, loaded or not."""
        self._partition_count = partition_count
        self._new_shard = new_shard

    def on_elected(self, partition: int, log: PartitionLog) -> None:
        """This broker leads a partition in a new epoch: load it at the end of the turn."""
        self.on_resigned(partition)
        self.shards[partition] = self._new_shard(log)

    def on_resigned(self, partition: int) -> None:
        """This broker does not lead a partition any more: unload it."""
        shard = self.shards.pop(partition, None)
        if shard is not None:
            shard.close()

    def shard_for(self, key: str) -> _ShardT | ErrorCode:
        """The shard that coordinates a key, or an error.

        NOT_COORDINATOR unless this broker leads the key's partition; COORDINATOR_LOAD_IN_PROGRESS
        until the shard has loaded.
        """
        count = self._partition_count()
        shard = self.shards.get(partition_for(key, count)) if count else None
        if shard is None:
            return ErrorCode.NOT_COORDINATOR
        return shard if shard.loaded else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    @property
    def is_loading(self) -> bool:
        """Whether a shard has not loaded yet."""
        return not all(shard.loaded for shard in self.shards.values())
