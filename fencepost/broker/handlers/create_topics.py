"""CreateTopics (19), versions 2-7: create topics, by counts or by assignments, with configs.

Each topic is created or refused by itself, all in one new view of the cluster, which the brokers
have before the answer is sent, and with it every replica: thousands are opened in several turns. A
name that stands twice in one request is refused and not created at all. -1 partitions and -1
replicas are the broker's ``num.partitions`` and ``default.replication.factor``; assignments want
both to be -1. What would write more than 10,000 records into Kafka's metadata log (one a topic, a
partition, a config) is refused as a whole, as Kafka does.

Versions: v4 -1 for the defaults, which is taken in every version; v5 counts and configs in the
answer; v6 is the first to be throttled; v7 topic ids.

Missing: policies (``create.topic.policy.class.name``), quotas.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from fencepost.broker.configs.config_entries import topic_entries
from fencepost.broker.controller.controller_apis import ControllerContext
from fencepost.broker.controller.topic_changes import MAX_PARTITIONS_PER_REQUEST, NewTopic
from fencepost.broker.core.errors import ControllerError
from fencepost.broker.metadata.image import TopicImage
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

DEFAULT: Final = -1
METADATA_TOPIC: Final = "__cluster_metadata"
MAX_RECORDS: Final = 10_000
"""Of the metadata log, for one request."""
_FIRST_WITH_CONFIGS: Final = 5


class _Planned(Struct, frozen=True):
    """A topic that can be created."""

    topic: TopicImage
    configs: Mapping[str, str]

    @property
    def records(self) -> int:
        """What Kafka's metadata log would take for it."""
        return 1 + len(self.topic.partitions) + len(self.configs)


def handle(ctx: ControllerContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
    """Plan every topic, create those that can be, answer for all."""
    times = Counter(topic.name for topic in request.topics)
    wanted = [t for t in request.topics if times[t.name] == 1 and t.name != METADATA_TOPIC]
    if _count_partitions(ctx, wanted) > MAX_PARTITIONS_PER_REQUEST:
        return _refused(
            request,
            ErrorCode.POLICY_VIOLATION,
            "Excessively large number of partitions per request.",
        )
    plans = [_plan(ctx, topic) for topic in wanted]
    planned = [plan for plan in plans if isinstance(plan, _Planned)]
    if sum(plan.records for plan in planned) > MAX_RECORDS:
        return _refused(
            request,
            ErrorCode.POLICY_VIOLATION,
            "Unable to perform excessively large batch operation.",
        )
    if planned and not request.validate_only:
        ctx.controller.create_topics([(plan.topic, plan.configs) for plan in planned])
    results = [
        _created(ctx, plan) if isinstance(plan, _Planned) else plan
        for plan in (*plans, *_never_created(times))
    ]
    return CreateTopicsResponse(topics=tuple(results))


def refuse(request: CreateTopicsRequest, error_code: int) -> CreateTopicsResponse:
    """The same error for every topic."""
    return _refused(request, error_code, None)


def _refused(
    request: CreateTopicsRequest, error_code: int, message: str | None
) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=tuple(_error(topic.name, error_code, message) for topic in request.topics)
    )


def _error(name: str, code: int, message: str | None) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=code, error_message=message)


def _count_partitions(ctx: ControllerContext, topics: Sequence[CreatableTopic]) -> int:
    total = 0
    for topic in topics:
        if topic.assignments:
            total += len(topic.assignments)
        elif topic.num_partitions == DEFAULT:
            total += ctx.configs.num_partitions
        else:
            total += max(topic.num_partitions, 0)
    return total


def _plan(ctx: ControllerContext, asked: CreatableTopic) -> _Planned | CreatableTopicResult:
    controller, configs = ctx.controller, _named_configs(asked)
    try:
        controller.topic_planner.check_new_name(asked.name)
        invalid = ctx.own_layers.topic_problem(configs)
        if invalid is not None:
            return _error(asked.name, invalid.code, invalid.message)
        texts = {name: value for name, value in configs.items() if value is not None}
        planned = controller.topic_planner.plan_topic(_new_topic(ctx, asked, texts))
    except ControllerError as error:
        return _error(asked.name, error.code, error.message)
    return _Planned(planned, texts)


def _named_configs(asked: CreatableTopic) -> dict[str, str | None]:
    """By name the last value, but null where one of them is, which is refused."""
    nulls = (config.name for config in asked.configs if config.value is None)
    return {config.name: config.value for config in asked.configs} | dict.fromkeys(nulls)


def _new_topic(
    ctx: ControllerContext, asked: CreatableTopic, configs: Mapping[str, str]
) -> NewTopic:
    if asked.assignments:
        return NewTopic(name=asked.name, assignments=_assignments(ctx, asked), configs=configs)
    partitions, factor = asked.num_partitions, asked.replication_factor
    defaults = ctx.configs
    return NewTopic(
        name=asked.name,
        partitions=defaults.num_partitions if partitions == DEFAULT else partitions,
        replication_factor=defaults.default_replication_factor if factor == DEFAULT else factor,
        configs=configs,
    )


def _assignments(ctx: ControllerContext, asked: CreatableTopic) -> tuple[tuple[int, ...], ...]:
    """Broker ids by partition index.

    :raises ControllerError: When the assignments do not make a topic.
    """
    for count, name in (
        (asked.replication_factor, "replication factor"),
        (asked.num_partitions, "numPartitions"),
    ):
        if count != DEFAULT:
            raise ControllerError(
                ErrorCode.INVALID_REQUEST,
                f"A manual partition assignment was specified, but {name} was not set to -1.",
            )
    by_index, twice = _by_index(asked.assignments)
    ctx.controller.topic_planner.check_assignments(tuple(by_index.values()))
    if twice is not None:
        raise ControllerError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Found multiple manual partition assignments for partition {twice}",
        )
    if sorted(by_index) != list(range(len(by_index))):
        raise ControllerError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    return tuple(by_index[index] for index in range(len(by_index)))


def _by_index(
    assignments: Sequence[CreatableReplicaAssignment],
) -> tuple[dict[int, tuple[int, ...]], int | None]:
    """The assignments up to the first index that has one already, and that index.

    As in Kafka those before it are looked at first.
    """
    found: dict[int, tuple[int, ...]] = {}
    for assignment in assignments:
        if assignment.partition_index in found:
            return found, assignment.partition_index
        found[assignment.partition_index] = assignment.broker_ids
    return found, None


def _never_created(times: Mapping[str, int]) -> list[CreatableTopicResult]:
    """One answer for each name that is refused whatever else is asked for it."""
    results = []
    for name, count in times.items():
        if count > 1:
            results.append(_error(name, ErrorCode.INVALID_REQUEST, "Duplicate topic name."))
        elif name == METADATA_TOPIC:
            message = f"Creation of internal topic {name} is prohibited."
            results.append(_error(name, ErrorCode.INVALID_REQUEST, message))
    return results


def _created(ctx: ControllerContext, plan: _Planned) -> CreatableTopicResult:
    topic = plan.topic
    return CreatableTopicResult(
        name=topic.name,
        error_message=None,
        num_partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas),
        configs=_configs(ctx, plan.configs) if ctx.version >= _FIRST_WITH_CONFIGS else (),
        topic_id=topic.topic_id,
    )


def _configs(
    ctx: ControllerContext, configs: Mapping[str, str]
) -> tuple[CreatableTopicConfigs, ...]:
    return tuple(
        CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=entry.read_only,
            config_source=entry.config_source,
            is_sensitive=entry.is_sensitive,
        )
        for entry in topic_entries(ctx.own_layers, configs, None)
    )
