"""One partition of ``__consumer_offsets``: its groups, while this broker leads it.

Every change takes the same way: decide, append to the log, apply, and answer when the high
watermark has passed (acks=all). A request that changes nothing but may have seen what is not
committed yet waits for that.
"""

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import TypeVar

from fencepost.broker.groups import offsets, rebalance
from fencepost.broker.groups.config import GroupConfig
from fencepost.broker.groups.decision import Decision
from fencepost.broker.groups.durable import DurableState
from fencepost.broker.groups.group import ClassicGroup
from fencepost.broker.groups.partition_log import CLIENT_ERRORS, CommitQueue, PartitionLog
from fencepost.broker.groups.records import (
    CoordinatorRecord,
    GroupRecord,
    Malformed,
    decode,
    encode,
)
from fencepost.broker.groups.state import GroupState
from fencepost.broker.scheduler import Scheduler, Timer
from fencepost.broker.waits import Wait
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import Record, build_batch

T = TypeVar("T")


class Shard:
    """The groups of one partition. It loads at the end of the turn in which it is made."""

    def __init__(
        self, *, log: PartitionLog, scheduler: Scheduler, rng: Random, config: GroupConfig
    ) -> None:
        self.config = config
        self.scheduler = scheduler
        self.rng = rng
        self.loaded = False
        self.latest = DurableState()
        """Up to the log's end."""
        self.committed = DurableState()
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
            on_commit=self.committed.apply,
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
        except Malformed:
            done(ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        offset = self._log.append(batch)
        if isinstance(offset, ErrorCode):
            done(CLIENT_ERRORS.get(offset, offset))
            return
        for record in records:
            self._apply(record)
        self._commits.add(offset, records, done)

    def carry_out(self, decision: Decision[T], refuse: Callable[[ErrorCode, T], T]) -> T | Wait[T]:
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

    def _apply(self, record: CoordinatorRecord) -> None:
        self.latest.apply(record)
        if isinstance(record, GroupRecord) and record.value is None:
            self.drop(record.group_id)

    # -- groups ----------------------------------------------------------------------------------

    def find(self, group_id: str) -> ClassicGroup | None:
        """A group as it is now, None where there is none."""
        group = self.groups.get(group_id)
        stored = self.latest.groups.get(group_id)
        if group is None and stored is not None:
            return ClassicGroup.restore(group_id, stored)
        return group

    def hold(self, group: ClassicGroup) -> None:
        """Keep a group that is about to have members."""
        self.groups[group.group_id] = group

    def drop(self, group_id: str) -> None:
        """Forget what is not durable of a group."""
        group = self.groups.pop(group_id, None)
        if group is not None:
            rebalance.dissolve(group, self.scheduler.now_ms())

    def see(self, group_id: str) -> ClassicGroup | None:
        """A group as others may see it: not before its record is committed."""
        stored = self.committed.groups.get(group_id)
        if stored is None:
            return None
        return self.groups.get(group_id) or ClassicGroup.restore(group_id, stored)

    def visible(self) -> Iterator[ClassicGroup]:
        """Every group that others may see."""
        for group_id in list(self.committed.groups):
            group = self.see(group_id)
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
            self.latest.apply(change)
            if end < high_watermark:
                self.committed.apply(change)
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
        self.hold(group)
        for member in group.members.values():
            rebalance.expect_heartbeat(self, group, member)
        if len(group.members) > self.config.max_size:
            rebalance.prepare(self, group, "the group is larger than group.max.size by now")

    def close(self) -> None:
        """This broker does not lead the partition any more: whoever waits has to ask elsewhere."""
        self._closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        self._commits.close()
        for group_id in list(self.groups):
            self.drop(group_id)

    # -- what nobody needs any more ----------------------------------------------------------------

    def forget_topics(self, topics: frozenset[str]) -> None:
        """Topics were deleted, and what was committed for them goes too."""
        records = list(offsets.all_of_topics(self.latest, topics))
        if records:
            self.write(records, _ignore)

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
            records += offsets.expired(self.latest, group, self.config, now_ms)
            kept = len(list(offsets.all_of_group(self.latest, group_id))) - len(records)
            if not kept and group.state is GroupState.EMPTY:
                records.append(GroupRecord(group_id=group_id, value=None))
            if records:
                self.write(records, _ignore)
        self._sweep_later()


def _decoded(record: Record) -> CoordinatorRecord | None:
    """A record's change; None where it is of another kind of group, or of no coordinator at all."""
    if record.key is None:
        return None
    try:
        return decode(record.key, record.value)
    except Malformed:
        return None


def _ignore(_error: ErrorCode) -> None:
    """Nobody waits: what could not be deleted now is tried again at the next sweep."""
