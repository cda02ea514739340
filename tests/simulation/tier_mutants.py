"""The core with one rule of the remote tier, or of log starts, switched off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pytest

from fencepost.broker.replication import (
    replica,
)
from fencepost.broker.replication.follower import offset_recovery, start_offset
from fencepost.broker.tiering import remote_retention, remote_segments
from fencepost.broker.tiering.remote_segments import epochs_within
from fencepost.storage.log import cleanup
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.interface import SegmentCopy
from fencepost.storage.log.leader_epoch_cache import EpochEntry
from fencepost.storage.log.segmented_log import SegmentedLog
from fencepost.storage.tier.lineage import RemoteSegments, TieredRange
from tests.simulation.mutant import Mutant


def uncommitted_uploaded(patch: pytest.MonkeyPatch) -> None:
    """Whatever is closed goes to the tier, below the last stable offset or not."""
    whole = SegmentedLog.segment_to_upload

    def segment_to_upload(self: SegmentedLog, offset: int, _bound: int) -> SegmentCopy | None:
        return whole(self, offset, self.log_end_offset)

    patch.setattr(SegmentedLog, "segment_to_upload", segment_to_upload)


def epochs_of_segments_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A segment's metadata tell of its last leader epoch alone."""

    def last_epoch(copy: SegmentCopy) -> tuple[EpochEntry, ...]:
        return epochs_within(copy)[-1:]

    patch.setattr(remote_segments, "epochs_within", last_epoch)


def everything_closed_deleted(patch: pytest.MonkeyPatch) -> None:
    """Replicas let go of closed segments, tiered or not."""
    patch.setattr(cleanup, "tiered_segments", lambda segments, _until: len(segments) - 1)


def tiered_by_anybody(patch: pytest.MonkeyPatch) -> None:
    """Leaders take all that they hold for tiered."""
    patch.setattr(
        RemoteSegments, "highest_tiered", lambda _self, _lineage, log_end_offset: log_end_offset - 1
    )


def log_start_left_behind(patch: pytest.MonkeyPatch) -> None:
    """What retention takes from the tier is still in the log, as far as its start tells."""
    whole = remote_retention.expired_segments

    def expired(
        ranges: Sequence[TieredRange], config: LogConfig, **given: int
    ) -> remote_retention.ExpiredSegments:
        return whole(ranges, config, **given)._replace(log_start_offset=None)

    patch.setattr(remote_retention, "expired_segments", expired)


def one_segment_too_many(patch: pytest.MonkeyPatch) -> None:
    """Retention takes one more segment than is due, and the log begins behind it."""
    whole = remote_retention.expired_segments

    def expired(
        ranges: Sequence[TieredRange], config: LogConfig, **given: int
    ) -> remote_retention.ExpiredSegments:
        due = whole(ranges, config, **given)
        following = ranges[len(due.segments) :]
        if not due.segments or not following or following[0].end_offset >= given["high_watermark"]:
            return due
        _, end, segment = following[0]
        return remote_retention.ExpiredSegments((*due.segments, segment), end + 1)

    patch.setattr(remote_retention, "expired_segments", expired)


def copies_counted_twice(patch: pytest.MonkeyPatch) -> None:
    """For retention.bytes a record counts as often as segments have it."""

    def remaining_sizes(ranges: Sequence[TieredRange]) -> Callable[[int], int]:
        return lambda offset: sum(
            each.segment.size_bytes for each in ranges if each.end_offset >= offset
        )

    patch.setattr(remote_retention, "_remaining_sizes", remaining_sizes)


def local_deletion_moves_the_log_start(patch: pytest.MonkeyPatch) -> None:
    """A replica that lets go of what the tier has begins its log behind it."""
    whole = SegmentedLog.delete_local

    def delete_local(self: SegmentedLog, tiered_until: int, *, now_ms: int | None) -> int:
        count = whole(self, tiered_until, now_ms=now_ms)
        self.advance_log_start(self.local_log_start_offset)
        return count

    patch.setattr(SegmentedLog, "delete_local", delete_local)


def tier_left_out(patch: pytest.MonkeyPatch) -> None:
    """A follower that starts behind the tier does not ask for what lies there."""
    whole = offset_recovery.OffsetRecovery._apply_decision

    def apply_decision(
        self: offset_recovery.OffsetRecovery, decision: start_offset.StartDecision
    ) -> None:
        if decision.action is start_offset.StartAction.BUILD:
            self._start_at(decision.at.offset)
        else:
            whole(self, decision)

    patch.setattr(offset_recovery.OffsetRecovery, "_apply_decision", apply_decision)


def deleted_to_the_log_end(patch: pytest.MonkeyPatch) -> None:
    """DeleteRecords up to the high watermark takes what is not committed, too."""
    whole = replica.Replica.delete_records

    def delete(self: replica.Replica, offset: int) -> None:
        whole(self, self.log.log_end_offset if offset == self.high_watermark else offset)

    patch.setattr(replica.Replica, "delete_records", delete)


def epochs_not_built(patch: pytest.MonkeyPatch) -> None:
    """A follower that starts behind the tier knows only the last leader epoch of the tier."""
    whole = start_offset.AuxiliaryState.since

    def since(self: start_offset.AuxiliaryState, log_start_offset: int) -> tuple[EpochEntry, ...]:
        return whole(self, log_start_offset)[-1:]

    patch.setattr(start_offset.AuxiliaryState, "since", since)


def producers_not_built(patch: pytest.MonkeyPatch) -> None:
    """A follower that starts behind the tier knows no producers."""
    patch.setattr(remote_segments, "_snapshot", lambda _segment, _data: ())


TIER_MUTANTS: Final = (
    Mutant(
        name="upload of what is committed only",
        inject=uncommitted_uploaded,
        first_seed=16,
        breaks=frozenset({"only_what_is_committed_is_tiered"}),
    ),
    Mutant(
        name="the leader epochs of segments",
        inject=epochs_of_segments_forgotten,
        first_seed=15,
        breaks=frozenset({"the_tier_holds_what_leaders_wrote"}),
    ),
    Mutant(
        name="local deletion of what is tiered only",
        inject=everything_closed_deleted,
        first_seed=5,
        breaks=frozenset({"what_is_committed_can_be_read"}),
    ),
    Mutant(
        name="no gap behind the tier",
        inject=everything_closed_deleted,
        first_seed=226,
        breaks=frozenset({"no_gap_behind_the_tier"}),
    ),
    Mutant(
        name="the local log start below the last stable offset",
        inject=everything_closed_deleted,
        first_seed=16,
        breaks=frozenset({"offsets_are_in_order"}),
    ),
    Mutant(
        name="the look at what is tiered",
        inject=tiered_by_anybody,
        first_seed=15,
        breaks=frozenset({"tiered_offsets_are_in_order"}),
    ),
    Mutant(
        name="the log start behind what has expired",
        inject=log_start_left_behind,
        first_seed=39,
        breaks=frozenset({"what_is_committed_can_be_read"}),
    ),
    Mutant(
        name="what retention takes, and not one segment more",
        inject=one_segment_too_many,
        first_seed=9,
        breaks=frozenset({"log_starts_rise_for_a_reason"}),
    ),
    Mutant(
        name="the size of what two segments have",
        inject=copies_counted_twice,
        first_seed=9,
        breaks=frozenset({"log_starts_rise_for_a_reason"}),
    ),
    Mutant(
        name="the log start when local segments are deleted",
        inject=local_deletion_moves_the_log_start,
        first_seed=5,
        breaks=frozenset({"log_starts_rise_for_a_reason"}),
    ),
    Mutant(
        name="the state of the tier at a follower's start",
        inject=tier_left_out,
        first_seed=7,
        breaks=frozenset({"log_starts_rise_for_a_reason"}),
    ),
    Mutant(
        name="DeleteRecords up to the high watermark",
        inject=deleted_to_the_log_end,
        first_seed=1,
        breaks=frozenset({"log_starts_rise_for_a_reason"}),
    ),
    Mutant(
        name="the leader epochs of a follower that starts behind the tier",
        inject=epochs_not_built,
        first_seed=30,
        breaks=frozenset({"followers_know_the_epochs_of_the_tier"}),
    ),
    Mutant(
        name="the producers of a follower that starts behind the tier",
        inject=producers_not_built,
        first_seed=30,
        breaks=frozenset({"followers_know_the_producers_of_the_tier"}),
    ),
)
