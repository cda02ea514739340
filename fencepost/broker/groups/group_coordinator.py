"""One partition of ``__consumer_offsets``: its groups, while this broker leads it.

Every change takes the same way: decide, append to the log, apply, and answer when the high
watermark has passed (acks=all). A request that changes nothing but may have seen what is not
committed yet waits for that.

One broker's part in group coordination: the shards of the partitions that it leads.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import Final, TypeVar

from fencepost.broker.coordinator.commit_queue import (
    CLIENT_ERRORS,
    CommitQueue,
    CoordinatorResult,
    PartitionLog,
)
from fencepost.broker.core.scheduler import Scheduler, Timer
from fencepost.broker.core.waits import Wait
from fencepost.broker.groups import offsets, rebalance
from fencepost.broker.groups.classic_group import ClassicGroup
from fencepost.broker.groups.classic_group_state import ClassicGroupState
from fencepost.broker.groups.group_config import GroupConfig
from fencepost.broker.groups.records import (
    CoordinatorRecord,
    GroupRecord,
    MalformedRecord,
    ReplayedState,
    decode,
    encode,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import Record, build_batch

T = TypeVar("T")


class GroupCoordinatorShard:
    """The groups of one partition. It loads at the end of the turn in which it is made."""

    def __init__(
        self, *, log: PartitionLog, scheduler: Scheduler, rng: Random, config: GroupConfig
    ) -> None:
        self.config = config
        self.scheduler = scheduler
        self.rng = rng
        self.loaded = False
        self.latest = ReplayedState()
        """Up to the log's end."""
        self.committed = ReplayedState()
        """Up to the high watermark."""
        self.groups: dict[str, ClassicGroup] = {}
        """Groups that have members, or that somebody has tried to join. The others are made from
        what is durable whenever they are looked at."""
        self._log = log
        self._closed = False
        self._commits = CommitQueue(
            log,
            scheduler,
            timeout_ms=config.offsets_commit_timeout_ms,
            on_commit=self.committed.replay,
        )
        self._sweep: Timer | None = None
        scheduler.soon(self._load)

    # -- the way of a change ---------------------------------------------------------------------

    def write(
        self, records: Sequence[CoordinatorRecord], done: Callable[[ErrorCode], None]
    ) -> None:
        """Append and apply; ``done`` is told NONE once they are committed, or why they are not."""
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
        self._commits.add(offset, records, done)

    def commit_result(
        self, decision: CoordinatorResult[T], refuse: Callable[[ErrorCode, T], T]
    ) -> T | Wait[T]:
        """The decision's response once its records are committed.

        :param refuse: Makes another response of it where they cannot be.
        """
        answer: Wait[T] = Wait()

        def done(error: ErrorCode) -> None:
            failed = error is not ErrorCode.NONE
            answer.complete(refuse(error, decision.response) if failed else decision.response)

        if decision.records:
            self.write(decision.records, done)
        else:
            self._commits.after_all(done)
        return answer if answer.result is None else answer.result

    def _batch(self, records: Sequence[CoordinatorRecord]) -> bytearray:
        now_ms = self.scheduler.now_ms()
        encoded = [encode(record, self.config.offset_value_version) for record in records]
        return build_batch(
            [Record(index, now_ms, key, value) for index, (key, value) in enumerate(encoded)]
        )

    def _replay(self, record: CoordinatorRecord) -> None:
        self.latest.replay(record)
        if isinstance(record, GroupRecord) and record.value is None:
            self.remove_group(record.group_id)

    # -- groups ----------------------------------------------------------------------------------

    def find(self, group_id: str) -> ClassicGroup | None:
        """A group as it is now, None where there is none."""
        group = self.groups.get(group_id)
        stored = self.latest.groups.get(group_id)
        if group is None and stored is not None:
            return ClassicGroup.restore(group_id, stored)
        return group

    def add_group(self, group: ClassicGroup) -> None:
        """Keep a group that is about to have members."""
        self.groups[group.group_id] = group

    def remove_group(self, group_id: str) -> None:
        """Forget what is not durable of a group."""
        group = self.groups.pop(group_id, None)
        if group is not None:
            rebalance.unload(group, self.scheduler.now_ms())

    def find_visible(self, group_id: str) -> ClassicGroup | None:
        """A group as others may see it: not before its record is committed."""
        stored = self.committed.groups.get(group_id)
        if stored is None:
            return None
        return self.groups.get(group_id) or ClassicGroup.restore(group_id, stored)

    def visible_groups(self) -> Iterator[ClassicGroup]:
        """Every group that others may see."""
        for group_id in list(self.committed.groups):
            group = self.find_visible(group_id)
            if group is not None:
                yield group

    # -- the lead --------------------------------------------------------------------------------

    def _load(self) -> None:
        """Replay the log."""
        if self._closed:
            return
        high_watermark = self._log.high_watermark
        uncommitted: list[CoordinatorRecord] = []
        end = -1
        for record in self._log.read_all():
            change = _decoded(record)
            if change is None:
                continue
            end = record.offset
            self.latest.replay(change)
            if end < high_watermark:
                self.committed.replay(change)
            else:
                uncommitted.append(change)
        if uncommitted:
            self._commits.add(end, uncommitted, None)
        self.loaded = True
        for group_id, stored in self.latest.groups.items():
            if stored.members:
                self._resume(ClassicGroup.restore(group_id, stored))
        self._sweep_later()

    def _resume(self, group: ClassicGroup) -> None:
        """A loaded group's members are given a session's time to show that they are alive."""
        self.add_group(group)
        for member in group.members.values():
            rebalance.expect_heartbeat(self, group, member)
        if len(group.members) > self.config.max_size:
            rebalance.prepare_rebalance(
                self, group, "the group is larger than group.max.size by now"
            )

    def close(self) -> None:
        """This broker does not lead the partition any more: whoever waits has to ask elsewhere."""
        self._closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        self._commits.close()
        for group_id in list(self.groups):
            self.remove_group(group_id)

    # -- what nobody needs any more ----------------------------------------------------------------

    def on_topics_deleted(self, topics: frozenset[str]) -> None:
        """Topics were deleted, and what was committed for them goes too."""
        records = list(offsets.tombstones_of_topics(self.latest, topics))
        if records:
            self.write(records, _ignore_error)

    def _sweep_later(self) -> None:
        due_ms = self.scheduler.now_ms() + self.config.offsets_retention_check_interval_ms
        self._sweep = self.scheduler.at(due_ms, self._sweep_expired)

    def _sweep_expired(self) -> None:
        """Delete expired offsets, and groups that are empty and have none left."""
        now_ms = self.scheduler.now_ms()
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
        self._sweep_later()


def _decoded(record: Record) -> CoordinatorRecord | None:
    """A record's change; None where it is of another kind of group, or of no coordinator at all."""
    if record.key is None:
        return None
    try:
        return decode(record.key, record.value)
    except MalformedRecord:
        return None


def _ignore_error(_error: ErrorCode) -> None:
    """Nobody waits: what could not be deleted now is tried again at the next sweep."""


OFFSETS_TOPIC: Final = "__consumer_offsets"


def java_hash(text: str) -> int:
    """Java's ``String.hashCode``, as an unsigned number: over UTF-16 units, modulo 2**32."""
    value = 0
    data = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(data), 2):
        value = (value * 31 + (data[at] << 8 | data[at + 1])) & 0xFFFFFFFF
    return value


def partition_of(group_id: str, partition_count: int) -> int:
    """The partition of ``__consumer_offsets`` that a group belongs to."""
    return (java_hash(group_id) & 0x7FFFFFFF) % partition_count


class GroupCoordinator:
    """The shards of one broker."""

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
        self.shards: dict[int, GroupCoordinatorShard] = {}
        """By partition of ``__consumer_offsets``."""
        self._scheduler = scheduler
        self._rng = rng
        self._partition_count = partition_count

    def on_elected(self, partition: int, log: PartitionLog) -> None:
        """This broker leads a partition: its groups are loaded at the end of the turn."""
        self.on_resigned(partition)
        self.shards[partition] = GroupCoordinatorShard(
            log=log, scheduler=self._scheduler, rng=self._rng, config=self.config
        )

    def on_resigned(self, partition: int) -> None:
        """This broker does not lead a partition any more."""
        shard = self.shards.pop(partition, None)
        if shard is not None:
            shard.close()

    def on_topics_deleted(self, topics: Iterable[str]) -> None:
        """Topics have gone, and what was committed for them goes too."""
        gone = frozenset(topics)
        for shard in self.shards.values():
            if gone and shard.loaded:
                shard.on_topics_deleted(gone)

    def shard_for(self, group_id: str) -> GroupCoordinatorShard | ErrorCode:
        """Where a group is coordinated, or why it cannot be here and now.

        NOT_COORDINATOR on every broker but one; COORDINATOR_LOAD_IN_PROGRESS for a moment there.
        """
        count = self._partition_count()
        shard = self.shards.get(partition_of(group_id, count)) if count else None
        if shard is None:
            return ErrorCode.NOT_COORDINATOR
        return shard if shard.loaded else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
