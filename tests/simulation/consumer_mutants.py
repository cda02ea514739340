"""Rules of consumers switched off, at the `Consumer`'s core or at the broker that serves it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pytest
from msgspec.structs import replace as replaced

from fencepost.broker.fetch import kip_320_draft
from fencepost.client.batches import FetchedRecord
from fencepost.client.consumer import (
    committed_offsets,
    core,
    epoch_lookup,
    fetcher,
    offset_messages,
    truncation,
)
from fencepost.client.consumer.assignment import Assignment
from fencepost.client.consumer.cluster_metadata import ClusterMetadata, LeaderAndEpoch
from fencepost.client.consumer.epoch_cache import EpochCache
from fencepost.client.consumer.fetch_buffer import FetchBuffer, to_record
from fencepost.client.consumer.metadata_refresh import MetadataRefresh
from fencepost.client.consumer.model import ConsumerRecord, OffsetAndMetadata, OffsetAndTimestamp
from fencepost.client.consumer.position import AssignedPartition, Position
from fencepost.client.consumer.position_reset import PositionReset
from fencepost.client.consumer.requests import Turn
from fencepost.client.consumer.truncation import Diverged, Valid, compare
from fencepost.client.model import Partition
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import PartitionData
from fencepost.protocol.messages.metadata import MetadataResponsePartition
from fencepost.protocol.messages.offset_commit import OffsetCommitRequestPartition
from tests.simulation.mutant import Mutant

Compare = Callable[[Position, int, int], Valid | Diverged]


def not_validated(patch: pytest.MonkeyPatch) -> None:
    """A position is fetched from under a new leader without OffsetForLeaderEpoch."""
    whole = AssignedPartition._place

    def place(self: AssignedPartition, position: Position) -> None:
        self._validates = False
        whole(self, position)

    patch.setattr(AssignedPartition, "_place", place)


def _compare_by(patch: pytest.MonkeyPatch, function: Compare) -> None:
    for module in (truncation, epoch_lookup, fetcher):
        patch.setattr(module, "compare", function)


def divergence_ignored(patch: pytest.MonkeyPatch) -> None:
    """Whatever a leader answers about its epochs, the position is valid."""
    _compare_by(patch, lambda position, _epoch, _end: Valid(position.epoch))


def any_answer_a_truncation(patch: pytest.MonkeyPatch) -> None:
    """An end behind the position is taken for a truncation as well."""

    def diverged(position: Position, epoch: int, end_offset: int) -> Valid | Diverged:
        if epoch < 0 or end_offset < 0:
            return Diverged(None)
        return Diverged(OffsetAndMetadata(offset=min(end_offset, position.offset)))

    _compare_by(patch, diverged)


def divergence_off_by_one(patch: pytest.MonkeyPatch) -> None:
    """The divergent offset is taken for the last one that is the same."""

    def one_more(position: Position, epoch: int, end_offset: int) -> Valid | Diverged:
        found = compare(position, epoch, end_offset)
        if isinstance(found, Valid) or found.at is None:
            return found
        return Diverged(replaced(found.at, offset=found.at.offset + 1))

    _compare_by(patch, one_more)


def moved_in_silence(patch: pytest.MonkeyPatch) -> None:
    """The position moves to the divergent offset, and no application is told."""
    whole = Assignment.truncated

    def truncated(self: Assignment, partition: AssignedPartition, diverged: Diverged) -> None:
        report, self._report = self._report, lambda _: None
        whole(self, partition, diverged)
        self._report = report

    patch.setattr(Assignment, "truncated", truncated)


def older_metadata_taken(patch: pytest.MonkeyPatch) -> None:
    """Metadata with an older leader epoch is taken (before KIP-232)."""

    def update(
        self: ClusterMetadata, partition: Partition, found: MetadataResponsePartition
    ) -> None:
        leader = found.leader_id if found.leader_id in self.brokers else None
        self._leaders[partition] = LeaderAndEpoch(leader=leader, epoch=found.leader_epoch)
        self._epochs[partition] = found.leader_epoch

    patch.setattr(ClusterMetadata, "_update_partition", update)


def epochs_not_committed(patch: pytest.MonkeyPatch) -> None:
    """Offsets are committed without the epoch of the record before them."""
    whole = offset_messages.committed_partition

    def committed(partition: Partition, offset: OffsetAndMetadata) -> OffsetCommitRequestPartition:
        return whole(partition, replaced(offset, leader_epoch=None))

    patch.setattr(committed_offsets, "committed_partition", committed)


def fenced_taken_for_out_of_range(patch: pytest.MonkeyPatch) -> None:
    """FENCED_LEADER_EPOCH resets the position."""
    whole = fetcher.Fetcher._handle_error

    def handle(self: fetcher.Fetcher, sent: fetcher._Sent, part: PartitionData, now: int) -> None:
        if part.error_code == ErrorCode.FENCED_LEADER_EPOCH:
            part = replaced(part, error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
        whole(self, sent, part, now)

    patch.setattr(fetcher.Fetcher, "_handle_error", handle)


def buffers_dropped(patch: pytest.MonkeyPatch) -> None:
    """After the first records of an answer the rest of it is passed over."""
    whole = FetchBuffer.take

    def take(self: FetchBuffer, count: int) -> Sequence[FetchedRecord]:
        taken = whole(self, count)
        self._taken = len(self._records)
        return taken

    patch.setattr(FetchBuffer, "take", take)


def epochs_of_records_lost(patch: pytest.MonkeyPatch) -> None:
    """Records are handed out with the epoch after theirs."""

    def record(topic: str, partition: int, found: FetchedRecord) -> ConsumerRecord:
        return to_record(topic, partition, replaced(found, epoch=found.epoch + 1))

    patch.setattr(core, "to_record", record)


def reset_beside(patch: pytest.MonkeyPatch) -> None:
    """A reset goes to the offset behind the one that was found."""
    whole = PositionReset._move

    def move(
        self: PositionReset, partition: AssignedPartition, found: OffsetAndTimestamp | None
    ) -> None:
        whole(self, partition, found and replaced(found, offset=found.offset + 1))

    patch.setattr(PositionReset, "_move", move)


def metadata_not_refreshed(patch: pytest.MonkeyPatch) -> None:
    """An answer that shows that metadata is stale has no effect, nor has its age."""
    patch.setattr(MetadataRefresh, "request", lambda _self: None)
    whole = MetadataRefresh.run

    def run(self: MetadataRefresh, turn: Turn, *, has_leaders: bool) -> None:
        self._expires_at = turn.now + 1
        whole(self, turn, has_leaders=has_leaders)

    patch.setattr(MetadataRefresh, "run", run)


# -- the earlier draft of KIP-320 ---------------------------------------------------------------


def truncations_not_answered(patch: pytest.MonkeyPatch) -> None:
    """Brokers serve a fetch of the draft whatever the epoch of the record before it."""
    patch.setattr(kip_320_draft, "find_truncation", lambda _leader, _asked: None)


def cache_not_kept(patch: pytest.MonkeyPatch) -> None:
    """The cache knows no epoch that was fetched but the last one."""

    def add(self: EpochCache, epoch: int, offset: int) -> None:
        if epoch != self.last:
            self._starts = [(epoch, offset)]

    patch.setattr(EpochCache, "add", add)


_UNREPORTED: Final = frozenset({"truncations_are_reported", "consumers_skip_and_repeat_nothing"})
_MISPLACED: Final = frozenset({"truncations_are_reported_where_they_are"})

CONSUMER_MUTANTS: Final = tuple(
    Mutant(name=name, inject=inject, breaks=breaks, consumers=True, first_seed=first_seed)
    for name, inject, breaks, first_seed in (
        ("the validation after a change of leader", not_validated, _UNREPORTED, 12),
        ("the divergence", divergence_ignored, _UNREPORTED, 23),
        ("the report of a truncation", moved_in_silence, _UNREPORTED, 19),
        (
            "no report without a truncation",
            any_answer_a_truncation,
            frozenset({"only_truncations_are_reported"}),
            1,
        ),
        ("the divergent offset", divergence_off_by_one, _MISPLACED, 27),
        (
            "metadata epochs that never go back",
            older_metadata_taken,
            frozenset({"metadata_epochs_never_go_back"}),
            5,
        ),
        (
            "the committed epoch",
            epochs_not_committed,
            frozenset({"committed_positions_come_back"}),
            1,
        ),
        (
            "new metadata where a leader is fenced, not a reset",
            fenced_taken_for_out_of_range,
            frozenset({"consumers_skip_and_repeat_nothing"}),
            2,
        ),
        (
            "records that were fetched and not yet handed out",
            buffers_dropped,
            frozenset({"consumers_skip_and_repeat_nothing"}),
            0,
        ),
        (
            "the epochs of records",
            epochs_of_records_lost,
            frozenset({"consumers_get_what_leaders_wrote"}),
            0,
        ),
        (
            "the offset of a reset",
            reset_beside,
            frozenset({"consumers_go_where_lookups_say"}),
            0,
        ),
        (
            "new metadata where it is stale",
            metadata_not_refreshed,
            frozenset({"consumers_come_to_the_end"}),
            0,
        ),
        ("the draft's LOG_TRUNCATION", truncations_not_answered, _UNREPORTED, 19),
        ("the draft's cache of epochs", cache_not_kept, _MISPLACED, 46),
    )
)
