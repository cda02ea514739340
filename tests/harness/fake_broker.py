"""A broker with no more than the handlers of configs use: controller, image and configs."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from fencepost.broker.configs.effective_configs import BrokerConfigs
from fencepost.broker.controller.controller import Controller
from fencepost.broker.controller.controller_apis import ControllerContext
from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.core.context import Context, Peer
from fencepost.broker.core.log_levels import LogLevels
from fencepost.broker.core.scheduler import ManualClock, Scheduler
from fencepost.broker.handlers import (
    CONTROLLER_APIS,
    alter_configs,
    describe_configs,
    incremental_alter_configs,
    list_config_resources,
)
from fencepost.broker.metadata.image import BrokerImage, ClusterImage
from fencepost.broker.node.broker import Broker

Message: TypeAlias = Any
"""A request or response of any API."""
HANDLERS: Mapping[str, Any] = {
    "alter_configs": alter_configs,
    "describe_configs": describe_configs,
    "incremental_alter_configs": incremental_alter_configs,
    "list_config_resources": list_config_resources,
}


@dataclass
class FakeBroker:
    configs: BrokerConfigs
    broker_id: int = 1
    images: list[ClusterImage] = field(default_factory=list)
    scheduler: Scheduler = field(default_factory=lambda: Scheduler(ManualClock()))

    def __post_init__(self) -> None:
        self.controller = Controller(
            brokers=[BrokerImage(broker_id=self.broker_id, host="127.0.0.1", port=9092)],
            cluster_id="fake",
            rng=random.Random(0),
            settings=self.configs.topic,
            publish=self._take,
        )

    @property
    def view(self) -> ClusterImage:
        return self.controller.image

    @property
    def log_levels(self) -> LogLevels:
        return self.controller.log_levels

    def create(self, topic: str, configs: Mapping[str, str]) -> None:
        self.controller.create_topic(NewTopic(name=topic, configs=configs))

    def ask(self, api: str, version: int, request: Message) -> Message:
        peer = Peer(connection_id="c1", host="127.0.0.1")
        context: Context[Broker] | ControllerContext = Context(
            cast(Broker, self), version, "test", peer, 0, 0
        )
        if api in CONTROLLER_APIS:
            context = ControllerContext(
                controller=self.controller,
                configs=self.configs,
                broker_id=self.broker_id,
                to_controller=False,
                version=version,
                client_id="test",
                peer=peer,
                wall_ms=0,
            )
        return HANDLERS[api].handle(context, request)

    def _take(self, image: ClusterImage, changed: frozenset[str]) -> None:
        self.images.append(image)
        self.configs.update(image)


def broker(static: Mapping[str, str] | None = None, *, apache: bool = False) -> FakeBroker:
    return FakeBroker(BrokerConfigs(1, static or {}, apache=apache))
