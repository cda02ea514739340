"""ListPartitionReassignments (46), version 0: the reassignments in progress (KIP-455).

Of the partitions that the request names, or of all (null). What is not being reassigned, or is not
there at all, is left out without an error. The controller's registry is asked, not this broker's
view.
"""

from collections.abc import Iterable, Iterator

from fencepost.broker.controller.controller_apis import ControllerContext
from fencepost.broker.controller.reassignment import is_in_progress
from fencepost.broker.metadata.image import ClusterImage
from fencepost.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def handle(
    ctx: ControllerContext, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """List what is in progress."""
    image = ctx.controller.image
    asked: Iterable[tuple[str, Iterable[int]]]
    if request.topics is None:
        asked = ((t.name, range(len(t.partitions))) for t in image.topics.values())
    else:
        asked = ((t.name, t.partition_indexes) for t in request.topics)
    found = ((name, tuple(_ongoing(image, name, indexes))) for name, indexes in asked)
    return ListPartitionReassignmentsResponse(
        error_message=None,
        topics=tuple(
            OngoingTopicReassignment(name=name, partitions=partitions)
            for name, partitions in found
            if partitions
        ),
    )


def refuse(
    request: ListPartitionReassignmentsRequest, error_code: int
) -> ListPartitionReassignmentsResponse:
    """The error for the whole; every partition that the request names, without replicas."""
    return ListPartitionReassignmentsResponse(
        error_code=error_code,
        error_message=None,
        topics=tuple(
            OngoingTopicReassignment(
                name=topic.name,
                partitions=tuple(
                    OngoingPartitionReassignment(partition_index=index)
                    for index in topic.partition_indexes
                ),
            )
            for topic in request.topics or ()
        ),
    )


def _ongoing(
    image: ClusterImage, topic: str, indexes: Iterable[int]
) -> Iterator[OngoingPartitionReassignment]:
    for index in indexes:
        partition = image.partition(topic, index)
        if partition is not None and is_in_progress(partition):
            yield OngoingPartitionReassignment(
                partition_index=index,
                replicas=partition.replicas,
                adding_replicas=partition.adding,
                removing_replicas=partition.removing,
            )
