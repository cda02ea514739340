"""One classic group: its members, its protocol, its states and the transitions between them.

A group is EMPTY until a member joins, and again when the last one has left; a group that only
commits offsets (a "simple" group) is always EMPTY. A member that joins, leaves, misses its session
timeout, or rejoins with another subscription begins a rebalance:

PREPARING_REBALANCE
    Every member has to join (again). JoinGroup requests are parked until all have joined, or until
    the largest rebalance timeout among the members has passed; dynamic members that did not join
    are removed, static ones stay (KIP-345). A group that was EMPTY waits
    ``group.initial.rebalance.delay.ms`` instead, and again while new members join, at most the
    rebalance timeout (KIP-134). Heartbeats are answered REBALANCE_IN_PROGRESS; offsets of the old
    generation can still be committed.
COMPLETING_REBALANCE
    A new generation: the protocol is selected and the JoinGroup requests are answered; the leader
    has the others' subscriptions. SyncGroup requests are parked until the leader's brings the
    assignment and its record is committed. Members that have not synced within the rebalance
    timeout are removed, and another rebalance begins. Offsets cannot be committed.
STABLE
    Each member has its assignment, and keeps it by heartbeats. A follower that joins with unchanged
    protocols is answered with the present generation; the leader's join always begins a rebalance,
    because only the leader sees that a topic has changed. A static member that returns without a
    member id replaces its old self without a rebalance if the selected protocol stays the same.
DEAD
    This broker does not lead the group's partition any more. Parked requests are answered
    NOT_COORDINATOR, and the group object is dropped.

A group that is loaded from the log is STABLE, or EMPTY if it has no members: the states between
write no records.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Final

from fencepost.broker.core.scheduler import Timer
from fencepost.broker.groups.classic_group_member import (
    ClassicGroupMember,
    MalformedSubscription,
    subscribed_topics,
)
from fencepost.broker.groups.records import StoredGroup
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.join_group import JoinGroupResponse
from fencepost.protocol.messages.sync_group import SyncGroupResponse


class ClassicGroupState(Enum):
    """A state; the value is its name in DescribeGroups and ListGroups."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


VALID_PREVIOUS_STATES: Final[Mapping[ClassicGroupState, frozenset[ClassicGroupState]]] = {
    ClassicGroupState.EMPTY: frozenset({ClassicGroupState.PREPARING_REBALANCE}),
    ClassicGroupState.PREPARING_REBALANCE: frozenset(
        {ClassicGroupState.EMPTY, ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.STABLE}
    ),
    ClassicGroupState.COMPLETING_REBALANCE: frozenset({ClassicGroupState.PREPARING_REBALANCE}),
    ClassicGroupState.STABLE: frozenset({ClassicGroupState.COMPLETING_REBALANCE}),
    ClassicGroupState.DEAD: frozenset(ClassicGroupState),
}
"""The states that each state can follow."""


def is_valid_transition(before: ClassicGroupState, after: ClassicGroupState) -> bool:
    """Whether a group may go from one state to the other."""
    return before in VALID_PREVIOUS_STATES[after]


CONSUMER_PROTOCOL_TYPE: Final = "consumer"
"""The protocol type whose metadata the coordinator can read."""


class ClassicGroup:
    """A group in memory. Its last generation is in its record as well, and survives a failover."""

    __slots__ = (
        "generation",
        "group_id",
        "join_timer",
        "leader_id",
        "members",
        "new_member_added",
        "pending_joins",
        "pending_syncs",
        "previous_state",
        "protocol",
        "protocol_type",
        "rebalance_reason",
        "state",
        "state_timestamp_ms",
        "static_members",
        "subscribed",
        "sync_timer",
    )

    def __init__(self, group_id: str, *, state_timestamp_ms: int = -1) -> None:
        self.group_id = group_id
        self.state = ClassicGroupState.EMPTY
        self.previous_state = ClassicGroupState.DEAD
        self.state_timestamp_ms = state_timestamp_ms
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, ClassicGroupMember] = {}
        """By member id, in the order in which they joined."""
        self.static_members: dict[str, str] = {}
        """Member ids by instance id."""
        self.pending_joins: dict[str, Timer] = {}
        """The timers of member ids that were assigned but have not joined yet (KIP-394)."""
        self.pending_syncs: set[str] = set()
        """Members of this generation that have not sent SyncGroup."""
        self.subscribed: frozenset[str] | None = None
        """Topics that some member subscribes to, None if the subscriptions cannot be read."""
        self.new_member_added = False
        """Whether a member joined since the initial delay was last extended."""
        self.join_timer: Timer | None = None
        self.sync_timer: Timer | None = None
        self.rebalance_reason = ""
        """Why the last rebalance began, as text (KIP-800)."""

    @classmethod
    def restore(cls, group_id: str, stored: StoredGroup) -> "ClassicGroup":
        """The group that a record describes."""
        group = cls(group_id, state_timestamp_ms=stored.state_timestamp_ms)
        group.generation = stored.generation
        group.protocol_type = stored.protocol_type or None
        group.protocol = stored.protocol
        group.leader_id = stored.leader
        for member in stored.members:
            group.add_member(ClassicGroupMember.restore(member, stored))
        if stored.members:
            group.state = ClassicGroupState.STABLE
        group.subscribed = group.compute_subscribed()
        return group

    def to_stored(self, assignments: Mapping[str, bytes]) -> StoredGroup:
        """This generation in its record, with these assignments by member id."""
        protocol = self.protocol
        return StoredGroup(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=protocol,
            leader=self.leader_id,
            state_timestamp_ms=self.state_timestamp_ms,
            members=tuple(
                member.to_stored(protocol, assignments.get(member.member_id, b""))
                for member in self.members.values()
            ),
        )

    # -- the state -------------------------------------------------------------------------------

    def transition_to(self, state: ClassicGroupState, now_ms: int) -> None:
        """Enter another state.

        :raises ValueError: When the transition is not valid.
        """
        if not is_valid_transition(self.state, state):
            raise ValueError(f"group {self.group_id!r} cannot go from {self.state} to {state}")
        self.previous_state = self.state
        self.state = state
        self.state_timestamp_ms = now_ms

    def next_generation(self, now_ms: int) -> None:
        """Begin a generation with the present members, which may be none."""
        self.generation += 1
        self.protocol = self.select_protocol() if self.members else None
        self.subscribed = self.compute_subscribed()
        following = (
            ClassicGroupState.COMPLETING_REBALANCE if self.members else ClassicGroupState.EMPTY
        )
        self.transition_to(following, now_ms)

    # -- the members -----------------------------------------------------------------------------

    def add_member(self, member: ClassicGroupMember) -> None:
        """Add a member; the first one becomes the leader and sets the protocol type."""
        if not self.members:
            self.protocol_type = member.protocol_type
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self.remove_pending(member.member_id)

    def remove_member(self, member_id: str) -> None:
        """Remove a member or a pending member id; elect another leader if it was the leader.

        Its parked requests are answered UNKNOWN_MEMBER_ID, so that it joins as a new member.
        """
        member = self.members.pop(member_id, None)
        if member is not None:
            member.end_session()
            member.answer_join(
                JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID, protocol_name=None)
            )
            member.answer_sync(SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
            if member.group_instance_id is not None:
                self.static_members.pop(member.group_instance_id, None)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.remove_pending(member_id)
        self.pending_syncs.discard(member_id)

    def replace_static_member(self, instance_id: str, new_member_id: str) -> ClassicGroupMember:
        """Replace a static member by a new one with its instance id (KIP-345).

        The old member's parked requests are answered FENCED_INSTANCE_ID. The new one inherits its
        protocols, timeouts and assignment.
        """
        old = self.members[self.static_members[instance_id]]
        old.end_session()
        old.answer_join(
            JoinGroupResponse(
                error_code=ErrorCode.FENCED_INSTANCE_ID,
                member_id=old.member_id,
                protocol_name=None,
            )
        )
        old.answer_sync(SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))
        new = ClassicGroupMember(
            member_id=new_member_id,
            group_instance_id=instance_id,
            client_id=old.client_id,
            client_host=old.client_host,
            protocol_type=old.protocol_type,
            rebalance_timeout_ms=old.rebalance_timeout_ms,
            session_timeout_ms=old.session_timeout_ms,
            protocols=old.protocols,
            assignment=old.assignment,
        )
        self.members = {
            new_member_id if key == old.member_id else key: new if member is old else member
            for key, member in self.members.items()
        }
        if self.leader_id == old.member_id:
            self.leader_id = new_member_id
        if old.member_id in self.pending_syncs:
            self.pending_syncs.remove(old.member_id)
            self.pending_syncs.add(new_member_id)
        self.static_members[instance_id] = new_member_id
        return new

    def remove_pending(self, member_id: str) -> None:
        """Stop waiting for a member id that was assigned: it has joined, or expired."""
        timer = self.pending_joins.pop(member_id, None)
        if timer is not None:
            timer.end()

    def check_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """NONE for a member, FENCED_INSTANCE_ID if another member has its instance id."""
        if instance_id is not None:
            current = self.static_members.get(instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    @property
    def all_joined(self) -> bool:
        """Whether every member, pending ones included, has joined in PREPARING_REBALANCE."""
        return not self.pending_joins and all(
            member.joining is not None for member in self.members.values()
        )

    @property
    def waiting_count(self) -> int:
        """The number of parked JoinGroup requests."""
        return sum(member.joining is not None for member in self.members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        """The largest among the members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def assignments(self) -> dict[str, bytes]:
        """By member id."""
        return {member.member_id: member.assignment for member in self.members.values()}

    def ensure_joined_leader(self) -> bool:
        """Make a member that has joined the leader; False if there is none."""
        leader = self.members.get(self.leader_id or "")
        if leader is not None and leader.joining is None:
            leader = next((one for one in self.members.values() if one.joining is not None), None)
            if leader is not None:
                self.leader_id = leader.member_id
        return leader is not None

    # -- the protocol ----------------------------------------------------------------------------

    def supports(self, protocol_type: str, protocols: Sequence[str]) -> bool:
        """Whether a member with these protocols can join: all members must share one of them."""
        if self.state is ClassicGroupState.EMPTY:
            return bool(protocol_type and protocols)
        return protocol_type == self.protocol_type and bool(self._shared(protocols))

    def select_protocol(self) -> str:
        """The protocol that most members prefer among those that all support.

        :raises ValueError: When there is none; `supports` prevents that.
        """
        members = self.members.values()
        first = next(iter(members))
        shared = self._shared([offer.name for offer in first.protocols])
        if not shared:
            raise ValueError(f"the members of group {self.group_id!r} share no protocol")
        votes = Counter(
            next(offer.name for offer in member.protocols if offer.name in shared)
            for member in members
        )
        return max(votes, key=votes.__getitem__)

    def _shared(self, protocols: Iterable[str]) -> set[str]:
        """Which of these protocols all members support."""
        shared = set(protocols)
        for member in self.members.values():
            shared = {name for name in shared if member.supports(name)}
        return shared

    @property
    def uses_consumer_protocol(self) -> bool:
        """Whether the members are consumers, whose subscriptions can be read."""
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def compute_subscribed(self) -> frozenset[str] | None:
        """The topics that the members subscribe to; None if the subscriptions cannot be read."""
        if not self.uses_consumer_protocol:
            return None
        if not self.members:
            return frozenset()
        if self.protocol is None:
            return None
        try:
            topics = [
                subscribed_topics(member.metadata(self.protocol))
                for member in self.members.values()
            ]
        except MalformedSubscription:
            return None
        return frozenset().union(*topics)

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether some member subscribes to a topic; any topic, if subscriptions are unreadable."""
        return self.uses_consumer_protocol if self.subscribed is None else topic in self.subscribed
