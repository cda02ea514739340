"""CreatePartitions (37), versions 0-3: add partitions to topics.

``count`` is what a topic has afterwards. Brokers are chosen as for a new topic, or assignments name
them, one for each added partition. Every topic of the request is answered, each grows or is refused
by itself, and all that grow do so in one new view of the cluster. A name that stands twice is
refused.

More than 10,000 partitions in one request are POLICY_VIOLATION for all of its topics, as in Kafka.

Versions: v2 compact types; v3 is the first to be throttled.

Missing: quotas.
"""

from collections import Counter
from typing import Final

from fencepost.broker.controller.controller_apis import ControllerContext
from fencepost.broker.controller.topic_changes import MAX_PARTITIONS_PER_REQUEST
from fencepost.broker.core.errors import ControllerError
from fencepost.broker.metadata.image import TopicImage
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

_TOO_MANY: Final = "Excessively large number of partitions per request."


def handle(ctx: ControllerContext, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    """Plan for every topic, grow those that can."""
    times = Counter(topic.name for topic in request.topics)
    if _count_added(ctx, request) > MAX_PARTITIONS_PER_REQUEST:
        return _refused(request, ErrorCode.POLICY_VIOLATION, _TOO_MANY)
    results: dict[str, CreatePartitionsTopicResult] = {}
    grown: list[TopicImage] = []
    for topic in request.topics:
        if times[topic.name] > 1:
            if topic.name not in results:
                results[topic.name] = CreatePartitionsTopicResult(
                    name=topic.name,
                    error_code=ErrorCode.INVALID_REQUEST,
                    error_message="Duplicate topic name.",
                )
            continue
        planned = _plan(ctx, topic)
        if isinstance(planned, TopicImage):
            grown.append(planned)
            planned = CreatePartitionsTopicResult(name=topic.name)
        results[topic.name] = planned
    if grown and not request.validate_only:
        ctx.controller.update_topics(grown)
    return CreatePartitionsResponse(results=tuple(results.values()))


def refuse(request: CreatePartitionsRequest, error_code: int) -> CreatePartitionsResponse:
    """The same error for every topic."""
    return _refused(request, error_code, None)


def _refused(
    request: CreatePartitionsRequest, error_code: int, message: str | None
) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=tuple(
            [
                CreatePartitionsTopicResult(
                    name=topic.name, error_code=error_code, error_message=message
                )
                for topic in request.topics
            ]
        )
    )


def _count_added(ctx: ControllerContext, request: CreatePartitionsRequest) -> int:
    """How many partitions all topics together would get."""
    known = ctx.controller.image.topics
    return sum(
        max(topic.count - len(known[topic.name].partitions), 0)
        for topic in request.topics
        if topic.name in known
    )


def _plan(
    ctx: ControllerContext, asked: CreatePartitionsTopic
) -> TopicImage | CreatePartitionsTopicResult:
    if asked.name not in ctx.controller.image.topics:
        return CreatePartitionsTopicResult(
            name=asked.name,
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            error_message=None,  # as a real broker does
        )
    assignments = None
    if asked.assignments is not None:
        assignments = [assignment.broker_ids for assignment in asked.assignments]
    try:
        return ctx.controller.topic_planner.plan_partitions(asked.name, asked.count, assignments)
    except ControllerError as error:
        return CreatePartitionsTopicResult(
            name=asked.name, error_code=error.code, error_message=error.message
        )
