"""Where a consumer begins, and where it goes on when its position is not valid.

A partition without a position takes the committed offset of its group. Where there is none, and
where a position is not in the log, `ResetPolicy` says what to look up. A lookup by time may find no
record; then it is the log end, which is looked up first, so that no record in between is skipped.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar

from fencepost.client.consumer.assignment import Assignment
from fencepost.client.consumer.cluster_metadata import NO_EPOCH, ClusterMetadata
from fencepost.client.consumer.committed_offsets import CommittedOffsets
from fencepost.client.consumer.config import ConsumerConfig
from fencepost.client.consumer.errors import RequestRefused
from fencepost.client.consumer.model import OffsetAndMetadata, OffsetAndTimestamp
from fencepost.client.consumer.offset_lookup import OffsetLookups
from fencepost.client.consumer.offset_messages import Committed
from fencepost.client.consumer.operations import Operation
from fencepost.client.consumer.position import AssignedPartition, FetchState, NoOffset
from fencepost.client.consumer.requests import Turn
from fencepost.client.consumer.reset_policy import Situation, Target
from fencepost.client.model import OffsetSpec

T = TypeVar("T")


class Pending(Protocol):
    """An operation of any result."""

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        ...

    def cancel(self) -> None:
        """Drop it."""
        ...


class PositionReset:
    """Finds the positions of partitions that have no valid one.

    :param wall_ms: The time of day, in ms since 1970-01-01 UTC.
    :param fail: Takes an error after which the consumer cannot go on.
    """

    def __init__(
        self,
        assignment: Assignment,
        metadata: ClusterMetadata,
        lookups: OffsetLookups,
        committed: CommittedOffsets | None,
        config: ConsumerConfig,
        wall_ms: Callable[[], int],
        fail: Callable[[Exception], None],
    ) -> None:
        self._assignment = assignment
        self._metadata = metadata
        self._lookups = lookups
        self._committed = committed
        self._config = config
        self._wall_ms = wall_ms
        self._fail = fail
        self._now = 0
        self._open: list[tuple[AssignedPartition, Pending]] = []
        """What is waited for."""

    def run(self, turn: Turn) -> None:
        """Begin the lookups that are due."""
        self._now = turn.now
        self._drop_stale()
        self._initialize(self._assignment.due(FetchState.INITIALIZING, turn))
        for each in self._assignment.due(FetchState.AWAIT_RESET, turn):
            self._reset(each)

    # -- the first position ---------------------------------------------------------------------

    def _initialize(self, partitions: list[AssignedPartition]) -> None:
        if self._committed is None:
            for each in partitions:
                self._begin(each, None)
        elif partitions:
            operation = self._committed.fetch({each.partition for each in partitions})
            for each in partitions:
                self._wait(each, operation, partial(self._begin_committed, each))

    def _begin_committed(self, partition: AssignedPartition, committed: Committed) -> None:
        self._begin(partition, committed[partition.partition])

    def _begin(self, partition: AssignedPartition, committed: OffsetAndMetadata | None) -> None:
        policy = self._config.reset_policy
        if committed is not None:
            # The commit may be newer than the metadata, which then has to catch up (KIP-232).
            self._metadata.see_epoch(partition.partition, committed.leader_epoch)
            partition.seek(committed, self._metadata.leader(partition.partition))
        elif policy.resets:
            partition.await_reset(policy.target(Situation.INITIALIZATION))
        else:
            partition.problem = NoOffset()

    # -- another position -----------------------------------------------------------------------

    def _reset(self, partition: AssignedPartition) -> None:
        match partition.target:
            case Target.LOG_START:
                self._find(partition, OffsetSpec.EARLIEST, partial(self._move, partition))
            case Target.BY_DURATION:
                timestamp = self._wall_ms() - self._config.reset_policy.duration_ms
                self._find_by_time(partition, max(timestamp, 0))
            case Target.BY_COMMIT if self._committed is not None:
                operation = self._committed.fetch({partition.partition})
                self._wait(partition, operation, partial(self._find_by_commit, partition))
            case _:
                self._find_by_time(partition, None)

    def _find_by_commit(self, partition: AssignedPartition, committed: Committed) -> None:
        last = committed[partition.partition]
        self._find_by_time(partition, None if last is None else last.timestamp)

    def _find_by_time(self, partition: AssignedPartition, timestamp: int | None) -> None:
        def found_end(end: OffsetAndTimestamp | None) -> None:
            if timestamp is None:
                self._move(partition, end)
            else:
                self._find(partition, timestamp, lambda found: self._move(partition, found or end))

        self._find(partition, OffsetSpec.LATEST, found_end)

    def _find(
        self,
        partition: AssignedPartition,
        timestamp: int,
        proceed: Callable[[OffsetAndTimestamp | None], None],
    ) -> None:
        operation = self._lookups.find({partition.partition: timestamp})
        self._wait(partition, operation, lambda found: proceed(found[partition.partition]))

    def _move(self, partition: AssignedPartition, found: OffsetAndTimestamp | None) -> None:
        if found is None:  # a broker that does not know where its log begins or ends
            partition.retry.pause(self._now)
            return
        # The epoch of the offset found is not that of the record before it, so there is none.
        leader = self._metadata.leader(partition.partition)
        partition.move(found.offset, NO_EPOCH, leader)

    # -- waiting --------------------------------------------------------------------------------

    def _wait(
        self, partition: AssignedPartition, operation: Operation[T], proceed: Callable[[T], None]
    ) -> None:
        """Proceed with an operation's result, unless the partition is elsewhere by then."""
        partition.pending = operation
        self._open.append((partition, operation))

        def done() -> None:
            if not self._assignment.is_current(partition, operation):
                return
            partition.pending = None
            try:
                result = operation.result()
            except RequestRefused as error:
                partition.retry.pause(self._now)
                self._fail(error)
            else:
                proceed(result)

        operation.then(done)

    def _drop_stale(self) -> None:
        """Give up lookups of partitions that are elsewhere by now."""
        waiting = [each for each in self._open if not each[1].done]
        self._open = [each for each in waiting if self._assignment.is_current(*each)]
        needed = {id(operation) for _, operation in self._open}
        for _, operation in waiting:
            if id(operation) not in needed:
                operation.cancel()
