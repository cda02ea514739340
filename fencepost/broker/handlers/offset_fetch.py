"""OffsetFetch (9), versions 1 to 10: the committed offsets of groups.

A partition without a committed offset is -1 without an error, and so is every partition of an
unknown group: clients treat any other response as a failure. Partitions need not exist.

Versions: 2 all partitions, and an error for the group; 5 leader epochs (KIP-320); 7 stable offsets:
the response waits until all commits are replicated, and a partition for which an open transaction
has committed an offset is UNSTABLE_OFFSET_COMMIT (KIP-447); 8 several groups (KIP-709); 9 member
id and epoch, which are ignored for classic groups (KIP-848); 10 topic ids. In the dialect
``kip-320-draft`` 5 has the timestamps that were committed too.
"""

from collections.abc import Callable, Iterable
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

from fencepost.broker.core.outcomes import (
    Steps,
    gather_responses,
    map_response,
    respond_after,
    take_turns,
)
from fencepost.broker.core.waits import Wait
from fencepost.broker.groups import requests
from fencepost.broker.groups.offsets import find_offset, is_unstable
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
P = TypeVar("P", OffsetFetchResponsePartition, OffsetFetchResponsePartitions)
"""A partition in the response, before v8 and from then on."""


class _Topic(NamedTuple, Generic[P]):
    name: str
    topic_id: UUID | None
    partitions: tuple[P, ...]


class _Fetched(NamedTuple, Generic[P]):
    """What a group has committed, for a response of any version."""

    group_id: str
    error_code: ErrorCode
    topics: tuple[_Topic[P], ...] = ()


_MakePartition: TypeAlias = Callable[[int, CommittedOffset | None, ErrorCode], P]


def handle(
    ctx: Context, request: OffsetFetchRequest
) -> OffsetFetchResponse | Wait[OffsetFetchResponse]:
    if ctx.version >= _FIRST_WITH_MANY_GROUPS:
        return take_turns(ctx.broker.scheduler, _fetch_all(ctx, request))
    steps = _fetch(ctx, _one_group(request), _partition_before_v8, stable=request.require_stable)
    group = take_turns(ctx.broker.scheduler, steps)
    return map_response(group, lambda fetched: _single(ctx.version, request, fetched))


def _fetch_all(
    ctx: Context, request: OffsetFetchRequest
) -> Steps[OffsetFetchResponse | Wait[OffsetFetchResponse]]:
    """What is stable is waited for in all groups at once."""
    fetched: list[OffsetFetchResponseGroup | Wait[OffsetFetchResponseGroup]] = []
    for group in request.groups:
        found = yield from _fetch(ctx, group, _partition, stable=request.require_stable)
        fetched.append(map_response(found, _group))
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
    version: int, request: OffsetFetchRequest, group: _Fetched[OffsetFetchResponsePartition]
) -> OffsetFetchResponse:
    """The response for the one group before v8; before v2 partitions have the group's error."""
    if group.error_code and version < _FIRST_WITH_GROUP_ERROR:
        return OffsetFetchResponse(topics=_refused_topics(request.topics or (), group.error_code))
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=tuple(
            OffsetFetchResponseTopic(name=topic.name, partitions=topic.partitions)
            for topic in group.topics
        ),
    )


def _group(fetched: _Fetched[OffsetFetchResponsePartitions]) -> OffsetFetchResponseGroup:
    """The response for one group from v8 on."""
    return OffsetFetchResponseGroup(
        group_id=fetched.group_id,
        error_code=fetched.error_code,
        topics=tuple(
            OffsetFetchResponseTopics(
                name=topic.name, topic_id=topic.topic_id, partitions=topic.partitions
            )
            for topic in fetched.topics
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


def _fetch(
    ctx: Context, group: OffsetFetchRequestGroup, make: _MakePartition[P], *, stable: bool
) -> Steps[_Fetched[P] | Wait[_Fetched[P]]]:
    shard = ctx.broker.coordinator.shard_for(group.group_id)
    if isinstance(shard, ErrorCode):
        return _Fetched(group.group_id, shard)
    offsets = requests.read_offsets(shard, stable=stable)
    if not isinstance(offsets, Wait):
        return (yield from _read(ctx, group, offsets, make, stable=stable))

    def read(known: requests.OffsetsView) -> _Fetched[P] | Wait[_Fetched[P]]:
        return take_turns(ctx.broker.scheduler, _read(ctx, group, known, make, stable=stable))

    return respond_after(offsets, read)


def _read(
    ctx: Context,
    group: OffsetFetchRequestGroup,
    offsets: requests.OffsetsView,
    make: _MakePartition[P],
    *,
    stable: bool,
) -> Steps[_Fetched[P]]:
    """What the group has committed of the partitions that are asked for."""
    if offsets.error is not ErrorCode.NONE:
        # Consumers before 3.9 do not handle any other error here.
        return _Fetched(group.group_id, ErrorCode.NOT_COORDINATOR)
    view, by_id = ctx.broker.view, ctx.version >= _FIRST_WITH_TOPIC_IDS
    if group.topics is None:
        found = _all_topics(view, offsets.state, group.group_id, make, by_id=by_id, stable=stable)
        return _Fetched(group.group_id, ErrorCode.NONE, found)
    topics: list[_Topic[P]] = []
    for topic in group.topics:
        name = resolve_name(view, topic.name, topic.topic_id, by_id=by_id)
        image = None if isinstance(name, ErrorCode) else view.topics.get(name)
        topic_id = None if image is None else image.topic_id
        partitions: list[P] = []
        for index in topic.partition_indexes:
            if isinstance(name, ErrorCode):
                partitions.append(make(index, None, name))
            elif stable and is_unstable(offsets.state, group.group_id, name, index):
                partitions.append(make(index, None, ErrorCode.UNSTABLE_OFFSET_COMMIT))
            else:
                committed = find_offset(offsets.state, group.group_id, name, topic_id, index)
                partitions.append(make(index, committed, ErrorCode.NONE))
            yield
        topics.append(_Topic(topic.name, topic.topic_id, tuple(partitions)))
        yield
    return _Fetched(group.group_id, ErrorCode.NONE, tuple(topics))


def _all_topics(
    view: ClusterImage,
    state: ReplayedState,
    group_id: str,
    make: _MakePartition[P],
    *,
    by_id: bool,
    stable: bool,
) -> tuple[_Topic[P], ...]:
    """All committed offsets of the group; by id, only of topics that still exist."""
    topics = []
    for name, committed in state.offsets.get(group_id, {}).items():
        topic_image = view.topics.get(name)
        if by_id and topic_image is None:
            continue
        topic_id = None if topic_image is None else topic_image.topic_id
        partitions = tuple(
            make(index, None, ErrorCode.UNSTABLE_OFFSET_COMMIT)
            if stable and is_unstable(state, group_id, name, index)
            else make(index, one, ErrorCode.NONE)
            for index, one in committed.items()
        )
        topics.append(_Topic(name, topic_id, partitions))
    return tuple(topics)


def _partition_before_v8(
    index: int, committed: CommittedOffset | None, error: ErrorCode
) -> OffsetFetchResponsePartition:
    if committed is None:
        return OffsetFetchResponsePartition(
            partition_index=index, committed_offset=_NO_OFFSET, error_code=error
        )
    return OffsetFetchResponsePartition(
        partition_index=index,
        committed_offset=committed.offset,
        timestamp=committed.timestamp_ms,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )


def _partition(
    index: int, committed: CommittedOffset | None, error: ErrorCode
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
