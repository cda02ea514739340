"""Topics that a broker has the controller create, as the broker's configs say."""

from collections.abc import Callable
from typing import Protocol

from fencepost.broker.configs.effective_configs import BrokerConfigs
from fencepost.broker.controller.requests import CreateTopic
from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.metadata.image import INTERNAL_TOPICS, ClusterImage
from fencepost.protocol.errors import ErrorCode


class ControllerClient(Protocol):
    """What the creation of a topic needs of a broker."""

    view: ClusterImage
    configs: BrokerConfigs

    def ask_controller(
        self,
        request: CreateTopic,
        answered: Callable[[ErrorCode], None],
        lost: Callable[[], None],
    ) -> None:
        """Send the controller a request of the broker's own."""
        ...


def auto_create_topic(broker: ControllerClient, name: str) -> ErrorCode:
    """Have a topic created because a client asked for it.

    :returns: NONE also where the answer is still on its way: the view says whether the topic is
        there. REQUEST_TIMED_OUT where the controller is not reached.
    """
    if name in INTERNAL_TOPICS:
        return create_internal_topic(broker, name)
    configs = broker.configs
    return _create(
        broker,
        NewTopic(
            name=name,
            partitions=configs.num_partitions,
            replication_factor=configs.default_replication_factor,
            configs={},
        ),
    )


def create_internal_topic(broker: ControllerClient, name: str) -> ErrorCode:
    """Have ``__consumer_offsets`` created if it is not there; returns as `auto_create_topic`.

    Its replication factor is no larger than the number of brokers: one broker has to do.
    """
    if name in broker.view.topics:
        return ErrorCode.NONE
    online = sum(not each.fenced for each in broker.view.brokers.values())
    configs = broker.configs
    return _create(
        broker,
        NewTopic(
            name=name,
            partitions=configs.offsets_topic_num_partitions,
            replication_factor=min(configs.offsets_topic_replication_factor, online),
            configs=configs.offsets_topic_configs,
        ),
    )


def _create(broker: ControllerClient, topic: NewTopic) -> ErrorCode:
    errors: list[ErrorCode] = []
    broker.ask_controller(
        CreateTopic(topic=topic),
        errors.append,
        lambda: errors.append(ErrorCode.REQUEST_TIMED_OUT),
    )
    return errors[0] if errors else ErrorCode.NONE
