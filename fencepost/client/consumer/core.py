"""A consumer without I/O: what its application calls, and the turns in which it acts.

    core.turn(now)                      the requests that are due, and when the next turn is
    core.answered(request, r, now)      the answer to one of them
    core.failed(request, error, now)    there is none
    core.poll(now)                      records, or the error that the application has to see

Between two turns the application may call anything else. Calls that need answers return an
`Operation`. A driver, over sockets or on a virtual clock, sends the requests of a turn, hands in
their answers in any order, and takes the next turn after each answer, after each call, and when the
last turn says.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from fencepost.client.batches import FetchedRecord
from fencepost.client.consumer.assignment import Assignment
from fencepost.client.consumer.classic_group import ClassicGroup
from fencepost.client.consumer.cluster_metadata import ClusterMetadata
from fencepost.client.consumer.committed_offsets import CommittedOffsets
from fencepost.client.consumer.config import ConsumerConfig
from fencepost.client.consumer.context import ConsumerContext
from fencepost.client.consumer.coordinator import Coordinator
from fencepost.client.consumer.epoch_lookup import EpochLookup
from fencepost.client.consumer.fetch_buffer import to_record
from fencepost.client.consumer.fetcher import Fetcher
from fencepost.client.consumer.group_protocol import Assign, GroupProtocol, MakeGroup, Revoke
from fencepost.client.consumer.metadata_refresh import MetadataRefresh
from fencepost.client.consumer.model import (
    ConsumerRecord,
    ConsumerRecords,
    OffsetAndMetadata,
    Truncation,
)
from fencepost.client.consumer.nodes import Address, Nodes
from fencepost.client.consumer.offset_lookup import Found, OffsetLookups
from fencepost.client.consumer.offset_messages import Committed
from fencepost.client.consumer.operations import Operation
from fencepost.client.consumer.position import AssignedPartition, Position
from fencepost.client.consumer.position_reset import PositionReset
from fencepost.client.consumer.requests import Request, Turn
from fencepost.client.consumer.reset_policy import Target
from fencepost.client.errors import KafkaClientError, NotServed
from fencepost.client.model import ConsumerGroupMetadata, Partition

_NO_GROUP: Final = "the consumer has no group_id"
_EITHER: Final = "a consumer either subscribes to topics or is assigned partitions"


class ConsumerCore:
    """A consumer, driven by turns.

    :param bootstrap: The brokers by which the others are found, by negative ids of their own; a
        driver without addresses may give the ids of brokers.
    :param wall_ms: The time of day, in ms since 1970-01-01 UTC; for ``by_duration``.
    :param report: Takes each truncation that is detected, to be logged.
    :param make_group: Makes the member of the group, where there is one.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        bootstrap: Mapping[int, Address],
        wall_ms: Callable[[], int],
        *,
        report: Callable[[Truncation], None] = lambda _: None,
        make_group: MakeGroup = ClassicGroup,
    ) -> None:
        self.config = config
        self._error: Exception | None = None
        self._metadata = ClusterMetadata()
        self._nodes = Nodes(bootstrap, config, self._fail)
        self._assignment = Assignment(config, self._metadata, report)
        self._refresh = MetadataRefresh(
            self._metadata, self._nodes, config, self._topics, self._fail
        )
        self._lookups = OffsetLookups(self._metadata, self._refresh, self._nodes, config)
        self._coordinator: Coordinator | None = None
        self._group: GroupProtocol | None = None
        self._committed: CommittedOffsets | None = None
        if config.group_id is not None:
            self._join(config.group_id, make_group)
        context = ConsumerContext(
            assignment=self._assignment,
            metadata=self._metadata,
            refresh=self._refresh,
            nodes=self._nodes,
            config=config,
            fail=self._fail,
        )
        self._fetcher = Fetcher(context)
        self._epoch_lookup = EpochLookup(context)
        self._resets = PositionReset(
            self._assignment,
            self._metadata,
            self._lookups,
            self._committed,
            config,
            wall_ms,
            self._fail,
        )

    def _join(self, group: str, make_group: MakeGroup) -> None:
        self._coordinator = Coordinator(group, self._nodes, self.config, self._fail)
        self._group = make_group(
            self._coordinator, self._metadata, self._nodes, self.config, self._fail
        )
        self._committed = CommittedOffsets(
            self._coordinator,
            self._metadata,
            self._refresh,
            self._nodes,
            self.config,
            self._group,
        )

    # -- driving --------------------------------------------------------------------------------

    def turn(self, now: int, *, fetches: bool = True) -> Turn:
        """Decide what is due.

        :param now: Milliseconds, monotonic.
        :param fetches: Whether records are wanted; all else goes on without them.
        """
        turn = Turn(now=now, fetches=fetches)
        self._assignment.see_leaders()
        parts: list[Callable[[Turn], None]] = [self._resets.run, self._lookups.run]
        parts += [self._epoch_lookup.run, self._fetcher.run, self._run_refresh]
        if self._group is not None and self._committed is not None:
            parts += [self._group.run, self._committed.run]
        if self._coordinator is not None:
            parts.append(self._coordinator.run)
        for run in parts:
            try:
                run(turn)
            except NotServed as error:
                self._fail(error)
        self._nodes.run(turn)
        return turn

    def answered(self, request: Request, response: object, now: int) -> None:
        """Take the answer to a request of a turn."""
        request.on_answer(response, now)

    def failed(self, request: Request, error: KafkaClientError, now: int) -> None:
        """A request of a turn has no answer."""
        self._nodes.failed(request.node, now)
        self._refresh.request()
        request.on_failure(error, now)

    def address(self, node: int) -> Address | None:
        """Where to send the requests to a node; None where no metadata says so any more."""
        return self._nodes.address(node)

    def next_event(self) -> Revoke | Assign | None:
        """What the group has done to the assignment, the oldest event first; None: no more.

        An `Assign` is in effect when this returns, a `Revoke` when it was let go.
        """
        event = None if self._group is None else self._group.next_event()
        if isinstance(event, Assign):
            self._assignment.replace(event.partitions)
        elif isinstance(event, Revoke):
            return replace(event, let_go=partial(self._let_go, event))
        return event

    def _let_go(self, event: Revoke) -> None:
        self._assignment.replace(self._assignment.partitions - event.partitions)
        event.let_go()

    # -- partitions -----------------------------------------------------------------------------

    @property
    def assignment(self) -> frozenset[Partition]:
        """The partitions that are read."""
        return self._assignment.partitions

    @property
    def is_member(self) -> bool:
        """Whether the partitions are those that the group assigned."""
        return self._group is not None and bool(self._group.topics)

    @property
    def truncations(self) -> tuple[Truncation, ...]:
        """The truncations that were detected, the oldest first; the last thousand."""
        return tuple(self._assignment.truncations)

    def assign(self, partitions: Iterable[Partition]) -> None:
        """Read these partitions; those that it read before keep their positions.

        :raises ValueError: When topics are subscribed.
        """
        if self.is_member:
            raise ValueError(_EITHER)
        self._assignment.replace(map(_without_id, partitions))

    def subscribe(self, topics: Iterable[str]) -> None:
        """Read the partitions of these topics that the group assigns to it.

        :raises ValueError: Without a group, without a topic, or when partitions are assigned by
            `assign`.
        """
        wanted = frozenset(topics)
        if not wanted or isinstance(topics, str):
            raise ValueError("topics are a list of one name or more; unsubscribe leaves the group")
        if not self._member.topics and self._assignment.partitions:
            raise ValueError(_EITHER)
        self._member.subscribe(wanted)

    def unsubscribe(self) -> Operation[None]:
        """Read nothing, and leave the group."""
        self._assignment.replace(())
        return self.leave()

    def seek(self, partition: Partition, offset: OffsetAndMetadata) -> None:
        """Go on from an offset. With an epoch, a truncation below it is detected first.

        :raises ValueError: When the partition is not assigned, or the offset is negative.
        """
        if offset.offset < 0:
            raise ValueError(f"there is no offset {offset.offset}")
        assigned = self._get(partition)
        self._metadata.see_epoch(assigned.partition, offset.leader_epoch)
        assigned.seek(offset, self._metadata.leader(assigned.partition))

    def reset(self, partition: Partition, target: Target) -> None:
        """Go to where a target is found.

        :raises ValueError: When the partition is not assigned.
        """
        self._get(partition).await_reset(target)

    def pause(self, partition: Partition, *, paused: bool) -> None:
        """Fetch nothing from a partition, or fetch again; its position is validated meanwhile.

        :raises ValueError: When the partition is not assigned.
        """
        self._get(partition).is_paused = paused

    def position(self, partition: Partition) -> OffsetAndMetadata | None:
        """Where a partition is read next; None while no valid position is known.

        :raises ValueError: When the partition is not assigned.
        """
        found = self._get(partition)
        if not found.has_position or found.position is None:
            return None
        return found.position.to_commit()

    def _get(self, partition: Partition) -> AssignedPartition:
        return self._assignment.get(_without_id(partition))

    # -- records --------------------------------------------------------------------------------

    def poll(self, now: int) -> ConsumerRecords:
        """The records that were fetched, ``max_poll_records`` at most; may be none.

        :raises ConsumerError: What the application has to see, once for each time it was found.
        :raises NotServed: When a broker does not serve what a consumer needs.
        """
        if self._group is not None:
            self._group.polled(now)
        self.raise_errors(now)
        records: dict[Partition, list[ConsumerRecord]] = {}
        next_offsets: dict[Partition, OffsetAndMetadata] = {}
        left = self.config.max_poll_records
        for each in list(self._assignment):
            if left and each.buffer is not None and not each.is_paused:
                taken = self._take(each, left)
                left -= len(taken)
                assert each.position is not None
                if taken:
                    records[each.partition] = taken
                    next_offsets[each.partition] = each.position.to_commit()
                    self._assignment.move_last(each)
        return ConsumerRecords(by_partition=records, next_offsets=next_offsets)

    def raise_errors(self, now: int) -> None:
        """Raise what `poll` would raise."""
        self.raise_error()
        self._assignment.raise_problems(now)

    def raise_error(self) -> None:
        """Raise the error that concerns no single partition's position, if there is one.

        What waits for an `Operation` raises it too, because without the cluster none is done.
        """
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _take(self, assigned: AssignedPartition, count: int) -> list[ConsumerRecord]:
        buffer, position = assigned.buffer, assigned.position
        assert buffer is not None
        assert position is not None
        taken = buffer.take(count)
        if self.config.draft is not None:
            for each in taken:
                assigned.epochs.add(each.epoch, each.offset)
            if taken and self._metadata.see_epoch(assigned.partition, taken[-1].epoch):
                self._refresh.request()
        offset, epoch = buffer.position()
        assigned.advance(offset, epoch, self._timestamp(taken, position))
        if buffer.is_empty:
            assigned.buffer = None
        topic, index = assigned.partition.topic, assigned.partition.index
        return [to_record(topic, index, each) for each in taken]

    def _timestamp(self, taken: Sequence[FetchedRecord], position: Position) -> int:
        """Of the record before the next; for KIP-320's earlier draft alone."""
        if self.config.draft is None or not taken:
            return position.timestamp
        return taken[-1].timestamp

    # -- offsets --------------------------------------------------------------------------------

    @property
    def group_metadata(self) -> ConsumerGroupMetadata:
        """As what the consumer commits.

        :raises ValueError: Without a group.
        """
        return self._member.identity

    def commit(
        self, offsets: Mapping[Partition, OffsetAndMetadata] | None = None
    ) -> Operation[None]:
        """Commit offsets; None: the positions of all partitions that have a valid one.

        Fails with `CommitFailedError` and `RequestRefused`.

        :raises ValueError: Without a group.
        """
        if self._committed is None:
            raise ValueError(_NO_GROUP)
        if offsets is None:
            offsets = {
                each.partition: each.position.to_commit()
                for each in self._assignment
                if each.has_position and each.position is not None
            }
        return self._committed.commit({_without_id(p): at for p, at in offsets.items()})

    def committed(self, partitions: Iterable[Partition]) -> Operation[Committed]:
        """The committed offset of each partition; None where there is none.

        :raises ValueError: Without a group.
        """
        if self._committed is None:
            raise ValueError(_NO_GROUP)
        return self._committed.fetch(map(_without_id, partitions))

    def find_offsets(self, timestamps: Mapping[Partition, int]) -> Operation[Found]:
        """The first record of each partition at or after a timestamp in ms, or an `OffsetSpec`."""
        return self._lookups.find({_without_id(p): at for p, at in timestamps.items()})

    def leave(self) -> Operation[None]:
        """Leave the group, if the consumer is a member of one."""
        if self._group is None:
            operation: Operation[None] = Operation()
            operation.complete(None)
            return operation
        return self._group.leave()

    # -- inside ---------------------------------------------------------------------------------

    @property
    def _member(self) -> GroupProtocol:
        if self._group is None:
            raise ValueError(_NO_GROUP)
        return self._group

    def _topics(self) -> set[str]:
        topics = {each.topic for each in self._assignment.partitions | self._lookups.partitions}
        if self._group is not None and self._committed is not None:
            topics |= self._group.topics | self._committed.topics
        return topics

    def _run_refresh(self, turn: Turn) -> None:
        needed = self._assignment.partitions | self._lookups.partitions
        self._refresh.run(turn, has_leaders=self._metadata.has_leaders(needed))

    def _fail(self, error: Exception) -> None:
        """The next poll raises it."""
        if self._error is None:
            self._error = error


def _without_id(partition: Partition) -> Partition:
    """A partition as it is named in here: topics with new ids are met by their names."""
    return partition if partition.topic_id is None else replace(partition, topic_id=None)
