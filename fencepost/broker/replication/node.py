"""What replication needs of the broker that its replicas are on, and of that broker's tier."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar
from uuid import UUID

from fencepost.broker.configs.effective_configs import BrokerConfigs
from fencepost.broker.core.async_tasks import AsyncTask
from fencepost.broker.core.events import Events
from fencepost.broker.core.scheduler import Scheduler
from fencepost.broker.metadata.image import ClusterImage, TopicImage
from fencepost.broker.network.links import BrokerId, ControllerRequest, Network
from fencepost.broker.replication.follower.start_offset import AuxiliaryState
from fencepost.broker.replication.replica import Replica
from fencepost.broker.replication.throttle import ReplicationThrottle
from fencepost.storage.files.file_system import StorageFailure
from fencepost.storage.tier.object_store import TierError

R = TypeVar("R")


class ReplicaHolder(Protocol):
    """The replicas of a broker, and its view of the cluster."""

    view: ClusterImage
    replicas: dict[tuple[str, int], Replica]
    """By topic and index."""
    offline: dict[tuple[str, int], UUID]
    """The topic ids of the replicas whose log has failed."""


class LeaderNode(ReplicaHolder, Protocol):
    """What a leader needs to change its ISR."""

    broker_id: BrokerId
    configs: BrokerConfigs
    scheduler: Scheduler

    @property
    def epoch(self) -> int:
        """The epoch of the broker's registration."""
        ...

    def ask_controller(
        self,
        request: ControllerRequest[R],
        answered: Callable[[R], None],
        lost: Callable[[], None],
    ) -> None:
        """Send a request to the controller; ``lost`` where it or its response is lost."""
        ...


class AuxiliaryStates(Protocol):
    """The remote tier, as a follower uses it."""

    def build_auxiliary_state(
        self,
        replica: Replica,
        *,
        epoch: int,
        offset: int,
        then: Callable[[AuxiliaryState | TierError], None],
    ) -> AsyncTask[AuxiliaryState]:
        """Read from the tier the state of a replica's log before an offset.

        :param epoch: The leader epoch of the record before ``offset``.
        :param then: Called later, unless the returned task is stopped.
        """
        ...


class FollowerNode(Protocol):
    """What a follower needs to fetch from its leader."""

    broker_id: BrokerId
    view: ClusterImage
    configs: BrokerConfigs
    scheduler: Scheduler
    events: Events
    network: Network
    follower_throttle: ReplicationThrottle

    @property
    def epoch(self) -> int:
        """The epoch of the broker's registration."""
        ...

    def mark_offline(self, replica: Replica, failure: StorageFailure) -> None:
        """Take a replica offline whose log has failed."""
        ...

    @property
    def remote_log_manager(self) -> AuxiliaryStates:
        """The tier."""
        ...


class RemoteReplicas(AuxiliaryStates, Protocol):
    """The remote tier, as the replica manager uses it."""

    def on_leadership_change(self, replica: Replica) -> None:
        """A replica is leader or follower, perhaps in another epoch or with other configs."""
        ...

    def stop_partition(self, replica: Replica) -> None:
        """The broker has the replica no longer."""
        ...

    def stop_partitions(self) -> None:
        """The broker has no replica any longer."""
        ...

    def delete_topic(self, topic: TopicImage) -> None:
        """A topic was deleted; its replicas are still here."""
        ...

    def delete_local(self, replica: Replica, now_ms: int) -> int:
        """Delete local segments by ``local.retention.*``; return how many."""
        ...

    def stop(self) -> None:
        """The broker stops."""
        ...

    def start(self, image: ClusterImage) -> None:
        """The broker starts."""
        ...


class ReplicaNode(LeaderNode, FollowerNode, Protocol):
    """What the replica manager needs: the same as its leaders and followers, and the tier."""

    def offline_on_failure(self, replica: Replica) -> AbstractContextManager[None]:
        """Take a replica offline if its log fails within the context."""
        ...

    @property
    def remote_log_manager(self) -> RemoteReplicas:
        """The tier."""
        ...
