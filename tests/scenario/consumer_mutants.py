"""Consumers that do something wrong: of KIP-320, its reset table, and its earlier draft."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from fencepost.client.consumer import assignment, epoch_lookup
from fencepost.client.consumer.epoch_cache import Divergence, EpochCache, NextEpoch
from fencepost.client.consumer.position_reset import PositionReset
from fencepost.client.consumer.reset_policy import ResetPolicy, Situation, Target
from fencepost.client.consumer.truncation import Diverged, Valid, compare, handle_truncation
from tests.scenario.mutation import Mutant, set_attribute

if TYPE_CHECKING:
    from fencepost.client.consumer.errors import OffsetOutOfRangeError
    from fencepost.client.consumer.model import OffsetAndMetadata, Truncation
    from fencepost.client.consumer.position import AssignedPartition, Position
    from fencepost.client.model import Partition


def _resets_to(situation: Situation, target: Target) -> Callable[[], None]:
    """Every policy goes to one target in one situation."""
    right = ResetPolicy.target

    def wrong(self: ResetPolicy, found: Situation) -> Target:
        return target if found is situation else right(self, found)

    return lambda: set_attribute(ResetPolicy, "target", wrong)


def _policies_are_ignored() -> None:
    set_attribute(ResetPolicy, "resets", property(lambda _self: False))


def _located_truncations_go_by_policy() -> None:
    def wrong(partition: AssignedPartition, _diverged: Diverged, policy: ResetPolicy) -> Truncation:
        return handle_truncation(partition, Diverged(None), policy)

    set_attribute(assignment, "handle_truncation", wrong)


def _truncations_are_located_one_too_early() -> None:
    right = EpochCache.compare

    def wrong(self: EpochCache, epoch: int, end: int, fetched_to: int) -> Divergence | NextEpoch:
        found = right(self, epoch, end, fetched_to)
        if isinstance(found, NextEpoch) or found.offset is None:
            return found
        return Divergence(found.offset - 1)

    set_attribute(EpochCache, "compare", wrong)


def _leaders_answer_locates_a_truncation() -> None:
    def wrong(_self: EpochCache, _epoch: int, end_offset: int, _fetched_to: int) -> Divergence:
        return Divergence(end_offset)

    set_attribute(EpochCache, "compare", wrong)


def _only_the_same_epoch_locates_a_truncation() -> None:
    def wrong(position: Position, epoch: int, end_offset: int) -> Valid | Diverged:
        found = compare(position, epoch, end_offset)
        return found if epoch == position.epoch or isinstance(found, Valid) else Diverged(None)

    set_attribute(epoch_lookup, "compare", wrong)


def _commits_have_no_time() -> None:
    right = PositionReset._find_by_commit

    def wrong(
        self: PositionReset,
        partition: AssignedPartition,
        committed: dict[Partition, OffsetAndMetadata | None],
    ) -> None:
        timeless = {
            each: None if at is None else replace(at, timestamp=0) for each, at in committed.items()
        }
        right(self, partition, timeless)

    set_attribute(PositionReset, "_find_by_commit", wrong)


def _ignored_truncations_are_gone() -> None:
    right = assignment.Assignment._truncation_error

    def wrong(
        self: assignment.Assignment, truncated: list[AssignedPartition], now: int
    ) -> OffsetOutOfRangeError:
        error = right(self, truncated, now)
        for each in truncated:
            each.drop_epoch()
        return error

    set_attribute(assignment.Assignment, "_truncation_error", wrong)


MUTANTS: Final = {
    "kip-320-draft-latest-initialization": Mutant(
        does="A consumer without a position begins at the log start, whatever the policy.",
        noticed="The draft's consumer begins at the log end.",
        apply=_resets_to(Situation.INITIALIZATION, Target.LOG_START),
        is_consumer=True,
    ),
    "kip-320-draft-latest-too-low": Mutant(
        does="A consumer below the log start goes to the log start, whatever the policy.",
        noticed="goes to the log end. It misses a5 to a9.",
        apply=_resets_to(Situation.OUT_OF_RANGE, Target.LOG_START),
        is_consumer=True,
    ),
    "kip-320-draft-latest-precise": Mutant(
        does="The draft's consumer locates a truncation one record too early.",
        noticed="and goes on from there.",
        apply=_truncations_are_located_one_too_early,
        is_consumer=True,
    ),
    "kip-320-draft-latest-unknown": Mutant(
        does="The draft's consumer takes an epoch that it has never fetched for one of its own.",
        noticed="It goes to the log end, and misses b10 to b24.",
        apply=_leaders_answer_locates_a_truncation,
        is_consumer=True,
    ),
    "kip-320-draft-earliest-initialization": Mutant(
        does="A consumer without a position begins at the log end, whatever the policy.",
        noticed="The draft's consumer begins at the log start.",
        apply=_resets_to(Situation.INITIALIZATION, Target.LOG_END),
        is_consumer=True,
    ),
    "kip-320-draft-earliest-too-low": Mutant(
        does="A consumer below the log start goes to the log end, whatever the policy.",
        noticed="goes to the log start.",
        apply=_resets_to(Situation.OUT_OF_RANGE, Target.LOG_END),
        is_consumer=True,
    ),
    "kip-320-draft-earliest-precise": Mutant(
        does="A truncation is answered by the policy, although it is located.",
        noticed="and goes on from there.",
        apply=_located_truncations_go_by_policy,
        is_consumer=True,
    ),
    "kip-320-draft-earliest-unknown": Mutant(
        does="The final consumer locates a truncation only where its own epoch is in the log.",
        noticed="The final one is told that epoch 0 ends before its position",
        apply=_only_the_same_epoch_locates_a_truncation,
        is_consumer=True,
    ),
    "kip-320-draft-closest-initialization": Mutant(
        does="A consumer without a position raises an error, whatever the policy.",
        noticed="The draft's consumer begins at the log start.",
        apply=_policies_are_ignored,
        is_consumer=True,
    ),
    "kip-320-draft-closest-too-low": Mutant(
        does="A consumer below the log start raises an error, whatever the policy.",
        noticed="goes to the log start.",
        apply=_policies_are_ignored,
        is_consumer=True,
    ),
    "kip-320-draft-closest-precise": Mutant(
        does="The draft's consumer raises a truncation, whatever the policy.",
        noticed="and goes on from there.",
        apply=_policies_are_ignored,
        is_consumer=True,
    ),
    "kip-320-draft-closest-unknown": Mutant(
        does="The draft's closest does not look at the timestamp of the commit.",
        noticed="It goes there, and misses b3.",
        apply=_commits_have_no_time,
        is_consumer=True,
    ),
    "kip-320-draft-ignored": Mutant(
        does="The final consumer raises a truncation once, as the draft's.",
        noticed="The final one raises it again, as often as it is polled.",
        apply=_ignored_truncations_are_gone,
        is_consumer=True,
    ),
}
