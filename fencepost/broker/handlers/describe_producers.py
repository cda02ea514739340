"""DescribeProducers (61), version 0: who wrote to partitions of which there is a replica (KIP-664).

Idempotent and transactional producers that were active within ``producer.id.expiration.ms``, by
producer id, as the leader or a follower knows them from its own log: with the first offset of the
open transaction, and the epoch of the coordinator that wrote the last marker; -1 without one. A
partition of which this broker has no replica is NOT_LEADER_OR_FOLLOWER.
"""

from functools import partial
from typing import Final

from fencepost.broker.controller.topic_changes import topic_name_problem
from fencepost.broker.core.outcomes import Steps, read_each, take_turns
from fencepost.broker.core.waits import Wait
from fencepost.broker.handlers.context import Context
from fencepost.broker.replication.partition_checks import find_replica
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from fencepost.storage.log.producer_state import ProducerStateEntry

NO_TRANSACTION: Final = -1
_UNKNOWN: Final = "This server does not host this topic-partition."


def handle(
    ctx: Context, request: DescribeProducersRequest
) -> DescribeProducersResponse | Wait[DescribeProducersResponse]:
    """Describe every partition asked for."""
    return take_turns(ctx.broker.scheduler, _read(ctx, request))


def _read(ctx: Context, request: DescribeProducersRequest) -> Steps[DescribeProducersResponse]:
    topics: list[TopicResponse] = []
    for topic in request.topics:
        found = yield from read_each(topic.partition_indexes, partial(_partition, ctx, topic.name))
        topics.append(TopicResponse(name=topic.name, partitions=tuple(found)))
        yield
    return DescribeProducersResponse(topics=tuple(topics))


def refuse(request: DescribeProducersRequest, error_code: int) -> DescribeProducersResponse:
    """The same error for every partition."""
    return DescribeProducersResponse(
        topics=tuple(
            TopicResponse(
                name=topic.name,
                partitions=tuple(_error(i, error_code, None) for i in topic.partition_indexes),
            )
            for topic in request.topics
        )
    )


def _partition(ctx: Context, topic: str, index: int) -> PartitionResponse:
    problem = topic_name_problem(topic)
    if problem is not None:
        message = f"Topic name is invalid: {problem}"
        return _error(index, ErrorCode.INVALID_TOPIC_EXCEPTION, message)
    if topic not in ctx.broker.view.topics:
        return _error(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, _UNKNOWN)
    replica = find_replica(ctx.broker, topic, index)
    if isinstance(replica, ErrorCode):
        return _error(index, replica, None)
    return PartitionResponse(
        partition_index=index, active_producers=tuple(map(_producer, replica.log.producers()))
    )


def _error(index: int, code: int, message: str | None) -> PartitionResponse:
    return PartitionResponse(partition_index=index, error_code=code, error_message=message)


def _producer(view: ProducerStateEntry) -> ProducerState:
    first = view.txn_first_offset
    return ProducerState(
        producer_id=view.producer_id,
        producer_epoch=view.producer_epoch,
        last_sequence=view.last_sequence,
        last_timestamp=view.last_timestamp,
        coordinator_epoch=view.coordinator_epoch,
        current_txn_start_offset=NO_TRANSACTION if first is None else first,
    )
