"""OffsetDelete (47), version 0: delete committed offsets (KIP-496).

Offsets of a consumer group can be deleted for topics that no member is subscribed to, otherwise
GROUP_SUBSCRIBED_TO_TOPIC; those of another group only while it has no members, otherwise
NON_EMPTY_GROUP.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from fencepost.broker.core.outcomes import map_response
from fencepost.broker.core.waits import Wait
from fencepost.broker.groups import requests
from fencepost.broker.handlers.context import Context
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def handle(
    ctx: Context, request: OffsetDeleteRequest
) -> OffsetDeleteResponse | Wait[OffsetDeleteResponse]:
    shard = ctx.broker.coordinator.shard_for_named_group(request.group_id)
    if isinstance(shard, ErrorCode):
        return refuse(request, shard)
    existing: defaultdict[str, list[int]] = defaultdict(list)
    unknown: list[tuple[str, int, ErrorCode]] = []
    unknown_topics: list[str] = []  # answered also where no partition of them is named
    for topic in request.topics:
        if topic.name not in ctx.broker.view.topics:
            unknown_topics.append(topic.name)
        for partition in topic.partitions:
            index = partition.partition_index
            if ctx.broker.view.partition(topic.name, index) is None:
                unknown.append((topic.name, index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            else:
                existing[topic.name].append(index)

    def respond(deleted: requests.Deleted) -> OffsetDeleteResponse:
        error, codes = deleted
        if error is not ErrorCode.NONE:
            return refuse(request, error)
        if not (unknown or unknown_topics):
            return OffsetDeleteResponse(topics=_as_named(request.topics, codes))
        known = [(name, index, code) for name, code in codes.items() for index in existing[name]]
        return OffsetDeleteResponse(topics=_topics(unknown_topics, [*unknown, *known]))

    return map_response(requests.delete_offsets(shard, request.group_id, existing), respond)


def refuse(_request: OffsetDeleteRequest, error_code: int) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error_code)


def _as_named(
    topics: Iterable[OffsetDeleteRequestTopic], codes: Mapping[str, ErrorCode]
) -> tuple[OffsetDeleteResponseTopic, ...]:
    """As in Kafka, an entry each time that a topic is named."""
    return tuple(
        OffsetDeleteResponseTopic(
            name=topic.name,
            partitions=tuple(
                OffsetDeleteResponsePartition(
                    partition_index=each.partition_index, error_code=codes[topic.name]
                )
                for each in topic.partitions
            ),
        )
        for topic in topics
        if topic.partitions
    )


def _topics(
    names: Iterable[str], results: Iterable[tuple[str, int, ErrorCode]]
) -> tuple[OffsetDeleteResponseTopic, ...]:
    topics: dict[str, list[OffsetDeleteResponsePartition]] = {name: [] for name in names}
    for name, index, code in results:
        of_topic = topics.setdefault(name, [])
        of_topic.append(OffsetDeleteResponsePartition(partition_index=index, error_code=code))
    return tuple(
        OffsetDeleteResponseTopic(name=name, partitions=tuple(partitions))
        for name, partitions in topics.items()
    )
