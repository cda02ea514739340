"""Topics that a broker has the controller create, as its configs say."""

from typing import Protocol

from fencepost.broker.configs.effective_configs import BrokerConfigs
from fencepost.broker.controller.controller import Controller
from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.metadata.image import INTERNAL_TOPICS, ClusterImage


class ControllerClient(Protocol):
    """What the creation of a topic needs of a broker."""

    view: ClusterImage
    configs: BrokerConfigs

    @property
    def controller(self) -> Controller:
        """The controller.

        :raises ControllerUnreachable: When this broker is cut off from it.
        """
        ...


def auto_create_topic(broker: ControllerClient, name: str) -> None:
    """Create a topic because a client asked for it.

    :raises ControllerError: When it can't be.
    """
    if name in INTERNAL_TOPICS:
        create_internal_topic(broker, name)
        return
    broker.controller.create_topic(
        NewTopic(
            name=name,
            partitions=broker.configs.num_partitions,
            replication_factor=broker.configs.default_replication_factor,
            configs={},
        )
    )


def create_internal_topic(broker: ControllerClient, name: str) -> None:
    """Create ``__consumer_offsets`` if it is not there.

    Its replication factor is no larger than the number of brokers: one broker has to do.

    :raises ControllerError: When it can't be.
    """
    if name in broker.view.topics:
        return
    online = sum(not each.fenced for each in broker.view.brokers.values())
    configs = broker.configs
    broker.controller.create_topic(
        NewTopic(
            name=name,
            partitions=configs.offsets_topic_num_partitions,
            replication_factor=min(configs.offsets_topic_replication_factor, online),
            configs=configs.offsets_topic_configs,
        )
    )
