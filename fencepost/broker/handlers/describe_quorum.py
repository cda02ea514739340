"""DescribeQuorum (55), versions 0-2: the controllers' quorum (KIP-595, KIP-836).

The cluster has one controller and no metadata log. It is described as Kafka would describe the
same: the controller is leader of ``__cluster_metadata-0`` and a voter, the only one unless
``--controller-ids`` names more, the other brokers and the voters that were removed observe, and an
offset of that log is the number of an image of the cluster. Any request but one for exactly this
partition is UNKNOWN_TOPIC_OR_PARTITION for all that it names.

Versions: v1 when a replica last fetched and last was caught up; v2 error messages, directory ids
and nodes (KIP-853); voters have no directory ids with ``kraft.version`` 0. The active controller
has a listener where ``--controller-port`` is given.
"""

from typing import Final

from fencepost.broker.controller.controller_apis import ControllerContext
from fencepost.broker.controller.quorum import replica_key, voters
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.listener_text import CONTROLLER
from fencepost.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)

METADATA_TOPIC: Final = "__cluster_metadata"
_ONLY: Final = [(METADATA_TOPIC, [0])]
_UNKNOWN: Final = "This server does not host this topic-partition."


def handle(ctx: ControllerContext, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """Describe the one partition."""
    asked = [(t.topic_name, [p.partition_index for p in t.partitions]) for t in request.topics[:2]]
    if asked != _ONLY:
        return _every_partition(request, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, _UNKNOWN)
    image = ctx.controller.image
    observers = (
        replica_key(image, node_id) for node_id in (*image.former_voters, *image.registrations)
    )
    states = {
        node_id: ReplicaState(
            replica_id=node_id,
            replica_directory_id=directory_id,
            log_end_offset=image.version,
            last_fetch_timestamp=ctx.wall_ms,
            last_caught_up_timestamp=ctx.wall_ms,
        )
        for node_id, directory_id in (*observers, *voters(image))
    }
    current = tuple(states.pop(node_id) for node_id in image.voters)
    partition = ResponsePartitionData(
        leader_id=current[0].replica_id,
        leader_epoch=image.quorum_epoch,
        high_watermark=image.version,
        current_voters=current,
        observers=tuple(states.values()),
    )
    return DescribeQuorumResponse(
        topics=(ResponseTopicData(topic_name=METADATA_TOPIC, partitions=(partition,)),),
        nodes=tuple(_node(ctx, voter.replica_id) for voter in current),
    )


def _node(ctx: ControllerContext, node_id: int) -> Node:
    """A voter, and where the active one listens."""
    image = ctx.controller.image
    where = image.controller_address
    if where is None or node_id != image.voters[0]:
        return Node(node_id=node_id)
    host = where.host or ctx.peer.listener_host
    return Node(node_id=node_id, listeners=(Listener(name=CONTROLLER, host=host, port=where.port),))


def refuse(request: DescribeQuorumRequest, error_code: int) -> DescribeQuorumResponse:
    """The same error at the top and for every partition."""
    partitions = _every_partition(request, error_code, "")
    return DescribeQuorumResponse(error_code=error_code, topics=partitions.topics)


def _every_partition(
    request: DescribeQuorumRequest, code: int, message: str
) -> DescribeQuorumResponse:
    topics = [  # lists, as there may be many: generators would take twice as long
        ResponseTopicData(
            topic_name=topic.topic_name,
            partitions=tuple(
                [
                    ResponsePartitionData(
                        partition_index=partition.partition_index,
                        error_code=code,
                        error_message=message,
                    )
                    for partition in topic.partitions
                ]
            ),
        )
        for topic in request.topics
    ]
    return DescribeQuorumResponse(topics=tuple(topics))
