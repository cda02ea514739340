"""What a group has committed: OffsetCommit and OffsetFetch, asked of its coordinator."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from fencepost.client.calls import OFFSET_COMMIT, OFFSET_FETCH
from fencepost.client.cluster import id_of
from fencepost.client.connection import TIMEOUT_S, Connection
from fencepost.client.errors import MalformedAnswer
from fencepost.client.groups import Answered, Identity
from fencepost.client.model import Partition
from fencepost.client.partitions import NO_EPOCH
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
)

_COMMIT_TOPIC_IDS: Final = 10
_FETCH_TOPIC_IDS: Final = 10
_MANY_GROUPS: Final = 8
"""From this version of OffsetFetch on, it asks for a list of groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed(Answered):
    """The answer to OffsetFetch (9)."""

    offset: int
    """-1 where nothing is committed."""
    epoch: int
    """-1 before version 5, or where the commit said none."""
    metadata: str | None


async def commit(
    connection: Connection,
    who: Identity,
    partition: Partition,
    offset: int,
    *,
    epoch: int = NO_EPOCH,
    note: str = "",
    version: int | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Answered:
    """OffsetCommit (8).

    :param epoch: Of the record before the offset; -1: not said. From version 6 on.
    :param note: The metadata that is committed with it.
    """
    if version is None:
        version = await connection.best_version(OFFSET_COMMIT.api, timeout_s=timeout_s)
    part = OffsetCommitRequestPartition(
        partition_index=partition.index,
        committed_offset=offset,
        committed_leader_epoch=epoch,
        committed_metadata=note,
    )
    topic_id = None
    if version >= _COMMIT_TOPIC_IDS:
        topic_id = await id_of(connection, partition, timeout_s)
    request = OffsetCommitRequest(
        group_id=who.group,
        generation_id_or_member_epoch=who.generation,
        member_id=who.member_id,
        group_instance_id=who.instance,
        topics=(
            OffsetCommitRequestTopic(name=partition.topic, topic_id=topic_id, partitions=(part,)),
        ),
    )
    answer = await connection.ask(OFFSET_COMMIT, request, version, timeout_s=timeout_s)
    for topic in answer.topics:
        for each in topic.partitions:
            return Answered(
                version=version, throttle_time_ms=answer.throttle_time_ms, error=each.error_code
            )
    raise MalformedAnswer("the answer does not tell of the partition")


async def committed(
    connection: Connection,
    group: str,
    partition: Partition,
    *,
    stable: bool = False,
    version: int | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Committed:
    """OffsetFetch (9) of one partition.

    :param stable: Whether to be refused while a transaction commits for the group (version 7).
    """
    if version is None:
        version = await connection.best_version(OFFSET_FETCH.api, timeout_s=timeout_s)
    topic_id = None
    if version >= _FETCH_TOPIC_IDS:
        topic_id = await id_of(connection, partition, timeout_s)
    request = _offset_fetch(group, partition, topic_id, stable=stable, version=version)
    answer = await connection.ask(OFFSET_FETCH, request, version, timeout_s=timeout_s)
    error, part = _committed_part(answer)
    if part is None:
        return Committed(
            version=version,
            throttle_time_ms=answer.throttle_time_ms,
            error=error,
            offset=-1,
            epoch=-1,
            metadata=None,
        )
    return Committed(
        version=version,
        throttle_time_ms=answer.throttle_time_ms,
        error=error or part.error_code,
        offset=part.committed_offset,
        epoch=part.committed_leader_epoch,
        metadata=part.metadata,
    )


def _offset_fetch(
    group: str, partition: Partition, topic_id: UUID | None, *, stable: bool, version: int
) -> OffsetFetchRequest:
    if version < _MANY_GROUPS:
        topic = OffsetFetchRequestTopic(name=partition.topic, partition_indexes=(partition.index,))
        return OffsetFetchRequest(group_id=group, topics=(topic,), require_stable=stable)
    topics = OffsetFetchRequestTopics(
        name=partition.topic, topic_id=topic_id, partition_indexes=(partition.index,)
    )
    wanted = OffsetFetchRequestGroup(group_id=group, topics=(topics,))
    return OffsetFetchRequest(groups=(wanted,), require_stable=stable)


def _committed_part(
    answer: OffsetFetchResponse,
) -> tuple[int, OffsetFetchResponsePartition | OffsetFetchResponsePartitions | None]:
    """The error of the whole answer, and the partition's part of it."""
    for group in answer.groups:
        for topics in group.topics:
            for each in topics.partitions:
                return group.error_code, each
        return group.error_code, None
    for topic in answer.topics:
        for part in topic.partitions:
            return answer.error_code, part
    return answer.error_code, None
