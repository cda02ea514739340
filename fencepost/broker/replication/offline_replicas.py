"""The replicas of one broker whose log has failed: they are offline until the broker starts again.

The controller is told. Those that failed for lack of descriptors come back as soon as files can be
opened again.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Final
from uuid import UUID

from fencepost.broker.controller.requests import FailReplicas, RestoreReplicas
from fencepost.broker.core.events import Kind
from fencepost.broker.metadata.image import TopicImage
from fencepost.broker.replication.node import ReplicaNode
from fencepost.broker.replication.replica_storage import ReplicaStorage
from fencepost.storage.files.file_system import StorageFailure

_REOPEN_AFTER_MS: Final = 1000
"""How often replicas that lacked descriptors are tried again."""


class OfflineReplicas:
    """The offline replicas of one broker.

    :param open_replica: Opens the replica of a topic's partition again.
    """

    def __init__(
        self,
        node: ReplicaNode,
        storage: ReplicaStorage,
        open_replica: Callable[[TopicImage, int], None],
    ) -> None:
        self.topic_ids: dict[tuple[str, int], UUID] = {}
        """Of each replica, by topic and index."""
        self._lacking: set[tuple[str, int]] = set()
        """The replicas among them that failed for lack of descriptors, and come back."""
        self._node = node
        self._storage = storage
        self._open_replica = open_replica

    def clear(self) -> None:
        """The broker starts again: all replicas are tried again."""
        self.topic_ids.clear()
        self._lacking.clear()

    def add(self, key: tuple[str, int], topic_id: UUID, failure: StorageFailure) -> None:
        """A replica's log has failed. The controller is told at the end of this turn."""
        self.topic_ids[key] = topic_id
        if failure.lacks_descriptors:
            if not self._lacking:
                self._reopen_later()
            self._lacking.add(key)
        topic, index = key
        self._node.events.emit(
            Kind.REPLICA_FAILED,
            topic=topic,
            partition=index,
            broker=self._node.broker_id,
            error=failure.why,
        )
        self._node.scheduler.soon(self.report)

    def report(self) -> None:
        """Tell the controller of all of them, also of those that it was told of before."""
        if self.topic_ids:
            found = self.topic_ids.items()
            failed = tuple((topic, topic_id, index) for (topic, index), topic_id in found)
            self._node.ask_controller(
                FailReplicas(broker_id=self._node.broker_id, replicas=failed),
                _ignore_answer,
                _ignore_loss,
            )

    def _reopen_later(self) -> None:
        scheduler = self._node.scheduler
        scheduler.at(scheduler.now_ms() + _REOPEN_AFTER_MS, self._reopen)

    def _reopen(self) -> None:
        """Take the replicas that lacked descriptors online again, if files can be opened."""
        self._lacking.intersection_update(self.topic_ids)
        if not self._lacking:
            return
        if not self._storage.can_open_files():
            self._reopen_later()
            return
        back = tuple((topic, self.topic_ids[topic, at], at) for topic, at in sorted(self._lacking))
        self._node.ask_controller(
            RestoreReplicas(broker_id=self._node.broker_id, replicas=back),
            lambda _: self._take_online(back),
            self._reopen_later,
        )

    def _take_online(self, replicas: tuple[tuple[str, UUID, int], ...]) -> None:
        """The controller knows that these replicas are back: open their logs."""
        for name, topic_id, index in replicas:
            self._lacking.discard((name, index))
            topic = self._node.view.topics.get(name)
            if self.topic_ids.get((name, index)) != topic_id or topic is None:
                continue
            del self.topic_ids[name, index]
            if topic.topic_id == topic_id:
                self._open_replica(topic, index)


class OfflineOnFailure:
    """A context that hands a log's failure over; a generator would take three times as long.

    :param mark_offline: Takes the replica of the log offline.
    """

    __slots__ = ("_mark_offline",)

    def __init__(self, mark_offline: Callable[[StorageFailure], None]) -> None:
        self._mark_offline = mark_offline

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        failure: BaseException | None,
        _trace: TracebackType | None,
    ) -> bool:
        if not isinstance(failure, StorageFailure):
            return False
        self._mark_offline(failure)
        return True


def _ignore_answer(_answer: None) -> None:
    """The next image has the outcome."""


def _ignore_loss() -> None:
    """It is reported again when the controller can be reached: `operator_actions.rejoin`."""
