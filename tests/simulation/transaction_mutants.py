"""Rules of transactions switched off: at the coordinator, on the way of markers, and in the log."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final

import pytest
from msgspec.structs import replace as replaced

from fencepost.broker.coordinator.commit_queue import LoadedBatch, ReplicaLog
from fencepost.broker.coordinator.shard import (
    CoordinatorShard,
    EndTransaction,
    LoggedRecord,
)
from fencepost.broker.core.async_tasks import AsyncSteps
from fencepost.broker.groups.group_coordinator import GroupCoordinatorShard
from fencepost.broker.groups.records import CoordinatorRecord, ReplayedState
from fencepost.broker.tiering.remote_index_cache import RemoteIndexCache
from fencepost.broker.transactions import (
    requests,
    transaction_coordinator,
    transaction_partitions,
)
from fencepost.broker.transactions.marker_channel import MarkerChannel, PendingMarkers
from fencepost.broker.transactions.producer_epochs import GenerateProducerId, decide_producer
from fencepost.broker.transactions.records import TransactionRecord
from fencepost.broker.transactions.transaction_coordinator import TransactionCoordinatorShard
from fencepost.broker.transactions.transaction_metadata import (
    ProducerIdAndEpoch,
    TopicPartition,
    TransactionMetadata,
)
from fencepost.broker.transactions.transaction_state import TransactionState
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import NO_PRODUCER_ID
from fencepost.storage.log.segmented_log import SegmentedLog
from fencepost.storage.log.transactions import AbortedTransaction
from fencepost.storage.tier.object_store import ObjectStore
from fencepost.storage.tier.segment_metadata import RemoteSegment
from tests.simulation.mutant import Inject, Mutant


def one_marker_enough(patch: pytest.MonkeyPatch) -> None:
    """A transaction is complete when one of its partitions has a marker."""

    def begin(self: PendingMarkers) -> None:
        self.remaining = set(sorted(self.metadata.partitions)[:1])

    patch.setattr(PendingMarkers, "__post_init__", begin)


def answered_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    """A change is answered when it is appended, and not when it is committed."""

    def change(
        self: TransactionCoordinatorShard,
        transactional_id: str,
        metadata: TransactionMetadata,
        done: Callable[[ErrorCode], None],
    ) -> None:
        record = TransactionRecord(transactional_id=transactional_id, value=metadata)
        self.write([record], lambda _error: None)
        done(ErrorCode.NONE)

    patch.setattr(TransactionCoordinatorShard, "change", change)


def aborted_transactions_not_listed(patch: pytest.MonkeyPatch) -> None:
    """Fetch lists no aborted transactions."""
    patch.setattr(SegmentedLog, "aborted_transactions", lambda _self, _start, _end: ())


def read_up_to_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """Open transactions hold back nothing."""
    patch.setattr(SegmentedLog, "last_stable_offset", lambda _self, high_watermark: high_watermark)


def markers_before_the_decision(patch: pytest.MonkeyPatch) -> None:
    """Markers are sent when the decision is appended, and not when it is committed."""
    whole = TransactionCoordinatorShard.on_replayed

    def on_replayed(self: TransactionCoordinatorShard, record: TransactionRecord) -> None:
        whole(self, record)
        self.on_committed(record)

    patch.setattr(TransactionCoordinatorShard, "on_replayed", on_replayed)


def epoch_kept(patch: pytest.MonkeyPatch) -> None:
    """InitProducerId gives the next producer the epoch of the last."""
    whole = decide_producer

    def decide(
        current: TransactionMetadata,
        expected: ProducerIdAndEpoch | None,
        *,
        timeout_ms: int,
        now_ms: int,
        generate_producer_id: GenerateProducerId,
    ) -> TransactionMetadata | ErrorCode:
        decision = whole(
            current,
            expected,
            timeout_ms=timeout_ms,
            now_ms=now_ms,
            generate_producer_id=generate_producer_id,
        )
        if isinstance(decision, ErrorCode) or current.producer_epoch < 0:
            return decision
        return replaced(decision, producer_epoch=current.producer_epoch)

    patch.setattr(requests, "decide_producer", decide)


def any_epoch_verified(patch: pytest.MonkeyPatch) -> None:
    """The coordinator verifies and adds partitions for producers that are fenced."""
    whole = transaction_partitions.check_producer

    def check(current: TransactionMetadata, producer: ProducerIdAndEpoch) -> ErrorCode:
        error = whole(current, producer)
        return ErrorCode.NONE if error is ErrorCode.PRODUCER_FENCED else error

    patch.setattr(transaction_partitions, "check_producer", check)


def last_record_not_replayed(patch: pytest.MonkeyPatch) -> None:
    """A coordinator that loads stops before the last batch."""
    whole = ReplicaLog.read_all

    def read_all(self: ReplicaLog) -> Iterator[LoadedBatch]:
        yield from [*whole(self)][:-1]

    patch.setattr(ReplicaLog, "read_all", read_all)


def markers_sent_once(patch: pytest.MonkeyPatch) -> None:
    """A marker that found no leader, or that it refused, is not sent again."""

    def forget(_self: MarkerChannel, _pending: PendingMarkers, _partition: TopicPartition) -> None:
        """Nothing waits."""

    patch.setattr(MarkerChannel, "_wait", forget)


def offsets_not_pending(patch: pytest.MonkeyPatch) -> None:
    """What a transaction commits is the group's at once."""
    whole = ReplayedState.replay_logged

    def replay_logged(self: ReplayedState, logged: LoggedRecord[CoordinatorRecord]) -> None:
        whole(self, logged._replace(producer_id=NO_PRODUCER_ID))

    patch.setattr(ReplayedState, "replay_logged", replay_logged)


def aborted_offsets_kept(patch: pytest.MonkeyPatch) -> None:
    """The offsets of a transaction become the group's whatever its marker says."""
    whole = ReplayedState.end_transaction

    def end_transaction(self: ReplayedState, ended: EndTransaction) -> None:
        whole(self, ended._replace(committed=True))

    patch.setattr(ReplayedState, "end_transaction", end_transaction)


def pending_offsets_dropped(patch: pytest.MonkeyPatch) -> None:
    """A marker ends a transaction, and its offsets do not become the group's."""

    def end_transaction(self: ReplayedState, ended: EndTransaction) -> None:
        self.pending.end(ended.producer_id)

    patch.setattr(ReplayedState, "end_transaction", end_transaction)


def offset_markers_not_replayed(patch: pytest.MonkeyPatch) -> None:
    """A coordinator of groups that loads does not read markers."""

    def loaded(
        self: GroupCoordinatorShard, batch: LoadedBatch
    ) -> Iterator[tuple[int, LoggedRecord[CoordinatorRecord] | EndTransaction]]:
        if batch.marker is None:
            yield from CoordinatorShard._loaded(self, batch)

    patch.setattr(GroupCoordinatorShard, "_loaded", loaded)


def aborted_transactions_of_the_tier_not_listed(patch: pytest.MonkeyPatch) -> None:
    """Segments in the tier have no index of aborted transactions."""

    def transactions(
        _self: RemoteIndexCache, _objects: ObjectStore, _segment: RemoteSegment
    ) -> AsyncSteps[list[AbortedTransaction]]:
        yield from ()
        return []

    patch.setattr(RemoteIndexCache, "transactions", transactions)


def producer_ids_kept(patch: pytest.MonkeyPatch) -> None:
    """A producer goes on with its id when the epochs are used up."""
    patch.setattr(TransactionMetadata, "is_epoch_exhausted", property(lambda _self: False))


def open_transactions_expire(patch: pytest.MonkeyPatch) -> None:
    """A transactional id expires with its transaction open."""
    patch.setattr(transaction_coordinator, "IDLE", frozenset(TransactionState))


_TORN: Final = frozenset({"transactions_are_atomic"})
_MUTANTS: Final[tuple[tuple[str, Inject, Collection[str], int], ...]] = (
    ("the markers of all partitions", one_marker_enough, _TORN, 2),
    ("the wait for the decision", answered_before_the_commit, _TORN, 5),
    (
        "the list of aborted transactions",
        aborted_transactions_not_listed,
        {"transactions_are_isolated"},
        0,
    ),
    (
        "the last stable offset",
        read_up_to_the_high_watermark,
        {"last_stable_offsets_stop_at_open_transactions"},
        0,
    ),
    (
        "the wait of the markers for the decision",
        markers_before_the_decision,
        {"markers_follow_decisions"},
        0,
    ),
    ("the epoch of a new producer", epoch_kept, {"one_epoch_of_an_id_is_given_once"}, 0),
    (
        "the epoch of a producer that adds",
        any_epoch_verified,
        {"one_epoch_of_an_id_is_alive"},
        0,
    ),
    (
        "the last record at the load",
        last_record_not_replayed,
        {"coordinators_are_what_their_log_says"},
        0,
    ),
    ("markers that are sent again", markers_sent_once, {"transactions_come_to_an_end"}, 24),
    ("the wait of offsets for the marker", offsets_not_pending, {"offsets_are_isolated"}, 1),
    ("offsets that are aborted", aborted_offsets_kept, {"offsets_are_isolated"}, 1),
    ("offsets that are committed", pending_offsets_dropped, {"offsets_are_atomic"}, 1),
    (
        "the markers at the load of groups",
        offset_markers_not_replayed,
        {"offsets_become_stable", "offsets_are_atomic"},
        2,
    ),
    (
        "the index of aborted transactions in the tier",
        aborted_transactions_of_the_tier_not_listed,
        {"transactions_are_isolated"},
        1,
    ),
    (
        "another producer id after the last epoch",
        producer_ids_kept,
        {"one_epoch_of_an_id_is_given_once", "nothing_fails"},
        5,
    ),
    (
        "the memory of ids with an open transaction",
        open_transactions_expire,
        {"transactions_come_to_an_end", "coordinators_are_what_their_log_says"},
        0,
    ),
)
TRANSACTION_MUTANTS: Final = tuple(
    Mutant(
        name=name,
        inject=inject,
        breaks=frozenset(breaks),
        transactions=True,
        first_seed=first_seed,
    )
    for name, inject, breaks, first_seed in _MUTANTS
)
