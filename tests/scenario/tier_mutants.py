"""Brokers that do something wrong with a remote tier and new followers (KIP-405, KIP-1023)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from fencepost.broker.fetch.aborted_transactions import FoundRecords
from fencepost.broker.fetch.partition_answers import moved_answer
from fencepost.broker.handlers import fetch
from fencepost.broker.metadata import features
from fencepost.broker.replication.follower import offset_recovery, start_offset
from fencepost.broker.replication.follower.start_offset import AuxiliaryState
from fencepost.broker.replication.replica import Replica
from tests.scenario.mutation import Mutant, set_attribute

if TYPE_CHECKING:
    from fencepost.broker.fetch.fetch_sessions import Key
    from fencepost.broker.replication.follower.follower import Follower
    from fencepost.protocol.messages.fetch import FetchPartition, PartitionData
    from fencepost.storage.log.leader_epoch_cache import EpochEntry
    from fencepost.storage.log.producer_state import ProducerStateEntry


def _config_says_nothing() -> None:
    set_attribute(
        offset_recovery, "start_protocol", lambda _follower: start_offset.StartProtocol.OLD
    )


def _empty_followers_bootstrap_anyway() -> None:
    def wrong(follower: Follower) -> start_offset.StartProtocol:
        is_empty = follower.replica.log.log_end_offset == 0
        return start_offset.StartProtocol.BOOTSTRAP if is_empty else start_offset.StartProtocol.OLD

    set_attribute(offset_recovery, "start_protocol", wrong)


def _rows(
    case: str, change: Callable[[start_offset.StartRule], start_offset.StartRule | None]
) -> None:
    """Change one row of the table, or leave it out."""
    changed = [change(row) if row.case == case else row for row in start_offset.TABLE]
    assert changed != list(start_offset.TABLE), f"there is no row {case}"
    set_attribute(start_offset, "TABLE", tuple(row for row in changed if row is not None))


def _unknown_is_not_yet_known() -> None:
    case = "earliest pending upload unknown, log start = local log start: nothing tiered yet"
    _rows(case, lambda _row: None)


def _unknown_is_nothing_tiered() -> None:
    case = "earliest pending upload unknown, log start = local log start: nothing tiered yet"
    _rows(case, lambda row: replace(row, when=lambda _: True))


def _whatever_is_tiered_counts() -> None:
    case = "auxiliary state for [log start, earliest pending upload)"
    _rows(case, lambda row: replace(row, when=lambda f: f.pending > 0))


def _below_the_log_start_is_the_end() -> None:
    case = "out of range: lower than the earliest offset that the leader knows"
    _rows(case, lambda row: replace(row, at=start_offset.SpecialTimestamp.LATEST))


def _features_do_not_matter() -> None:
    set_attribute(features, "allows_pending_upload", lambda _levels: True)


def _what_is_tiered_is_refused() -> None:
    read = fetch._Reading._read_log

    def wrong(
        self: fetch._Reading, key: Key, replica: Replica, asked: FetchPartition, left: int
    ) -> FoundRecords | PartitionData:
        tiered = self.ctx.broker.remote_log_manager.highest_tiered(replica)
        if self.fetcher.is_follower and tiered is not None and asked.fetch_offset <= tiered:
            return moved_answer(asked.partition, replica)
        return read(self, key, replica, asked, left)

    set_attribute(fetch._Reading, "_read_log", wrong)


def _only_the_last_epoch_is_built() -> None:
    since = AuxiliaryState.since

    def wrong(self: AuxiliaryState, log_start_offset: int) -> tuple[EpochEntry, ...]:
        return since(self, log_start_offset)[-1:]

    set_attribute(AuxiliaryState, "since", wrong)


def _producers_are_left_in_the_tier() -> None:
    start_from_tier = Replica.start_from_tier

    def wrong(
        self: Replica,
        offset: int,
        *,
        log_start_offset: int,
        epochs: Sequence[EpochEntry],
        producers: Sequence[ProducerStateEntry],
        now_ms: int,
    ) -> None:
        del producers
        start_from_tier(
            self,
            offset,
            log_start_offset=log_start_offset,
            epochs=epochs,
            producers=(),
            now_ms=now_ms,
        )

    set_attribute(Replica, "start_from_tier", wrong)


MUTANTS: Final = {
    "kip-1023-bootstrap": Mutant(
        does="A new follower begins where the leader's own log begins, whatever the config.",
        noticed="Now the new follower begins, at offset 0.",
        apply=_config_says_nothing,
    ),
    "kip-1023-disabled": Mutant(
        does="A new follower begins behind what is tiered, whatever the config.",
        noticed="and not what waits to be tiered.",
        apply=_empty_followers_bootstrap_anyway,
    ),
    "kip-1023-nothing-tiered": Mutant(
        does="A follower takes it that its leader does not know yet, whenever it says -1.",
        noticed="asks three things to know that it may start at offset 4.",
        apply=_unknown_is_not_yet_known,
    ),
    "kip-1023-leader-does-not-know": Mutant(
        does="A follower takes it that nothing is tiered, whenever its leader says -1.",
        noticed="The new follower cannot know where to start.",
        apply=_unknown_is_nothing_tiered,
    ),
    "kip-1023-stale-tier": Mutant(
        does="A follower starts behind what is tiered, although the log begins later.",
        noticed="and does not ask the tier.",
        apply=_whatever_is_tiered_counts,
    ),
    "kip-1023-worked-example": Mutant(
        does="Of the leader epochs in the tier a follower takes only the last.",
        noticed="It knows three leader epochs, and has no record.",
        apply=_only_the_last_epoch_is_built,
    ),
    "kip-1023-metadata-version": Mutant(
        does="No broker looks at the level of metadata.version.",
        noticed="The new follower does as if there were no KIP-1023.",
        apply=_features_do_not_matter,
    ),
    "kip-405-still-local": Mutant(
        does="A leader refuses to followers all that is tiered, also what it still has.",
        noticed="and is given what it asks for.",
        apply=_what_is_tiered_is_refused,
    ),
    "kip-405-below-log-start": Mutant(
        does="A follower below the log start goes on at the log end.",
        noticed="It starts again at offset 12.",
        apply=_below_the_log_start_is_the_end,
    ),
    "kip-405-moved-to-tier": Mutant(
        does="A follower reads only the leader epochs from the tier.",
        noticed="and is told where it is.",
        apply=_producers_are_left_in_the_tier,
    ),
}
