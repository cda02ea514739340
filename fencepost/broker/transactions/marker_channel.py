"""Transaction markers on their way from a coordinator to the leaders of partitions.

A broker has one channel for all transactions that it coordinates. Markers for one leader travel in
one WriteTxnMarkers, and the next request goes when that is answered, as Kafka's
``TransactionMarkerChannelManager`` does. What a leader refuses for now, and what finds no leader,
is sent again after a pause, or when the metadata change. A partition that is deleted needs no
marker. A leader that has seen a newer coordinator or a newer producer ends the sending: the
coordinator that comes after this one sends the markers again.

A test may hold the marker of a partition, and release it.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

from fencepost.broker.core.scheduler import Scheduler, Timer
from fencepost.broker.metadata.image import ClusterImage
from fencepost.broker.network.links import BrokerId, Network
from fencepost.broker.transactions.transaction_metadata import TopicPartition, TransactionMetadata
from fencepost.broker.transactions.transaction_state import TransactionState
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

_PREPARE_COMMIT: Final = TransactionState.PREPARE_COMMIT
RETRY_BACKOFF_MS: Final = 100
"""How long what failed waits: Kafka's ``retry.backoff.ms`` by default."""
_WRITE_TXN_MARKERS: Final = BY_NAME["write_txn_markers"]
_FENCED: Final = frozenset(
    {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED}
)
_NOT_NEEDED: Final = frozenset(
    {ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION}
)
"""Answers after which a partition needs no marker: a log in a format without transactions has no
records of one."""


class MarkerNode(Protocol):
    """What the channel needs of the coordinator's broker."""

    broker_id: BrokerId
    view: ClusterImage
    scheduler: Scheduler
    network: Network


@dataclass(slots=True, eq=False, kw_only=True)
class PendingMarkers:
    """A decided transaction, and the partitions that have no marker yet."""

    transactional_id: str
    metadata: TransactionMetadata
    """With the epoch that the markers carry."""
    coordinator_epoch: int
    """The leader epoch of the transactional id's partition of ``__transaction_state``."""
    written: Callable[[], None]
    """Called once, when no partition is left."""
    remaining: set[TopicPartition] = field(init=False)
    is_settled: bool = False
    """Whether nothing is to be sent any more."""

    def __post_init__(self) -> None:
        self.remaining = set(self.metadata.partitions)

    @property
    def is_commit(self) -> bool:
        """Whether the markers commit."""
        return self.metadata.state is _PREPARE_COMMIT


_Queue = dict[PendingMarkers, set[TopicPartition]]


class MarkerChannel:
    """The markers that one broker sends."""

    def __init__(self, node: MarkerNode) -> None:
        self._node = node
        self._queues: dict[int, _Queue] = {}
        """Markers for each leader that go with the next request."""
        self._in_flight: set[int] = set()
        """The leaders that have not answered the last request."""
        self._waiting: _Queue = {}
        """Markers to be sent again, or without a leader."""
        self._held: dict[tuple[str, TopicPartition], PendingMarkers | None] = {}
        """Held markers by transactional id and partition; None before there is one."""
        self._retry: Timer | None = None
        self._is_flush_due = False

    # -- for the coordinator ---------------------------------------------------------------------

    def send(self, pending: PendingMarkers) -> None:
        """Send the markers of a transaction; without partitions, it is complete at once."""
        self._enqueue(pending, tuple(sorted(pending.remaining)))
        self._maybe_complete(pending)

    def cancel(self, pending: PendingMarkers) -> None:
        """Send no more: the broker coordinates the transaction no longer."""
        pending.is_settled = True
        for queue in (self._waiting, *self._queues.values()):
            queue.pop(pending, None)
        for key, held in self._held.items():
            if held is pending:
                self._held[key] = None

    def on_metadata_change(self) -> None:
        """Another image arrived: partitions may have leaders now, or be deleted."""
        if self._waiting:
            self._node.scheduler.soon(self._send_again)

    def on_broker_stop(self) -> None:
        """No answer to a request of this life will arrive."""
        self._queues.clear()
        self._in_flight.clear()
        self._waiting.clear()

    # -- for tests -------------------------------------------------------------------------------

    def hold(self, transactional_id: str, partition: TopicPartition) -> None:
        """Keep the marker of a partition from being sent, this one and later ones."""
        self._held.setdefault((transactional_id, partition), None)

    def release(self, transactional_id: str, partition: TopicPartition) -> bool:
        """Send the marker that is held, and hold no more.

        :returns: Whether the partition was held.
        """
        key = transactional_id, partition
        if key not in self._held:
            return False
        pending = self._held.pop(key)
        if pending is not None:
            self._enqueue(pending, (partition,))
            self._maybe_complete(pending)
        return True

    def clear_holds(self) -> None:
        """Hold nothing more; the transactions of what was held are gone."""
        self._held.clear()

    @property
    def held(self) -> Collection[tuple[str, TopicPartition]]:
        """The transactional ids and partitions whose markers are held."""
        return tuple(sorted(self._held))

    # -- sending ---------------------------------------------------------------------------------

    def _enqueue(self, pending: PendingMarkers, partitions: Iterable[TopicPartition]) -> None:
        """Queue the markers of partitions for their present leaders."""
        view = self._node.view
        for partition in partitions:
            image = view.partition(*partition)
            key = pending.transactional_id, partition
            if image is None:
                pending.remaining.discard(partition)
            elif key in self._held:
                self._held[key] = pending
            elif image.leader not in view.brokers or view.brokers[image.leader].fenced:
                self._wait(pending, partition)
            else:
                queue = self._queues.setdefault(image.leader, {})
                queue.setdefault(pending, set()).add(partition)
        if not self._is_flush_due:
            self._is_flush_due = True
            self._node.scheduler.soon(self._flush)

    def _flush(self) -> None:
        self._is_flush_due = False
        for leader in sorted(self._queues.keys() - self._in_flight):
            queue = self._queues.pop(leader)
            if queue:
                self._in_flight.add(leader)
                self._request(leader, queue)

    def _request(self, leader: int, queue: _Queue) -> None:
        node = self._node
        node.network.request(
            node.broker_id,
            leader,
            _WRITE_TXN_MARKERS,
            node.network.version(leader, _WRITE_TXN_MARKERS),
            WriteTxnMarkersRequest(markers=tuple([_marker(*each) for each in queue.items()])),
            partial(self._answered, leader, queue),
            partial(self._lost, leader, queue),
        )

    def _lost(self, leader: int, queue: _Queue) -> None:
        for pending, partitions in queue.items():
            for partition in sorted(partitions):
                self._wait(pending, partition)
        self._next(leader)

    def _answered(self, leader: int, queue: _Queue, response: object) -> None:
        assert isinstance(response, WriteTxnMarkersResponse)
        codes = {
            (marker.producer_id, topic.name, each.partition_index): each.error_code
            for marker in response.markers
            for topic in marker.topics
            for each in topic.partitions
        }
        for pending, partitions in queue.items():
            producer_id = pending.metadata.producer_id
            for partition in sorted(partitions):
                code = codes.get((producer_id, *partition), ErrorCode.UNKNOWN_SERVER_ERROR)
                self._on_code(pending, partition, code)
            self._maybe_complete(pending)
        self._next(leader)

    def _on_code(self, pending: PendingMarkers, partition: TopicPartition, code: int) -> None:
        if code in _NOT_NEEDED:
            pending.remaining.discard(partition)
        elif code in _FENCED:
            self.cancel(pending)
        else:
            self._wait(pending, partition)

    def _next(self, leader: int) -> None:
        self._in_flight.discard(leader)
        if leader in self._queues:
            self._node.scheduler.soon(self._flush)

    # -- sending again ---------------------------------------------------------------------------

    def _wait(self, pending: PendingMarkers, partition: TopicPartition) -> None:
        if pending.is_settled:
            return
        self._waiting.setdefault(pending, set()).add(partition)
        if self._retry is None:
            due_ms = self._node.scheduler.now_ms() + RETRY_BACKOFF_MS
            self._retry = self._node.scheduler.at(due_ms, self._send_again)

    def _send_again(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        waiting, self._waiting = self._waiting, {}
        for pending, partitions in waiting.items():
            self._enqueue(pending, sorted(partitions))
            self._maybe_complete(pending)

    def _maybe_complete(self, pending: PendingMarkers) -> None:
        if not pending.remaining and not pending.is_settled:
            pending.is_settled = True
            pending.written()


def _marker(pending: PendingMarkers, partitions: set[TopicPartition]) -> WritableTxnMarker:
    metadata = pending.metadata
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        topics.setdefault(topic, []).append(index)
    return WritableTxnMarker(
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        transaction_result=pending.is_commit,
        topics=tuple(
            [
                WritableTxnMarkerTopic(name=topic, partition_indexes=tuple(indexes))
                for topic, indexes in topics.items()
            ]
        ),
        coordinator_epoch=pending.coordinator_epoch,
        transaction_version=metadata.client_version,
    )
