"""The log of a coordinator's shard, and the queue of records that are appended but not committed
yet.

Kafka's ``DeferredEventQueue``: an operation completes when the high watermark passes its records.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from msgspec import Struct

from fencepost.broker.core.scheduler import Scheduler, Timer
from fencepost.broker.core.waits import Wait
from fencepost.broker.produce.markers import append_marker
from fencepost.broker.replication.replica import Replica
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import NO_SEQUENCE, BatchHeader, Record, iter_headers
from fencepost.protocol.transaction_markers import (
    EndTransactionMarker,
    TransactionMarker,
    decode_marker,
)
from fencepost.storage.files.file_system import StorageFailure
from fencepost.storage.log.append_result import AppendOrigin, AppendRejected
from fencepost.storage.log.verification import VerificationGuard

RecordT = TypeVar("RecordT")
_NONE: Final = ErrorCode.NONE


class LoadedBatch(NamedTuple):
    """A batch of the log, as a shard that loads reads it."""

    header: BatchHeader
    records: Iterable[Record] = ()
    """None of a control batch."""
    marker: EndTransactionMarker | None = None
    """Of a control batch that ends a transaction."""


class PartitionLog(Protocol):
    """A shard's partition: Kafka's ``PartitionWriter`` and ``CoordinatorLoader``."""

    @property
    def leader_epoch(self) -> int:
        """The leader epoch in which this broker coordinates the partition."""
        ...

    @property
    def high_watermark(self) -> int:
        """The first offset that is not committed."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether it has no batch, committed or not."""
        ...

    def start_verification(
        self, producer_id: int, epoch: int, *, supports_epoch_bump: bool
    ) -> VerificationGuard | ErrorCode | None:
        """Begin to verify a transaction: see `Log.maybe_start_verification`."""
        ...

    def append(self, batch: bytearray, guard: VerificationGuard | None = None) -> int | ErrorCode:
        """Append one batch as acks=all does; the offset of its last record, or an error.

        The log owns the batch from then on.

        :param guard: Of the verification, for the first batch of a transaction.
        """
        ...

    def append_marker(self, marker: TransactionMarker) -> int | ErrorCode:
        """Append the marker that ends a transaction; its offset, or an error."""
        ...

    def read_all(self) -> Iterable[LoadedBatch]:
        """Every batch from the log's start to its end, committed or not, in offset order."""
        ...

    def when_committed(self, offset: int, callback: Callable[[], None]) -> None:
        """Call once the high watermark is above ``offset``; at once, if it is already."""
        ...


class _PendingCommit(Struct, Generic[RecordT]):
    offset: int
    """Of the last record, inclusive."""
    records: Sequence[RecordT]
    done: Callable[[ErrorCode], None] | None
    timer: Timer | None = None

    def complete(self, error: ErrorCode) -> None:
        """Call back, once."""
        done, self.done = self.done, None
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        if done is not None:
            done(error)


class CommitQueue(Generic[RecordT]):
    """Records that are appended and replayed but not committed, in offset order."""

    def __init__(
        self,
        log: PartitionLog,
        scheduler: Scheduler,
        *,
        timeout_ms: int,
        on_commit: Callable[[RecordT], None],
    ) -> None:
        """:param on_commit: Called with each record when the high watermark has passed it."""
        self._log = log
        self._scheduler = scheduler
        self._timeout_ms = timeout_ms
        self._on_commit = on_commit
        self._pending: deque[_PendingCommit[RecordT]] = deque()
        self._closed = False

    def add(
        self,
        offset: int,
        records: Sequence[RecordT],
        done: Callable[[ErrorCode], None] | None,
        *,
        timeout_ms: int | None = None,
    ) -> None:
        """Add records that are in the log up to ``offset``; call ``done`` when it is committed.

        After the timeout ``done`` is called with COORDINATOR_NOT_AVAILABLE instead. The records
        stay in the queue and may still be committed.

        :param timeout_ms: None for that of the queue.
        """
        if not self._pending and not self._closed and self._log.high_watermark > offset:
            for record in records:  # at once, as where there is one replica
                self._on_commit(record)
            if done is not None:
                done(_NONE)
            return
        pending = _PendingCommit(offset, records, done)
        self._pending.append(pending)
        self._log.when_committed(offset, lambda: self._commit(offset))
        if pending.done is not None:
            waits_ms = self._timeout_ms if timeout_ms is None else timeout_ms
            pending.timer = self._scheduler.at(
                self._scheduler.now_ms() + waits_ms,
                lambda: pending.complete(ErrorCode.COORDINATOR_NOT_AVAILABLE),
            )

    def after_all(self, done: Callable[[ErrorCode], None]) -> None:
        """Call ``done`` when all records added so far are committed; at once, if they are."""
        if self._pending:
            self.add(self._pending[-1].offset, (), done)
        else:
            done(ErrorCode.NONE)

    def close(self) -> None:
        """End every operation with NOT_COORDINATOR: this broker lost the leadership."""
        self._closed = True
        self._on_commit = _ignore_record  # a shard and its queue would keep each other in memory
        while self._pending:
            self._pending.popleft().complete(ErrorCode.NOT_COORDINATOR)

    def _commit(self, offset: int) -> None:
        while not self._closed and self._pending and self._pending[0].offset <= offset:
            pending = self._pending.popleft()
            for record in pending.records:
                self._on_commit(record)
            pending.complete(ErrorCode.NONE)


def _ignore_record(_: object) -> None:
    """Do nothing: a queue that is closed commits no more."""


_READ_BYTES: Final = 1 << 20
_COORDINATOR: Final = AppendOrigin.COORDINATOR


class ReplicaLog:
    """A leader replica in the leader epoch in which this object was made: see `PartitionLog`."""

    def __init__(self, replica: Replica, scheduler: Scheduler) -> None:
        self._replica = replica
        self._scheduler = scheduler
        self.leader_epoch = replica.leader_epoch
        """The leader epoch in which this broker coordinates the partition."""

    @property
    def high_watermark(self) -> int:
        """The first offset that is not committed."""
        return self._replica.high_watermark

    @property
    def is_empty(self) -> bool:
        """Whether it has no batch, committed or not."""
        log = self._replica.log
        return log.log_start_offset == log.log_end_offset

    def start_verification(
        self, producer_id: int, epoch: int, *, supports_epoch_bump: bool
    ) -> VerificationGuard | ErrorCode | None:
        """Begin to verify a transaction: see `Log.maybe_start_verification`."""
        if not self._leads:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return self._replica.log.maybe_start_verification(
            producer_id, NO_SEQUENCE, epoch, supports_epoch_bump=supports_epoch_bump
        )

    def append(self, batch: bytearray, guard: VerificationGuard | None = None) -> int | ErrorCode:
        """Append one batch as acks=all does; the offset of its last record, or an error."""
        if not self._leads:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if not self._replica.has_min_isr():
            return ErrorCode.NOT_ENOUGH_REPLICAS
        result = self._replica.append(
            batch,
            now_ms=self._scheduler.wall_ms(),
            origin=_COORDINATOR,
            guard=guard,
        )
        return result.error if isinstance(result, AppendRejected) else result.last_offset

    def append_marker(self, marker: TransactionMarker) -> int | ErrorCode:
        """Append the marker that ends a transaction, as acks=all does; its offset, or an error."""
        if not self._leads:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return append_marker(self._replica, marker, now_ms=self._scheduler.wall_ms())

    def read_all(self) -> Iterator[LoadedBatch]:
        """Every batch from the log's start to its end, in offset order, as it is when it is read.

        A log that cannot be read marks its replica offline, which closes the shard as well.
        """
        log = self._replica.log
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            offset = max(offset, log.log_start_offset)  # it may move while this is read
            try:
                read = log.read(
                    offset,
                    max_bytes=_READ_BYTES,
                    upper_bound=log.log_end_offset,
                    min_one_batch=True,
                )
            except StorageFailure as failure:
                self._replica.mark_offline(self._replica, failure)
                return
            for buffer in read.buffers:
                for at, header in iter_headers(buffer):
                    offset = header.next_offset
                    if header.is_control:
                        yield LoadedBatch(header, marker=decode_marker(buffer, at))
                    else:
                        yield LoadedBatch(header, iter_records(buffer, at))

    def when_committed(self, offset: int, callback: Callable[[], None]) -> None:
        """Call once the high watermark is above ``offset``; never, if leadership ends before."""
        if self._replica.high_watermark > offset:
            callback()
            return

        def attempt() -> bool | None:
            if not self._leads:
                return False
            return True if self._replica.high_watermark > offset else None

        wait: Wait[bool] = Wait()
        wait.then(lambda committed: callback() if committed else None)
        wait.watch([self._replica.watermark_watch], attempt)

    @property
    def _leads(self) -> bool:
        return self._replica.is_leader and self._replica.leader_epoch == self.leader_epoch
