"""Requests about a group: join, sync, heartbeat, leave, and the offsets that it commits.

Each takes a connection to the broker that is asked, whether that coordinates the group or not.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from fencepost.client.cluster import metadata, resolve_topic_id
from fencepost.client.connection import (
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    SYNC_GROUP,
    TIMEOUT_S,
    Connection,
)
from fencepost.client.consumer.offset_messages import (
    Names,
    commit_request,
    fetch_request,
    fetched_parts,
    timestamp_of,
)
from fencepost.client.consumer_protocol import (
    PROTOCOL_TYPE,
    RANGE,
    assign_by_range,
    decode_subscription,
    encode_assignment,
)
from fencepost.client.errors import MalformedAnswer
from fencepost.client.model import ConsumerGroupMetadata, Partition
from fencepost.client.partitions import NO_EPOCH, NO_TIMESTAMP
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.heartbeat import HeartbeatRequest
from fencepost.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from fencepost.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from fencepost.protocol.messages.offset_commit import OffsetCommitRequestPartition
from fencepost.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

_MANY_LEAVE: Final = 3
"""From this version of LeaveGroup on, it names a list of members."""


class GroupResponse(Struct, frozen=True, kw_only=True):
    """An answer that says no more than whether it worked."""

    version: int
    throttle_time_ms: int
    error: int


class Joined(GroupResponse, frozen=True, kw_only=True):
    """The answer to JoinGroup (11)."""

    member_id: str
    generation: int
    leader_id: str
    protocol: str | None
    members: dict[str, bytes]
    """What each member wants, by member id; told to the leader alone."""


class Synced(GroupResponse, frozen=True, kw_only=True):
    """The answer to SyncGroup (14)."""

    assignment: bytes


async def join_group(
    connection: Connection,
    who: ConsumerGroupMetadata,
    subscription: bytes,
    *,
    session_timeout_ms: int = 30_000,
    rebalance_timeout_ms: int = 30_000,
    version: int | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Joined:
    """JoinGroup (11) of a consumer: one request, which may answer MEMBER_ID_REQUIRED."""
    if version is None:
        version = await connection.best_version(JOIN_GROUP.api, timeout_s=timeout_s)
    request = JoinGroupRequest(
        group_id=who.group,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=rebalance_timeout_ms,
        member_id=who.member_id,
        group_instance_id=who.instance,
        protocol_type=PROTOCOL_TYPE,
        protocols=(JoinGroupRequestProtocol(name=RANGE, metadata=subscription),),
    )
    answer = await connection.ask(JOIN_GROUP, request, version, timeout_s=timeout_s)
    return Joined(
        version=version,
        throttle_time_ms=answer.throttle_time_ms,
        error=answer.error_code,
        member_id=answer.member_id,
        generation=answer.generation_id,
        leader_id=answer.leader,
        protocol=answer.protocol_name,
        members={each.member_id: bytes(each.metadata) for each in answer.members},
    )


async def assign_partitions(
    connection: Connection, joined: Joined, *, timeout_s: float = TIMEOUT_S
) -> list[tuple[str, bytes]]:
    """What a group's leader assigns to each member, by Kafka's range assignor.

    :param connection: To any broker: it is asked how many partitions the topics have.
    """
    wanted = {member: decode_subscription(data) for member, data in joined.members.items()}
    topics = sorted({topic for each in wanted.values() for topic in each})
    seen = await metadata(connection, topics, timeout_s=timeout_s)
    counts = {topic: len(found.partitions) for topic, found in seen.topics.items()}
    assigned = assign_by_range(wanted, counts)
    return [(member, encode_assignment(partitions)) for member, partitions in assigned.items()]


async def sync_group(
    connection: Connection,
    who: ConsumerGroupMetadata,
    assignments: Sequence[tuple[str, bytes]],
    *,
    version: int | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Synced:
    """SyncGroup (14).

    :param assignments: Of all members by their ids, from the leader; empty from the others.
    """
    if version is None:
        version = await connection.best_version(SYNC_GROUP.api, timeout_s=timeout_s)
    request = SyncGroupRequest(
        group_id=who.group,
        generation_id=who.generation,
        member_id=who.member_id,
        group_instance_id=who.instance,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=RANGE,
        assignments=tuple(
            SyncGroupRequestAssignment(member_id=member, assignment=assignment)
            for member, assignment in assignments
        ),
    )
    answer = await connection.ask(SYNC_GROUP, request, version, timeout_s=timeout_s)
    return Synced(
        version=version,
        throttle_time_ms=answer.throttle_time_ms,
        error=answer.error_code,
        assignment=bytes(answer.assignment),
    )


async def heartbeat(
    connection: Connection,
    who: ConsumerGroupMetadata,
    *,
    version: int | None = None,
    timeout_s: float = TIMEOUT_S,
) -> GroupResponse:
    """Heartbeat (12)."""
    if version is None:
        version = await connection.best_version(HEARTBEAT.api, timeout_s=timeout_s)
    request = HeartbeatRequest(
        group_id=who.group,
        generation_id=who.generation,
        member_id=who.member_id,
        group_instance_id=who.instance,
    )
    answer = await connection.ask(HEARTBEAT, request, version, timeout_s=timeout_s)
    return GroupResponse(
        version=version, throttle_time_ms=answer.throttle_time_ms, error=answer.error_code
    )


async def leave_group(
    connection: Connection,
    who: ConsumerGroupMetadata,
    *,
    version: int | None = None,
    timeout_s: float = TIMEOUT_S,
) -> GroupResponse:
    """LeaveGroup (13) of one member."""
    if version is None:
        version = await connection.best_version(LEAVE_GROUP.api, timeout_s=timeout_s)
    if version < _MANY_LEAVE:
        request = LeaveGroupRequest(group_id=who.group, member_id=who.member_id)
    else:
        identity = MemberIdentity(member_id=who.member_id, group_instance_id=who.instance)
        request = LeaveGroupRequest(group_id=who.group, members=(identity,))
    answer = await connection.ask(LEAVE_GROUP, request, version, timeout_s=timeout_s)
    own = next((each.error_code for each in answer.members), ErrorCode.NONE)
    return GroupResponse(
        version=version, throttle_time_ms=answer.throttle_time_ms, error=answer.error_code or own
    )


_TOPIC_IDS: Final = 10
"""From this version on, OffsetCommit and OffsetFetch name topics by their ids."""


class CommittedOffset(GroupResponse, frozen=True, kw_only=True):
    """The answer to OffsetFetch (9)."""

    offset: int
    """-1 where nothing is committed."""
    epoch: int
    """-1 before version 5, or where the commit said none."""
    metadata: str | None
    timestamp: int
    """Of the record before the offset, in ms; -1 where the commit said none, and in all versions
    but 5 of KIP-320's draft."""


async def commit_offset(
    connection: Connection,
    who: ConsumerGroupMetadata,
    partition: Partition,
    offset: int,
    *,
    epoch: int = NO_EPOCH,
    timestamp: int = NO_TIMESTAMP,
    note: str = "",
    version: int | None = None,
    timeout_s: float = TIMEOUT_S,
) -> GroupResponse:
    """OffsetCommit (8).

    :param epoch: Of the record before the offset; -1: not said. From version 6 on.
    :param timestamp: Of the same record, in ms; -1: not said. In version 6 of KIP-320's draft.
    :param note: The metadata that is committed with it.
    """
    if version is None:
        version = await connection.best_version(OFFSET_COMMIT.api, timeout_s=timeout_s)
    part = OffsetCommitRequestPartition(
        partition_index=partition.index,
        committed_offset=offset,
        committed_leader_epoch=epoch,
        timestamp=timestamp,
        committed_metadata=note,
    )
    names = await _names(connection, partition, version, timeout_s)
    request = commit_request(who, {partition: part}, names)
    answer = await connection.ask(OFFSET_COMMIT, request, version, timeout_s=timeout_s)
    for topic in answer.topics:
        for each in topic.partitions:
            return GroupResponse(
                version=version, throttle_time_ms=answer.throttle_time_ms, error=each.error_code
            )
    raise MalformedAnswer("the answer does not tell of the partition")


async def fetch_committed_offset(
    connection: Connection,
    group: str,
    partition: Partition,
    *,
    stable: bool = False,
    version: int | None = None,
    timeout_s: float = TIMEOUT_S,
) -> CommittedOffset:
    """OffsetFetch (9) of one partition.

    :param stable: Whether to be refused while a transaction commits for the group (version 7).
    """
    if version is None:
        version = await connection.best_version(OFFSET_FETCH.api, timeout_s=timeout_s)
    names = await _names(connection, partition, version, timeout_s)
    by_topic = {partition.topic: (partition.index,)}
    request = fetch_request(group, version, by_topic, names, stable=stable)
    answer = await connection.ask(OFFSET_FETCH, request, version, timeout_s=timeout_s)
    error, parts = fetched_parts(answer)
    if not parts:
        return CommittedOffset(
            version=version,
            throttle_time_ms=answer.throttle_time_ms,
            error=error,
            offset=-1,
            epoch=NO_EPOCH,
            metadata=None,
            timestamp=NO_TIMESTAMP,
        )
    _, part = parts[0]
    return CommittedOffset(
        version=version,
        throttle_time_ms=answer.throttle_time_ms,
        error=error or part.error_code,
        offset=part.committed_offset,
        epoch=part.committed_leader_epoch,
        metadata=part.metadata,
        timestamp=timestamp_of(part),
    )


async def _names(
    connection: Connection, partition: Partition, version: int, timeout_s: float
) -> Names:
    """What a request of this version calls the topic."""
    if version < _TOPIC_IDS:
        return {partition.topic: partition.topic}
    return {await resolve_topic_id(connection, partition, timeout_s): partition.topic}
