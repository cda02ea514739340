"""The partitions that a consumer reads, and what it tells of them to its application."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from fencepost.client.consumer.cluster_metadata import ClusterMetadata
from fencepost.client.consumer.config import ConsumerConfig
from fencepost.client.consumer.errors import (
    CorruptRecords,
    LogTruncationError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    TruncatedPartitionError,
)
from fencepost.client.consumer.model import Truncation
from fencepost.client.consumer.position import (
    AssignedPartition,
    Corrupt,
    FetchState,
    NoOffset,
    OutOfRange,
)
from fencepost.client.consumer.requests import Backoff, Turn
from fencepost.client.consumer.truncation import Diverged, handle_truncation
from fencepost.client.model import Partition

_KEPT_TRUNCATIONS: Final = 1_000


class Assignment:
    """The partitions in the order in which they are fetched, and the truncations that were met.

    :param report: Takes each truncation that is detected.
    :ivar truncations: The last ones that were detected, the oldest first.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        metadata: ClusterMetadata,
        report: Callable[[Truncation], None],
    ) -> None:
        self.truncations: deque[Truncation] = deque(maxlen=_KEPT_TRUNCATIONS)
        self._config = config
        self._metadata = metadata
        self._report = report
        self._backoff = Backoff(
            initial_ms=config.retry_backoff_ms, max_ms=config.retry_backoff_max_ms
        )
        self._partitions: dict[Partition, AssignedPartition] = {}

    def __iter__(self) -> Iterator[AssignedPartition]:
        return iter(self._partitions.values())

    def __contains__(self, partition: object) -> bool:
        return partition in self._partitions

    @property
    def partitions(self) -> frozenset[Partition]:
        """Which they are."""
        return frozenset(self._partitions)

    def get(self, partition: Partition) -> AssignedPartition:
        """One of them.

        :raises ValueError: When it is not assigned.
        """
        if partition not in self._partitions:
            raise ValueError(f"{partition.topic}-{partition.index} is not assigned")
        return self._partitions[partition]

    def replace(self, partitions: Iterable[Partition]) -> None:
        """Read these from now on; those that stay keep their positions."""
        kept = self._partitions
        validates = self._config.draft is None
        self._partitions = {
            each: kept.get(each) or AssignedPartition(each, self._backoff, validates=validates)
            for each in partitions
        }

    def is_current(self, partition: AssignedPartition, request: object) -> bool:
        """Whether the answer to a request still matters to a partition."""
        assigned = self._partitions.get(partition.partition) is partition
        return assigned and partition.pending is request

    def due(self, state: FetchState, turn: Turn) -> list[AssignedPartition]:
        """The partitions in a state for which a request may be sent."""
        return [
            each
            for each in self
            if each.state is state
            and each.pending is None
            and each.problem is None
            and turn.is_due(each.retry.at)
        ]

    def see_leaders(self) -> None:
        """Compare the positions with the metadata."""
        for each in self:
            each.see_leader(self._metadata.leader(each.partition))

    def move_last(self, partition: AssignedPartition) -> None:
        """Fetch and hand out the others first."""
        del self._partitions[partition.partition]
        self._partitions[partition.partition] = partition

    def truncated(self, partition: AssignedPartition, diverged: Diverged) -> None:
        """The log of a partition was truncated below its position."""
        truncation = handle_truncation(partition, diverged, self._config.reset_policy)
        self.truncations.append(truncation)
        self._report(truncation)

    # -- what the application is told -----------------------------------------------------------

    def raise_problems(self, now: int) -> None:
        """Tell the application of partitions that wait for it, one kind of problem at a time.

        Afterwards they go on: what has not changed is found, and raised, again.

        :raises ConsumerError: The problem.
        """
        waiting = [each for each in self if each.problem is not None]
        truncated = [each for each in waiting if isinstance(each.problem, Truncation)]
        if truncated:
            raise self._truncation_error(truncated, now)
        out_of_range = [each for each in waiting if isinstance(each.problem, OutOfRange)]
        if out_of_range:
            offsets = _offsets(out_of_range)
            self._resume(out_of_range, now)
            raise OffsetOutOfRangeError(offsets)
        without = [each for each in waiting if isinstance(each.problem, NoOffset)]
        if without:
            self._resume(without, now)
            raise NoOffsetForPartitionError(frozenset(each.partition for each in without))
        for each in waiting:
            if isinstance(each.problem, Corrupt) and each.position is not None:
                reason = each.problem.reason
                self._resume([each], now)
                raise CorruptRecords(each.partition, each.position.offset, reason)

    def _truncation_error(
        self, truncated: list[AssignedPartition], now: int
    ) -> OffsetOutOfRangeError:
        offsets = _offsets(truncated)
        found = {
            each.partition: each.problem.divergent_offset
            for each in truncated
            if isinstance(each.problem, Truncation)
        }
        self._resume(truncated, now)
        if self._config.draft is None:
            known = {each: at for each, at in found.items() if at is not None}
            return LogTruncationError(offsets, known)
        for each in truncated:
            each.drop_epoch()
        return TruncatedPartitionError(
            offsets, {each: None if at is None else at.offset for each, at in found.items()}
        )

    def _resume(self, partitions: Iterable[AssignedPartition], now: int) -> None:
        for each in partitions:
            each.problem = None
            each.retry.pause(now)


def _offsets(partitions: Iterable[AssignedPartition]) -> Mapping[Partition, int]:
    return {each.partition: each.position.offset for each in partitions if each.position}
