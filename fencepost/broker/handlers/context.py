"""What the handlers need of a broker, and the context of a request with such a broker."""

import random
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from fencepost.broker.configs.effective_configs import BrokerConfigs
from fencepost.broker.controller.auto_topic_creation import ControllerClient
from fencepost.broker.core import context
from fencepost.broker.core.log_levels import LogLevels
from fencepost.broker.core.scheduler import Scheduler
from fencepost.broker.fetch.fetch_sessions import FetchSessionCache
from fencepost.broker.groups.group_coordinator import GroupCoordinator
from fencepost.broker.handlers.client_metrics import ClientMetricsManager
from fencepost.broker.metadata.image import ClusterImage
from fencepost.broker.network.links import Network
from fencepost.broker.produce.append import ProduceNode
from fencepost.broker.produce.producer_id_manager import ProducerIdManager
from fencepost.broker.replication.replica import Replica
from fencepost.broker.replication.replica_manager import ReplicaManager
from fencepost.broker.replication.replica_storage import ReplicaStorage
from fencepost.broker.replication.throttle import ReplicationThrottle
from fencepost.broker.tiering.remote_log_manager import RemoteLogManager
from fencepost.broker.transactions.produce_verification import ProduceVerification
from fencepost.broker.transactions.transaction_coordinator import TransactionCoordinator
from fencepost.protocol.apis import Api
from fencepost.storage.files.file_system import StorageFailure

if TYPE_CHECKING:
    from fencepost.protocol.codec.drafts import Draft


class ListenerNode(Protocol):
    """A node behind a listener: a broker, or the controller."""

    @property
    def broker_id(self) -> int:
        """Its node id."""
        ...

    @property
    def is_controller(self) -> bool:
        """Whether the listener is the controller's."""
        ...

    @property
    def view(self) -> ClusterImage:
        """The cluster as it knows it."""
        ...

    @property
    def configs(self) -> BrokerConfigs:
        """Its own."""
        ...

    @property
    def log_levels(self) -> LogLevels:
        """Of the process's loggers."""
        ...

    @property
    def scheduler(self) -> Scheduler:
        """Of the whole cluster."""
        ...

    @property
    def version_limits(self) -> Mapping[str, int]:
        """The highest versions that it serves, by API name, where not `Api.max_version`."""
        ...

    @property
    def dialect(self) -> "Draft | None":
        """The draft that it serves to clients that ask for it; None for none."""
        ...

    def max_version(self, api: Api) -> int:
        """The highest version of an API that it serves (inclusive)."""
        ...

    def serves(self, api: Api) -> bool:
        """Whether it serves clients any version of an API."""
        ...


class BrokerNode(ProduceNode, ControllerClient, Protocol):
    """One broker: its view of the cluster, its replicas, and what it keeps for its clients."""

    is_controller: Literal[False]
    scheduler: Scheduler
    rng: random.Random
    producer_ids: ProducerIdManager
    version_limits: Mapping[str, int]
    """The highest versions that it serves, by API name, where that is not `Api.max_version`."""
    dialect: "Draft | None"
    """The draft that it serves to clients that ask for it; None for none."""
    fetch_sessions: FetchSessionCache
    client_metrics: ClientMetricsManager
    remote_log_manager: RemoteLogManager
    leader_throttle: ReplicationThrottle
    replica_manager: ReplicaManager
    storage: ReplicaStorage
    network: Network
    coordinator: GroupCoordinator
    """The groups that this broker coordinates."""
    transactions: TransactionCoordinator
    """The transactions that this broker coordinates."""
    produce_verification: ProduceVerification
    """The transactions of the batches that this broker is sent as a leader."""

    def mark_offline(self, replica: Replica, failure: StorageFailure) -> None:
        """Take a replica offline whose log has failed."""
        ...

    def max_version(self, api: Api) -> int:
        """The highest version of an API that it serves (inclusive)."""
        ...

    def serves(self, api: Api) -> bool:
        """Whether it serves clients any version of an API."""
        ...


Context: TypeAlias = context.Context[BrokerNode]
ListenerContext: TypeAlias = context.Context[ListenerNode]
