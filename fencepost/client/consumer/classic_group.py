"""A member of a classic group, whose leader assigns the partitions by range (KIP-62, KIP-394).

- UNJOINED: no topics are subscribed, or the member has left.
- REVOKING: the group rebalances. The application lets go of all partitions, and commits before it
  does; heartbeats go on meanwhile.
- JOINING: JoinGroup is sent until it is answered without an error.
- SYNCING: SyncGroup is sent, by the leader with the assignment of all members, for which it needs
  the metadata of all their topics.
- STABLE: heartbeats are sent. They say when the group rebalances; the leader also has it rebalance
  when the partitions of a topic have changed.

A member that did not poll for ``max_poll_interval_ms`` leaves, and joins again when it polls.
"""

from collections import deque
from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeVar

from msgspec.structs import replace

from fencepost.client.consumer.cluster_metadata import ClusterMetadata
from fencepost.client.consumer.config import ConsumerConfig
from fencepost.client.consumer.coordinator import LOST_ERRORS, Coordinator
from fencepost.client.consumer.errors import RequestRefused
from fencepost.client.consumer.group_messages import (
    assign,
    heartbeat_request,
    join_request,
    leave_request,
    sync_request,
)
from fencepost.client.consumer.group_protocol import Assign, Revoke
from fencepost.client.consumer.nodes import Nodes
from fencepost.client.consumer.operations import Operation
from fencepost.client.consumer.requests import Backoff, Channel, Request, Retry, Turn, typed
from fencepost.client.consumer_protocol import decode_assignment, decode_subscription
from fencepost.client.errors import KafkaClientError, MalformedAnswer
from fencepost.client.model import ConsumerGroupMetadata, Partition
from fencepost.protocol.apis import BY_NAME, Api
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.heartbeat import HeartbeatResponse
from fencepost.protocol.messages.join_group import JoinGroupResponse
from fencepost.protocol.messages.leave_group import LeaveGroupResponse
from fencepost.protocol.messages.sync_group import SyncGroupRequestAssignment, SyncGroupResponse

R = TypeVar("R")
_JOIN: Final = BY_NAME["join_group"]
_SYNC: Final = BY_NAME["sync_group"]
_HEARTBEAT: Final = BY_NAME["heartbeat"]
_LEAVE: Final = BY_NAME["leave_group"]
_JOIN_GRACE_MS: Final = 5_000
"""How much longer than the rebalance timeout a broker may take for JoinGroup."""
_WAIT_ERRORS: Final = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REBALANCE_IN_PROGRESS}
)
_LOST_ERRORS: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})
"""Errors that say that the partitions are other members' by now."""


class MemberState(StrEnum):
    """A state of the member."""

    UNJOINED = "unjoined"
    REVOKING = "revoking"
    JOINING = "joining"
    SYNCING = "syncing"
    STABLE = "stable"


TRANSITIONS: Final[Mapping[MemberState, frozenset[MemberState]]] = MappingProxyType(
    {
        MemberState.UNJOINED: frozenset({MemberState.JOINING, MemberState.UNJOINED}),
        MemberState.REVOKING: frozenset({MemberState.JOINING, MemberState.UNJOINED}),
        MemberState.JOINING: frozenset({MemberState.SYNCING, MemberState.UNJOINED}),
        MemberState.SYNCING: frozenset(
            {MemberState.STABLE, MemberState.JOINING, MemberState.UNJOINED}
        ),
        MemberState.STABLE: frozenset(
            {MemberState.REVOKING, MemberState.JOINING, MemberState.UNJOINED}
        ),
    }
)
"""The states that may follow each state."""


class ClassicGroup:
    """A member, from its subscription until it leaves; see `GroupProtocol`.

    :param fail: Takes an error after which the consumer cannot go on.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        metadata: ClusterMetadata,
        nodes: Nodes,
        config: ConsumerConfig,
        fail: Callable[[Exception], None],
    ) -> None:
        self._coordinator = coordinator
        self._metadata = metadata
        self._nodes = nodes
        self._config = config
        self._fail = fail
        self.state = MemberState.UNJOINED
        self._nobody = ConsumerGroupMetadata(
            group=coordinator.group, instance=config.group_instance_id
        )
        self.identity = self._nobody
        self._subscription: frozenset[str] = frozenset()
        self._partitions: frozenset[Partition] = frozenset()
        self._members: dict[str, list[str]] | None = None
        """The topics of each member; for the leader alone."""
        self._counts: dict[str, int | None] = {}
        """Of the partitions of each topic that the leader has assigned."""
        self._events: deque[Revoke | Assign] = deque()
        self._pending: object | None = None
        """The request that is under way; answers to others come too late."""
        self._leaving: list[tuple[str, Operation[None]]] = []
        """Member ids that leave."""
        self._polled_at: int | None = None
        self._heartbeat_at = 0
        backoff = Backoff(initial_ms=config.retry_backoff_ms, max_ms=config.retry_backoff_max_ms)
        self._retry = Retry(backoff)

    # -- the consumer's side --------------------------------------------------------------------

    @property
    def topics(self) -> set[str]:
        """Of which metadata is needed: the member's, and as the leader those of all members."""
        return {*self._subscription, *(t for each in (self._members or {}).values() for t in each)}

    def subscribe(self, topics: frozenset[str]) -> None:
        """Join for these topics; join again where they have changed."""
        if topics == self._subscription:
            return
        self._subscription = topics
        if self.state is MemberState.UNJOINED:
            self._enter(MemberState.JOINING)
        else:
            self._rejoin()

    def next_event(self) -> Revoke | Assign | None:
        """What happened to the assignment, the oldest event first; None: nothing more."""
        return self._events.popleft() if self._events else None

    def polled(self, now: int) -> None:
        """The application has polled."""
        self._polled_at = now

    def refused(self, code: int) -> None:
        """A commit was refused with an error of this member or its generation."""
        is_lost = code != ErrorCode.REBALANCE_IN_PROGRESS
        if is_lost:
            self._forget_generation(code)
        self._rejoin(is_lost=is_lost)

    def leave(self) -> Operation[None]:
        """Leave; done when the coordinator has answered, or did not. A static member stays."""
        operation: Operation[None] = Operation()
        if self.identity.member_id and self.identity.instance is None:
            self._leaving.append((self.identity.member_id, operation))
        else:
            operation.complete(None)
        self._subscription = frozenset()
        self._partitions = frozenset()
        self._events.clear()
        self._forget_identity()
        self._enter(MemberState.UNJOINED)
        return operation

    # -- turns ----------------------------------------------------------------------------------

    def run(self, turn: Turn) -> None:
        """Send the request that is due."""
        for member_id, operation in self._leaving:
            self._send_leave(member_id, operation, turn)
        self._leaving.clear()
        if self.state is MemberState.UNJOINED:
            return
        if self.state is MemberState.STABLE:
            self._check_poll(turn)
            self._check_topics()
        if self._pending is not None or not turn.is_due(self._retry.at):
            return
        match self.state:
            case MemberState.JOINING:
                self._send_join(turn)
            case MemberState.SYNCING:
                self._send_sync(turn)
            case _ if self.identity.member_id and turn.is_due(self._heartbeat_at):
                self._send_heartbeat(turn)

    def _check_poll(self, turn: Turn) -> None:
        if self._polled_at is None:
            self._polled_at = turn.now
        if not turn.is_due(self._polled_at + self._config.max_poll_interval_ms):
            return
        if self.identity.instance is None:
            self._send_leave(self.identity.member_id, Operation(), turn)
        self._forget_identity()
        self._revoke(is_lost=True)

    def _check_topics(self) -> None:
        if self._members is not None and self._counts != self._current_counts():
            self._rejoin()

    def _current_counts(self) -> dict[str, int | None]:
        return {topic: self._metadata.partition_count(topic) for topic in self.topics}

    # -- states ---------------------------------------------------------------------------------

    def _enter(self, state: MemberState) -> None:
        assert state in TRANSITIONS[self.state], f"{self.state} to {state}"
        self.state = state
        self._pending = None
        self._retry.reset()
        if state is not MemberState.SYNCING and state is not MemberState.STABLE:
            self._members = None

    def _rejoin(self, *, is_lost: bool = False) -> None:
        """Take part in a rebalance, unless that is under way."""
        if self.state is MemberState.STABLE:
            self._revoke(is_lost=is_lost)
        elif self.state is MemberState.SYNCING:
            self._enter(MemberState.JOINING)
        elif self.state is MemberState.JOINING:
            self._pending = None  # it is of another subscription, or of another member

    def _revoke(self, *, is_lost: bool) -> None:
        if not self._partitions:
            self._enter(MemberState.JOINING)
            return
        self._enter(MemberState.REVOKING)

        def let_go() -> None:
            if self.state is MemberState.REVOKING:
                self._partitions = frozenset()
                self._enter(MemberState.JOINING)

        self._events.append(Revoke(partitions=self._partitions, is_lost=is_lost, let_go=let_go))

    def _forget_identity(self) -> None:
        self.identity = self._nobody

    def _forget_generation(self, code: int) -> None:
        """Join again, with another member id only where this one is not known any more."""
        known = "" if code == ErrorCode.UNKNOWN_MEMBER_ID else self.identity.member_id
        self.identity = replace(self._nobody, member_id=known)

    # -- JoinGroup ------------------------------------------------------------------------------

    def _send_join(self, turn: Turn) -> None:
        def answered(response: JoinGroupResponse, now: int) -> None:
            if response.error_code == ErrorCode.NONE:
                self._joined(response)
            elif response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self.identity = replace(self._nobody, member_id=response.member_id)
            else:
                self._refused_by_coordinator(_JOIN, response.error_code, now)

        message = join_request(self.identity, self._subscription, self._config)
        timeout_ms = self._config.max_poll_interval_ms + _JOIN_GRACE_MS
        timeout_ms = max(timeout_ms, self._config.request_timeout_ms)
        self._send(_JOIN, message, JoinGroupResponse, answered, turn, timeout_ms=timeout_ms)

    def _joined(self, response: JoinGroupResponse) -> None:
        self._enter(MemberState.SYNCING)
        self.identity = replace(
            self._nobody, member_id=response.member_id, generation=response.generation_id
        )
        if response.leader != response.member_id or response.skip_assignment:
            return
        try:
            self._members = {
                each.member_id: decode_subscription(each.metadata) for each in response.members
            }
        except MalformedAnswer as error:
            self._enter(MemberState.JOINING)
            self._fail(error)

    # -- SyncGroup ------------------------------------------------------------------------------

    def _send_sync(self, turn: Turn) -> None:
        assignments: list[SyncGroupRequestAssignment] = []
        if self._members is not None:
            counts = self._current_counts()
            unknown = {topic for topic, count in counts.items() if count is None}
            if not unknown <= self._metadata.refused.keys():
                return  # metadata of new topics is on its way
            self._counts = counts
            known = {topic: count for topic, count in counts.items() if count is not None}
            assignments = assign(self._members, known)

        def answered(response: SyncGroupResponse, now: int) -> None:
            if response.error_code == ErrorCode.NONE:
                self._synced(response, now)
            elif response.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
                self._enter(MemberState.JOINING)
            else:
                self._refused_by_coordinator(_SYNC, response.error_code, now)

        message = sync_request(self.identity, assignments)
        timeout_ms = self._config.max_poll_interval_ms + _JOIN_GRACE_MS
        self._send(_SYNC, message, SyncGroupResponse, answered, turn, timeout_ms=timeout_ms)

    def _synced(self, response: SyncGroupResponse, now: int) -> None:
        self._enter(MemberState.STABLE)
        self._heartbeat_at = now + self._config.heartbeat_interval_ms
        try:
            assigned = decode_assignment(response.assignment)
        except MalformedAnswer as error:
            self._fail(error)
            assigned = []
        self._partitions = frozenset(
            Partition(topic=topic, index=index) for topic, index in assigned
        )
        self._events.append(Assign(partitions=self._partitions))

    # -- Heartbeat and LeaveGroup ---------------------------------------------------------------

    def _send_heartbeat(self, turn: Turn) -> None:
        def answered(response: HeartbeatResponse, now: int) -> None:
            self._heartbeat_at = now + self._config.heartbeat_interval_ms
            if response.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
                self._rejoin()
            elif response.error_code != ErrorCode.NONE:
                self._refused_by_coordinator(_HEARTBEAT, response.error_code, now)

        message = heartbeat_request(self.identity)
        self._send(_HEARTBEAT, message, HeartbeatResponse, answered, turn)

    def _send_leave(self, member_id: str, operation: Operation[None], turn: Turn) -> None:
        node = self._coordinator.node(turn)
        version = None if node is None else self._nodes.version(node, _LEAVE)
        if node is None or version is None:
            operation.complete(None)  # the session of the member runs out
            return

        def left(_: object, _now: int) -> None:
            operation.complete(None)

        turn.send(
            Request(
                node=node,
                channel=Channel.GROUP,
                api=_LEAVE,
                version=version,
                message=leave_request(self._coordinator.group, member_id, version),
                timeout_ms=self._config.request_timeout_ms,
                on_answer=typed(LeaveGroupResponse, left),
                on_failure=left,
            )
        )

    # -- what they share ------------------------------------------------------------------------

    def _send(
        self,
        api: Api,
        message: object,
        answer: type[R],
        handle: Callable[[R, int], None],
        turn: Turn,
        *,
        timeout_ms: int | None = None,
    ) -> None:
        """Send to the coordinator, if it is known; the answer counts unless the state changes."""
        node = self._coordinator.node(turn)
        version = None if node is None else self._nodes.version(node, api)
        if node is None or version is None:
            return
        token = self._pending = object()

        def answered(response: R, now: int) -> None:
            if self._pending is token:
                self._pending = None
                handle(response, now)

        def failed(_error: KafkaClientError, now: int) -> None:
            self._coordinator.lost()
            if self._pending is token:
                self._pending = None
                self._retry.pause(now)

        turn.send(
            Request(
                node=node,
                channel=Channel.GROUP,
                api=api,
                version=version,
                message=message,
                timeout_ms=self._config.request_timeout_ms if timeout_ms is None else timeout_ms,
                on_answer=typed(answer, answered),
                on_failure=failed,
            )
        )

    def _refused_by_coordinator(self, api: Api, code: int, now: int) -> None:
        """An error of any of the requests: join again as one, wait, or tell the application."""
        if code in _LOST_ERRORS:
            self._forget_generation(code)
            self._rejoin(is_lost=True)
            return
        self._retry.pause(now)
        if code in LOST_ERRORS:
            self._coordinator.lost()
        elif code not in _WAIT_ERRORS:
            self._fail(RequestRefused(f"{api.title} of {self.identity.group}", code))
