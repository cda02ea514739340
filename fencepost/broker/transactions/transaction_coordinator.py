"""The transaction coordinator of one broker, and its shards: the partitions of
``__transaction_state``.
"""

from collections.abc import Callable, Iterator
from typing import Final, Protocol

from fencepost.broker.coordinator.commit_queue import PartitionLog
from fencepost.broker.coordinator.shard import (
    CoordinatorRuntime,
    CoordinatorShard,
    LoggedRecord,
)
from fencepost.broker.core.events import Events, Kind
from fencepost.broker.core.scheduler import Timer
from fencepost.broker.metadata.features import transaction_version
from fencepost.broker.metadata.image import TRANSACTION_TOPIC
from fencepost.broker.transactions.end_transaction import decide_abort
from fencepost.broker.transactions.marker_channel import (
    RETRY_BACKOFF_MS,
    MarkerChannel,
    MarkerNode,
    PendingMarkers,
)
from fencepost.broker.transactions.producer_epochs import GenerateProducerId
from fencepost.broker.transactions.records import (
    FLEXIBLE_VERSION,
    ReplayedTransactions,
    TransactionRecord,
    record_serde,
)
from fencepost.broker.transactions.transaction_config import TransactionConfig
from fencepost.broker.transactions.transaction_metadata import TopicPartition, TransactionMetadata
from fencepost.broker.transactions.transaction_state import IDLE, PREPARING, TransactionState
from fencepost.protocol.errors import ErrorCode

NEVER_TIMES_OUT: Final = 2**31 - 1
"""The timeout of a transaction of a two-phase commit (KIP-939)."""
_NONE: Final = ErrorCode.NONE
_ONGOING: Final = TransactionState.ONGOING
_TRANSACTION_CHANGED: Final = Kind.TRANSACTION_CHANGED
_COMMIT_TIMEOUT_MS: Final = 30_000
_TOMBSTONES_BYTES: Final = 16_384
"""Keys of tombstones in one batch."""


class CoordinatorNode(MarkerNode, Protocol):
    """What the coordinator needs of its broker."""

    events: Events


class TransactionCoordinatorShard(CoordinatorShard[ReplayedTransactions, TransactionRecord]):
    """The transactional ids of one partition."""

    def __init__(self, coordinator: "TransactionCoordinator", log: PartitionLog) -> None:
        super().__init__(
            log=log,
            scheduler=coordinator.node.scheduler,
            serde=record_serde(coordinator.value_version),
            new_state=ReplayedTransactions,
            commit_timeout_ms=_COMMIT_TIMEOUT_MS,
        )
        self.coordinator = coordinator
        self.coordinator_epoch = log.leader_epoch
        self.completions: dict[str, PendingMarkers] = {}
        """Decided transactions whose markers are on their way, by transactional id."""
        self._given_up: dict[str, TransactionMetadata] = {}
        """By transactional id, what was not committed in time."""

    # -- transactional ids -----------------------------------------------------------------------

    def find(self, transactional_id: str) -> TransactionMetadata | None:
        """The newest metadata of an id, or None.

        Without those that were not committed in time. They are in the log, and hold all the same
        once they are committed; until then the next decision is made as if they were not there, as
        Kafka resets the pending state. Else a coordinator that others have replaced, and that does
        not know it yet, would answer CONCURRENT_TRANSACTIONS for ever.
        """
        if self.has_given_up(transactional_id):
            return self.committed.transactions.get(transactional_id)
        return self.latest.transactions.get(transactional_id)

    def is_in_transition(self, transactional_id: str) -> bool:
        """Whether the id has a record that may be committed in time: others have to wait for it."""
        newest = self.find(transactional_id)
        return newest is not self.committed.transactions.get(transactional_id)

    def has_given_up(self, transactional_id: str) -> bool:
        """Whether the log has a record that was not committed in time, behind what `find` tells.

        It replaces that once it is committed: an answer that depends on what `find` tells needs a
        record of its own, which comes after it.
        """
        latest = self.latest.transactions.get(transactional_id)
        return latest is not None and latest is self._given_up.get(transactional_id)

    def find_visible(self, transactional_id: str) -> TransactionMetadata | None:
        """An id for others than its producer: None until it is committed, and once it expires."""
        if transactional_id not in self.latest.transactions:
            return None
        return self.committed.transactions.get(transactional_id)

    def visible_ids(self) -> Iterator[tuple[str, TransactionMetadata]]:
        """Every id that is committed and not about to expire."""
        for transactional_id, metadata in self.committed.transactions.items():
            if transactional_id in self.latest.transactions:
                yield transactional_id, metadata

    def remaining_partitions(
        self, transactional_id: str, metadata: TransactionMetadata
    ) -> frozenset[TopicPartition]:
        """The partitions of a transaction that have no marker."""
        pending = self.completions.get(transactional_id)
        if pending is None or pending.metadata is not metadata:
            return metadata.partitions
        return frozenset(pending.remaining)

    def change(
        self,
        transactional_id: str,
        metadata: TransactionMetadata,
        done: Callable[[ErrorCode], None],
    ) -> None:
        """Write an id's next metadata; ``done`` is called when they are committed, or given up."""

        def committed_or_given_up(error: ErrorCode) -> None:
            if error is not _NONE:
                self._give_up(transactional_id, metadata)
            done(error)

        self._write(transactional_id, metadata, committed_or_given_up)

    def _give_up(self, transactional_id: str, metadata: TransactionMetadata) -> None:
        self._given_up[transactional_id] = metadata
        found = self.find(transactional_id)
        if found is not None and found.state is TransactionState.ONGOING and not self._closed:
            self.coordinator.start_timers(is_open=True)

    def _write(
        self,
        transactional_id: str,
        metadata: TransactionMetadata,
        done: Callable[[ErrorCode], None],
    ) -> None:
        record = TransactionRecord(transactional_id=transactional_id, value=metadata)
        self.write([record], done, timeout_ms=metadata.timeout_ms)

    def replay(self, state: ReplayedTransactions, logged: LoggedRecord[TransactionRecord]) -> None:
        """Apply a record; what others may see of it is an event."""
        transactional_id, value = logged.record.transactional_id, logged.record.value
        before = state.transactions.get(transactional_id)
        super().replay(state, logged)
        if state is self.committed and self._given_up.get(transactional_id) is value:
            self._given_up.pop(transactional_id, None)
        if self.loaded and state is self.committed:
            self._emit(logged.record, before)

    def _emit(self, record: TransactionRecord, before: TransactionMetadata | None) -> None:
        after = record.value
        if after is None or (
            before is not None
            and before.state is after.state
            and before.producer_id == after.producer_id
            and before.producer_epoch == after.producer_epoch
        ):
            return
        self.coordinator.node.events.emit(
            _TRANSACTION_CHANGED,
            broker=self.coordinator.node.broker_id,
            transactional_id=record.transactional_id,
            producer_id=after.producer_id,
            producer_epoch=after.producer_epoch,
            state=after.state.title,
            partitions=len(after.partitions),
        )

    # -- completion ------------------------------------------------------------------------------

    def on_loaded(self) -> None:
        """Go on with the transactions that were decided before the election."""
        for transactional_id, metadata in list(self.committed.transactions.items()):
            self._complete_soon(transactional_id, metadata)

    def on_replayed(self, record: TransactionRecord) -> None:
        """A transaction may time out, or an id expire."""
        if record.value is not None:
            self.coordinator.start_timers(is_open=record.value.state is _ONGOING)

    def on_committed(self, record: TransactionRecord) -> None:
        """A decision is durable: its markers may be written, after it was answered."""
        if record.value is None:
            return
        if record.value.state is _ONGOING:  # given up meanwhile, it did not count
            self.coordinator.start_timers(is_open=True)
        self._complete_soon(record.transactional_id, record.value)

    def on_unloaded(self) -> None:
        """Another coordinator sends the markers that are left."""
        for pending in self.completions.values():
            self.coordinator.channel.cancel(pending)
        self.completions.clear()

    def _complete_soon(self, transactional_id: str, metadata: TransactionMetadata) -> None:
        if metadata.state in PREPARING:
            self.scheduler.soon(lambda: self._send_markers(transactional_id, metadata))

    def _send_markers(self, transactional_id: str, metadata: TransactionMetadata) -> None:
        """Send the markers, unless the decision is carried out already or was not the last."""
        self.scheduler.give_way()
        if self._closed or self.latest.transactions.get(transactional_id) is not metadata:
            return
        known = self.completions.get(transactional_id)
        if known is not None and known.metadata is metadata:
            return
        pending = PendingMarkers(
            transactional_id=transactional_id,
            metadata=metadata,
            coordinator_epoch=self.coordinator_epoch,
            written=lambda: self._complete(transactional_id, metadata),
        )
        self.completions[transactional_id] = pending
        self.coordinator.channel.send(pending)

    def _complete(self, transactional_id: str, metadata: TransactionMetadata) -> None:
        """All markers are written: the transaction is complete when that is in the log."""
        if self._closed or self.latest.transactions.get(transactional_id) is not metadata:
            return

        def done(error: ErrorCode) -> None:
            if error is _NONE:
                self.completions.pop(transactional_id, None)
            elif not self._closed:
                due_ms = self.scheduler.now_ms() + RETRY_BACKOFF_MS
                self.scheduler.at(due_ms, lambda: self._complete(transactional_id, metadata))

        self._write(transactional_id, metadata.completed(self.scheduler.wall_ms()), done)

    # -- time ------------------------------------------------------------------------------------

    def abort_timed_out(self) -> bool:
        """Abort each transaction that has been open for longer than its timeout.

        :returns: Whether a transaction is open.
        """
        now_ms = self.scheduler.wall_ms()
        is_any_open = False
        for transactional_id in list(self.latest.transactions):
            metadata = self.find(transactional_id)
            if metadata is None or metadata.state is not TransactionState.ONGOING:
                continue
            is_any_open = True
            is_late = (
                metadata.timeout_ms != NEVER_TIMES_OUT
                and metadata.start_ms + metadata.timeout_ms < now_ms
            )
            if is_late and self.loaded and not self.is_in_transition(transactional_id):
                self.abort(transactional_id, metadata, _ignore_error)
        return is_any_open

    def abort(
        self,
        transactional_id: str,
        metadata: TransactionMetadata,
        done: Callable[[ErrorCode], None],
    ) -> None:
        """Abort an ongoing transaction and fence its producer; ``done`` when that is committed."""
        decision = decide_abort(
            metadata,
            server_version=self.coordinator.server_version,
            now_ms=self.scheduler.wall_ms(),
            generate_producer_id=self.coordinator.generate_producer_id,
        )
        if isinstance(decision, ErrorCode):
            done(decision)
        else:
            self.change(transactional_id, decision, done)

    def remove_expired(self) -> bool:
        """Forget the ids that have had no transaction for longer than the expiration.

        :returns: Whether there are ids.
        """
        oldest_ms = self.scheduler.wall_ms() - self.coordinator.config.expiration_ms
        tombstones: list[TransactionRecord] = []
        size = 0
        for transactional_id, metadata in list(self.latest.transactions.items()):
            is_expired = metadata.state in IDLE and metadata.last_update_ms <= oldest_ms
            if is_expired and self.loaded and not self.is_in_transition(transactional_id):
                tombstones.append(TransactionRecord(transactional_id=transactional_id, value=None))
                size += len(transactional_id.encode())
            if size >= _TOMBSTONES_BYTES:
                self.write(tombstones, _ignore_error)
                tombstones, size = [], 0
        if tombstones:
            self.write(tombstones, _ignore_error)
        return bool(self.latest.transactions)


def _ignore_error(_error: ErrorCode) -> None:
    """No request waits for it: the next run tries again."""


class TransactionCoordinator:
    """One broker's part in the coordination of transactions."""

    def __init__(
        self,
        node: CoordinatorNode,
        *,
        config: TransactionConfig,
        generate_producer_id: GenerateProducerId,
    ) -> None:
        self.node = node
        self.config = config
        self.generate_producer_id = generate_producer_id
        self.channel = MarkerChannel(node)
        self.runtime: CoordinatorRuntime[TransactionCoordinatorShard] = CoordinatorRuntime(
            TRANSACTION_TOPIC,
            partition_count=self._partition_count,
            new_shard=lambda log: TransactionCoordinatorShard(self, log),
        )
        self._abort_timer = _PeriodicRun(node, config.abort_interval_ms, self._abort_timed_out)
        self._expiration_timer = _PeriodicRun(
            node, config.expiration_interval_ms, self._remove_expired
        )

    @property
    def server_version(self) -> int:
        """The finalized ``transaction.version`` in this broker's view."""
        return transaction_version(self.node.view.features)

    def value_version(self) -> int:
        """The version in which values are written."""
        return min(self.server_version, FLEXIBLE_VERSION)

    def shard_for(self, transactional_id: str) -> TransactionCoordinatorShard | ErrorCode:
        """The shard of a transactional id, or an error: see `CoordinatorRuntime.shard_for`."""
        return self.runtime.shard_for(transactional_id)

    def on_metadata_change(self) -> None:
        """Another image arrived."""
        self.channel.on_metadata_change()

    def on_broker_stop(self) -> None:
        """The broker goes down; its shards are unloaded."""
        self.channel.on_broker_stop()

    def start_timers(self, *, is_open: bool) -> None:
        """There is an id that may expire from now on, and perhaps one whose transaction is open."""
        self._expiration_timer.start()
        if is_open:
            self._abort_timer.start()

    def _abort_timed_out(self) -> bool:
        are_open = [shard.abort_timed_out() for shard in self._shards_with_ids()]
        return any(are_open)

    def _remove_expired(self) -> bool:
        have_ids = [shard.remove_expired() for shard in self._shards_with_ids()]
        return any(have_ids)

    def _shards_with_ids(self) -> list[TransactionCoordinatorShard]:
        return [shard for shard in self.runtime.shards.values() if shard.latest.transactions]

    def _partition_count(self) -> int:
        topic = self.node.view.topics.get(TRANSACTION_TOPIC)
        return 0 if topic is None else len(topic.partitions)


class _PeriodicRun:
    """Runs a task each interval, counted from the start of the broker; none while it has no work.

    :param task: Says whether it may have work the next time.
    """

    def __init__(self, node: CoordinatorNode, interval_ms: int, task: Callable[[], bool]) -> None:
        self._scheduler = node.scheduler
        self._interval_ms = interval_ms
        self._task = task
        self._origin_ms = node.scheduler.now_ms()
        self._timer: Timer | None = None

    def start(self) -> None:
        """Run at the next interval, if that is not due already."""
        if self._timer is None:
            elapsed_ms = self._scheduler.now_ms() - self._origin_ms
            intervals = elapsed_ms // self._interval_ms + 1
            due_ms = self._origin_ms + intervals * self._interval_ms
            self._timer = self._scheduler.at(due_ms, self._run)

    def _run(self) -> None:
        self._timer = None
        if self._task():
            self.start()
