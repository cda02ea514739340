"""OffsetCommit (8), versions 2 to 10: commit a group's offsets.

With generation -1 any client may commit for a group that has no members; the first commit creates
such a group. Otherwise only members of the present generation may commit, and not in
COMPLETING_REBALANCE. The metadata is limited by ``offset.metadata.max.bytes``. A commit restarts
the member's session.

Versions: 2-4 a retention time; 5 none (KIP-211); 6 the leader epoch of the last consumed
record (KIP-320); 7 static members (KIP-345); 9 GROUP_ID_NOT_FOUND where older versions see
ILLEGAL_GENERATION (KIP-848); 10 topic ids.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple
from uuid import UUID

from fencepost.broker.core.outcomes import map_response
from fencepost.broker.core.waits import Wait
from fencepost.broker.groups import requests
from fencepost.broker.groups.offsets import Commit, PartitionCommit
from fencepost.broker.handlers.context import Context
from fencepost.broker.metadata.image import resolve_name
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

_FIRST_WITH_NOT_FOUND: Final = 9
_FIRST_WITH_TOPIC_IDS: Final = 10


class _TopicKey(NamedTuple):
    """A topic, as identified by the request."""

    name: str
    topic_id: UUID | None


class _Result(NamedTuple):
    topic: _TopicKey
    partition: int
    error_code: int


def handle(
    ctx: Context, request: OffsetCommitRequest
) -> OffsetCommitResponse | Wait[OffsetCommitResponse]:
    refused: list[_Result] = []
    keys: list[_TopicKey] = []
    accepted: list[PartitionCommit] = []
    for topic in request.topics:
        key = _TopicKey(topic.name, topic.topic_id)
        name = resolve_name(
            ctx.broker.view, topic.name, topic.topic_id, by_id=ctx.version >= _FIRST_WITH_TOPIC_IDS
        )
        for commit in _commits(ctx, name, topic):
            if isinstance(commit, PartitionCommit):
                accepted.append(commit)
                keys.append(key)
            else:
                refused.append(_Result(key, *commit))
    if not accepted:
        return _response(refused)

    def respond(codes: tuple[ErrorCode, ...]) -> OffsetCommitResponse:
        committed = zip(keys, accepted, codes, strict=True)
        return _response([*refused, *(_Result(k, c.partition, code) for k, c, code in committed)])

    return _commit(ctx, request, tuple(accepted), respond)


def refuse(request: OffsetCommitRequest, error_code: int) -> OffsetCommitResponse:
    return _response(
        _Result(_TopicKey(topic.name, topic.topic_id), partition.partition_index, error_code)
        for topic in request.topics
        for partition in topic.partitions
    )


def _commits(
    ctx: Context, name: str | ErrorCode, topic: OffsetCommitRequestTopic
) -> Iterable[PartitionCommit | tuple[int, ErrorCode]]:
    """Each partition's commit, or its index and an error."""
    for partition in topic.partitions:
        index = partition.partition_index
        if isinstance(name, ErrorCode):
            yield index, name
        elif ctx.broker.view.partition(name, index) is None:
            yield index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            yield PartitionCommit(
                topic=name,
                topic_id=ctx.broker.view.topics[name].topic_id,
                partition=index,
                offset=partition.committed_offset,
                leader_epoch=partition.committed_leader_epoch,
                metadata=partition.committed_metadata,
            )


def _commit(
    ctx: Context,
    request: OffsetCommitRequest,
    partitions: tuple[PartitionCommit, ...],
    respond: Callable[[tuple[ErrorCode, ...]], OffsetCommitResponse],
) -> OffsetCommitResponse | Wait[OffsetCommitResponse]:
    shard = ctx.broker.coordinator.shard_for(request.group_id)
    if isinstance(shard, ErrorCode):
        return respond((shard,) * len(partitions))
    not_found = ctx.version >= _FIRST_WITH_NOT_FOUND
    commit = Commit(
        group_id=request.group_id,
        generation=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        retention_time_ms=request.retention_time_ms,
        partitions=partitions,
        missing_group_error=(
            ErrorCode.GROUP_ID_NOT_FOUND if not_found else ErrorCode.ILLEGAL_GENERATION
        ),
    )
    return map_response(requests.commit(shard, commit), respond)


def _response(results: Iterable[_Result]) -> OffsetCommitResponse:
    """One entry for each topic; refused partitions come first."""
    topics: defaultdict[_TopicKey, list[OffsetCommitResponsePartition]] = defaultdict(list)
    last: _TopicKey | None = None
    for topic, partition, error_code in results:
        if topic is not last:  # mostly the same: a topic id takes long to hash
            last, of_topic = topic, topics[topic]
        of_topic.append(
            OffsetCommitResponsePartition(partition_index=partition, error_code=error_code)
        )
    return OffsetCommitResponse(
        topics=tuple(
            OffsetCommitResponseTopic(
                name=key.name, topic_id=key.topic_id, partitions=tuple(partitions)
            )
            for key, partitions in topics.items()
        )
    )
