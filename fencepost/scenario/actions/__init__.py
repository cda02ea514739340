"""What a client of a scenario can do, once: its name, what it takes and what it answers."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from fencepost.scenario.actions.answers import (
    ActionAnswer,
    CallAnswer,
    CommitAnswer,
    CommittedAnswer,
    CoordinatorAnswer,
    EpochEndAnswer,
    FetchAnswer,
    ListOffsetsAnswer,
    MemberAnswer,
    MetadataAnswer,
    ProduceAnswer,
    ReplicatedAnswer,
)
from fencepost.scenario.actions.bodies import (
    ActionBody,
    CallBody,
    CommitBody,
    CommittedBody,
    EpochEndBody,
    FetchBody,
    FindCoordinatorBody,
    JoinBody,
    ListOffsetsBody,
    MemberBody,
    MetadataBody,
    ProduceBody,
    ReplicatedBody,
)


@dataclass(frozen=True, slots=True)
class Action:
    """Something a client can do."""

    name: str
    api: str | None
    """Kafka's name of the API; None: the one that is given, or none at all."""
    takes: type[ActionBody]
    answers: type[ActionAnswer]
    does: str
    """One sentence."""


_ALL: Final = (
    Action("produce", "Produce", ProduceBody, ProduceAnswer, "Send records."),
    Action("fetch", "Fetch", FetchBody, FetchAnswer, "Fetch records from an offset on."),
    Action("list_offsets", "ListOffsets", ListOffsetsBody, ListOffsetsAnswer, "Ask for an offset."),
    Action(
        "offsets_for_leader_epoch",
        "OffsetForLeaderEpoch",
        EpochEndBody,
        EpochEndAnswer,
        "Ask where a leader epoch ends.",
    ),
    Action("metadata", "Metadata", MetadataBody, MetadataAnswer, "Ask who leads a partition."),
    Action("commit", "OffsetCommit", CommitBody, CommitAnswer, "Commit an offset for a group."),
    Action("committed", "OffsetFetch", CommittedBody, CommittedAnswer, "Ask what is committed."),
    Action(
        "find_coordinator",
        "FindCoordinator",
        FindCoordinatorBody,
        CoordinatorAnswer,
        "Ask who coordinates a group.",
    ),
    Action("join", "JoinGroup", JoinBody, MemberAnswer, "Join a group; tells what is assigned."),
    Action("member", None, MemberBody, MemberAnswer, "Tell what a member knows; asks nobody."),
    Action("heartbeat", "Heartbeat", MemberBody, CommitAnswer, "Send one heartbeat of a member."),
    Action("leave", "LeaveGroup", MemberBody, CommitAnswer, "Leave the group."),
    Action(
        "replicated",
        None,
        ReplicatedBody,
        ReplicatedAnswer,
        "Tell what a follower was sent, and which share of the data that is; asks no broker.",
    ),
    Action("call", None, CallBody, CallAnswer, "Send any request."),
)
ACTIONS: Final = MappingProxyType({each.name: each for each in _ALL})
"""By name."""
