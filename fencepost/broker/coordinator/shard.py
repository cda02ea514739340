"""The shards of one internal topic on one broker (Kafka: ``CoordinatorRuntime``), each of them a
partition of the topic while this broker leads it (``CoordinatorShard``).

Every change takes the same steps: decide, append to the log, replay, and respond when the high
watermark has passed the records (acks=all). A request that changes nothing may have read state that
is not committed yet, and so waits until it is.

Only the replay of records changes state: a broker that replays the log after an election has the
same state. Records that a transaction writes, and the markers that end it, are replayed as well;
what they mean is the coordinator's (`CoordinatorShard.replay` and `replay_marker`).
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from msgspec import Struct

from fencepost.broker.coordinator import partition_for
from fencepost.broker.coordinator.commit_queue import CommitQueue, LoadedBatch, PartitionLog
from fencepost.broker.coordinator.record_fields import MalformedRecord
from fencepost.broker.core.scheduler import Scheduler
from fencepost.broker.core.waits import Wait
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    Record,
    build_batch,
)
from fencepost.protocol.transaction_markers import TransactionMarker
from fencepost.storage.log.verification import VerificationGuard

RECORDS_IN_A_TURN: Final = 100
"""Of the log that are replayed in one turn of a load, so that a turn is short."""
_NONE: Final = ErrorCode.NONE
_new_tuple: Final = tuple.__new__
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
    # Of the verification of a transaction; it has clients retry without a look for the coordinator.
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}
"""Errors of the log, and the errors that clients of the coordinator get for them."""


class CoordinatorResult(Struct, Generic[_T, _RecordT], frozen=True, kw_only=True):
    """A decision: a response, and the records that must be committed before it is sent."""

    response: _T
    records: tuple[_RecordT, ...] = ()


class CoordinatorPlayback(Protocol[_RecordT_contra]):
    """State that records change."""

    def replay(self, record: _RecordT_contra) -> None:
        """Apply a record. Records come in offset order."""
        ...


class CoordinatorRecordSerde(Struct, Generic[_RecordT], frozen=True, kw_only=True):
    """How a coordinator's records are written as keys and values."""

    encode: Callable[[_RecordT], tuple[bytes, bytes | None]]
    """Key and value; raises MalformedRecord when a field is too long for its format."""
    decode: Callable[[bytes, bytes | None], _RecordT | None]
    """The record; None for a key of an unknown type; raises MalformedRecord for broken bytes."""


class TransactionalProducer(NamedTuple):
    """The producer in whose transaction records are written."""

    producer_id: int
    producer_epoch: int
    guard: VerificationGuard | None = None
    """Of the verification that its first records in this log need."""


NO_PRODUCER: Final = TransactionalProducer(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
"""Of records that belong to no transaction."""


class LoggedRecord(NamedTuple, Generic[_RecordT]):
    """A record at its place in the log."""

    record: _RecordT
    offset: int
    producer_id: int = NO_PRODUCER_ID
    """Of the transaction that wrote it; -1 for none."""


class EndTransaction(NamedTuple):
    """A marker in the log: it ends the transaction of a producer."""

    producer_id: int
    committed: bool


class CoordinatorShard(Generic[_StateT, _RecordT]):
    """The state of one partition. It serves no request until it has loaded (`begin_load`), which
    takes several turns where the log is long.

    Subclasses add their requests, and what they keep in memory only, by four methods: `on_loaded`,
    `on_replayed`, `on_committed` and `on_unloaded`. One whose records are written in transactions
    has its own `replay` and `replay_marker`.
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
        self._commits: CommitQueue[LoggedRecord[_RecordT] | EndTransaction] = CommitQueue(
            log, scheduler, timeout_ms=commit_timeout_ms, on_commit=self._replay_committed
        )

    def begin_load(self) -> None:
        """Load an empty log at once, as a partition's first client need not be told to wait; any
        other from the end of the turn on.
        """
        load = partial(self._load, self._replay_log())
        if self._log.is_empty:
            load()
        else:
            self.scheduler.soon(load)

    # -- for subclasses --------------------------------------------------------------------------

    def on_loaded(self) -> None:
        """The log has been replayed: the shard serves requests from now on."""

    def on_replayed(self, record: _RecordT) -> None:
        """``latest`` has changed by a record, of a decision or of the log that is loaded."""

    def on_committed(self, record: _RecordT) -> None:
        """``committed`` has changed by a record; not called for those committed at the load."""

    def on_unloaded(self) -> None:
        """This broker lost the leadership: cancel timers, end parked requests."""

    def replay(self, state: _StateT, logged: LoggedRecord[_RecordT]) -> None:
        """Apply a record to one of the two states."""
        state.replay(logged.record)

    def replay_marker(self, state: _StateT, marker: EndTransaction) -> None:
        """Apply a marker to one of the two states; nothing where no transaction writes records."""

    # -- changes ---------------------------------------------------------------------------------

    def write(
        self,
        records: Sequence[_RecordT],
        done: Callable[[ErrorCode], None],
        *,
        producer: TransactionalProducer = NO_PRODUCER,
        timeout_ms: int | None = None,
    ) -> None:
        """Append records and replay them.

        :param done: Called with NONE once they are committed, or with the error.
        :param producer: Whose transaction they belong to.
        :param timeout_ms: How long ``done`` waits; None is the commit timeout of the shard.
        """
        if self._closed:
            done(ErrorCode.NOT_COORDINATOR)
            return
        try:
            batch = self._batch(records, producer)
        except MalformedRecord:
            done(ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        offset = self._log.append(batch, producer.guard)
        if isinstance(offset, ErrorCode):
            done(CLIENT_ERRORS.get(offset, offset))
            return
        first = offset + 1 - len(records)
        logged = [
            _new_tuple(LoggedRecord, (record, first + index, producer.producer_id))
            for index, record in enumerate(records)
        ]
        for each in logged:
            self._replay(each)
        self._commits.add(offset, logged, done, timeout_ms=timeout_ms)

    def start_verification(
        self, producer: TransactionalProducer, *, supports_epoch_bump: bool
    ) -> VerificationGuard | ErrorCode | None:
        """Begin to verify a transaction before its records: see `Log.maybe_start_verification`."""
        found = self._log.start_verification(
            producer.producer_id, producer.producer_epoch, supports_epoch_bump=supports_epoch_bump
        )
        return CLIENT_ERRORS.get(found, found) if isinstance(found, ErrorCode) else found

    def complete_transaction(
        self, marker: TransactionMarker, done: Callable[[ErrorCode], None], *, timeout_ms: int
    ) -> None:
        """Append the marker that ends a transaction, and replay it.

        :param done: Called with NONE once it is committed; with the error of the log, as it is;
            with COORDINATOR_NOT_AVAILABLE after the timeout, or NOT_COORDINATOR.
        """
        if self._closed:
            done(ErrorCode.NOT_COORDINATOR)
            return
        offset = self._log.append_marker(marker)
        if isinstance(offset, ErrorCode):
            done(offset)
            return
        ended = EndTransaction(marker.producer_id, marker.committed)
        self.replay_marker(self.latest, ended)
        self._commits.add(offset, (ended,), done, timeout_ms=timeout_ms)

    def commit_result(
        self,
        result: CoordinatorResult[_T, _RecordT],
        on_error: Callable[[ErrorCode, _T], _T],
        producer: TransactionalProducer = NO_PRODUCER,
    ) -> _T | Wait[_T]:
        """The result's response once its records are committed.

        Without records: once all that was written before is committed.

        :param on_error: Makes the response where the records cannot be committed.
        :param producer: Whose transaction the records belong to.
        """
        answer: Wait[_T] = Wait()

        def done(error: ErrorCode) -> None:
            failed = error is not _NONE
            answer.complete(on_error(error, result.response) if failed else result.response)

        if result.records:
            self.write(result.records, done, producer=producer)
        else:
            self._commits.after_all(done)
        return answer if answer.result is None else answer.result

    def _batch(self, records: Sequence[_RecordT], producer: TransactionalProducer) -> bytearray:
        now_ms = self.scheduler.wall_ms()
        encoded = [self._serde.encode(record) for record in records]
        is_transactional = producer is not NO_PRODUCER
        return build_batch(
            [Record(index, now_ms, key, value) for index, (key, value) in enumerate(encoded)],
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            base_sequence=0 if is_transactional else NO_SEQUENCE,  # a coordinator counts none
            transactional=is_transactional,
        )

    def _replay(self, logged: LoggedRecord[_RecordT]) -> None:
        self.replay(self.latest, logged)
        self.on_replayed(logged.record)

    def _apply(self, state: _StateT, logged: LoggedRecord[_RecordT] | EndTransaction) -> None:
        if isinstance(logged, EndTransaction):
            self.replay_marker(state, logged)
        else:
            self.replay(state, logged)

    def _replay_committed(self, logged: LoggedRecord[_RecordT] | EndTransaction) -> None:
        self._apply(self.committed, logged)
        if isinstance(logged, LoggedRecord):
            self.on_committed(logged.record)

    # -- leadership ------------------------------------------------------------------------------

    def close(self) -> None:
        """Unload: this broker lost the leadership. Waiting requests end with NOT_COORDINATOR."""
        self._closed = True
        self._commits.close()
        self.on_unloaded()

    def _load(self, steps: Iterator[None]) -> None:
        """Take the next steps, and the others in later turns."""
        if self._closed:
            return
        taken = sum(1 for _ in islice(steps, RECORDS_IN_A_TURN))
        if taken == RECORDS_IN_A_TURN:
            self.scheduler.in_later_turn(partial(self._load, steps))

    def _replay_log(self) -> Iterator[None]:
        """The steps of a load: one for each record."""
        high_watermark = self._log.high_watermark
        uncommitted: list[LoggedRecord[_RecordT] | EndTransaction] = []
        end = -1
        for batch in self._log.read_all():
            for offset, logged in self._loaded(batch):
                end = offset
                if isinstance(logged, EndTransaction):
                    self.replay_marker(self.latest, logged)
                else:
                    self._replay(logged)
                if offset < high_watermark:
                    self._apply(self.committed, logged)
                else:
                    uncommitted.append(logged)
                yield
        # A log that cannot be read costs the leadership, which closes the shard.
        if not self._closed:
            if uncommitted:
                self._commits.add(end, uncommitted, None)
            self.loaded = True
            self.on_loaded()

    def _loaded(
        self, batch: LoadedBatch
    ) -> Iterator[tuple[int, LoggedRecord[_RecordT] | EndTransaction]]:
        """The records and the marker of a batch that this coordinator can read, by offset."""
        header, records, marker = batch
        if marker is not None:
            yield header.last_offset, EndTransaction(header.producer_id, marker.committed)
        for stored in records:
            record = self._decoded(stored)
            if record is not None:
                yield stored.offset, LoggedRecord(record, stored.offset, header.producer_id)

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
        """This broker leads a partition in a new epoch: load it."""
        self.on_resigned(partition)
        shard = self.shards[partition] = self._new_shard(log)
        shard.begin_load()

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
