"""One member of a classic group, its parked requests, and the topics that it subscribes to."""

import struct
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from fencepost.broker.core.scheduler import Timer
from fencepost.broker.core.waits import Wait
from fencepost.broker.groups.records import StoredGroup, StoredMember
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.join_group import JoinGroupResponse
from fencepost.protocol.messages.sync_group import SyncGroupResponse

_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")


class MemberProtocol(NamedTuple):
    """A protocol (an assignor, for consumers) that a member offers, and its metadata for it."""

    name: str
    metadata: bytes


@dataclass(slots=True, kw_only=True)
class ClassicGroupMember:
    """A member, and its parked requests."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    protocol_type: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[MemberProtocol, ...]
    """In the order of the member's preference; `offer` changes them."""
    assignment: bytes = b""
    is_new: bool = False
    """Whether it has no generation yet: its session then expires even while it waits."""
    joining: Wait[JoinGroupResponse] | None = None
    syncing: Wait[SyncGroupResponse] | None = None
    session: Timer | None = None
    _metadata: dict[str, bytes] = field(init=False)
    """Of each protocol; of one that is offered twice, the first."""

    def __post_init__(self) -> None:
        self.offer(self.protocols)

    def offer(self, protocols: tuple[MemberProtocol, ...]) -> None:
        """Offer these protocols from now on."""
        self.protocols = protocols
        self._metadata = {each.name: each.metadata for each in reversed(protocols)}

    @property
    def is_static(self) -> bool:
        """Whether the member has an instance id (KIP-345)."""
        return self.group_instance_id is not None

    @property
    def awaits_response(self) -> bool:
        """Whether the member waits for the coordinator, and so cannot send heartbeats."""
        return not self.is_new and (self.joining is not None or self.syncing is not None)

    def metadata(self, protocol: str) -> bytes:
        """The metadata for a protocol that the member offers."""
        return self._metadata[protocol]

    def supports(self, protocol: str) -> bool:
        """Whether the member offers a protocol."""
        return protocol in self._metadata

    def park_join(self, answer: Wait[JoinGroupResponse]) -> None:
        """Park a JoinGroup, and answer an older one, whose client has given it up.

        The older one blocks the later requests of its connection until it is answered.
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
        """Park a SyncGroup, and answer an older one."""
        self.answer_sync(SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        self.syncing = answer

    def answer_join(self, response: JoinGroupResponse) -> None:
        """Answer the parked JoinGroup, if there is one."""
        parked, self.joining = self.joining, None
        if parked is not None:
            parked.complete(response)

    def answer_sync(self, response: SyncGroupResponse) -> bool:
        """Answer the parked SyncGroup; returns whether there was one."""
        parked, self.syncing = self.syncing, None
        if parked is not None:
            parked.complete(response)
        return parked is not None

    def end_session(self) -> None:
        """Stop the session timer."""
        if self.session is not None:
            self.session.end()
            self.session = None

    @classmethod
    def restore(cls, stored: StoredMember, group: StoredGroup) -> "ClassicGroupMember":
        """The member that a group's record describes."""
        return cls(
            member_id=stored.member_id,
            group_instance_id=stored.group_instance_id,
            client_id=stored.client_id,
            client_host=stored.client_host,
            protocol_type=group.protocol_type,
            rebalance_timeout_ms=stored.rebalance_timeout_ms,
            session_timeout_ms=stored.session_timeout_ms,
            protocols=(MemberProtocol(group.protocol or "", stored.subscription),),
            assignment=stored.assignment,
        )

    def to_stored(self, protocol: str | None, assignment: bytes) -> StoredMember:
        """The member in its group's record, with this protocol and assignment."""
        return StoredMember(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            session_timeout_ms=self.session_timeout_ms,
            subscription=b"" if protocol is None else self.metadata(protocol),
            assignment=assignment,
        )


class MalformedSubscription(ValueError):
    """Bytes that cannot be read as a ConsumerProtocolSubscription."""


def subscribed_topics(metadata: bytes) -> frozenset[str]:
    """The topics of a ConsumerProtocolSubscription, which are the first field of every version.

    :raises MalformedSubscription: When the metadata has another format, as a client's own assignor
        may use.
    """
    try:
        return frozenset(_topics(metadata))
    except (struct.error, UnicodeDecodeError) as error:
        raise MalformedSubscription(str(error)) from error


def _topics(metadata: bytes) -> list[str]:
    version = _INT16.unpack_from(metadata, 0)[0]
    count = _INT32.unpack_from(metadata, 2)[0]
    if version < 0 or count < 0:
        raise MalformedSubscription(f"version {version} with {count} topics")
    at = 6
    topics = []
    for _ in range(count):
        size = _INT16.unpack_from(metadata, at)[0]
        end = at + 2 + size
        if size < 0 or end > len(metadata):
            raise MalformedSubscription(f"a topic of {size} bytes at {at}")
        topics.append(metadata[at + 2 : end].decode())
        at = end
    return topics
