"""The group coordinator of one broker, and its shards: the partitions of ``__consumer_offsets``."""

from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Final

from fencepost.broker.coordinator.commit_queue import PartitionLog
from fencepost.broker.coordinator.shard import (
    CoordinatorRuntime,
    CoordinatorShard,
    EndTransaction,
    LoggedRecord,
)
from fencepost.broker.core.scheduler import Scheduler, Timer
from fencepost.broker.core.waits import Wait
from fencepost.broker.groups import offsets, rebalance
from fencepost.broker.groups.classic_group import ClassicGroup, ClassicGroupState
from fencepost.broker.groups.group_config import GroupConfig
from fencepost.broker.groups.records import (
    CoordinatorRecord,
    GroupRecord,
    ReplayedState,
    record_serde,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.transaction_markers import TransactionMarker

OFFSETS_TOPIC: Final = "__consumer_offsets"
_MARKER_ERRORS: Final = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.REQUEST_TIMED_OUT,
}
"""What WriteTxnMarkers answers where a marker is not committed; other errors are the log's."""


class GroupCoordinatorShard(CoordinatorShard[ReplayedState, CoordinatorRecord]):
    """The groups of one partition."""

    def __init__(
        self, *, log: PartitionLog, scheduler: Scheduler, rng: Random, config: GroupConfig
    ) -> None:
        super().__init__(
            log=log,
            scheduler=scheduler,
            serde=record_serde(config.offset_value_version),
            new_state=ReplayedState,
            commit_timeout_ms=config.offsets_commit_timeout_ms,
        )
        self.config = config
        self.rng = rng
        self.groups: dict[str, ClassicGroup] = {}
        """Groups that have members, or that a client has tried to join. The others are restored
        from the replayed state for each request."""
        self._expiry: Timer | None = None

    # -- groups ----------------------------------------------------------------------------------

    def find(self, group_id: str) -> ClassicGroup | None:
        """A group in its present state, or None."""
        group = self.groups.get(group_id)
        stored = self.latest.groups.get(group_id)
        if group is None and stored is not None:
            return ClassicGroup.restore(group_id, stored)
        return group

    def add_group(self, group: ClassicGroup) -> None:
        """Keep a group in memory, because it gets members."""
        self.groups[group.group_id] = group

    def remove_group(self, group_id: str) -> None:
        """Drop what is only in memory of a group, and end its parked requests."""
        group = self.groups.pop(group_id, None)
        if group is not None:
            rebalance.unload(group, self.scheduler.wall_ms())

    def find_visible(self, group_id: str) -> ClassicGroup | None:
        """A group for ListGroups and DescribeGroups, which see it when its record is committed."""
        stored = self.committed.groups.get(group_id)
        if stored is None:
            return None
        return self.groups.get(group_id) or ClassicGroup.restore(group_id, stored)

    def visible_groups(self) -> Iterator[ClassicGroup]:
        """Every group whose record is committed."""
        for group_id in list(self.committed.groups):
            group = self.find_visible(group_id)
            if group is not None:
                yield group

    # -- replay ----------------------------------------------------------------------------------

    def replay(self, state: ReplayedState, logged: LoggedRecord[CoordinatorRecord]) -> None:
        """A transaction's offset is pending until its marker."""
        state.replay_logged(logged)

    def replay_marker(self, state: ReplayedState, marker: EndTransaction) -> None:
        """The offsets of the transaction become the groups', or are dropped."""
        state.end_transaction(marker)

    # -- load and unload -------------------------------------------------------------------------

    def on_loaded(self) -> None:
        """Restore the groups that have members, and start the timer of the offsets' expiry."""
        for group_id, stored in self.latest.groups.items():
            if stored.members:
                self._resume(ClassicGroup.restore(group_id, stored))
        self._schedule_expiry()

    def _resume(self, group: ClassicGroup) -> None:
        """Give each member of a loaded group one session timeout to send a request."""
        self.add_group(group)
        for member in group.members.values():
            rebalance.expect_heartbeat(self, group, member)
        if len(group.members) > self.config.max_size:
            rebalance.prepare_rebalance(
                self, group, "the group is larger than group.max.size by now"
            )

    def on_replayed(self, record: CoordinatorRecord) -> None:
        """A deleted group leaves the memory as well."""
        if isinstance(record, GroupRecord) and record.value is None:
            self.remove_group(record.group_id)

    def on_unloaded(self) -> None:
        """Cancel the timers and end the parked requests of all groups."""
        if self._expiry is not None:
            self._expiry.end()
        for group_id in list(self.groups):
            self.remove_group(group_id)

    # -- deletion --------------------------------------------------------------------------------

    def on_topics_deleted(self, topics: frozenset[str]) -> None:
        """Delete the committed and pending offsets of deleted topics."""
        records = list(offsets.tombstones_of_topics(self.latest, topics))
        if records:
            self.write(records, _ignore_error)

    def _schedule_expiry(self) -> None:
        due_ms = self.scheduler.now_ms() + self.config.offsets_retention_check_interval_ms
        self._expiry = self.scheduler.at(due_ms, self._delete_expired)

    def _delete_expired(self) -> None:
        """Delete expired offsets, and empty groups that have no offsets left, pending or not."""
        now_ms = self.scheduler.wall_ms()
        for group_id in list(self.latest.groups):
            group = self.find(group_id)
            if group is None:
                continue
            records: list[CoordinatorRecord] = []
            records += offsets.tombstones_of_expired(self.latest, group, self.config, now_ms)
            kept = len(list(offsets.tombstones_of_group(self.latest, group_id))) - len(records)
            if not kept and group.state is ClassicGroupState.EMPTY:
                records.append(GroupRecord(group_id=group_id, value=None))
            if records:
                self.write(records, _ignore_error)
        self._schedule_expiry()


def _ignore_error(_error: ErrorCode) -> None:
    """No request waits for it: the next check of the retention tries again."""


class GroupCoordinator:
    """One broker's part in group coordination."""

    def __init__(
        self,
        *,
        scheduler: Scheduler,
        rng: Random,
        config: GroupConfig,
        partition_count: Callable[[], int],
    ) -> None:
        """:param partition_count: Of ``__consumer_offsets`` in this broker's view; 0 without it."""
        self.config = config
        self.runtime: CoordinatorRuntime[GroupCoordinatorShard] = CoordinatorRuntime(
            OFFSETS_TOPIC,
            partition_count=partition_count,
            new_shard=lambda log: GroupCoordinatorShard(
                log=log, scheduler=scheduler, rng=rng, config=config
            ),
        )

    def on_topics_deleted(self, topics: Iterable[str]) -> None:
        """Delete the committed offsets of deleted topics."""
        deleted = frozenset(topics)
        for shard in self.runtime.shards.values():
            if deleted and shard.loaded:
                shard.on_topics_deleted(deleted)

    def complete_transaction(
        self, partition: int, marker: TransactionMarker
    ) -> ErrorCode | Wait[ErrorCode]:
        """End a transaction in a partition of ``__consumer_offsets``, for WriteTxnMarkers.

        The transaction coordinator repeats what is answered with NOT_LEADER_OR_FOLLOWER, which is
        Kafka's answer while the partition's groups have no coordinator here, and what is answered
        with REQUEST_TIMED_OUT.

        :returns: NONE once the marker is committed, or why it is not.
        """
        shard = self.runtime.shards.get(partition)
        if shard is None or not shard.loaded:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        answer: Wait[ErrorCode] = Wait()
        shard.complete_transaction(
            marker,
            lambda error: answer.complete(_MARKER_ERRORS.get(error, error)),
            timeout_ms=self.config.request_timeout_ms,
        )
        return answer if answer.result is None else answer.result

    def shard_for(self, group_id: str) -> GroupCoordinatorShard | ErrorCode:
        """The shard of a group, or an error: see `CoordinatorRuntime.shard_for`.

        The empty group id is one like any other: clients may commit, read and delete under it.
        """
        return self.runtime.shard_for(group_id)

    def shard_for_named_group(self, group_id: str) -> GroupCoordinatorShard | ErrorCode:
        """The shard of a group; INVALID_GROUP_ID for the empty id, which no member can use."""
        return self.runtime.shard_for(group_id) if group_id else ErrorCode.INVALID_GROUP_ID
