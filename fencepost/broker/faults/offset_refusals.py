"""Refusals of offset APIs whose handlers have only an error for the whole request or group."""

from typing import Final

from fencepost.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from fencepost.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

_NO_OFFSET: Final = -1


def refused_group(requested: OffsetFetchRequestGroup, code: int) -> OffsetFetchResponseGroup:
    """The same error for every partition of a group."""
    return OffsetFetchResponseGroup(
        group_id=requested.group_id,
        topics=tuple(
            OffsetFetchResponseTopics(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    OffsetFetchResponsePartitions(
                        partition_index=index, committed_offset=_NO_OFFSET, error_code=code
                    )
                    for index in topic.partition_indexes
                ),
            )
            for topic in requested.topics or ()
        ),
    )


def refused_offset_deletions(request: OffsetDeleteRequest, code: int) -> OffsetDeleteResponse:
    """The same error for every partition, and none for the whole."""
    return OffsetDeleteResponse(
        topics=tuple(
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetDeleteResponsePartition(
                        partition_index=partition.partition_index, error_code=code
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )
