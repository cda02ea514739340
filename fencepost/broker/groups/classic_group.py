"""One classic group: who is in it, what each member wants, and what each waits for."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from fencepost.broker.core.scheduler import Timer
from fencepost.broker.core.waits import Wait
from fencepost.broker.groups.classic_group_state import ClassicGroupState, is_valid_transition
from fencepost.broker.groups.consumer_protocol import MalformedSubscription, subscribed_topics
from fencepost.broker.groups.records import StoredGroup, StoredMember
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.join_group import JoinGroupResponse
from fencepost.protocol.messages.sync_group import SyncGroupResponse

CONSUMER_PROTOCOL_TYPE: Final = "consumer"
"""The protocol type whose metadata the coordinator can read."""


class MemberProtocol(NamedTuple):
    """A protocol (an assignor, for consumers) that a member offers, and its metadata for it."""

    name: str
    metadata: bytes


@dataclass(slots=True, kw_only=True)
class ClassicGroupMember:
    """A member, and the requests of its that are parked."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    protocol_type: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[MemberProtocol, ...]
    """In the order of its preference."""
    assignment: bytes = b""
    is_new: bool = False
    """Whether it has not been told its generation yet: silence is then not forgiven for waiting."""
    joining: Wait[JoinGroupResponse] | None = None
    syncing: Wait[SyncGroupResponse] | None = None
    session: Timer | None = None

    @property
    def is_static(self) -> bool:
        """Whether it has an instance id (KIP-345)."""
        return self.group_instance_id is not None

    @property
    def awaits_response(self) -> bool:
        """Whether it waits for the coordinator itself, and so cannot be expected to heartbeat."""
        return not self.is_new and (self.joining is not None or self.syncing is not None)

    def metadata(self, protocol: str) -> bytes:
        """Its metadata for a protocol that it offers."""
        return next(offer.metadata for offer in self.protocols if offer.name == protocol)

    def supports(self, protocol: str) -> bool:
        """Whether it offers a protocol."""
        return any(offer.name == protocol for offer in self.protocols)

    def park_join(self, answer: Wait[JoinGroupResponse]) -> None:
        """Let a JoinGroup wait. An older one ends: its client has given up on it, but what comes
        behind it on its connection cannot be answered before it is.
        """
        self.answer_join(
            JoinGroupResponse(
                error_code=ErrorCode.REBALANCE_IN_PROGRESS,
                member_id=self.member_id,
                protocol_name=None,
            )
        )
        self.joining = answer

    def park_sync(self, answer: Wait[SyncGroupResponse]) -> None:
        """Let a SyncGroup wait; an older one ends."""
        self.answer_sync(SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        self.syncing = answer

    def answer_join(self, response: JoinGroupResponse) -> None:
        """Answer its parked JoinGroup, if there is one."""
        parked, self.joining = self.joining, None
        if parked is not None:
            parked.complete(response)

    def answer_sync(self, response: SyncGroupResponse) -> bool:
        """Answer its parked SyncGroup; says whether there was one."""
        parked, self.syncing = self.syncing, None
        if parked is not None:
            parked.complete(response)
        return parked is not None

    def end_session(self) -> None:
        """Expect no heartbeat of it any more."""
        if self.session is not None:
            self.session.cancel()
            self.session = None


class ClassicGroup:
    """A group as it is now. What of it outlives this broker's lead is in its records."""

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
        """By member id, in the order in which they came."""
        self.static_members: dict[str, str] = {}
        """Member ids by instance id."""
        self.pending_joins: dict[str, Timer] = {}
        """Member ids that were given out and have not been used yet (KIP-394), until when."""
        self.pending_syncs: set[str] = set()
        """Members of this generation that have not sent SyncGroup."""
        self.subscribed: frozenset[str] | None = None
        """Topics that some member consumes, None where that cannot be known."""
        self.new_member_added = False
        """Whether somebody joined since the initial delay was last extended."""
        self.join_timer: Timer | None = None
        self.sync_timer: Timer | None = None
        self.rebalance_reason = ""
        """Why the last rebalance began, in words (KIP-800)."""

    @classmethod
    def restore(cls, group_id: str, stored: StoredGroup) -> "ClassicGroup":
        """The group that a record describes."""
        group = cls(group_id, state_timestamp_ms=stored.state_timestamp_ms)
        group.generation = stored.generation
        group.protocol_type = stored.protocol_type or None
        group.protocol = stored.protocol
        group.leader_id = stored.leader
        for member in stored.members:
            group.add_member(_restored_member(member, stored))
        if stored.members:
            group.state = ClassicGroupState.STABLE
        group.subscribed = group.compute_subscribed()
        return group

    def to_stored(self, assignments: Mapping[str, bytes]) -> StoredGroup:
        """This generation as its record holds it, with these assignments by member id."""
        protocol = self.protocol
        return StoredGroup(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=protocol,
            leader=self.leader_id,
            state_timestamp_ms=self.state_timestamp_ms,
            members=tuple(
                StoredMember(
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                    session_timeout_ms=member.session_timeout_ms,
                    subscription=b"" if protocol is None else member.metadata(protocol),
                    assignment=assignments.get(member.member_id, b""),
                )
                for member in self.members.values()
            ),
        )

    # -- the state -------------------------------------------------------------------------------

    def transition_to(self, state: ClassicGroupState, now_ms: int) -> None:
        """Come into another state.

        :raises ValueError: When none leads there from this one.
        """
        if not is_valid_transition(self.state, state):
            raise ValueError(f"group {self.group_id!r} cannot go from {self.state} to {state}")
        self.previous_state = self.state
        self.state = state
        self.state_timestamp_ms = now_ms

    def next_generation(self, now_ms: int) -> None:
        """Begin a generation with the members that there are, or an empty one."""
        self.generation += 1
        self.protocol = self.select_protocol() if self.members else None
        self.subscribed = self.compute_subscribed()
        following = (
            ClassicGroupState.COMPLETING_REBALANCE if self.members else ClassicGroupState.EMPTY
        )
        self.transition_to(following, now_ms)

    # -- the members -----------------------------------------------------------------------------

    def add_member(self, member: ClassicGroupMember) -> None:
        """Take a member in; the first one leads the group and settles its protocol type."""
        if not self.members:
            self.protocol_type = member.protocol_type
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self.remove_pending(member.member_id)

    def remove_member(self, member_id: str) -> None:
        """Drop a member, or an id that was given out; another member leads if it was the leader.

        What the member has parked is answered UNKNOWN_MEMBER_ID, so that it joins as somebody new.
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
        """Give a static member's place to the one that has come with its instance id (KIP-345).

        What the old one has parked is answered FENCED_INSTANCE_ID. Its protocols, timeouts and
        assignment stay.
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
        """An id that was given out is in use now, or will not be."""
        timer = self.pending_joins.pop(member_id, None)
        if timer is not None:
            timer.cancel()

    def check_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """NONE for a member, FENCED_INSTANCE_ID where another has its instance id by now."""
        if instance_id is not None:
            current = self.static_members.get(instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    @property
    def all_joined(self) -> bool:
        """Whether nobody is left to be waited for in PREPARING_REBALANCE."""
        return not self.pending_joins and all(
            member.joining is not None for member in self.members.values()
        )

    @property
    def waiting_count(self) -> int:
        """How many members' JoinGroup requests are parked."""
        return sum(member.joining is not None for member in self.members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest that any member asks for."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def assignments(self) -> dict[str, bytes]:
        """By member id."""
        return {member.member_id: member.assignment for member in self.members.values()}

    def ensure_joined_leader(self) -> bool:
        """Have somebody lead who has joined; False where nobody has, or nobody is left."""
        leader = self.members.get(self.leader_id or "")
        if leader is not None and leader.joining is None:
            leader = next((one for one in self.members.values() if one.joining is not None), None)
            if leader is not None:
                self.leader_id = leader.member_id
        return leader is not None

    # -- the protocol ----------------------------------------------------------------------------

    def supports(self, protocol_type: str, protocols: Sequence[str]) -> bool:
        """Whether somebody with these protocols can join: every member must share one of them."""
        if self.state is ClassicGroupState.EMPTY:
            return bool(protocol_type and protocols)
        return protocol_type == self.protocol_type and any(
            all(member.supports(name) for member in self.members.values()) for name in protocols
        )

    def select_protocol(self) -> str:
        """The protocol that most members prefer among those that all support.

        :raises ValueError: When there is none; members are only let in where there is.
        """
        members = self.members.values()
        shared = {
            offer.name
            for member in members
            for offer in member.protocols
            if all(other.supports(offer.name) for other in members)
        }
        if not shared:
            raise ValueError(f"the members of group {self.group_id!r} share no protocol")
        votes = Counter(
            next(offer.name for offer in member.protocols if offer.name in shared)
            for member in members
        )
        return max(votes, key=votes.__getitem__)

    @property
    def uses_consumer_protocol(self) -> bool:
        """Whether its members are consumers, whose subscriptions can be read."""
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def compute_subscribed(self) -> frozenset[str] | None:
        """The topics that its members subscribe to; None where they are no readable consumers."""
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
        """Whether some member consumes a topic; any topic, where that cannot be known."""
        return self.uses_consumer_protocol if self.subscribed is None else topic in self.subscribed


def _restored_member(member: StoredMember, stored: StoredGroup) -> ClassicGroupMember:
    return ClassicGroupMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        protocol_type=stored.protocol_type,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=member.session_timeout_ms,
        protocols=(MemberProtocol(stored.protocol or "", member.subscription),),
        assignment=member.assignment,
    )
