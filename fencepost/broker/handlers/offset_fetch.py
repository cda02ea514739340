"""OffsetFetch (9), versions 1 to 10: the committed offsets of groups.

A partition without a committed offset is -1 without an error, and so is every partition of an
unknown group: clients treat any other response as a failure. Partitions need not exist.

Versions: 2 all partitions, and an error for the group; 5 leader epochs (KIP-320); 7 stable offsets:
the response waits until all commits are replicated (KIP-447); 8 several groups (KIP-709); 9 member
id and epoch, which are ignored for classic groups (KIP-848); 10 topic ids.

Missing: UNSTABLE_OFFSET_COMMIT, which needs transactions.
"""

from collections.abc import Iterable
from typing import Final, TypeAlias

from fencepost.broker.core.outcomes import (
    Steps,
    gather_responses,
    map_response,
    respond_after,
    take_turns,
)
from fencepost.broker.core.waits import Wait
from fencepost.broker.groups import requests
from fencepost.broker.groups.offsets import find_offset
from fencepost.broker.groups.records import CommittedOffset, ReplayedState
from fencepost.broker.handlers.context import Context
from fencepost.broker.metadata.image import ClusterImage, resolve_name
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

_FIRST_WITH_GROUP_ERROR: Final = 2
_FIRST_WITH_MANY_GROUPS: Final = 8
_FIRST_WITH_TOPIC_IDS: Final = 10
_NO_OFFSET: Final = -1
_Fetched: TypeAlias = OffsetFetchResponseGroup | Wait[OffsetFetchResponseGroup]


def handle(
    ctx: Context, request: OffsetFetchRequest
) -> OffsetFetchResponse | Wait[OffsetFetchResponse]:
    if ctx.version >= _FIRST_WITH_MANY_GROUPS:
        return take_turns(ctx.broker.scheduler, _fetch_all(ctx, request))
    steps = _fetch(ctx, _one_group(request), stable=request.require_stable)
    group = take_turns(ctx.broker.scheduler, steps)
    return map_response(group, lambda fetched: _single(ctx.version, request, fetched))


def _fetch_all(
    ctx: Context, request: OffsetFetchRequest
) -> Steps[OffsetFetchResponse | Wait[OffsetFetchResponse]]:
    """What is stable is waited for in all groups at once."""
    fetched: list[_Fetched] = []
    for group in request.groups:
        fetched.append((yield from _fetch(ctx, group, stable=request.require_stable)))
        yield
    return gather_responses(fetched, lambda groups: OffsetFetchResponse(groups=tuple(groups)))


def refuse(request: OffsetFetchRequest, error_code: int) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        error_code=error_code,
        topics=_refused_topics(request.topics or (), error_code),
        groups=tuple(
            OffsetFetchResponseGroup(group_id=group.group_id, error_code=error_code)
            for group in request.groups
        ),
    )


def _one_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    """The one group of a request before v8, in the form of later versions."""
    topics = None
    if request.topics is not None:
        topics = tuple(
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        )
    return OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)


def _single(
    version: int, request: OffsetFetchRequest, group: OffsetFetchResponseGroup
) -> OffsetFetchResponse:
    """The response for the one group before v8; before v2 partitions have the group's error."""
    if group.error_code and version < _FIRST_WITH_GROUP_ERROR:
        return OffsetFetchResponse(topics=_refused_topics(request.topics or (), group.error_code))
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=tuple(
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetFetchResponsePartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code,
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in group.topics
        ),
    )


def _refused_topics(
    topics: Iterable[OffsetFetchRequestTopic], error_code: int
) -> tuple[OffsetFetchResponseTopic, ...]:
    return tuple(
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=tuple(
                OffsetFetchResponsePartition(
                    partition_index=index, committed_offset=_NO_OFFSET, error_code=error_code
                )
                for index in topic.partition_indexes
            ),
        )
        for topic in topics
    )


def _fetch(ctx: Context, group: OffsetFetchRequestGroup, *, stable: bool) -> Steps[_Fetched]:
    shard = ctx.broker.coordinator.shard_for(group.group_id)
    if isinstance(shard, ErrorCode):
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=shard)
    offsets = requests.read_offsets(shard, stable=stable)
    if not isinstance(offsets, Wait):
        return (yield from _read(ctx, group, offsets))

    def read(known: requests.OffsetsView) -> _Fetched:
        return take_turns(ctx.broker.scheduler, _read(ctx, group, known))

    return respond_after(offsets, read)


def _read(
    ctx: Context, group: OffsetFetchRequestGroup, offsets: requests.OffsetsView
) -> Steps[OffsetFetchResponseGroup]:
    """What the group has committed of the partitions that are asked for."""
    if offsets.error is not ErrorCode.NONE:
        # Consumers before 3.9 do not handle any other error here.
        return OffsetFetchResponseGroup(
            group_id=group.group_id, error_code=ErrorCode.NOT_COORDINATOR
        )
    view, by_id = ctx.broker.view, ctx.version >= _FIRST_WITH_TOPIC_IDS
    if group.topics is None:
        found = _all_topics(view, offsets.state, group.group_id, by_id=by_id)
        return OffsetFetchResponseGroup(group_id=group.group_id, topics=found)
    topics: list[OffsetFetchResponseTopics] = []
    for topic in group.topics:
        name = resolve_name(view, topic.name, topic.topic_id, by_id=by_id)
        image = None if isinstance(name, ErrorCode) else view.topics.get(name)
        topic_id = None if image is None else image.topic_id
        partitions: list[OffsetFetchResponsePartitions] = []
        for index in topic.partition_indexes:
            if isinstance(name, ErrorCode):
                partitions.append(_partition(index, None, name))
            else:
                committed = find_offset(offsets.state, group.group_id, name, topic_id, index)
                partitions.append(_partition(index, committed))
            yield
        topics.append(
            OffsetFetchResponseTopics(
                name=topic.name, topic_id=topic.topic_id, partitions=tuple(partitions)
            )
        )
        yield
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=tuple(topics))


def _all_topics(
    view: ClusterImage, state: ReplayedState, group_id: str, *, by_id: bool
) -> tuple[OffsetFetchResponseTopics, ...]:
    """All committed offsets of the group; by id, only of topics that still exist."""
    topics = []
    for name, committed in state.offsets.get(group_id, {}).items():
        topic_image = view.topics.get(name)
        if by_id and topic_image is None:
            continue
        topics.append(
            OffsetFetchResponseTopics(
                name=name,
                topic_id=None if topic_image is None else topic_image.topic_id,
                partitions=tuple(_partition(index, one) for index, one in committed.items()),
            )
        )
    return tuple(topics)


def _partition(
    index: int, committed: CommittedOffset | None, error: ErrorCode = ErrorCode.NONE
) -> OffsetFetchResponsePartitions:
    if committed is None:
        return OffsetFetchResponsePartitions(
            partition_index=index, committed_offset=_NO_OFFSET, error_code=error
        )
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )
