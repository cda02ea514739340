"""What a coordinator has decided, before anything has changed.

The log of a shard: what a shard needs of its partition's leader replica, and its commits.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from fencepost.broker.core.scheduler import Scheduler, Timer
from fencepost.broker.groups.records import CoordinatorRecord
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import Record

R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorResult(Generic[R]):
    """A response, and the records that must be committed before it is given."""

    response: R
    records: tuple[CoordinatorRecord, ...] = ()


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
"""What a client of the coordinator is told where its log says this."""


class PartitionLog(Protocol):
    """The leader replica of the shard's partition, as far as a shard needs it."""

    @property
    def high_watermark(self) -> int:
        """The first offset that is not committed."""
        ...

    def append(self, batch: bytearray) -> int | ErrorCode:
        """Append one batch as acks=all does; the offset of its last record (inclusive), or why not.

        The batch is the log's from here on.
        """
        ...

    def read_all(self) -> Iterable[Record]:
        """Every record from the log's start to its end, committed or not, in their order.

        Control batches are left out.
        """
        ...

    def when_committed(self, offset: int, callback: Callable[[], None]) -> None:
        """Call once the high watermark is above ``offset``; at once, if it is already."""
        ...


@dataclass(slots=True)
class _Pending:
    offset: int
    """Of the last record, inclusive."""
    records: Sequence[CoordinatorRecord]
    done: Callable[[ErrorCode], None] | None
    timer: Timer | None = None

    def finish(self, error: ErrorCode) -> None:
        """Tell whoever waits, once."""
        done, self.done = self.done, None
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        if done is not None:
            done(error)


class CommitQueue:
    """Records that are appended and applied but not committed, and who waits for them."""

    def __init__(
        self,
        log: PartitionLog,
        scheduler: Scheduler,
        *,
        timeout_ms: int,
        on_commit: Callable[[CoordinatorRecord], None],
    ) -> None:
        self._log = log
        self._scheduler = scheduler
        self._timeout_ms = timeout_ms
        self._on_commit = on_commit
        self._pending: deque[_Pending] = deque()
        self._closed = False

    def add(
        self,
        offset: int,
        records: Sequence[CoordinatorRecord],
        done: Callable[[ErrorCode], None] | None,
    ) -> None:
        """Records up to ``offset`` are in the log: ``done`` is told when they are committed.

        After the timeout it is told COORDINATOR_NOT_AVAILABLE instead; the records stay.
        """
        pending = _Pending(offset, records, done)
        self._pending.append(pending)
        self._log.when_committed(offset, lambda: self._commit(offset))
        if pending.done is not None:
            pending.timer = self._scheduler.at(
                self._scheduler.now_ms() + self._timeout_ms,
                lambda: pending.finish(ErrorCode.COORDINATOR_NOT_AVAILABLE),
            )

    def after_all(self, done: Callable[[ErrorCode], None]) -> None:
        """Tell when all that is applied by now is committed; at once, where nothing waits."""
        if self._pending:
            self.add(self._pending[-1].offset, (), done)
        else:
            done(ErrorCode.NONE)

    def close(self) -> None:
        """This broker does not lead the partition any more."""
        self._closed = True
        while self._pending:
            self._pending.popleft().finish(ErrorCode.NOT_COORDINATOR)

    def _commit(self, offset: int) -> None:
        while not self._closed and self._pending and self._pending[0].offset <= offset:
            pending = self._pending.popleft()
            for record in pending.records:
                self._on_commit(record)
            pending.finish(ErrorCode.NONE)
