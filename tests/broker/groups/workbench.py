"""One shard on a log that commits when the test says so, with short requests."""

from __future__ import annotations

from random import Random
from typing import TypedDict, Unpack

from fencepost.broker.coordinator.shard import TransactionalProducer
from fencepost.broker.core.scheduler import ManualClock, Scheduler, advance
from fencepost.broker.core.waits import Wait
from fencepost.broker.groups import requests
from fencepost.broker.groups.classic_group import ClassicGroup
from fencepost.broker.groups.classic_membership import JoinAttempt
from fencepost.broker.groups.group_config import GroupConfig
from fencepost.broker.groups.group_coordinator import GroupCoordinatorShard
from fencepost.broker.groups.offsets import Commit, PartitionCommit
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.heartbeat import HeartbeatRequest
from fencepost.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from fencepost.protocol.messages.leave_group import MemberIdentity, MemberResponse
from fencepost.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from fencepost.protocol.transaction_markers import TransactionMarker
from tests.broker.groups.scripts import subscription
from tests.broker.groups.talk import Message
from tests.harness.fake_log import FakeLog

NOW_MS = 1_700_000_000_000
SESSION_MS = 10_000
MARKER_TIMEOUT_MS = 30_000
REBALANCE_MS = 60_000


class CommitFields(TypedDict, total=False):
    """What tests change of a commit; see `new_commit`."""

    group: str
    generation: int
    member_id: str
    instance: str | None
    topic: str
    partition: int
    metadata: str | None
    epoch: int
    retention_ms: int


def new_commit(
    offset: int,
    missing_group_error: ErrorCode,
    *,
    group: str = "g",
    generation: int = -1,
    member_id: str = "",
    instance: str | None = None,
    topic: str = "t",
    partition: int = 0,
    metadata: str | None = "md",
    epoch: int = 3,
    retention_ms: int = -1,
) -> Commit:
    """One offset of a group."""
    return Commit(
        group_id=group,
        generation=generation,
        member_id=member_id,
        group_instance_id=instance,
        retention_time_ms=retention_ms,
        partitions=(
            PartitionCommit(
                topic=topic,
                topic_id=None,
                partition=partition,
                offset=offset,
                leader_epoch=epoch,
                metadata=metadata,
            ),
        ),
        missing_group_error=missing_group_error,
    )


class Workbench:
    """One shard, one clock."""

    def __init__(
        self,
        config: GroupConfig | None = None,
        *,
        log: FakeLog | None = None,
        now_ms: int = NOW_MS,
        seed: int = 1,
    ) -> None:
        self.clock = ManualClock(now_ms)
        self.scheduler = Scheduler(self.clock)
        self.log = log or FakeLog()
        self.config = config or GroupConfig(initial_rebalance_delay_ms=0)
        self.shard = GroupCoordinatorShard(
            log=self.log, scheduler=self.scheduler, rng=Random(seed), config=self.config
        )
        self.shard.begin_load()
        self.scheduler.run_due()

    def advance(self, by_ms: int) -> None:
        advance(self.scheduler, self.clock, by_ms)

    def group(self, group_id: str = "g") -> ClassicGroup:
        group = self.shard.find(group_id)
        assert group is not None
        return group

    def join(
        self,
        member_id: str = "",
        *,
        group: str = "g",
        version: int = 9,
        instance: str | None = None,
        protocols: tuple[str, ...] = ("range",),
        topics: tuple[str, ...] = ("t",),
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        client_id: str = "c",
        reason: str | None = None,
    ) -> Wait[JoinGroupResponse]:
        answer: Wait[JoinGroupResponse] = Wait()
        request = JoinGroupRequest(
            group_id=group,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=tuple(
                JoinGroupRequestProtocol(name=name, metadata=subscription(*topics))
                for name in protocols
            ),
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            reason=reason,
        )
        joining = JoinAttempt(
            request=request,
            rebalance_timeout_ms=rebalance_ms,
            client_id=client_id,
            client_host="/127.0.0.1",
            member_id_required=version >= 4,
            can_skip_assignment=version >= 9,
            answer=answer,
        )
        requests.join(self.shard, joining)
        self.scheduler.run_due()
        return answer

    def enter(self, *, group: str = "g", **options: Message) -> tuple[str, Wait[JoinGroupResponse]]:
        """Join as a new member that gets its id first: that id, and the second response."""
        refused = result_of(self.join(group=group, **options))
        assert refused.error_code == ErrorCode.MEMBER_ID_REQUIRED
        member_id = refused.member_id
        return member_id, self.join(member_id, group=group, **options)

    def sync(
        self,
        member_id: str,
        generation: int,
        assign: dict[str, bytes] | None = None,
        *,
        group: str = "g",
        instance: str | None = None,
        protocol_name: str | None = None,
        protocol_type: str | None = None,
    ) -> Wait[SyncGroupResponse]:
        answer: Wait[SyncGroupResponse] = Wait()
        request = SyncGroupRequest(
            group_id=group,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            protocol_name=protocol_name,
            protocol_type=protocol_type,
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=to, assignment=part)
                for to, part in (assign or {}).items()
            ),
        )
        requests.sync(self.shard, request, answer)
        self.scheduler.run_due()
        return answer

    def stable(self, count: int = 1, *, group: str = "g", **options: Message) -> list[str]:
        """A stable group with members of its own; the leader's id comes first."""
        ids = [result_of(self.join(group=group, **options)).member_id for _ in range(count)]
        answers = [self.join(member_id, group=group, **options) for member_id in ids]
        if count > 1:
            # The first was alone in a generation before the others joined.
            answers[0] = self.join(ids[0], group=group, **options)
        generation = result_of(answers[0]).generation_id
        waiting = [self.sync(member_id, generation, group=group) for member_id in ids[1:]]
        parts = {member_id: member_id.encode() for member_id in ids}
        assert result_of(self.sync(ids[0], generation, parts, group=group)).error_code == 0
        assert all(result_of(each).error_code == 0 for each in waiting)
        return ids

    def heartbeat(
        self, member_id: str, generation: int, *, group: str = "g", instance: str | None = None
    ) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=group,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
        )
        code = requests.heartbeat(self.shard, request)
        assert isinstance(code, ErrorCode)
        return code

    def leave(
        self, *members: tuple[str, str | None], group: str = "g"
    ) -> tuple[MemberResponse, ...]:
        identities = tuple(
            MemberIdentity(member_id=member_id, group_instance_id=instance)
            for member_id, instance in members
        )
        left = requests.leave(self.shard, group, identities)
        self.scheduler.run_due()
        return () if isinstance(left, Wait) else left.members

    def commit(
        self, offset: int = 5, **given: Unpack[CommitFields]
    ) -> requests.Codes | Wait[requests.Codes]:
        commit = new_commit(offset, ErrorCode.GROUP_ID_NOT_FOUND, **given)
        return requests.commit(self.shard, commit)

    def commit_in_transaction(
        self, offset: int = 5, *, producer: int = 7, **given: Unpack[CommitFields]
    ) -> requests.Codes | Wait[requests.Codes]:
        commit = new_commit(offset, ErrorCode.ILLEGAL_GENERATION, **given)
        return requests.commit_in_transaction(
            self.shard, commit, TransactionalProducer(producer, 0)
        )

    def end_transaction(self, *, committed: bool, producer: int = 7) -> list[ErrorCode]:
        """Write a marker; the list has the answer when there is one."""
        answers: list[ErrorCode] = []
        marker = TransactionMarker(
            producer_id=producer,
            producer_epoch=1,
            coordinator_epoch=0,
            committed=committed,
            transaction_version=2,
        )
        self.shard.complete_transaction(marker, answers.append, timeout_ms=MARKER_TIMEOUT_MS)
        return answers

    def after_failover(self, config: GroupConfig | None = None) -> Workbench:
        """The shard as another broker loads it from the same log; this one is closed."""
        self.shard.close()
        return Workbench(config or self.config, log=self.log.copy(), now_ms=self.clock.now_ms())


def result_of(answer: Wait[JoinGroupResponse] | Wait[SyncGroupResponse]) -> Message:
    """The response, which must not wait."""
    assert answer.done, "it waits"
    assert answer.result is not None
    return answer.result
