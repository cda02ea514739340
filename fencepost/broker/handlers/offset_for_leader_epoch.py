"""OffsetForLeaderEpoch (23), versions 2-4: where a leader epoch ends (KIP-101, KIP-279, KIP-320).

The answer is the largest epoch at or below the asked one, with its exclusive end offset: the
start of the next larger epoch, or the log end for the current one. Unknown is (-1, -1) without an
error, and so is every epoch of a topic in the old message format.

Versions: v2 current leader epoch and throttle time; v3 replica id; v4 compact types.
"""

from functools import partial

from fencepost.broker.core.outcomes import Steps, read_each, take_turns
from fencepost.broker.core.waits import Wait
from fencepost.broker.handlers.context import Context
from fencepost.broker.replication.partition_checks import find_leader
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def handle(
    ctx: Context, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse | Wait[OffsetForLeaderEpochResponse]:
    """Look up every partition asked for."""
    return take_turns(ctx.broker.scheduler, _read(ctx, request))


def _read(
    ctx: Context, request: OffsetForLeaderEpochRequest
) -> Steps[OffsetForLeaderEpochResponse]:
    topics: list[OffsetForLeaderTopicResult] = []
    for topic in request.topics:
        found = yield from read_each(topic.partitions, partial(_look_up, ctx, topic.topic))
        topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=tuple(found)))
        yield
    return OffsetForLeaderEpochResponse(topics=tuple(topics))


def refuse(request: OffsetForLeaderEpochRequest, error_code: int) -> OffsetForLeaderEpochResponse:
    """The same error for every partition."""
    return OffsetForLeaderEpochResponse(
        topics=tuple(
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=tuple(_error(p.partition, error_code) for p in topic.partitions),
            )
            for topic in request.topics
        )
    )


def _look_up(ctx: Context, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    replica = find_leader(ctx.broker, topic, asked.partition, asked.current_leader_epoch)
    if isinstance(replica, ErrorCode):
        return _error(asked.partition, replica)
    if not replica.log.config.keeps_leader_epochs:
        return EpochEndOffset(partition=asked.partition)
    epoch, end_offset = replica.end_offset_for_epoch(asked.leader_epoch)
    return EpochEndOffset(partition=asked.partition, leader_epoch=epoch, end_offset=end_offset)


def _error(index: int, code: int) -> EpochEndOffset:
    return EpochEndOffset(error_code=code, partition=index)
