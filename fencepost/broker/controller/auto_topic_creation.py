"""Topics that a broker has the controller create, as the configs of the broker say.

Counts that the broker's configs leave open are the controller's defaults.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from msgspec.structs import replace

from fencepost.broker.configs.effective_configs import BrokerConfigs
from fencepost.broker.controller.requests import CreateTopics
from fencepost.broker.controller.topic_changes import DEFAULT_COUNT, NewTopic
from fencepost.broker.metadata.image import (
    INTERNAL_TOPICS,
    TRANSACTION_TOPIC,
    ClusterImage,
)
from fencepost.protocol.errors import ErrorCode


class ControllerClient(Protocol):
    """What the creation of a topic needs of a broker."""

    view: ClusterImage
    configs: BrokerConfigs

    def ask_controller(
        self,
        request: CreateTopics,
        answered: Callable[[list[ErrorCode]], None],
        lost: Callable[[], None],
    ) -> None:
        """Send the controller a request of the broker's own."""
        ...


def auto_create_topics(broker: ControllerClient, names: Iterable[str]) -> None:
    """Have topics created because a client asked for them, all at once.

    The client is not told what becomes of it, here as in Kafka: it asks again. Nothing is created
    where the controller is not reached, or where they have more partitions together than one
    request may create.
    """
    topics = [
        _internal_topic(broker, name) if name in INTERNAL_TOPICS else _topic(broker.configs, name)
        for name in names
    ]
    _create(broker, topics)


def _topic(configs: BrokerConfigs, name: str) -> NewTopic:
    is_set, factor = configs.layers.is_set, configs.default_replication_factor
    return NewTopic(
        name=name,
        partitions=configs.num_partitions if is_set("num.partitions") else DEFAULT_COUNT,
        replication_factor=factor if is_set("default.replication.factor") else DEFAULT_COUNT,
        configs={},
    )


def with_default_counts(topic: NewTopic, configs: BrokerConfigs) -> NewTopic:
    """A topic with the controller's defaults for the counts that are left open."""
    partitions, factor = topic.partitions, topic.replication_factor
    return replace(
        topic,
        partitions=configs.num_partitions if partitions == DEFAULT_COUNT else partitions,
        replication_factor=(
            configs.default_replication_factor if factor == DEFAULT_COUNT else factor
        ),
    )


def create_internal_topic(broker: ControllerClient, name: str) -> ErrorCode:
    """Have one of `INTERNAL_TOPICS` created if it is not there.

    :returns: NONE also where the answer is still on its way: the view says whether the topic is
        there. REQUEST_TIMED_OUT where the controller is not reached.
    """
    if name in broker.view.topics:
        return ErrorCode.NONE
    return _create(broker, [_internal_topic(broker, name)])[name]


def _internal_topic(broker: ControllerClient, name: str) -> NewTopic:
    """Its replication factor is no larger than the number of brokers: one broker has to do."""
    online = sum(not each.fenced for each in broker.view.brokers.values())
    configs = broker.configs
    if name == TRANSACTION_TOPIC:
        factor = min(configs.transaction_state_log_replication_factor, online)
        return NewTopic(
            name=name,
            partitions=configs.transaction_state_log_num_partitions,
            replication_factor=factor,
            configs=configs.transaction_topic_configs(factor),
        )
    return NewTopic(
        name=name,
        partitions=configs.offsets_topic_num_partitions,
        replication_factor=min(configs.offsets_topic_replication_factor, online),
        configs=configs.offsets_topic_configs,
    )


def _create(broker: ControllerClient, topics: Sequence[NewTopic]) -> dict[str, ErrorCode]:
    answers: list[list[ErrorCode]] = []
    broker.ask_controller(
        CreateTopics(topics=tuple(topics)),
        answers.append,
        lambda: answers.append([ErrorCode.REQUEST_TIMED_OUT] * len(topics)),
    )
    codes = answers[0] if answers else [ErrorCode.NONE] * len(topics)
    return {topic.name: code for topic, code in zip(topics, codes, strict=True)}
