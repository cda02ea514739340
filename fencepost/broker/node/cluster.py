"""A whole cluster in one process: controller, brokers, the network between them, one clock."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from itertools import cycle
from typing import TYPE_CHECKING, Final, TypeAlias
from uuid import UUID

from msgspec import Struct, field
from msgspec.structs import replace

from fencepost.broker.configs.effect_reports import EffectReports
from fencepost.broker.configs.effective_configs import (
    BrokerConfigs,
    controller_configs,
    settable_configs,
    static_configs,
    unstable_features,
)
from fencepost.broker.controller.controller import Controller
from fencepost.broker.controller.controller_apis import ControllerApis
from fencepost.broker.controller.leader_balance import LeaderBalance
from fencepost.broker.controller.requests import AllocateProducerIds
from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.core.events import Events, Kind
from fencepost.broker.core.image_changes import image_changes
from fencepost.broker.core.log_levels import LogLevels
from fencepost.broker.core.scheduler import Clock, Scheduler
from fencepost.broker.faults.registry import FaultRegistry
from fencepost.broker.faults.remote_storage import FaultyObjectStore, RemoteFaultRegistry
from fencepost.broker.handlers import controller_handler_of
from fencepost.broker.metadata.features import Levels, initial_levels
from fencepost.broker.metadata.image import Address, BrokerImage, ClusterImage
from fencepost.broker.network.links import CONTROLLER, BrokerId, Network, Transport, deliver_now
from fencepost.broker.node.broker import Broker
from fencepost.broker.node.controller_server import ControllerServer
from fencepost.broker.node.persistence import MakePersistence, Persistence
from fencepost.broker.node.unclean_elections import emit_lost_by_elections
from fencepost.broker.produce.producer_id_manager import ProducerIdManager
from fencepost.broker.replication.log_dir_placement import (
    IN_MEMORY,
    LogDirPlacement,
    directory_names,
)
from fencepost.broker.replication.log_maintenance import LogMaintenance
from fencepost.broker.replication.replica_storage import MemoryReplicaStorage, ReplicaStorage
from fencepost.broker.tiering.operations_in_flight import OperationsInFlight, TrackedObjectStore
from fencepost.broker.tiering.remote_storage_metrics import CountedObjectStore, RemoteStorageMetrics
from fencepost.protocol.apis import STABLE_VERSIONS
from fencepost.protocol.byte_utils import format_uuid
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.interface import Log
from fencepost.storage.log_memory import LogMemory
from fencepost.storage.memory import MemorySegmentStore, memory_log
from fencepost.storage.tier.object_store import MemoryObjectStore, ObjectStore

if TYPE_CHECKING:
    from fencepost.protocol.codec.drafts import Draft

MakeObjectStore: TypeAlias = Callable[[Scheduler], ObjectStore]
"""Makes a remote tier that tells its outcomes where the scheduler runs."""

DEFAULTS: Final = {"group.initial.rebalance.delay.ms": "0"}
"""Static configs that differ from Kafka's defaults, as they do in the file that Kafka ships."""

_NO_BROKER: Final = -1
"""The id by which the controller's configs are read: no broker's dynamic ones are its own."""


class Conformance(StrEnum):
    """Whose word counts where a KIP's text and Apache Kafka differ."""

    KIP = "kip"
    APACHE = "apache"


class ClusterOptions(Struct, frozen=True, kw_only=True):
    """How a cluster starts, and what ``reset`` takes it back to."""

    addresses: tuple[Address, ...]
    """Of the first listener: one for each broker, in the order of their ids."""
    other_addresses: tuple[tuple[Address, ...], ...] = ()
    """The same of each further listener."""
    broker_ids: tuple[int, ...] = ()
    """In ascending order; empty: from 1 on."""
    controller_ids: tuple[int, ...] = ()
    """The quorum's voters as clients are shown them, the active one first; empty: a broker is the
    only one."""
    controller_address: Address | None = None
    """Where the controller listens for tools; None where it does not."""
    features: Levels = field(default_factory=dict)
    """Levels to start with, checked (`initial_levels_problem`), where not the highest."""
    topics: tuple[NewTopic, ...] = ()
    configs: Mapping[str, str] = field(default_factory=dict)
    """Static broker configs, checked; the same for all brokers."""
    broker_configs: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    """Static configs of single brokers, checked, by broker id; they come before those of all. Those
    of the first of the controllers may be among them."""
    racks: tuple[str, ...] = ()
    """The rack of each broker in the order of their ids; going round where there are fewer."""
    log_dirs: int = 1
    """How many log directories each broker has."""
    api_max: Mapping[str, int] = field(default_factory=dict)
    """The highest versions that brokers serve, by API name, where not the highest there are; below
    the lowest there is where an API is not served."""
    conformance: Conformance = Conformance.KIP
    dialect: "Draft | None" = None
    """The draft that is served to clients that ask for it (`fencepost.protocol.codec.drafts`)."""
    strict_configs: bool = False
    """Whether a config without effect is refused, and an unknown one."""
    seed: int = 0

    @property
    def listeners(self) -> tuple[tuple[Address, ...], ...]:
        """The addresses of each listener, the first one's first; each in the order of ids."""
        return self.addresses, *self.other_addresses

    def by_id(self) -> Iterator[tuple[BrokerId, tuple[Address, ...], str | None]]:
        """Id, rack, and an address for each listener, of each broker."""
        ids = self.broker_ids or range(1, len(self.addresses) + 1)
        racks = cycle(self.racks) if self.racks else map(self._rack, ids)
        addresses = zip(*self.listeners, strict=True)
        return zip(map(BrokerId, ids), addresses, racks, strict=False)

    def _rack(self, broker_id: int) -> str | None:
        return {**self.configs, **self.broker_configs.get(broker_id, {})}.get("broker.rack")


class Cluster:
    """Its brokers and their controller. It is driven by calls: its driver runs the scheduler."""

    def __init__(
        self,
        options: ClusterOptions,
        clock: Clock,
        carry: Transport = deliver_now,
        *,
        make_persistence: MakePersistence | None = None,
        make_objects: MakeObjectStore | None = None,
        max_log_bytes: int | None = None,
        log_levels: LogLevels | None = None,
    ) -> None:
        """Start it.

        :param carry: Delivers the messages between the nodes: in the same turn when served.
        :param make_persistence: Makes the place where its metadata and logs are; None is memory.
        :param make_objects: Makes the remote tier, if the configs enable it; None is memory.
        :param log_levels: The loggers of the process; None where it has none.
        :param max_log_bytes: What logs in memory may take together; None is no limit.
        :raises DataDirUnusable: When the data directory can't be used.
        """
        self.options = options
        # By broker id, one for each listener.
        self.addresses: dict[int, tuple[Address, ...]] = {
            broker_id: addresses for broker_id, addresses, _ in options.by_id()
        }
        self.scheduler = Scheduler(clock)
        self.events = Events(self.scheduler)
        self.rng = random.Random(options.seed)
        self.faults = FaultRegistry(self.scheduler, self.events, options.seed)
        self.network = Network(carry)
        self.log_memory = LogMemory(max_log_bytes)
        """What logs in memory take, and a tier in memory."""
        self.log_memory.on_full = self._on_memory_full
        self.persistence = (
            None
            if make_persistence is None
            else make_persistence(self.scheduler, self.events, self.rng)
        )
        """Its data directory; None where it is in memory."""
        if self.persistence is not None and self.persistence.starts:
            # Another sequence in each process, or a topic would get the id of an earlier one.
            self.rng.seed(f"{options.seed} after {self.persistence.starts}")
        self._static = {**DEFAULTS, **settable_configs(options.configs)}
        self._configs = self._make_configs(_NO_BROKER, self._controller_static_configs())
        self._effect_reports = EffectReports(self.events, on_disk=self.persistence is not None)
        self._effect_reports.report_static(options.configs, options.broker_configs)
        self.tier_faults = RemoteFaultRegistry(self.scheduler, self.events)
        self.remote_storage_metrics = RemoteStorageMetrics()
        self.tier_operations = OperationsInFlight(self.scheduler)
        self.objects = self._make_objects(make_objects)
        """The remote tier itself, before which no faults stand; None where there is none."""
        self.controller = self._make_controller(log_levels or LogLevels())
        self._configs.update(self.controller.image)
        self.controller_apis = self._make_controller_apis()
        self.controller_server = self._make_controller_server()
        """The controller behind a listener of its own; None where it has none."""
        if self.persistence is not None:
            self.persistence.set_cluster_id(self.controller.image.cluster_id)
        self._published = self.controller.image
        self._undelivered: dict[int, frozenset[str]] = {}
        """Topics that changed in views that did not reach a broker, by broker."""
        self._log_maintenance: list[LogMaintenance] = []
        self._leader_balance = LeaderBalance(self.controller, self._configs, self.scheduler)
        self.brokers: dict[int, Broker] = {
            broker_id: self._make_broker(broker_id, addresses, rack)
            for broker_id, addresses, rack in options.by_id()
        }
        if self.persistence is not None:
            self._go_on_from(self.persistence)
        self._start()

    def _go_on_from(self, persistence: Persistence) -> None:
        self.controller.load_image(persistence.restored_image(self.controller.image))
        self._configs.update(self.controller.image)
        persistence.start(self.controller)

    def reset(self) -> None:
        """Back to how it started: no topics but the first ones, no groups, no dynamic configs.

        Brokers are up, whole and in touch. Ports, connections and the cluster id stay. Topic ids
        and producer ids are new ones: what a client remembers of a topic of the same name is not
        mistaken for it.
        """
        with self.events.resetting():
            self._effect_reports.reset()
            self.faults.reset()
            self.tier_faults.reset()
            self.controller.reset()
            for broker in self.brokers.values():
                broker.replica_manager.holds.clear()
                broker.fetch_sessions.clear()
                broker.client_metrics.clear()
                broker.transactions.channel.clear_holds()
            for periodic in self._log_maintenance:
                periodic.start()  # what runs when is not to depend on what was before
            self._start()

    def close(self) -> None:
        """End it in order, so that it can go on from its data directory; nothing without one."""
        if self.persistence is not None:
            self.persistence.close(self.brokers.values())

    def send_image(self, broker_id: int) -> None:
        """Send a broker the newest image: for one that did not hear of all before."""
        self._send_changes(broker_id, self.controller.image, frozenset())

    def _cluster_id(self) -> str:
        """The id on disk, or a new one: 22 characters of URL-safe base64, as Kafka's tools make it.

        It does not begin with a dash.
        """
        if self.persistence is not None and self.persistence.cluster_id:
            return self.persistence.cluster_id
        while True:
            text = format_uuid(UUID(bytes=self.rng.randbytes(16)))
            if not text.startswith("-"):
                return text

    def _start(self) -> None:
        self._leader_balance.start()
        for topic in self.options.topics:
            if topic.name not in self.controller.image.topics:  # of an earlier process
                self.controller.create_topic(topic)
        for broker in self.brokers.values():
            broker.replica_manager.finish_opening()
        self.scheduler.run_turn()  # clients need not wait for what asked for later turns

    def _publish(self, image: ClusterImage, changed: frozenset[str]) -> None:
        self._configs.update(image)
        if self.controller_server is not None:
            self.controller_server.configs.update(image)
        before, self._published = self._published, image
        if self.persistence is not None:
            self.persistence.append_changes(before, image, changed)
        self.events.emit_all(
            image_changes(before, image, changed, time_ms=self.scheduler.wall_ms())
        )
        emit_lost_by_elections(self.events, self.brokers, before, image, changed)
        self._effect_reports.report_changes(before, image, changed)
        self.faults.leader_epoch_history.record(before.topics, image.topics, changed)
        for broker_id in self.brokers:
            self._send_changes(broker_id, image, changed)

    def _send_changes(self, broker_id: int, image: ClusterImage, changed: frozenset[str]) -> None:
        broker, unheard = self.brokers[broker_id], self._undelivered

        def deliver() -> None:
            if image.version > broker.view.version:
                broker.apply(image, changed | unheard.pop(broker_id, frozenset()))

        def lost() -> None:
            unheard[broker_id] = unheard.get(broker_id, frozenset()) | changed

        self.network.send(CONTROLLER, broker.broker_id, deliver, lost=lost)

    def _request_producer_ids(
        self,
        broker_id: BrokerId,
        count: int,
        answered: Callable[[range], None],
        lost: Callable[[], None],
    ) -> None:
        self.network.ask_controller(broker_id, AllocateProducerIds(count=count), answered, lost)

    def _controller_static_configs(self) -> dict[str, str]:
        """Those of all brokers and its own, and so the configs of topics by default."""
        static = {**self._static}
        if self.options.controller_ids:
            own = self.options.broker_configs.get(self.options.controller_ids[0], {})
            static.update(settable_configs(own))
        if self.persistence is not None:
            static["log.dirs"] = "brokers"  # that logs are kept in files is all that counts
            if self.persistence.syncs:
                static["log.flush.interval.messages"] = "1"
        return static

    def _make_configs(self, node: int, static: Mapping[str, str]) -> BrokerConfigs:
        apache = self.options.conformance is Conformance.APACHE
        template = LogConfig(require_zero_base_offset=apache, validate_records=apache)
        if self.persistence is not None and self.persistence.syncs:
            template = replace(template, flush_messages=1)
        return BrokerConfigs(
            node,
            static,
            log_template=template,
            apache=apache,
            strict=self.options.strict_configs,
        )

    def _make_controller(self, log_levels: LogLevels) -> Controller:
        options, controller = self.options, self.options.controller_address
        log_levels.on_set_without_effect = self._effect_reports.report_logger
        unstable = unstable_features(
            options.configs,
            options.broker_configs,
            broker_ids=self.addresses,
            controller_ids=options.controller_ids,
        )
        return Controller(
            brokers=_broker_images(options),
            controller_ids=options.controller_ids,
            address=None if controller is None else controller.advertised,
            cluster_id=self._cluster_id(),
            rng=self.rng,
            settings=self._configs.topic,
            publish=self._publish,
            downgrades_unsafely=options.conformance is Conformance.KIP,
            in_later_turn=self.scheduler.in_later_turn,
            log_levels=log_levels,
            min_insync_replicas=str(self._configs.layers.value("min.insync.replicas")),
            features=initial_levels(
                options.features, unstable=unstable.everywhere, ceilings=options.api_max
            ),
            unstable_features=unstable,
        )

    def _make_controller_apis(self) -> ControllerApis:
        made = ControllerApis(
            self.controller,
            self._configs,
            self.scheduler,
            controller_handler_of,
            lambda: any(b.replica_manager.is_opening for b in self.brokers.values()),
        )
        self.network.attach_controller(made)
        return made

    def _make_controller_server(self) -> ControllerServer | None:
        address = self.options.controller_address
        if address is None:
            return None
        configs = controller_configs(
            self._controller_static_configs(),
            node_id=self.controller.image.voters[0],
            is_broker=not self.options.controller_ids,
            address=address,
        )
        return ControllerServer(
            self.controller,
            self.controller_apis,
            configs=self._make_configs(self.controller.image.voters[0], configs),
            scheduler=self.scheduler,
            events=self.events,
            faults=self.faults,
            ceilings=self.options.api_max,
        )

    def _make_broker(
        self, broker_id: BrokerId, addresses: Sequence[Address], rack: str | None
    ) -> Broker:
        options, persistence = self.options, self.persistence
        apache = options.conformance is Conformance.APACHE
        log_dirs = (
            None
            if persistence is None
            else persistence.broker_log_dirs(broker_id, options.log_dirs)
        )
        own = static_configs(
            {**self._static, **settable_configs(options.broker_configs.get(broker_id, {}))},
            broker_id=broker_id,
            addresses=addresses,
            rack=rack,
            sync=log_dirs is not None and log_dirs.syncs,
        )
        storage: ReplicaStorage
        if log_dirs is None:
            names = directory_names(IN_MEMORY, options.log_dirs)
            storage = self._memory_storage(LogDirPlacement(names))
            if options.log_dirs > 1:
                own["log.dir"] = ",".join(names)
        else:
            storage = log_dirs
            own["log.dirs"] = ",".join(storage.placement.names)
        configs = self._make_configs(broker_id, own)
        configs.update(self.controller.image)
        stable = apache and not configs.unstable_api_versions_enable
        broker = Broker(
            broker_id,
            view=self.controller.image,
            configs=configs,
            scheduler=self.scheduler,
            rng=self.rng,
            network=self.network,
            disk=storage,
            producer_ids=ProducerIdManager(
                partial(self._request_producer_ids, broker_id),
                self.scheduler,
                at_once=not apache,
            ),
            events=self.events,
            faults=self.faults,
            objects=self._instrumented(self.objects),
            version_limits={**STABLE_VERSIONS, **options.api_max} if stable else options.api_max,
            limits_by_features=not apache,
            offset_value_version=4 if apache else 3,
            dialect=options.dialect,
            log_levels=self.controller.log_levels,
        )
        self.network.attach(broker)
        self._log_maintenance.append(LogMaintenance(broker))
        self._log_maintenance[-1].start()
        if persistence is not None:
            persistence.start_checkpoints(broker)
        return broker

    def _instrumented(self, objects: ObjectStore | None) -> ObjectStore | None:
        """The tier as brokers have it: counted, and behind its faults."""
        if objects is None:
            return None
        tracked = TrackedObjectStore(objects, self.tier_operations)
        return CountedObjectStore(
            FaultyObjectStore(tracked, self.tier_faults), self.remote_storage_metrics
        )

    def _make_objects(self, make_objects: MakeObjectStore | None) -> ObjectStore | None:
        if not self._configs.remote_log_storage_system_enable:
            return None
        if make_objects is None:
            return MemoryObjectStore(self.scheduler.soon, self.log_memory.add)
        return make_objects(self.scheduler)

    def _memory_storage(self, placement: LogDirPlacement) -> ReplicaStorage:
        memory = None if self.log_memory.limit is None else self.log_memory

        def make_log(name: str, config: LogConfig) -> Log:
            return memory_log(name, config, now_ms=self.scheduler.wall_ms(), store=store)

        def free_later(steps: Iterator[None]) -> None:
            storage.free_logs(steps)  # the one that the edge has set by then

        storage = MemoryReplicaStorage(make_log, placement)
        store = MemorySegmentStore(memory, free_later)
        return storage

    def _on_memory_full(self, used: int) -> None:
        limit = self.log_memory.limit
        self.events.emit(Kind.MEMORY_FULL, used_bytes=used, limit_bytes=limit)


def _broker_images(options: ClusterOptions) -> list[BrokerImage]:
    return [
        BrokerImage(
            broker_id=broker_id,
            host=first.advertised.host,
            port=first.advertised.port,
            other_endpoints={each.listener: each.advertised for each in others},
            rack=rack,
        )
        for broker_id, (first, *others), rack in options.by_id()
    ]
