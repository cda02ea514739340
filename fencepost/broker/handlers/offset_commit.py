"""OffsetCommit (8), versions 2 to 10: commit a group's offsets.

With generation -1 any client may commit for a group that has no members; the first commit creates
such a group. Otherwise only members of the present generation may commit, and not in
COMPLETING_REBALANCE. The metadata is limited by ``offset.metadata.max.bytes``. A commit restarts
the member's session.

Versions: 2-4 a retention time; 5 none (KIP-211); 6 the leader epoch of the last consumed
record (KIP-320); 7 static members (KIP-345); 9 GROUP_ID_NOT_FOUND where older versions see
ILLEGAL_GENERATION (KIP-848); 10 topic ids. In the dialect ``kip-320-draft`` 6 has the timestamp of
that record too.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple
from uuid import UUID

from fencepost.broker.core.outcomes import map_response
from fencepost.broker.core.waits import Wait
from fencepost.broker.groups import requests
from fencepost.broker.groups.offsets import Commit, PartitionCommit
from fencepost.broker.handlers.context import Context
from fencepost.broker.metadata.image import TopicImage, resolve_name
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
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
    partition: int | None
    """None for a topic that there is not, and of which no partition is named: Kafka answers it."""
    error_code: int


class _Accepted(NamedTuple):
    """The partitions of a topic that the request names and that there are."""

    topic: TopicImage
    commits: dict[int, OffsetCommitRequestPartition]
    """By index; of one that is named twice the last, which would overwrite the others."""
    named: list[tuple[_TopicKey, int]]
    """What is answered, in order of the request."""


def handle(
    ctx: Context, request: OffsetCommitRequest
) -> OffsetCommitResponse | Wait[OffsetCommitResponse]:
    view, by_id = ctx.broker.view, ctx.version >= _FIRST_WITH_TOPIC_IDS
    refused: list[_Result] = []
    accepted: dict[str, _Accepted] = {}
    for topic in request.topics:
        key = _TopicKey(topic.name, topic.topic_id)
        name = resolve_name(view, topic.name, topic.topic_id, by_id=by_id)
        image = None if isinstance(name, ErrorCode) else view.topics.get(name)
        if image is None:
            code = name if isinstance(name, ErrorCode) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            refused += [_Result(key, each.partition_index, code) for each in topic.partitions]
            if not topic.partitions:
                refused.append(_Result(key, None, code))
            continue
        of_topic = accepted.setdefault(image.name, _Accepted(image, {}, []))
        for each in topic.partitions:
            index = each.partition_index
            if 0 <= index < len(image.partitions):
                of_topic.commits[index] = each
                of_topic.named.append((key, index))
            else:
                refused.append(_Result(key, index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    partitions = tuple(commit for each in accepted.values() for commit in _commits(each))
    if not partitions:
        return _response(refused)

    def respond(codes: tuple[ErrorCode, ...]) -> OffsetCommitResponse:
        code_of = {
            (each.topic, each.partition): code for each, code in zip(partitions, codes, strict=True)
        }
        return _response(
            [
                *refused,
                *(
                    _Result(key, index, code_of[each.topic.name, index])
                    for each in accepted.values()
                    for key, index in each.named
                ),
            ]
        )

    return _commit(ctx, request, partitions, respond)


def refuse(request: OffsetCommitRequest, error_code: int) -> OffsetCommitResponse:
    return _response(
        _Result(_TopicKey(topic.name, topic.topic_id), partition.partition_index, error_code)
        for topic in request.topics
        for partition in topic.partitions
    )


def _commits(accepted: _Accepted) -> Iterator[PartitionCommit]:
    """What is committed of a topic, once for each partition."""
    for index, partition in accepted.commits.items():
        yield PartitionCommit(
            topic=accepted.topic.name,
            topic_id=accepted.topic.topic_id,
            partition=index,
            offset=partition.committed_offset,
            leader_epoch=partition.committed_leader_epoch,
            timestamp_ms=partition.timestamp,
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
        if partition is not None:
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
