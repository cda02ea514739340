"""ElectLeaders (43), versions 0-2: hold elections (KIP-183, KIP-460).

A preferred election makes the first replica of the assignment the leader if it is in sync. An
unclean one is held only where there is no leader: an eligible replica leads, else the first that is
online, and what only others had is lost. The answer comes when the leaders are elected.

Each partition is answered by itself: ELECTION_NOT_NEEDED, PREFERRED_LEADER_NOT_AVAILABLE,
ELIGIBLE_LEADERS_NOT_AVAILABLE, UNKNOWN_TOPIC_OR_PARTITION. Where the request names no topics (null)
elections are held in all, and the partitions that need none are left out of the answer, but not
their topics. An unknown election type is INVALID_REQUEST, everywhere.

Versions: v0 knows preferred elections alone; v1 election types, and an error code of the whole
answer; v2 compact types.
"""

from collections.abc import Iterator
from typing import Final

from fencepost.broker.controller.controller_apis import ControllerContext
from fencepost.broker.controller.elections import ElectionType
from fencepost.broker.controller.partition_admin import PartitionAdmin, PartitionError
from fencepost.broker.metadata.image import ClusterImage
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)

_ELECTIONS: Final = {0: ElectionType.PREFERRED, 1: ElectionType.UNCLEAN}


def handle(ctx: ControllerContext, request: ElectLeadersRequest) -> ElectLeadersResponse:
    """Hold every election that is needed, in one new view of the cluster."""
    election = _ELECTIONS.get(request.election_type)
    if request.topic_partitions == ():  # Kafka looks at the type for each topic alone
        return ElectLeadersResponse()
    if election is None:
        return _refused(
            request, ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}"
        )
    controller = ctx.controller
    everywhere = request.topic_partitions is None
    asked = request.topic_partitions or (_everything(controller.image) if everywhere else ())
    partitions = [(topic.topic, index) for topic in asked for index in topic.partitions]
    problems = iter(PartitionAdmin(controller).elect_leaders(partitions, election))
    return ElectLeadersResponse(
        replica_election_results=tuple(
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=tuple(
                    result
                    for result in _results(topic, problems)
                    if not (everywhere and result.error_code == ErrorCode.ELECTION_NOT_NEEDED)
                )
                if topic.partitions
                else (),
            )
            for topic in asked
        )
    )


def refuse(request: ElectLeadersRequest, error_code: int) -> ElectLeadersResponse:
    """The same error for the whole and for every partition that the request names."""
    return _refused(request, error_code, None)


def _everything(image: ClusterImage) -> tuple[TopicPartitions, ...]:
    return tuple(
        TopicPartitions(topic=topic.name, partitions=tuple(range(len(topic.partitions))))
        for topic in image.topics.values()
    )


def _results(
    topic: TopicPartitions, problems: Iterator[PartitionError | None]
) -> Iterator[PartitionResult]:
    for index, problem in zip(topic.partitions, problems, strict=False):
        yield PartitionResult(
            partition_id=index,
            error_code=ErrorCode.NONE if problem is None else problem.code,
            error_message=None if problem is None else problem.message,
        )


def _refused(
    request: ElectLeadersRequest, error_code: int, message: str | None
) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        error_code=error_code,
        replica_election_results=tuple(
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=tuple(
                    PartitionResult(
                        partition_id=index, error_code=error_code, error_message=message
                    )
                    for index in topic.partitions
                ),
            )
            for topic in request.topic_partitions or ()
        ),
    )
