"""Groups: their members, their committed offsets, and a group that is not as expected."""

from typing import ClassVar, Final, Literal

from fencepost.verbs.answers import Answer, ErrorAnswer
from fencepost.verbs.group_bodies import GroupStateName
from fencepost.verbs.model import Example, Examples

GroupType = Literal["classic"]
_GROUP: Final[Example] = {
    "group": "shipping",
    "type": "classic",
    "state": "Stable",
    "generation": 3,
    "protocol_type": "consumer",
    "protocol": "range",
    "coordinator": 2,
    "offsets_partition": 17,
    "members": [
        {
            "member_id": "rdkafka-9a1b4e5c-0d7b-4f4e-9d0e-3f1c2b7a6d58",
            "group_instance_id": None,
            "client_id": "rdkafka",
            "host": "/127.0.0.1",
            "assignment": ["orders-0"],
        }
    ],
    "offsets": [
        {
            "topic": "orders",
            "partition": 0,
            "committed_offset": 40,
            "leader_epoch": 3,
            "log_end_offset": 42,
            "lag": 2,
            "member_id": "rdkafka-9a1b4e5c-0d7b-4f4e-9d0e-3f1c2b7a6d58",
        }
    ],
}


class ListedGroup(Answer):
    """A group in a list."""

    group: str
    type: GroupType
    state: GroupStateName


class GroupsState(Answer):
    """All groups."""

    groups: tuple[ListedGroup, ...]
    """By name. Groups whose coordinator is not available are not among them."""

    examples: ClassVar[Examples] = [
        {"groups": [{"group": "shipping", "type": "classic", "state": "Stable"}]}
    ]


class MemberState(Answer):
    """A member of a group."""

    member_id: str
    group_instance_id: str | None
    """Of a static member; null for others."""
    client_id: str
    host: str
    """Address of the client, with a slash before it, as Kafka has it."""
    assignment: tuple[str, ...]
    """Partitions such as ``orders-0``, of the present generation; empty while there is none, and
    where the members are no consumers."""


class CommittedOffsetState(Answer):
    """A partition that a group has committed an offset of, or that a member is assigned."""

    topic: str
    partition: int
    committed_offset: int
    """Of the next record to consume; -1 where nothing is committed."""
    leader_epoch: int
    """Of the last consumed record; -1 where its consumer did not commit it."""
    log_end_offset: int
    """The end for consumers: the leader's high watermark, as Kafka's tools show it; -1 while there
    is no leader."""
    lag: int | None
    """From the committed offset to the end; negative where the log was truncated. Null where one of
    them is not known."""
    member_id: str | None
    """The member that the partition is assigned to; null for none."""


class GroupState(Answer):
    """A group as its coordinator has it."""

    group: str
    type: GroupType
    state: GroupStateName
    generation: int
    """Rises with each rebalance; 0 where no member ever joined."""
    protocol_type: str | None
    """``consumer`` for consumers; null where no member ever joined."""
    protocol: str | None
    """The assignor; null while there is no generation with members."""
    coordinator: int
    """Broker id."""
    offsets_partition: int
    """The group's partition of ``__consumer_offsets``, whose leader is the coordinator."""
    members: tuple[MemberState, ...]
    """In the order in which they joined."""
    offsets: tuple[CommittedOffsetState, ...]
    """By topic and partition."""

    examples: ClassVar[Examples] = [_GROUP]


class GroupNotReady(ErrorAnswer):
    """The group is not in time what was waited for."""

    group: GroupState | None
    """As it is; null where there is none, or its coordinator is not available."""

    examples: ClassVar[Examples] = [
        {
            "error": "REQUEST_TIMED_OUT",
            "message": "group 'shipping' is Stable with 1 member after 5000 ms, and not"
            " Stable with 2 members",
            "group": _GROUP,
        }
    ]
