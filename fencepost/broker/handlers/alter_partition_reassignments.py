"""AlterPartitionReassignments (45), versions 0-1: give partitions other replicas (KIP-455).

A partition gets the replicas that it is to have, keeps those that it has, and is rid of the latter
as soon as the former are in sync (``fencepost.broker.controller.reassignment``): at once where
no replica has to catch up. The answer says that it has begun; ListPartitionReassignments, whether
it is over. Null replicas take back what is in progress.

Each partition is answered by itself: INVALID_REPLICA_ASSIGNMENT where the target is empty, names a
broker twice or one that is not registered, or where only an unclean leader could take it back;
INVALID_REPLICATION_FACTOR (v1); NO_REASSIGNMENT_IN_PROGRESS; UNKNOWN_TOPIC_OR_PARTITION. Brokers
that are offline can be named: the reassignment waits for them.

Versions: v1 can forbid that the number of replicas changes, and says whether it did (KIP-860).
"""

from fencepost.broker.controller.controller_apis import ControllerContext
from fencepost.broker.controller.partition_admin import PartitionAdmin, PartitionError, Reassignment
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


def handle(
    ctx: ControllerContext, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """Begin and cancel, in one new view of the cluster."""
    asked = [
        Reassignment(topic=topic.name, index=each.partition_index, target=each.replicas)
        for topic in request.topics
        for each in topic.partitions
    ]
    allow = request.allow_replication_factor_change
    admin = PartitionAdmin(ctx.controller)
    problems = iter(admin.alter_reassignments(asked, keep_factor=not allow))
    return AlterPartitionReassignmentsResponse(
        # A request without topics gets the defaults of a response, as at a real broker.
        allow_replication_factor_change=allow or not request.topics,
        error_message=None if request.topics else "",
        responses=tuple(
            ReassignableTopicResponse(
                name=topic.name,
                partitions=tuple(
                    _response(each.partition_index, problem)
                    for each, problem in zip(topic.partitions, problems, strict=False)
                ),
            )
            for topic in request.topics
        ),
    )


def refuse(
    request: AlterPartitionReassignmentsRequest, error_code: int
) -> AlterPartitionReassignmentsResponse:
    """The same error for the whole and for every partition."""
    return AlterPartitionReassignmentsResponse(
        error_code=error_code,
        error_message=None,
        responses=tuple(
            ReassignableTopicResponse(
                name=topic.name,
                partitions=tuple(
                    ReassignablePartitionResponse(
                        partition_index=each.partition_index,
                        error_code=error_code,
                        error_message=None,
                    )
                    for each in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def _response(index: int, problem: PartitionError | None) -> ReassignablePartitionResponse:
    return ReassignablePartitionResponse(
        partition_index=index,
        error_code=ErrorCode.NONE if problem is None else problem.code,
        error_message=None if problem is None else problem.message,
    )
