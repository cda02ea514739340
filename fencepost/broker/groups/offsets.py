"""Committed offsets: decisions on commits and deletions, look-ups, and expiry.

These functions only decide. The state changes when the shard replays the records.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from uuid import UUID

from msgspec import Struct

from fencepost.broker.coordinator.shard import CoordinatorResult
from fencepost.broker.groups.classic_group import ClassicGroup, ClassicGroupState
from fencepost.broker.groups.group_config import GroupConfig
from fencepost.broker.groups.pending_offsets import OffsetKey
from fencepost.broker.groups.records import (
    CommittedOffset,
    GroupResult,
    OffsetRecord,
    ReplayedState,
)
from fencepost.protocol.errors import ErrorCode

NO_RETENTION: Final = -1
"""OffsetCommit's retention time where the broker's retention applies."""


class PartitionCommit(Struct, frozen=True, kw_only=True):
    """One partition's offset as a client commits it."""

    topic: str
    topic_id: UUID | None
    partition: int
    offset: int
    leader_epoch: int
    timestamp_ms: int = -1
    """Of the last consumed record, from clients of ``kip-320-draft``; -1 for none."""
    metadata: str | None


class Commit(Struct, frozen=True, kw_only=True):
    """An OffsetCommit for partitions that exist."""

    group_id: str
    generation: int
    """-1 from consumers that manage their partitions themselves."""
    member_id: str
    group_instance_id: str | None
    retention_time_ms: int
    partitions: tuple[PartitionCommit, ...]
    missing_group_error: ErrorCode
    """For a generation of a group that does not exist: GROUP_ID_NOT_FOUND from v9 on, and
    ILLEGAL_GENERATION before and in a transaction."""


def check_commit(group: ClassicGroup | None, commit: Commit) -> ErrorCode:
    """Whether this client may commit for the group."""
    if group is None:
        return ErrorCode.NONE if commit.generation < 0 else commit.missing_group_error
    if commit.generation < 0 and group.state is ClassicGroupState.EMPTY:
        return ErrorCode.NONE
    error = group.check_member(commit.member_id, commit.group_instance_id)
    if error is not ErrorCode.NONE:
        return error
    if commit.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if group.state is ClassicGroupState.COMPLETING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def check_transactional_commit(group: ClassicGroup | None, commit: Commit) -> ErrorCode:
    """Whether a transaction may commit for the group (KIP-447).

    Producers before TxnOffsetCommit v3 name no member, and so may commit in any state.
    """
    if group is None:
        return ErrorCode.NONE if commit.generation < 0 else commit.missing_group_error
    if commit.generation < 0 and group.state is ClassicGroupState.EMPTY:
        return ErrorCode.NONE
    if commit.generation < 0 and not commit.member_id and commit.group_instance_id is None:
        return ErrorCode.NONE
    error = group.check_member(commit.member_id, commit.group_instance_id)
    if error is ErrorCode.NONE and commit.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    return error


def decide_commit(
    commit: Commit, config: GroupConfig, now_ms: int
) -> GroupResult[tuple[ErrorCode, ...]]:
    """Commit; the response is one error code for each partition, in the request's order."""
    codes = []
    records = []
    for partition in commit.partitions:
        if _utf16_units(partition.metadata or "") > config.offset_metadata_max_bytes:
            codes.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
            continue
        codes.append(ErrorCode.NONE)
        records.append(
            OffsetRecord(
                group_id=commit.group_id,
                topic=partition.topic,
                partition=partition.partition,
                value=_committed(commit, partition, config, now_ms),
            )
        )
    return CoordinatorResult(response=tuple(codes), records=tuple(records))


def _committed(
    commit: Commit, partition: PartitionCommit, config: GroupConfig, now_ms: int
) -> CommittedOffset:
    expires = commit.retention_time_ms != NO_RETENTION
    return CommittedOffset(
        offset=partition.offset,
        # The schema with an expiry is older than leader epochs.
        leader_epoch=-1 if expires else partition.leader_epoch,
        metadata=partition.metadata or "",
        commit_timestamp_ms=now_ms,
        expire_timestamp_ms=now_ms + commit.retention_time_ms if expires else -1,
        topic_id=partition.topic_id if config.offset_value_version >= 4 and not expires else None,
        timestamp_ms=partition.timestamp_ms,
    )


def _utf16_units(text: str) -> int:
    """The length that Java compares with ``offset.metadata.max.bytes``."""
    return len(text) + sum(character > "\uffff" for character in text)


def find_offset(
    state: ReplayedState, group_id: str, topic: str, topic_id: UUID | None, partition: int
) -> CommittedOffset | None:
    """A group's committed offset; None if it belongs to a deleted topic of the same name."""
    committed = state.offset(group_id, topic, partition)
    if committed is None or committed.topic_id is None or topic_id is None:
        return committed
    return committed if committed.topic_id == topic_id else None


def is_unstable(state: ReplayedState, group_id: str, topic: str, partition: int) -> bool:
    """Whether an open transaction has committed an offset, which may become the group's."""
    return state.pending.has(OffsetKey(group_id, topic, partition))


def check_delete(group: ClassicGroup) -> ErrorCode:
    """Offsets of a group with members can be deleted if its subscriptions are known (KIP-496)."""
    if group.state is ClassicGroupState.EMPTY or group.uses_consumer_protocol:
        return ErrorCode.NONE
    return ErrorCode.NON_EMPTY_GROUP


def decide_delete(
    state: ReplayedState, group: ClassicGroup, partitions: Mapping[str, Sequence[int]]
) -> GroupResult[dict[str, ErrorCode]]:
    """Delete offsets of these partitions by topic; the response is an error code for each topic."""
    codes = {
        topic: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        if group.is_subscribed_to(topic)
        else ErrorCode.NONE
        for topic in partitions
    }
    records = tuple(
        tombstone(group.group_id, topic, partition)
        for topic, indexes in partitions.items()
        for partition in indexes
        if codes[topic] is ErrorCode.NONE
        and (
            state.offset(group.group_id, topic, partition) is not None
            or is_unstable(state, group.group_id, topic, partition)
        )
    )
    return CoordinatorResult(response=codes, records=records)


def tombstone(group_id: str, topic: str, partition: int) -> OffsetRecord:
    """The record that deletes a committed offset."""
    return OffsetRecord(group_id=group_id, topic=topic, partition=partition, value=None)


def tombstones_of_group(state: ReplayedState, group_id: str) -> Iterator[OffsetRecord]:
    """Tombstones of all committed and pending offsets of a group."""
    for topic, partitions in state.offsets.get(group_id, {}).items():
        for partition in partitions:
            yield tombstone(group_id, topic, partition)
    for key in state.pending.of_group(group_id):
        if state.offset(*key) is None:
            yield tombstone(*key)


def tombstones_of_topics(state: ReplayedState, topics: frozenset[str]) -> Iterator[OffsetRecord]:
    """Tombstones of all committed and pending offsets of deleted topics."""
    for group_id, committed in state.offsets.items():
        for topic in topics & committed.keys():
            for partition in committed[topic]:
                yield tombstone(group_id, topic, partition)
    for pending in state.pending.by_producer.values():
        yield from (tombstone(*key) for key in pending if key.topic in topics)


def tombstones_of_expired(
    state: ReplayedState, group: ClassicGroup, config: GroupConfig, now_ms: int
) -> tuple[OffsetRecord, ...]:
    """Tombstones of a group's expired offsets (KIP-211).

    The retention starts when the group becomes empty; for a simple group, and for topics that a
    group of consumers is no longer subscribed to, at each commit. Offsets of subscribed topics do
    not expire, nor those of partitions for which a transaction has committed others.
    """
    committed = state.offsets.get(group.group_id, {})
    return tuple(
        tombstone(group.group_id, topic, partition)
        for topic, partitions in committed.items()
        if not group.is_subscribed_to(topic)
        for partition, offset in partitions.items()
        if _is_expired(group, offset, config, now_ms)
        and not is_unstable(state, group.group_id, topic, partition)
    )


def _is_expired(
    group: ClassicGroup, offset: CommittedOffset, config: GroupConfig, now_ms: int
) -> bool:
    since_ms = _retained_since(group, offset)
    if since_ms is None:
        return False
    if offset.expire_timestamp_ms != -1:
        return now_ms >= offset.expire_timestamp_ms
    return now_ms - since_ms >= config.offsets_retention_ms


def _retained_since(group: ClassicGroup, offset: CommittedOffset) -> int | None:
    """When the retention of an offset started; None if it cannot expire now."""
    if group.protocol_type is None:
        return offset.commit_timestamp_ms
    if group.state is ClassicGroupState.EMPTY:
        unknown = group.state_timestamp_ms == -1
        return offset.commit_timestamp_ms if unknown else group.state_timestamp_ms
    stable = group.state is ClassicGroupState.STABLE
    if stable and group.uses_consumer_protocol and group.subscribed is not None:
        return offset.commit_timestamp_ms
    return None
