"""The core with one rule switched off: proof that the simulation would notice.

Each mutant undoes one thing that a KIP brought, or breaks one rule of the core, by replacing a
function. Which invariants may break first is a matter of the seed, so that each names several.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

import pytest
from msgspec.structs import replace as replaced

from fencepost.broker.configs.effective_configs import ListOffsetsGate
from fencepost.broker.controller import controller, elections, requests
from fencepost.broker.core.waits import WatchList
from fencepost.broker.handlers import fetch, list_offsets
from fencepost.broker.handlers.context import Context
from fencepost.broker.metadata.image import PartitionImage
from fencepost.broker.node.broker import Broker
from fencepost.broker.produce import append, expected_offsets
from fencepost.broker.produce.append import AppendTarget, PartitionOutcome
from fencepost.broker.replication import (
    follower_progress,
    isr,
    log_maintenance,
    partition_checks,
    replica,
)
from fencepost.broker.replication.follower import follower, truncation
from fencepost.broker.replication.follower.steps import FollowerState
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import batch_size
from fencepost.storage.log import expected_offsets as log_expected_offsets
from fencepost.storage.log.append_result import AppendRejected
from fencepost.storage.log.segmented_log import SegmentedLog
from fencepost.storage.log.staging import StagedRecords
from tests.simulation.consumer_mutants import CONSUMER_MUTANTS
from tests.simulation.mutant import Mutant
from tests.simulation.tier_mutants import TIER_MUTANTS
from tests.simulation.transaction_mutants import TRANSACTION_MUTANTS

_NOW_MS: Final = 1_700_000_000_000


def epochs_unchecked(patch: pytest.MonkeyPatch) -> None:
    """Brokers take requests of any leader epoch (before KIP-320)."""
    whole = partition_checks.find_replica

    def find_replica(
        broker: Broker, topic: str, index: int, _epoch: int = -1, *, is_broker: bool = False
    ) -> replica.Replica | ErrorCode:
        return whole(broker, topic, index, is_broker=is_broker)

    patch.setattr(partition_checks, "find_replica", find_replica)
    patch.setattr(fetch, "find_replica", find_replica)


def nothing_truncated(patch: pytest.MonkeyPatch) -> None:
    """Followers keep what their leader has not, and leaders do not mind."""
    patch.setattr(replica.Replica, "truncate_to", lambda _self, _offset: False)
    patch.setattr(fetch, "diverging_epoch", lambda _replica, _asked: None)


def truncated_to_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """Followers of a new leader cut to their high watermark (before KIP-101)."""

    def enter_epoch(self: follower.Follower) -> None:
        self._epoch = self.replica.leader_epoch
        self.state = FollowerState.FETCHING
        truncation.truncate(self, self.replica.high_watermark)

    patch.setattr(follower.Follower, "_enter_epoch", enter_epoch)
    patch.setattr(fetch, "diverging_epoch", lambda _replica, _asked: None)


def epochs_noted_at_the_first_append(patch: pytest.MonkeyPatch) -> None:
    """A leader's epoch begins with its first batch, and not at its election."""
    patch.setattr(SegmentedLog, "assign_epoch_start", lambda _self, _epoch, _offset: None)


def gate_off(patch: pytest.MonkeyPatch) -> None:
    """ListOffsets is answered right after an election (before KIP-207)."""
    patch.setattr(list_offsets, "effective_gate", lambda _broker, _replica: ListOffsetsGate.OFF)


def fenced_replicas_admitted(patch: pytest.MonkeyPatch) -> None:
    """A replica that has caught up joins the ISR, online or not (KAFKA-6880)."""
    patch.setattr(isr.IsrManager, "_is_online", lambda _self, _id, _epoch: True)
    patch.setattr(requests, "is_eligible", lambda _broker, _epoch: True)


def lagging_replicas_admitted(patch: pytest.MonkeyPatch) -> None:
    """A replica that fetches joins the ISR."""
    patch.setattr(
        replica.Replica,
        "is_caught_up",
        lambda _self, follower: follower.last_fetch_ms >= 0,
    )


def laggards_checked_half_as_often(patch: pytest.MonkeyPatch) -> None:
    """A leader looks for laggards once in replica.lag.time.max.ms, and not twice."""

    def shrink_isrs(self: log_maintenance.LogMaintenance) -> None:
        self._broker.isr_manager.maybe_shrink_isrs()
        self._after(self._broker.configs.replica_lag_time_max_ms, self._shrink_isrs)

    patch.setattr(log_maintenance.LogMaintenance, "_shrink_isrs", shrink_isrs)


def fetching_replicas_kept(patch: pytest.MonkeyPatch) -> None:
    """A follower that fetches is in sync, however little it has."""
    whole = follower_progress.FollowerProgress.update_fetch_state

    def update(self: follower_progress.FollowerProgress, **given: int) -> None:
        whole(self, **given)
        self.last_caught_up_ms = given["now_ms"]

    patch.setattr(follower_progress.FollowerProgress, "update_fetch_state", update)


def proposals_forgotten(patch: pytest.MonkeyPatch) -> None:
    """The high watermark waits for the ISR alone, not for the one that was proposed."""
    whole = replica.Replica._maybe_increment_high_watermark

    def raise_watermark(self: replica.Replica, told: int | None = None) -> None:
        pending, self.pending_isr = self.pending_isr, None
        whole(self, told)
        self.pending_isr = pending

    patch.setattr(replica.Replica, "_maybe_increment_high_watermark", raise_watermark)


def laggards_ignored(patch: pytest.MonkeyPatch) -> None:
    """The high watermark is the leader's log end, however far the ISR is."""

    def raise_watermark(self: replica.Replica, told: int | None = None) -> None:
        if self.has_min_isr() and self.log.log_end_offset > self.high_watermark:
            self.high_watermark = self.log.log_end_offset
            self.watermark_watch.notify()

    patch.setattr(replica.Replica, "_maybe_increment_high_watermark", raise_watermark)


def minimum_forgotten(patch: pytest.MonkeyPatch) -> None:
    """acks=all is content with any ISR, whatever min.insync.replicas says."""
    patch.setattr(replica.Replica, "has_min_isr", lambda _self: True)


def minimum_checked_after_the_append(patch: pytest.MonkeyPatch) -> None:
    """acks=all is appended first, and refused later."""
    whole = append._find_replica

    def find_replica(
        ctx: append.Context, topic: str, topic_id: UUID | None, index: int, _acks: int
    ) -> replica.Replica | PartitionOutcome:
        return whole(ctx, topic, topic_id, index, 1)

    patch.setattr(append, "_find_replica", find_replica)


def leadership_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A leader that has resigned waits on, and takes what it has then for what it appended."""

    def outcome(self: append.PendingAppend) -> ErrorCode | None:
        return ErrorCode.NONE if self.replica.high_watermark >= self.next_offset else None

    patch.setattr(append.PendingAppend, "_outcome", outcome)


def minimum_forgotten_by_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """The high watermark rises with any ISR; before an append its size counts."""
    whole = replica.Replica._maybe_increment_high_watermark

    def raise_watermark(self: replica.Replica, told: int | None = None) -> None:
        with pytest.MonkeyPatch.context() as inside:
            minimum_forgotten(inside)
            whole(self, told)

    patch.setattr(replica.Replica, "_maybe_increment_high_watermark", raise_watermark)


def acknowledged_at_once(patch: pytest.MonkeyPatch) -> None:
    """acks=all is answered as acks=1 is."""
    patch.setattr(append.PendingAppend, "_outcome", lambda _self: ErrorCode.NONE)


def anybody_elected(patch: pytest.MonkeyPatch) -> None:
    """A clean election takes a replica that is out of sync."""
    patch.setattr(elections, "is_clean_leader", lambda _partition, _broker_id: True)
    patch.setattr(controller, "is_clean_leader", lambda _partition, _broker_id: True)


def epoch_kept_at_elections(patch: pytest.MonkeyPatch) -> None:
    """A leader that is elected by name leads in the epoch that there was."""
    whole = elections.elect_leader

    def appoint(
        before: PartitionImage, leader: int, rules: elections.ElectionRules
    ) -> PartitionImage:
        return replaced(whole(before, leader, rules), leader_epoch=before.leader_epoch)

    patch.setattr(controller, "elect_leader", appoint)


def waits_never_answered(patch: pytest.MonkeyPatch) -> None:
    """No waiting request learns that the high watermark has risen."""
    patch.setattr(WatchList, "notify", lambda _self: None)


def expected_offsets_unchecked(patch: pytest.MonkeyPatch) -> None:
    """Whatever offset is expected, records go to the log's end (before KIP-27)."""
    patch.setattr(log_expected_offsets.ExpectedOffsetCheck, "rejected", lambda _self, _name: None)


def appended_and_refused(patch: pytest.MonkeyPatch) -> None:
    """Of what does not match, everything up to there is appended nevertheless."""
    whole = expected_offsets._refuse

    def refuse(
        ctx: Context,
        checked: tuple[AppendTarget, StagedRecords | AppendRejected],
        refusal: AppendRejected,
        acks: int,
    ) -> PartitionOutcome:
        target, _ = checked
        records = target.records
        if len(records) > batch_size(records):  # a set of batches
            target.replica.append(bytearray(records[: batch_size(records)]), now_ms=_NOW_MS)
        return whole(ctx, checked, refusal, acks)

    patch.setattr(expected_offsets, "_refuse", refuse)


_LOST: Final = frozenset(
    {
        "acknowledged_records_are_not_lost",
        "leaders_hold_what_is_committed",
        "in_sync_replicas_hold_what_is_committed",
        "logs_agree_below_the_high_watermark",
        "high_watermarks_never_fall",
    }
)
_DIVERGED: Final = frozenset(
    {
        "truncated_logs_are_prefixes",
        "followers_copy_what_leaders_wrote",
        "epochs_in_a_log_only_rise",
        "offsets_are_contiguous",
    }
)

MUTANTS: Final = (
    Mutant(
        name="the epoch check",
        inject=epochs_unchecked,
        first_seed=154,
        breaks=_LOST | _DIVERGED | {"latest_offsets_never_go_back"},
    ),
    Mutant(
        name="the truncation", inject=nothing_truncated, first_seed=23, breaks=_LOST | _DIVERGED
    ),
    Mutant(
        name="the gate",
        inject=gate_off,
        first_seed=55,
        breaks=frozenset({"latest_offsets_never_go_back"}),
    ),
    Mutant(
        name="the ISR rule: not while it is fenced",
        inject=fenced_replicas_admitted,
        first_seed=6,
        breaks=frozenset({"fenced_replicas_are_not_in_sync"}),
    ),
    Mutant(
        name="the ISR rule: not before it has caught up",
        inject=lagging_replicas_admitted,
        breaks=_LOST,
    ),
    Mutant(
        name="truncation by epochs, not high watermarks",
        inject=truncated_to_the_high_watermark,
        first_seed=9,
        breaks=_LOST | _DIVERGED,
    ),
    Mutant(
        name="an epoch's start at its election",
        inject=epochs_noted_at_the_first_append,
        first_seed=346,
        breaks=_LOST | _DIVERGED,
    ),
    Mutant(
        name="the ISR rule: looked at twice in replica.lag.time.max.ms",
        inject=laggards_checked_half_as_often,
        first_seed=13,
        breaks=frozenset({"laggards_leave_the_isr"}),
    ),
    Mutant(
        name="the ISR rule: who fetches and lacks records lags",
        inject=fetching_replicas_kept,
        first_seed=49,
        breaks=frozenset({"laggards_leave_the_isr"}),
    ),
    Mutant(
        name="the high watermark's wait for a proposed ISR",
        inject=proposals_forgotten,
        first_seed=79,
        breaks=_LOST,
    ),
    Mutant(
        name="the high watermark's wait for the ISR",
        inject=laggards_ignored,
        breaks=_LOST | {"enough_replicas_hold_what_is_acknowledged"},
    ),
    Mutant(
        name="min.insync.replicas",
        inject=minimum_forgotten,
        breaks=frozenset({"too_small_an_isr_moves_no_high_watermark"}),
    ),
    Mutant(
        name="NOT_ENOUGH_REPLICAS before the append",
        inject=minimum_checked_after_the_append,
        breaks=frozenset({"too_small_an_isr_is_told_before_the_append"}),
    ),
    Mutant(
        name="min.insync.replicas, for the high watermark",
        inject=minimum_forgotten_by_the_high_watermark,
        breaks=frozenset({"too_small_an_isr_moves_no_high_watermark"}),
    ),
    Mutant(
        name="the end of acks=all with the leadership",
        inject=leadership_forgotten,
        breaks=frozenset({"acknowledged_records_are_committed"}),
        transactions=True,
    ),
    Mutant(
        name="the wait of acks=all",
        inject=acknowledged_at_once,
        breaks=frozenset({"acknowledged_records_are_committed"}),
    ),
    Mutant(
        name="clean elections",
        inject=anybody_elected,
        breaks=frozenset({"elections_are_clean"}),
    ),
    Mutant(
        name="a new epoch at each election",
        inject=epoch_kept_at_elections,
        breaks=frozenset({"changes_have_epochs"}),
    ),
    Mutant(
        name="the answer to acks=all",
        inject=waits_never_answered,
        breaks=frozenset({"healed_partitions_take_records"}),
    ),
    Mutant(
        name="the expected offsets",
        inject=expected_offsets_unchecked,
        first_seed=4,
        breaks=frozenset({"records_lie_where_they_are_expected"}),
    ),
    Mutant(
        name="all or nothing of a request",
        inject=appended_and_refused,
        first_seed=4,
        breaks=frozenset({"refused_publishes_leave_nothing"}),
    ),
    Mutant(
        name="the epoch check of a consumer's fetch",
        inject=epochs_unchecked,
        consumers=True,
        breaks=frozenset({"leaders_serve_their_own_epoch"}),
    ),
    *TIER_MUTANTS,
    *CONSUMER_MUTANTS,
    *TRANSACTION_MUTANTS,
)
