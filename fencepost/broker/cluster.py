"""A whole cluster in one process: controller, brokers, the network between them, one clock."""

import random
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from fencepost.broker.broker import Broker
from fencepost.broker.configs.resolve import BrokerConfigs, static_configs
from fencepost.broker.controller import Controller, NewTopic
from fencepost.broker.housekeeping import Housekeeping
from fencepost.broker.image import BrokerImage, ClusterImage
from fencepost.broker.network import Network
from fencepost.broker.producer_ids import ProducerIds
from fencepost.broker.scheduler import Clock, Scheduler
from fencepost.storage.config import LogConfig
from fencepost.storage.memory import MemoryLog

DEFAULTS: Final = {"group.initial.rebalance.delay.ms": "0"}
"""Static configs that differ from Kafka's defaults, as they do in the file that Kafka ships."""


class Conformance(StrEnum):
    """Whose word counts where a KIP's text and Apache Kafka differ."""

    KIP = "kip"
    APACHE = "apache"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a broker listens and what it tells clients."""

    host: str
    """The address it listens on."""
    port: int
    advertised_host: str
    """Empty: the address that the client reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """How a cluster starts, and what ``reset`` takes it back to."""

    addresses: tuple[Address, ...]
    """One for each broker, by broker id from 1."""
    topics: tuple[NewTopic, ...] = ()
    configs: Mapping[str, str] = field(default_factory=dict)
    """Static broker configs, checked; the same for all brokers."""
    conformance: Conformance = Conformance.KIP
    seed: int = 0


class Cluster:
    """Brokers 1 to N. It is driven by calls; whoever drives it runs its scheduler."""

    def __init__(self, options: ClusterOptions, clock: Clock) -> None:
        self.options = options
        self.scheduler = Scheduler(clock)
        self.rng = random.Random(options.seed)
        self.network = Network()
        self.controller = Controller(
            brokers=_broker_images(options),
            cluster_id=_cluster_id(self.rng),
            rng=self.rng,
            publish=self._publish,
        )
        self.brokers = {
            broker_id: self._make_broker(broker_id, address)
            for broker_id, address in enumerate(options.addresses, start=1)
        }
        self._start()

    def reset(self) -> None:
        """Back to how it started: no topics but the first ones, no groups, no dynamic configs.

        Ports, connections and the cluster id stay. Topic ids and producer ids are new ones: what a
        client remembers of a topic of the same name is not mistaken for it.
        """
        self.controller.forget_everything()
        for broker in self.brokers.values():
            broker.sessions.clear()
            broker.telemetry.clear()
        self._start()

    def _start(self) -> None:
        for topic in self.options.topics:
            self.controller.create_topic(topic)
        self.scheduler.run_due()

    def _publish(self, image: ClusterImage, changed: frozenset[str]) -> None:
        for broker in self.brokers.values():
            broker.apply(image, changed)

    def _make_broker(self, broker_id: int, address: Address) -> Broker:
        options = self.options
        apache = options.conformance is Conformance.APACHE
        own = static_configs(
            {**DEFAULTS, **options.configs},
            broker_id=broker_id,
            host=address.host,
            port=address.port,
            advertised_host=address.advertised_host,
        )
        template = LogConfig(require_zero_base_offset=apache, validate_records=apache)
        broker = Broker(
            broker_id,
            view=self.controller.image,
            configs=BrokerConfigs(broker_id, own, log_template=template),
            scheduler=self.scheduler,
            rng=self.rng,
            network=self.network,
            controller=self.controller,
            make_log=lambda name, config: MemoryLog(name, config, now_ms=self.scheduler.now_ms()),
            producer_ids=ProducerIds(self.controller, self.scheduler, at_once=not apache),
            offset_value_version=4 if apache else 3,
        )
        self.network.join(broker)
        Housekeeping(broker).start()
        return broker


def _broker_images(options: ClusterOptions) -> list[BrokerImage]:
    rack = options.configs.get("broker.rack")
    return [
        BrokerImage(broker_id=i, host=address.advertised_host, port=address.port, rack=rack)
        for i, address in enumerate(options.addresses, start=1)
    ]


def _cluster_id(rng: random.Random) -> str:
    """22 characters of URL-safe base64, as Kafka's tools make them; never beginning with a dash."""
    while True:
        text = urlsafe_b64encode(rng.randbytes(16)).decode().rstrip("=")
        if not text.startswith("-"):
            return text
