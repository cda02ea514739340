"""The messages of OffsetFetch (9) and OffsetCommit (8), in all their versions."""

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias
from uuid import UUID

from fencepost.client.consumer.cluster_metadata import NO_EPOCH
from fencepost.client.consumer.model import OffsetAndMetadata
from fencepost.client.consumer.position import NO_TIMESTAMP
from fencepost.client.model import ConsumerGroupMetadata, Partition
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from fencepost.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

Committed: TypeAlias = dict[Partition, OffsetAndMetadata | None]
"""The committed offset of each partition; None where there is none."""
Names: TypeAlias = dict[str | UUID | None, str]
"""Topics by what a request and its answer call them: names, or ids."""
FetchedPart: TypeAlias = OffsetFetchResponsePartition | OffsetFetchResponsePartitions
"""A partition in an answer to OffsetFetch, before version 8 and from there on."""
_MANY_GROUPS: Final = 8
"""From this version of OffsetFetch on, it asks for a list of groups."""


def fetch_request(
    group: str,
    version: int,
    by_topic: Mapping[str, tuple[int, ...]],
    names: Names,
    *,
    stable: bool = True,
) -> OffsetFetchRequest:
    """OffsetFetch of some partitions.

    :param stable: Whether to be refused while a transaction commits for them (KIP-447).
    """
    if version < _MANY_GROUPS:
        by_name = tuple(
            OffsetFetchRequestTopic(name=topic, partition_indexes=indexes)
            for topic, indexes in by_topic.items()
        )
        return OffsetFetchRequest(group_id=group, topics=by_name, require_stable=stable)
    topics = tuple(
        OffsetFetchRequestTopics(
            name="" if isinstance(name, UUID) else topic,
            topic_id=name if isinstance(name, UUID) else None,
            partition_indexes=by_topic[topic],
        )
        for name, topic in names.items()
    )
    asked = OffsetFetchRequestGroup(group_id=group, topics=topics)
    return OffsetFetchRequest(groups=(asked,), require_stable=stable)


def commit_request(
    member: ConsumerGroupMetadata,
    offsets: Mapping[Partition, OffsetCommitRequestPartition],
    names: Names,
) -> OffsetCommitRequest:
    """OffsetCommit of some partitions by a member, or by a consumer that is none."""
    return OffsetCommitRequest(
        group_id=member.group,
        generation_id_or_member_epoch=member.generation,
        member_id=member.member_id,
        group_instance_id=member.instance,
        topics=tuple(
            OffsetCommitRequestTopic(
                name="" if isinstance(name, UUID) else topic,
                topic_id=name if isinstance(name, UUID) else None,
                partitions=tuple(offset for each, offset in offsets.items() if each.topic == topic),
            )
            for name, topic in names.items()
        ),
    )


def group_by_topic(partitions: Iterable[Partition]) -> dict[str, tuple[int, ...]]:
    """The indexes of the partitions of each topic."""
    found: dict[str, tuple[int, ...]] = {}
    for each in sorted(partitions, key=lambda p: (p.topic, p.index)):
        found[each.topic] = (*found.get(each.topic, ()), each.index)
    return found


def committed_partition(
    partition: Partition, offset: OffsetAndMetadata
) -> OffsetCommitRequestPartition:
    """An offset as OffsetCommit has it."""
    return OffsetCommitRequestPartition(
        partition_index=partition.index,
        committed_offset=offset.offset,
        committed_leader_epoch=NO_EPOCH if offset.leader_epoch is None else offset.leader_epoch,
        committed_metadata=offset.metadata,
        timestamp=NO_TIMESTAMP if offset.timestamp is None else offset.timestamp,
    )


def read_fetched(response: OffsetFetchResponse, names: Names) -> tuple[int, Committed]:
    """The first error of an answer, or what is committed."""
    found: Committed = {}
    error, parts = fetched_parts(response)
    codes = [error]
    for key, part in parts:
        codes.append(part.error_code)
        if key in names:
            found[Partition(topic=names[key], index=part.partition_index)] = _read_part(part)
    return next((code for code in codes if code != ErrorCode.NONE), ErrorCode.NONE), found


def fetched_parts(
    response: OffsetFetchResponse,
) -> tuple[int, list[tuple[str | UUID, FetchedPart]]]:
    """The error of the whole answer, and each partition with the name or id of its topic."""
    whole = response.groups[0] if response.groups else response
    parts: list[tuple[str | UUID, FetchedPart]] = []
    for topic in whole.topics:
        topic_id = topic.topic_id if isinstance(topic, OffsetFetchResponseTopics) else None
        parts += [(topic_id or topic.name, part) for part in topic.partitions]
    return whole.error_code, parts


def timestamp_of(part: FetchedPart) -> int:
    """Of the record before a committed offset; `NO_TIMESTAMP` outside of KIP-320's draft."""
    return part.timestamp if isinstance(part, OffsetFetchResponsePartition) else NO_TIMESTAMP


def _read_part(part: FetchedPart) -> OffsetAndMetadata | None:
    if part.committed_offset < 0:
        return None
    timestamp = timestamp_of(part)
    return OffsetAndMetadata(
        offset=part.committed_offset,
        leader_epoch=None if part.committed_leader_epoch < 0 else part.committed_leader_epoch,
        metadata=part.metadata or "",
        timestamp=None if timestamp < 0 else timestamp,
    )
