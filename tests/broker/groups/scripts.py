"""The conversations: sequences of requests to a coordinator, one subject each."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final
from uuid import UUID

from msgspec.structs import replace

from fencepost.protocol.messages.delete_groups import DeleteGroupsRequest
from fencepost.protocol.messages.describe_groups import DescribeGroupsRequest
from fencepost.protocol.messages.find_coordinator import FindCoordinatorRequest
from fencepost.protocol.messages.heartbeat import HeartbeatRequest
from fencepost.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from fencepost.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from fencepost.protocol.messages.list_groups import ListGroupsRequest
from fencepost.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from fencepost.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from fencepost.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from fencepost.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.broker.groups.talk import TOPIC_IDS, Answered, Message, Script, Step

UNKNOWN_ID: Final = UUID(int=0x11)


def subscription(*topics: str) -> bytes:
    """A ConsumerProtocolSubscription of version 0."""
    out = struct.pack(">hi", 0, len(topics))
    for topic in topics:
        out += struct.pack(">h", len(topic)) + topic.encode()
    return out + struct.pack(">i", -1)


def protocols(
    *names: str, metadata: bytes = subscription("t")
) -> tuple[JoinGroupRequestProtocol, ...]:
    return tuple(JoinGroupRequestProtocol(name=name, metadata=metadata) for name in names)


def join(group: str, member: str = "", *, version: int = 9, **options: Message) -> Step:
    step = {
        key: options.pop(key) for key in ("on", "parks", "learn", "client_id") if key in options
    }
    request = JoinGroupRequest(
        group_id=group, member_id=member, protocol_type="consumer", session_timeout_ms=10_000,
        rebalance_timeout_ms=3000 if version >= 1 else -1, protocols=protocols("range", "rr"),
    )  # fmt: skip
    return Step(api="join_group", version=version, request=replace(request, **options), **step)


def sync(
    group: str, generation: int, member: str, *, version: int = 5, on: str = "first",
    parks: bool = False, assign: dict[str, bytes] | None = None, **options: Message,
) -> Step:  # fmt: skip
    named = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
    request = SyncGroupRequest(
        group_id=group, generation_id=generation, member_id=member,
        assignments=tuple(
            SyncGroupRequestAssignment(member_id=to, assignment=what)
            for to, what in (assign or {}).items()
        ),
        **(named | options),
    )  # fmt: skip
    return Step(api="sync_group", version=version, request=request, on=on, parks=parks)


def heartbeat(group: str, generation: int, member: str, instance: str | None = None) -> Step:
    request = HeartbeatRequest(
        group_id=group, generation_id=generation, member_id=member, group_instance_id=instance
    )
    return Step(api="heartbeat", version=4, request=request)


def leave(group: str, *members: tuple[str, str | None], version: int = 5) -> Step:
    identities = tuple(MemberIdentity(member_id=m, group_instance_id=i) for m, i in members)
    request = LeaveGroupRequest(group_id=group, members=identities)
    return Step(api="leave_group", version=version, request=request)


def leave_alone(group: str, member: str) -> Step:
    request = LeaveGroupRequest(group_id=group, member_id=member)
    return Step(api="leave_group", version=2, request=request)


def offset(
    index: int = 0, *, at: int = 5, metadata: str | None = "md", epoch: int = -1
) -> OffsetCommitRequestPartition:
    return OffsetCommitRequestPartition(
        partition_index=index, committed_offset=at, committed_metadata=metadata,
        committed_leader_epoch=epoch,
    )  # fmt: skip


def commit(
    group: str, generation: int = -1, member: str = "", *, version: int = 9,
    topics: tuple[tuple[str | UUID, tuple[OffsetCommitRequestPartition, ...]], ...] | None = None,
    **options: Message,
) -> Step:  # fmt: skip
    default = (("t", (offset(epoch=3 if version >= 6 else -1),)),)
    request = OffsetCommitRequest(
        group_id=group, generation_id_or_member_epoch=generation, member_id=member,
        topics=tuple(
            OffsetCommitRequestTopic(topic_id=topic, partitions=partitions)
            if isinstance(topic, UUID)
            else OffsetCommitRequestTopic(name=topic, partitions=partitions)
            for topic, partitions in (default if topics is None else topics)
        ),
        **options,
    )  # fmt: skip
    return Step(api="offset_commit", version=version, request=request)


Wanted = tuple[tuple[str | UUID, tuple[int, ...]], ...]
SOME: Final[Wanted] = (("t", (0, 1, 7)),)


def fetch(group: str, version: int, wanted: Wanted | None = SOME, **options: Message) -> Step:
    """OffsetFetch of one group."""
    if version < 8:
        topics = None
        if wanted is not None:
            topics = tuple(
                OffsetFetchRequestTopic(name=str(name), partition_indexes=indexes)
                for name, indexes in wanted
            )
        request = OffsetFetchRequest(group_id=group, topics=topics, **options)
    else:
        request = OffsetFetchRequest(groups=(_fetched(group, wanted, **options),))
    return Step(api="offset_fetch", version=version, request=request)


def _fetched(group: str, wanted: Wanted | None, **options: Message) -> OffsetFetchRequestGroup:
    topics = None
    if wanted is not None:
        topics = tuple(
            OffsetFetchRequestTopics(topic_id=topic, partition_indexes=indexes)
            if isinstance(topic, UUID)
            else OffsetFetchRequestTopics(name=topic, partition_indexes=indexes)
            for topic, indexes in wanted
        )
    return OffsetFetchRequestGroup(group_id=group, topics=topics, **options)


def delete_offsets(group: str, **partitions: tuple[int, ...]) -> Step:
    request = OffsetDeleteRequest(
        group_id=group,
        topics=tuple(
            OffsetDeleteRequestTopic(
                name=name,
                partitions=tuple(OffsetDeleteRequestPartition(partition_index=i) for i in indexes),
            )
            for name, indexes in partitions.items()
        ),
    )
    return Step(api="offset_delete", version=0, request=request)


def describe(*groups: str, version: int = 6, **options: Message) -> Step:
    request = DescribeGroupsRequest(groups=groups, **options)
    return Step(api="describe_groups", version=version, request=request)


def list_groups(
    version: int = 5, states: tuple[str, ...] = (), types: tuple[str, ...] = ()
) -> Step:
    request = ListGroupsRequest(states_filter=states, types_filter=types)
    return Step(api="list_groups", version=version, request=request)


def delete(*groups: str) -> Step:
    request = DeleteGroupsRequest(groups_names=groups)
    return Step(api="delete_groups", version=2, request=request)


def find(version: int, key_type: int, *keys: str) -> Step:
    if version >= 4:
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=keys)
    else:
        request = FindCoordinatorRequest(key=keys[0], key_type=key_type)
    return Step(api="find_coordinator", version=version, request=request)


def joined(group: str, name: str = "$m") -> Script:
    """A group of one member, stable in generation 1."""
    return [
        join(group, learn=name),
        join(group, name),
        sync(group, 1, name, assign={name: b"A"}),
    ]


# -- the conversations ----------------------------------------------------------------------------


def _find_coordinator() -> Script:
    kinds = [(0, 0), (1, 0), (1, 2), (1, 3), (3, 0), (3, -1)]
    many = [(4, 0), (4, 2), (4, 3), (6, 0), (6, -1)]
    return [
        *(find(version, key_type, "g1") for version, key_type in kinds),
        *(find(version, key_type, "g1", "") for version, key_type in many),
        find(4, 0),
        find(3, 0, ""),
    ]


def _join_refused() -> Script:
    return [
        join(""),
        *(join("e", session_timeout_ms=1, version=version) for version in (0, 1, 4, 6, 7, 9)),
        join("e", session_timeout_ms=5999),
        join("e", session_timeout_ms=1_800_001),
        join("e", "absent"),
        describe("e"),
        *(join("e", protocols=(), version=version) for version in (0, 6, 9)),
        join("e", protocol_type=""),
        describe("e", "", "absent"),
        list_groups(),
    ]


def _member_id_required() -> Script:
    return [
        join("k", learn="$k1"),
        describe("k"),
        list_groups(),
        heartbeat("k", 0, "$k1"),
        sync("k", 0, "$k1"),
        sync("k", -1, ""),
        commit("k", 0, "$k1"),
        commit("k", -1, "$k1"),
        leave("k", ("$k1", None)),
        join("k", "$k1"),
        join("k", learn="$k2"),
        join("k", "$k2", group_instance_id="i"),
        join("k", "$k2"),
        join("n", client_id="", version=9, learn="$n"),
    ]


def _one_member() -> Script:
    return [
        join("f", learn="$m"),
        join("f", "$m"),
        describe("f"),
        heartbeat("f", 1, "$m"),
        heartbeat("f", 2, "$m"),
        heartbeat("f", 1, "x"),
        heartbeat("f", 1, "$m", "zz"),
        commit("f", 1, "$m"),
        commit("f", -1, ""),
        commit("f", -1, "$m"),
        sync("f", 1, "$m", protocol_name="xx"),
        sync("f", 1, "$m", protocol_type="xx"),
        sync("f", 2, "$m"),
        sync("f", 1, "x"),
        sync("f", 1, "$m", protocol_name=None),
        sync("f", 1, "$m", protocol_type=None),
        join("f", "$m"),
        sync("f", 1, "$m", assign={"$m": b"A:m", "other": b"x"}),
        *(sync("f", 1, "$m", version=version) for version in (0, 3)),
        describe("f", "f", include_authorized_operations=True),
        describe("f"),
        *(commit("f", 1, "$m", version=version) for version in (2, 5, 7, 8, 9)),
        commit("f", 2, "$m"),
        commit("f", 1, "x"),
        commit("f", -1, ""),
        commit("f", 1, ""),
        commit("f", -1, "$m"),
        commit("f", 1, "$m", group_instance_id="q"),
        join("f", "$m", protocols=protocols("zz")),
        join("f", "$m", protocol_type="other"),
        join("f", protocols=protocols("zz")),
        join("f", "absent"),
        delete_offsets("f", t=(0,), u=(0, 9), nope=(0,)),
        delete("f", "nope"),
        list_groups(states=("stable",)),
    ]


def _leaving() -> Script:
    gone = [
        heartbeat("l", 1, "$m"),
        heartbeat("l", 2, "$m"),
        sync("l", 1, "$m"),
        commit("l", 1, "$m"),
    ]
    return [
        *joined("l"),
        leave("l", ("x", None), ("", "i"), ("$m", "i")),
        leave("nope", ("x", None)),
        leave_alone("nope", "x"),
        leave_alone("l", "x"),
        leave_alone("", "x"),
        leave("", ("x", None), version=3),
        leave("l", version=3),
        leave_alone("l", "$m"),
        leave_alone("l", "$m"),
        describe("l"),
        *gone,
        heartbeat("nope", 1, "x"),
        heartbeat("", 1, "x"),
        sync("nope", 1, "x"),
        sync("", 1, "x"),
        commit("l", -1, ""),
        commit("l", -1, "x"),
        commit("l", -1, "x", group_instance_id="i"),
        delete_offsets("l", t=(0, 1)),
    ]


def _two_members() -> Script:
    return [
        *joined("w", "$1"),
        join("w", learn="$2", on="second"),
        join("w", "$2", on="second", parks=True),
        heartbeat("w", 1, "$1"),
        commit("w", 1, "$1"),
        sync("w", 1, "$1"),
        describe("w"),
        delete("w"),
        list_groups(states=("preparingrebalance",)),
        join("w", "$1"),
        Answered(on="second"),
        sync("w", 2, "$2", on="second", parks=True),
        heartbeat("w", 2, "$2"),
        describe("w"),
        leave("w", ("$1", None)),
        Answered(on="second"),
        join("w", "$2", on="second"),
        sync("w", 3, "$2", assign={"other": b"x"}),
        join("w", "$2", version=5),
        sync("w", 4, "$2", version=3, assign={"$2": b"B"}),
        join("w", learn="$3", on="third"),
        join("w", "$3", on="third", parks=True),
        join("w", "$2"),
        Answered(on="third"),
        sync("w", 5, "$3", on="third", parks=True),
        sync("w", 5, "$2", assign={"$2": b"2", "$3": b"3"}),
        Answered(on="third"),
        join("w", "$3"),
        heartbeat("w", 5, "$3"),
    ]


def _static_members() -> Script:
    def again(name: str, version: int, **options: Message) -> Step:
        return join("st", group_instance_id="i1", version=version, learn=name, **options)

    return [
        again("$1", 9),
        sync("st", 1, "$1", assign={"$1": b"AA"}, group_instance_id="i1"),
        describe("st"),
        again("$2", 9),
        again("$3", 8),
        describe("st"),
        heartbeat("st", 1, "$1", "i1"),
        heartbeat("st", 1, "$3", "i1"),
        heartbeat("st", 1, "$3"),
        commit("st", 1, "$1", group_instance_id="i1"),
        commit("st", 1, "$3", group_instance_id="i1"),
        join("st", "$1", group_instance_id="i1"),
        sync("st", 1, "$1", group_instance_id="i1"),
        sync("st", 1, "$3", group_instance_id="i1"),
        leave("st", ("$1", "i1"), version=3),
        again("$4", 9, protocols=protocols("rr")),
        describe("st"),
        again("$5", 9, protocols=protocols("rr")),
        leave("st", ("", "i1")),
        describe("st"),
    ]


def _simple_groups() -> Script:
    t = TOPIC_IDS["t"]
    long = (("t", (offset(metadata="x" * 4097),)),)
    return [
        commit(""),
        commit("s"),
        *(commit("s", topics=((name, (offset(7),)),)) for name in ("t", "nope")),
        commit("s", version=2, topics=(("nope", (offset(),)),)),
        *(
            commit("s", topics=(("t", (offset(metadata=text),)),))
            for text in (None, "x" * 4096, "é" * 4096, "😀" * 2048, "😀" * 2049)
        ),
        commit("s", topics=long),
        commit("s", 5),
        commit("s", -1, "m"),
        *(commit("nope", 3, "x", version=version) for version in (2, 8, 9)),
        commit("nope", 3, "x", topics=(("nope", (offset(),)),)),
        commit("s", topics=()),
        commit("s", topics=(("nope", (offset(),)), ("t", (offset(), offset(9), offset(1))))),
        commit("s", topics=(("t", (offset(), offset(9))), ("nope", (offset(),)))),
        commit(
            "s",
            version=10,
            topics=((t, (offset(at=1), offset(9))), (UNKNOWN_ID, (offset(),))),
        ),
        commit("s", topics=(("u", (offset(at=-5),)),)),
        commit("r", version=2, retention_time_ms=100_000),
        fetch("r", 9, None),
        delete_offsets("nope", t=(0, 1)),
        delete_offsets("", t=(0,)),
        delete_offsets("nope", zz=(0,)),
        delete_offsets("nope"),
        delete_offsets("s", u=(0, 1), zz=(0,)),
        fetch("s", 9, None),
    ]


def _fetching() -> Script:
    t, u = TOPIC_IDS["t"], TOPIC_IDS["u"]
    groups = tuple(_fetched(name, None) for name in ("of", "never", "of"))
    return [
        commit("of"),
        *(fetch(group, version) for version in range(1, 10) for group in ("of", "never")),
        *(fetch(group, version, None) for version in (2, 7, 8, 9, 10) for group in ("of", "never")),
        *(fetch("of", version, ()) for version in (1, 2, 8)),
        fetch("of", 8, (("nope", (0,)), ("u", (0,)), ("t", (0, 0)))),
        fetch("of", 10, ((t, (0, 1, 9)), (u, (0,)), (UNKNOWN_ID, (0,)))),
        fetch("never", 10, ((t, (0,)),)),
        fetch("of", 9, member_id="x", member_epoch=3),
        fetch("of", 7, require_stable=True),
        Step(api="offset_fetch", version=8, request=OffsetFetchRequest()),
        Step(
            api="offset_fetch",
            version=8,
            request=OffsetFetchRequest(groups=groups, require_stable=True),
        ),
    ]


def _listing() -> Script:
    connect: dict[str, Message] = {"protocol_type": "connect"}
    filters = [(("empty",), ("Classic",)), (("EMPTY ",), ("CLASSIC",)), (("nope",), ())]
    return [
        commit("s"),
        join("ot", learn="$o", **connect),
        join("ot", "$o", **connect),
        sync("ot", 1, "$o", assign={"$o": b"q"}, **connect),
        delete_offsets("ot", t=(0,)),
        *(list_groups(5, states, types) for states, types in filters),
        *(list_groups(5, (), types) for types in (("nope",), ("consumer",), ("classic",))),
        list_groups(4, ("Empty",)),
        list_groups(0),
        describe("s", include_authorized_operations=True),
        describe(),
        *(describe("s", "nope", version=version) for version in (0, 2, 5, 6)),
        describe("nope", include_authorized_operations=True),
        describe("nope", version=5, include_authorized_operations=True),
        delete("s", "nope", "ot", "s"),
        delete("s"),
        describe("s"),
    ]


ALL: Final[dict[str, Callable[[], Script]]] = {
    "find_coordinator": _find_coordinator,
    "join_refused": _join_refused,
    "member_id_required": _member_id_required,
    "one_member": _one_member,
    "leaving": _leaving,
    "two_members": _two_members,
    "static_members": _static_members,
    "simple_groups": _simple_groups,
    "fetching": _fetching,
    "listing": _listing,
}
