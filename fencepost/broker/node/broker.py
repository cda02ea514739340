"""One broker: its view of the cluster and the parts that it consists of."""

import random
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from fencepost.broker.configs.effective_configs import BrokerConfigs
from fencepost.broker.controller.requests import Envelope
from fencepost.broker.coordinator.commit_queue import ReplicaLog
from fencepost.broker.coordinator.shard import CoordinatorRuntime
from fencepost.broker.core.events import Events
from fencepost.broker.core.log_levels import LogLevels
from fencepost.broker.core.scheduler import Scheduler
from fencepost.broker.core.waits import Wait
from fencepost.broker.faults.registry import FaultRegistry
from fencepost.broker.fetch.fetch_sessions import FetchSessionCache
from fencepost.broker.groups.group_config import GroupConfig
from fencepost.broker.groups.group_coordinator import OFFSETS_TOPIC, GroupCoordinator
from fencepost.broker.handlers import CONTROLLER_APIS, handler_of
from fencepost.broker.handlers.client_metrics import ClientMetricsManager
from fencepost.broker.metadata.features import limit_versions
from fencepost.broker.metadata.image import ClusterImage
from fencepost.broker.network.links import BrokerId, ControllerRequest, Network
from fencepost.broker.produce.producer_id_manager import ProducerIdManager
from fencepost.broker.replication.isr import IsrManager
from fencepost.broker.replication.replica import Replica
from fencepost.broker.replication.replica_manager import ReplicaManager
from fencepost.broker.replication.replica_storage import ReplicaStorage
from fencepost.broker.replication.throttle import follower_throttle, leader_throttle
from fencepost.broker.tiering.remote_log_manager import RemoteLogManager
from fencepost.broker.transactions.produce_verification import ProduceVerification
from fencepost.broker.transactions.transaction_config import TransactionConfig
from fencepost.broker.transactions.transaction_coordinator import TransactionCoordinator
from fencepost.protocol.apis import Api
from fencepost.protocol.errors import ErrorCode
from fencepost.storage.files.file_system import StorageFailure
from fencepost.storage.tier.object_store import ObjectStore

if TYPE_CHECKING:
    from fencepost.broker.handlers.context import Context
    from fencepost.protocol.codec.drafts import Draft

R = TypeVar("R")
_FORWARDING_TIMEOUT_MS: Final = 60_000
"""How long a client waits for the controller whose request has no timeout, as in Kafka."""


class Broker:
    """One broker of a cluster. It uses its own view and its own replicas only."""

    def __init__(
        self,
        broker_id: BrokerId,
        *,
        view: ClusterImage,
        configs: BrokerConfigs,
        scheduler: Scheduler,
        rng: random.Random,
        network: Network,
        disk: ReplicaStorage,
        producer_ids: ProducerIdManager,
        events: Events,
        faults: FaultRegistry,
        objects: ObjectStore | None = None,
        version_limits: Mapping[str, int],
        limits_by_features: bool,
        offset_value_version: int,
        dialect: "Draft | None",
        log_levels: LogLevels,
    ) -> None:
        """Make a broker that runs.

        :param objects: The remote tier; None where there is none.
        :param version_limits: The highest versions that it serves (``--api-max``,
            ``--like-kafka``), by API name, where that is not `Api.max_version`. A limit below the
            lowest version disables the API.
        :param limits_by_features: Whether features limit versions as well (KIP-1023).
        :param dialect: The draft that clients may ask for (``--dialect``).
        """
        self.broker_id = broker_id
        self.is_controller: Literal[False] = False
        self.running = True
        """Whether its process runs."""
        self.crashed = False
        """Whether it is down because it was killed."""
        self.view = view
        self.configs = configs
        self.log_levels = log_levels
        self.scheduler = scheduler
        self.rng = rng
        self.network = network
        self.producer_ids = producer_ids
        self.events = events
        self.faults = faults
        self.dialect = dialect
        self._configured_version_limits = version_limits
        self._limits_by_features = limits_by_features
        self.version_limits = self._version_limits_in(view)
        """The limits that apply now, with those of the features."""
        self.fetch_sessions = FetchSessionCache(rng, configs)
        self.client_metrics = ClientMetricsManager()
        self.coordinator = GroupCoordinator(
            scheduler=scheduler,
            rng=rng,
            config=GroupConfig.of_broker(configs, offset_value_version),
            partition_count=lambda: self._partition_count(OFFSETS_TOPIC),
        )
        """The groups that this broker coordinates."""
        self.transactions = TransactionCoordinator(
            self,
            config=TransactionConfig.of_broker(configs),
            generate_producer_id=producer_ids.generate_producer_id,
        )
        """The transactions that this broker coordinates."""
        self.produce_verification = ProduceVerification(self)
        """The transactions of the batches that this broker is sent as a leader."""
        self.isr_manager = IsrManager(self)
        self.leader_throttle = leader_throttle(self)
        self.follower_throttle = follower_throttle(self)
        self.storage = disk
        self.replica_manager = ReplicaManager(
            self,
            disk,
            maybe_expand_isr=self.isr_manager.maybe_expand_isr,
            on_elected=self._on_elected,
            on_resigned=self._on_resigned,
        )
        self.remote_log_manager = RemoteLogManager(self, objects)
        # Of the replica manager, and here as well: requests need them without one more call.
        self.replicas = self.replica_manager.replicas
        self.offline = self.replica_manager.offline
        self.mark_offline = self.replica_manager.mark_offline
        self.offline_on_failure = self.replica_manager.offline_on_failure
        self.wake_follower = self.replica_manager.wake_follower

    @property
    def host(self) -> str:
        """The host of its registration; empty where none is advertised."""
        return self.view.registrations[self.broker_id].host

    @property
    def epoch(self) -> int:
        """The epoch of its registration."""
        return self.view.registrations[self.broker_id].epoch

    def ask_controller(
        self,
        request: ControllerRequest[R],
        answered: Callable[[R], None],
        lost: Callable[[], None],
    ) -> None:
        """Send a request of the broker itself to the controller."""
        self.network.ask_controller(self.broker_id, request, answered, lost)

    def max_version(self, api: Api) -> int:
        """The highest version of an API that this broker serves (inclusive).

        An API that is disabled for clients has its lowest version, which brokers use.
        """
        return max(self.version_limits.get(api.name, api.max_version), api.min_version)

    def serves(self, api: Api) -> bool:
        """Whether clients are served any version of an API."""
        return self.version_limits.get(api.name, api.max_version) >= api.min_version

    def handle(self, api: Api, ctx: "Context", request: object) -> object:
        """Handle a request: return a response, a ``Wait``, None for no response, or HANG_UP.

        Requests for the controller are forwarded. Where a fault applies, the ``Wait`` may be a
        `BlockingResponse`, whose result may be a `Delivery` or HANG_UP.
        """
        if self.faults.active:
            return self.faults.intercept(api, ctx, request, self._handle)
        return self._handle(api, ctx, request)

    def _handle(self, api: Api, ctx: "Context", request: object) -> object:
        """Handle a request that no fault intercepts."""
        handler = handler_of(api)
        try:
            if api.name in CONTROLLER_APIS:
                return self._forward(api, ctx, request)
            return handler.handle(ctx, request)
        except StorageFailure as failure:
            self._take_log_offline(failure)
            return handler.refuse(request, ErrorCode.KAFKA_STORAGE_ERROR)

    def _forward(self, api: Api, ctx: "Context", request: object) -> object:
        """Have the controller answer a client's request (KIP-590).

        The client gets REQUEST_TIMED_OUT where the request or the answer is lost, or the answer is
        not here in time; the controller may carry the request out even then.
        """
        response: Wait[object] = Wait()

        def time_out() -> object:
            return handler_of(api).refuse(request, ErrorCode.REQUEST_TIMED_OUT)

        envelope = Envelope(
            broker_id=self.broker_id,
            api=api,
            version=ctx.version,
            client_id=ctx.client_id,
            peer=ctx.peer,
            request=request,
        )
        self.ask_controller(envelope, response.complete, lambda: response.complete(time_out()))
        if response.done:
            return response.result
        timeout_ms: int = getattr(request, "timeout_ms", _FORWARDING_TIMEOUT_MS)
        response.expire_at(self.scheduler, self.scheduler.now_ms() + max(timeout_ms, 0), time_out)
        return response

    def apply(self, image: ClusterImage, changed: frozenset[str]) -> None:
        """Apply a new metadata image.

        :param changed: The names of the topics that are new, deleted or different in this image.
        """
        if image.brokers is not self.view.brokers:
            self.replica_manager.finish_registrations()  # as they are in the view before
        before, self.view = self.view, image
        self.configs.update(image)
        if image.features is not before.features:
            self.version_limits = self._version_limits_in(image)
        self.replica_manager.apply(before, image, changed)
        self.transactions.on_metadata_change()
        self.coordinator.on_topics_deleted(
            name
            for name, topic in before.topics.items()
            if name in changed and topic.topic_id not in image.names
        )

    def stop(self, *, crash: bool) -> None:
        """Stop the broker's process: only its disk is left.

        :param crash: Whether it is killed: then high watermarks are those of the last checkpoint.
        """
        for _ in self.stopping(crash=crash):
            pass

    def stopping(self, *, crash: bool) -> Iterator[None]:
        """The steps of `stop`: it does nothing more from the first one on."""
        self.running, self.crashed = False, crash
        self.network.on_broker_down(self.broker_id)
        self.faults.on_broker_down(self.broker_id)
        self.replica_manager.stop_acting()
        self.isr_manager.clear()
        self.producer_ids.on_broker_stop()
        self.transactions.on_broker_stop()
        self.produce_verification.on_broker_stop()
        yield from self.replica_manager.closing(crash=crash)
        self.fetch_sessions.clear()
        self.client_metrics.clear()

    def start(self, image: ClusterImage) -> None:
        """Start the process again, with what the disk holds and this image."""
        for _ in self.starting(image):
            pass

    def starting(self, image: ClusterImage) -> Iterator[None]:
        """The steps of `start`."""
        self.running, self.crashed = True, False
        self.network.on_broker_up(self.broker_id)
        self.view = image
        self.configs.update(image)
        self.version_limits = self._version_limits_in(image)
        yield from self.replica_manager.starting(image)

    def _on_elected(self, replica: Replica) -> None:
        """A replica leads, in a new epoch: what it has of a coordinator's topic is loaded."""
        for runtime in self._coordinators():
            if replica.topic == runtime.topic:
                runtime.on_elected(replica.index, ReplicaLog(replica, self.scheduler))

    def _on_resigned(self, replica: Replica) -> None:
        """A replica does not lead any more."""
        for runtime in self._coordinators():
            if replica.topic == runtime.topic:
                runtime.on_resigned(replica.index)

    def _coordinators(self) -> "tuple[CoordinatorRuntime[Any], ...]":
        return self.coordinator.runtime, self.transactions.runtime

    def _partition_count(self, topic: str) -> int:
        found = self.view.topics.get(topic)
        return 0 if found is None else len(found.partitions)

    def _take_log_offline(self, failure: StorageFailure) -> None:
        for replica in list(self.replicas.values()):
            if replica.log.name == failure.log:
                self.mark_offline(replica, failure)

    def _version_limits_in(self, image: ClusterImage) -> Mapping[str, int]:
        given = self._configured_version_limits
        return limit_versions(image.features, given) if self._limits_by_features else given
