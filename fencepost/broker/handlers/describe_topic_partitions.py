"""DescribeTopicPartitions (75), version 0: topics page by page (KIP-966).

Topics come in the order of their names, all of them where none is named. A page holds as many
partitions as the request and ``max.request.partition.size.limit`` allow, one at least; the cursor
behind it names the next one. Topics that are not there take no room on a page.

A cursor whose partition is negative, or whose topic is not the first at or behind it that the
request names, is INVALID_REQUEST; a nameless topic is UNKNOWN_SERVER_ERROR for the whole request,
as it is at a real broker, unless there is a cursor. A partition without a leader is no error
here: its leader is -1. Eligible leader replicas are an empty list where there are none: clients
cannot do with null.
"""

from msgspec import Struct, field

from fencepost.broker.controller.topic_changes import topic_name_problem
from fencepost.broker.core.outcomes import Steps, take_turns
from fencepost.broker.core.waits import Wait
from fencepost.broker.handlers.context import BrokerNode, Context
from fencepost.broker.metadata.image import TopicImage, offline_replicas, online_brokers
from fencepost.broker.security import authorizer
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)


def handle(
    ctx: Context, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse | Wait[DescribeTopicPartitionsResponse]:
    """Describe one page."""
    return take_turns(ctx.broker.scheduler, _read(ctx, request))


def _read(
    ctx: Context, request: DescribeTopicPartitionsRequest
) -> Steps[DescribeTopicPartitionsResponse]:
    names = sorted({topic.name for topic in request.topics})
    cursor, view = request.cursor, ctx.broker.view
    start = "" if cursor is None else cursor.topic_name
    wanted = [name for name in names or sorted(view.topics) if name >= start]
    if cursor is not None and cursor.partition_index < 0:
        return refuse(request, ErrorCode.INVALID_REQUEST)
    if cursor is not None and names and wanted[:1] != [start]:
        return refuse(request, ErrorCode.INVALID_REQUEST)
    if cursor is None and "" in wanted:
        return refuse(request, ErrorCode.UNKNOWN_SERVER_ERROR)
    most = ctx.broker.configs.max_request_partition_size_limit
    page = _Page(ctx.broker, left=max(min(request.response_partition_limit, most), 1))
    for name in wanted:
        first = cursor.partition_index if cursor is not None and name == start else 0
        page.add(name, view.topics.get(name), first)
        if page.next_cursor is not None:
            break
        yield
    return DescribeTopicPartitionsResponse(topics=tuple(page.topics), next_cursor=page.next_cursor)


def refuse(
    request: DescribeTopicPartitionsRequest, error_code: int
) -> DescribeTopicPartitionsResponse:
    """The same error for every topic that the request names."""
    return DescribeTopicPartitionsResponse(
        topics=tuple(
            DescribeTopicPartitionsResponseTopic(error_code=error_code, name=topic.name)
            for topic in request.topics
        )
    )


class _Page(Struct):
    """The topics of one answer, until it is full."""

    broker: BrokerNode
    left: int
    """Partitions that there is room for."""
    topics: list[DescribeTopicPartitionsResponseTopic] = field(default_factory=list)
    next_cursor: Cursor | None = None

    def add(self, name: str, topic: TopicImage | None, first: int) -> None:
        """Take a topic's partitions from index ``first`` on, as many as there is room for."""
        if self.left == 0:
            self.next_cursor = Cursor(topic_name=name, partition_index=0)
        elif topic is None:
            self.topics.append(_unknown(name))
        else:
            # Kafka's sum overflows: behind the largest index its cursor goes on below 0.
            end = min(len(topic.partitions), (first + self.left + 2**31) % 2**32 - 2**31)
            described = tuple(_partition(self.broker, topic, i) for i in range(first, end))
            self.topics.append(_topic(topic, described))
            self.left -= len(described)
            if end < len(topic.partitions):
                self.next_cursor = Cursor(topic_name=name, partition_index=end)


def _unknown(name: str) -> DescribeTopicPartitionsResponseTopic:
    illegal = topic_name_problem(name) is not None
    return DescribeTopicPartitionsResponseTopic(
        error_code=(
            ErrorCode.INVALID_TOPIC_EXCEPTION if illegal else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        ),
        name=name,
        topic_authorized_operations=authorizer.TOPIC,
    )


def _topic(
    topic: TopicImage, partitions: tuple[DescribeTopicPartitionsResponsePartition, ...]
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=partitions,
        topic_authorized_operations=authorizer.TOPIC,
    )


def _partition(
    broker: BrokerNode, topic: TopicImage, index: int
) -> DescribeTopicPartitionsResponsePartition:
    partition = topic.partitions[index]
    return DescribeTopicPartitionsResponsePartition(
        partition_index=index,
        leader_id=partition.leader,
        leader_epoch=broker.configs.client_leader_epoch(topic.name, partition.leader_epoch),
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        eligible_leader_replicas=partition.elr,
        last_known_elr=partition.last_known_elr,
        offline_replicas=offline_replicas(partition, online_brokers(broker.view)),
    )
