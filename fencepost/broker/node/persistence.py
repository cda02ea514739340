"""What a cluster needs of the place where it keeps its metadata and its logs."""

import random
from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias

from fencepost.broker.controller.controller import Controller
from fencepost.broker.core.events import Events
from fencepost.broker.core.scheduler import Scheduler
from fencepost.broker.metadata.image import ClusterImage
from fencepost.broker.node.broker import Broker
from fencepost.broker.replication.replica_storage import ReplicaStorage


class LogDirectories(ReplicaStorage, Protocol):
    """One broker's log directories."""

    @property
    def syncs(self) -> bool:
        """Whether each append is synced to disk."""
        ...


class Persistence(Protocol):
    """The metadata and the logs of a cluster, which outlive its process."""

    @property
    def starts(self) -> int:
        """How many processes of the cluster have been started before; 0 for a new cluster."""
        ...

    @property
    def cluster_id(self) -> str:
        """The id of the cluster; empty for a new one."""
        ...

    @property
    def syncs(self) -> bool:
        """Whether each append is synced to disk."""
        ...

    def set_cluster_id(self, cluster_id: str) -> None:
        """Set the cluster's id, which log directories have to have as well."""
        ...

    def broker_log_dirs(self, broker_id: int, count: int) -> LogDirectories:
        """A broker's log directories, made if they are missing.

        :raises DataDirUnusable: When one can't be made, or is another broker's.
        """
        ...

    def start_checkpoints(self, broker: Broker) -> None:
        """Start the timers that write a broker's checkpoints."""
        ...

    def restored_image(self, fresh: ClusterImage) -> ClusterImage:
        """The image to start with: the brokers of ``fresh``, the topics and configs on disk."""
        ...

    def start(self, controller: Controller) -> None:
        """Start leader epochs that no partition has had, and append all changes from now on.

        :param controller: It has the restored image, which no broker has applied yet.
        :raises DataDirUnusable: When it can't be written.
        """
        ...

    def append_changes(
        self, before: ClusterImage, after: ClusterImage, changed: frozenset[str]
    ) -> None:
        """Append what is different in a new image, before any broker applies it."""
        ...

    def close(self, brokers: Iterable[Broker]) -> None:
        """Stop the brokers, write every checkpoint, and release the place."""
        ...


MakePersistence: TypeAlias = Callable[[Scheduler, Events, random.Random], Persistence]
"""Makes the persistence of a cluster. It may draw from the random generator only later."""
