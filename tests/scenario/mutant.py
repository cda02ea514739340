"""Clusters that do something wrong, to show that a scenario notices: ``MUTANT serve ...``.

``python -m tests.scenario.mutant kip-207-gate serve --brokers 3`` is ``fencepost serve`` with a
broker that does not do what the scenario of that name is about. It does all else as ever. Where a
scenario is about `fencepost.client.Consumer`, that is what does it wrong, in the process that plays
the scenario (`broken_consumer`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from fencepost.broker.configs.effective_configs import ListOffsetsGate
from fencepost.broker.controller import elections, requests
from fencepost.broker.coordinator.commit_queue import LoadedBatch, ReplicaLog
from fencepost.broker.core.outcomes import ThrottledResponse
from fencepost.broker.faults.interceptor import Interception
from fencepost.broker.fetch.aborted_transactions import FoundRecords
from fencepost.broker.fetch.partition_answers import moved_answer
from fencepost.broker.groups import offsets
from fencepost.broker.handlers import fetch, list_offsets, offset_for_leader_epoch
from fencepost.broker.metadata import features
from fencepost.broker.node import operator_actions
from fencepost.broker.produce import append
from fencepost.broker.replication import partition_checks
from fencepost.broker.replication.follower import offset_recovery, start_offset
from fencepost.broker.replication.follower.start_offset import AuxiliaryState
from fencepost.broker.replication.isr import IsrManager
from fencepost.broker.replication.replica import Replica
from fencepost.cli import main
from fencepost.client.consumer import assignment, epoch_lookup
from fencepost.client.consumer.epoch_cache import Divergence, EpochCache, NextEpoch
from fencepost.client.consumer.position_reset import PositionReset
from fencepost.client.consumer.reset_policy import ResetPolicy, Situation, Target
from fencepost.client.consumer.truncation import Diverged, Valid, compare, handle_truncation
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.expected_offsets import UNSPECIFIED
from fencepost.storage.log import expected_offsets, validation
from fencepost.storage.log.producer_state import ProducerStateManager
from fencepost.storage.log.segmented_log import SegmentedLog

if TYPE_CHECKING:
    from fencepost.broker.fetch.fetch_sessions import Key
    from fencepost.broker.groups.classic_group import ClassicGroup
    from fencepost.broker.groups.offsets import Commit
    from fencepost.broker.handlers.context import Context
    from fencepost.broker.metadata.image import PartitionImage
    from fencepost.broker.node.broker import Broker
    from fencepost.broker.node.cluster import Cluster
    from fencepost.broker.replication.follower.follower import Follower
    from fencepost.client.consumer.errors import OffsetOutOfRangeError
    from fencepost.client.consumer.model import OffsetAndMetadata, Truncation
    from fencepost.client.consumer.position import AssignedPartition, Position
    from fencepost.client.model import Partition
    from fencepost.protocol.byte_utils import Buffer
    from fencepost.protocol.messages.fetch import FetchPartition, PartitionData
    from fencepost.protocol.messages.offset_for_leader_epoch import (
        EpochEndOffset,
        OffsetForLeaderPartition,
    )
    from fencepost.protocol.record_reader import ReadBudget
    from fencepost.protocol.records import BatchHeader, Record
    from fencepost.storage.log.append_result import AppendRejected, AppendResult
    from fencepost.storage.log.config import LogConfig
    from fencepost.storage.log.leader_epoch_cache import EpochEntry
    from fencepost.storage.log.producer_state import ProducerStateEntry
    from fencepost.storage.log.staging import Staging


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A wrong behaviour, by the scenario that is to notice it."""

    does: str
    """What is wrong."""
    noticed: str
    """What the scenario says at the step that has to fail, or a part of it."""
    apply: Callable[[], None]
    is_consumer: bool = False
    """Whether the consumers of the scenario are wrong, and not the brokers."""


_replaced: Final[list[tuple[object, str, object]]] = []


def _set(target: object, name: str, value: object) -> None:
    """Replace an attribute."""
    assert hasattr(target, name), f"{target} has no {name}"
    _replaced.append((target, name, getattr(target, name)))
    setattr(target, name, value)


@contextmanager
def broken_consumer(name: str) -> Iterator[None]:
    """Have the consumers of this process do what the scenario of that name says that none does."""
    MUTANTS[name].apply()
    try:
        yield
    finally:
        while _replaced:
            setattr(*_replaced.pop())


def _gate_whatever_the_config() -> None:
    def gate_of(_broker: Broker, replica: Replica) -> ListOffsetsGate:
        return ListOffsetsGate.OFF if replica.gate_is_open else ListOffsetsGate.KIP

    _set(list_offsets, "effective_gate", gate_of)


def _no_gate() -> None:
    _set(list_offsets, "effective_gate", lambda _broker, _replica: ListOffsetsGate.OFF)


def _every_epoch_ends_at_the_log_end() -> None:
    look_up = offset_for_leader_epoch._look_up

    def wrong(ctx: Context, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
        found = look_up(ctx, topic, asked)
        log = ctx.broker.replicas[topic, asked.partition].log
        return replace(found, end_offset=log.log_end_offset)

    _set(offset_for_leader_epoch, "_look_up", wrong)


def _offline_brokers_may_join() -> None:
    _set(IsrManager, "_is_online", lambda *_: True)
    _set(requests, "is_eligible", lambda *_: True)


def _no_epoch_is_checked() -> None:
    find_replica = partition_checks.find_replica

    def wrong(
        broker: Broker, topic: str, index: int, _epoch: int = -1, *, is_broker: bool = False
    ) -> Replica | ErrorCode:
        return find_replica(broker, topic, index, is_broker=is_broker)

    _set(partition_checks, "find_replica", wrong)
    _set(fetch, "find_replica", wrong)


def _followers_forget_producers() -> None:
    append = SegmentedLog.append_as_follower

    def wrong(
        self: SegmentedLog, records: Sequence[Buffer], *, now_ms: int, high_watermark: int = 0
    ) -> AppendResult:
        result = append(self, records, now_ms=now_ms, high_watermark=high_watermark)
        self._producers.clear()
        return result

    _set(SegmentedLog, "append_as_follower", wrong)


def _stop_without_a_word() -> None:
    def wrong(cluster: Cluster, broker_id: int) -> None:
        cluster.brokers[broker_id].stop(crash=False)

    _set(operator_actions, "stop", wrong)


def _new_coordinators_read_nothing() -> None:
    def wrong(_self: ReplicaLog) -> Iterator[LoadedBatch]:
        return iter(())

    _set(ReplicaLog, "read_all", wrong)


def _retries_are_appended() -> None:
    def no_duplicate(_self: ProducerStateManager, _header: BatchHeader) -> None:
        return None

    def no_refusal(_self: ProducerStateManager, _header: BatchHeader, **_how: object) -> None:
        return None

    _set(ProducerStateManager, "duplicate_of", no_duplicate)
    _set(ProducerStateManager, "refusal", no_refusal)


def _throttled_clients_are_read_from() -> None:
    throttle = Interception.throttle

    def wrong(self: Interception, response: object, ms: int) -> object:
        outcome = throttle(self, response, ms)
        if isinstance(outcome, ThrottledResponse):
            outcome.until.complete(None)
        return outcome

    _set(Interception, "throttle", wrong)


def _acks_all_waits_for_nobody() -> None:
    _set(append.PendingAppend, "is_complete", property(lambda _self: True))
    _set(append.PendingAppend, "error", property(lambda _self: ErrorCode.NONE))


def _no_checksum_is_checked() -> None:
    _set(validation, "crc_ok", lambda *_: True)


def _whoever_is_up_may_lead() -> None:
    def wrong(_partition: PartitionImage, _broker_id: int) -> bool:
        return True

    _set(elections, "is_clean_leader", wrong)


def _strangers_may_commit() -> None:
    def wrong(_group: ClassicGroup | None, _commit: Commit) -> ErrorCode:
        return ErrorCode.NONE

    _set(offsets, "check_commit", wrong)


def _config_says_nothing() -> None:
    _set(offset_recovery, "start_protocol", lambda _follower: start_offset.StartProtocol.OLD)


def _empty_followers_bootstrap_anyway() -> None:
    def wrong(follower: Follower) -> start_offset.StartProtocol:
        is_empty = follower.replica.log.log_end_offset == 0
        return start_offset.StartProtocol.BOOTSTRAP if is_empty else start_offset.StartProtocol.OLD

    _set(offset_recovery, "start_protocol", wrong)


def _rows(
    case: str, change: Callable[[start_offset.StartRule], start_offset.StartRule | None]
) -> None:
    """Change one row of the table, or leave it out."""
    changed = [change(row) if row.case == case else row for row in start_offset.TABLE]
    assert changed != list(start_offset.TABLE), f"there is no row {case}"
    _set(start_offset, "TABLE", tuple(row for row in changed if row is not None))


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
    _set(features, "allows_pending_upload", lambda _levels: True)


def _what_is_tiered_is_refused() -> None:
    read = fetch._Reading._read_log

    def wrong(
        self: fetch._Reading, key: Key, replica: Replica, asked: FetchPartition, left: int
    ) -> FoundRecords | PartitionData:
        tiered = self.ctx.broker.remote_log_manager.highest_tiered(replica)
        if self.fetcher.is_follower and tiered is not None and asked.fetch_offset <= tiered:
            return moved_answer(asked.partition, replica)
        return read(self, key, replica, asked, left)

    _set(fetch._Reading, "_read_log", wrong)


def _only_the_last_epoch_is_built() -> None:
    since = AuxiliaryState.since

    def wrong(self: AuxiliaryState, log_start_offset: int) -> tuple[EpochEntry, ...]:
        return since(self, log_start_offset)[-1:]

    _set(AuxiliaryState, "since", wrong)


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

    _set(Replica, "start_from_tier", wrong)


def _only_the_first_batch_is_compared() -> None:
    add = expected_offsets.ExpectedOffsetCheck.add

    def wrong(
        self: expected_offsets.ExpectedOffsetCheck,
        batch: Buffer,
        header: BatchHeader,
        *,
        upcoming: int,
        index: int,
        budget: ReadBudget | None = None,
    ) -> AppendRejected | None:
        if index > 0:
            return None
        return add(self, batch, header, upcoming=upcoming, index=index, budget=budget)

    _set(expected_offsets.ExpectedOffsetCheck, "add", wrong)


def _compared_with_what_is_replicated() -> None:
    stage = Replica.begin_staging

    def wrong(self: Replica, *, now_ms: int) -> Staging:
        staging = stage(self, now_ms=now_ms)
        staging._end = min(staging._end, self.high_watermark)
        return staging

    _set(Replica, "begin_staging", wrong)


def _no_header_is_looked_at() -> None:
    def wrong(_self: expected_offsets.ExpectedOffsetCheck, _record: Record, _index: int) -> int:
        return UNSPECIFIED

    _set(expected_offsets.ExpectedOffsetCheck, "_stated", wrong)


def _keys_make_no_difference() -> None:
    init = expected_offsets.ExpectedOffsetCheck.__init__

    def wrong(
        self: expected_offsets.ExpectedOffsetCheck,
        config: LogConfig,
        *,
        log_start_offset: int,
        last_of_key: expected_offsets.LastOfKey,
    ) -> None:
        init(self, config, log_start_offset=log_start_offset, last_of_key=last_of_key)
        self._by_key = False

    _set(expected_offsets.ExpectedOffsetCheck, "__init__", wrong)


def _resets_to(situation: Situation, target: Target) -> Callable[[], None]:
    """Every policy goes to one target in one situation."""
    right = ResetPolicy.target

    def wrong(self: ResetPolicy, found: Situation) -> Target:
        return target if found is situation else right(self, found)

    return lambda: _set(ResetPolicy, "target", wrong)


def _policies_are_ignored() -> None:
    _set(ResetPolicy, "resets", property(lambda _self: False))


def _located_truncations_go_by_policy() -> None:
    def wrong(partition: AssignedPartition, _diverged: Diverged, policy: ResetPolicy) -> Truncation:
        return handle_truncation(partition, Diverged(None), policy)

    _set(assignment, "handle_truncation", wrong)


def _truncations_are_located_one_too_early() -> None:
    right = EpochCache.compare

    def wrong(self: EpochCache, epoch: int, end: int, fetched_to: int) -> Divergence | NextEpoch:
        found = right(self, epoch, end, fetched_to)
        if isinstance(found, NextEpoch) or found.offset is None:
            return found
        return Divergence(found.offset - 1)

    _set(EpochCache, "compare", wrong)


def _leaders_answer_locates_a_truncation() -> None:
    def wrong(_self: EpochCache, _epoch: int, end_offset: int, _fetched_to: int) -> Divergence:
        return Divergence(end_offset)

    _set(EpochCache, "compare", wrong)


def _only_the_same_epoch_locates_a_truncation() -> None:
    def wrong(position: Position, epoch: int, end_offset: int) -> Valid | Diverged:
        found = compare(position, epoch, end_offset)
        return found if epoch == position.epoch or isinstance(found, Valid) else Diverged(None)

    _set(epoch_lookup, "compare", wrong)


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

    _set(PositionReset, "_find_by_commit", wrong)


def _ignored_truncations_are_gone() -> None:
    right = assignment.Assignment._truncation_error

    def wrong(
        self: assignment.Assignment, truncated: list[AssignedPartition], now: int
    ) -> OffsetOutOfRangeError:
        error = right(self, truncated, now)
        for each in truncated:
            each.drop_epoch()
        return error

    _set(assignment.Assignment, "_truncation_error", wrong)


MUTANTS: Final[dict[str, Mutant]] = {
    "kip-27-competing-writers": Mutant(
        does="Of several batches in a request the first one has to match, and the others need not.",
        noticed="Here its first batch would fit, and its second one expects",
        apply=_only_the_first_batch_is_compared,
    ),
    "kip-27-bulk-load": Mutant(
        does="What is expected is compared with the high watermark, not with the end of the log.",
        noticed="So it sends the same five lines.",
        apply=_compared_with_what_is_replicated,
    ),
    "kip-27-unmodified-client": Mutant(
        does="No broker looks at headers.",
        noticed="The same client once more, with the same header.",
        apply=_no_header_is_looked_at,
    ),
    "kip-27-per-key": Mutant(
        does="A record with a key has to be where it is expected, as any other has to be.",
        noticed="But it writes about Bob, where it is up to date.",
        apply=_keys_make_no_difference,
    ),
    "kip-207-going-back": Mutant(
        does="The gate of KIP-207 is there, although the config says that it is not.",
        noticed="The end of the log has gone back from 20 to 10.",
        apply=_gate_whatever_the_config,
    ),
    "kip-207-gate": Mutant(
        does="A new leader tells offsets at once.",
        noticed="A consumer of today is told to ask again.",
        apply=_no_gate,
    ),
    "kip-320-unclean-truncation": Mutant(
        does="Whatever epoch is asked about ends at the end of the log.",
        noticed="where epoch 0 ended",
        apply=_every_epoch_ends_at_the_log_end,
    ),
    "kafka-6880-zombie": Mutant(
        does="Who fetches well is in sync, offline or not.",
        noticed="It has every record, and is not among the in-sync replicas",
        apply=_offline_brokers_may_join,
    ),
    "kip-232-stale-metadata": Mutant(
        does="No broker looks at the epoch that a client knows.",
        noticed="It is told that it is behind.",
        apply=_no_epoch_is_checked,
    ),
    "leader-change-during-produce": Mutant(
        does="Only the leader that appended a batch remembers its number.",
        noticed="to the new leader, which has it at offset 1",
        apply=_followers_forget_producers,
    ),
    "broker-restart": Mutant(
        does="A broker that is stopped does not say so, and no other leads in its place.",
        noticed="Broker 1 is stopped in order. Broker 2 leads before it is down.",
        apply=_stop_without_a_word,
    ),
    "coordinator-moves": Mutant(
        does="A new coordinator does not read what the one before has written.",
        noticed="It knows what the group had committed,",
        apply=_new_coordinators_read_nothing,
    ),
    "disconnect-after-append": Mutant(
        does="A batch is appended as often as it comes.",
        noticed="The broker has not written it a second time.",
        apply=_retries_are_appended,
    ),
    "throttling": Mutant(
        does="A throttled client is told so, and read from all the same.",
        noticed="A millisecond before the second is over it still waits.",
        apply=_throttled_clients_are_read_from,
    ),
    "slow-broker": Mutant(
        does="acks=all is answered when the leader has it.",
        noticed="So far it lacks the answer.",
        apply=_acks_all_waits_for_nobody,
    ),
    "corrupt-record": Mutant(
        does="The broker stores whatever comes.",
        noticed="The broker notices, and stores nothing.",
        apply=_no_checksum_is_checked,
    ),
    "partition-unavailable": Mutant(
        does="A replica that is up leads, whatever it lacks.",
        noticed="It was down when a1 was written, so it may not lead.",
        apply=_whoever_is_up_may_lead,
    ),
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
    "kip-320-draft-zombie": Mutant(
        does="No broker looks at the epoch that a client knows.",
        noticed="The final one sends epoch 2, which the zombie does not know.",
        apply=_no_epoch_is_checked,
    ),
    "rebalance-storm": Mutant(
        does="A group lets anybody commit.",
        noticed="It wakes up and wants to commit what it has done.",
        apply=_strangers_may_commit,
    ),
}


def run(arguments: list[str]) -> int:
    name, *rest = arguments
    MUTANTS[name].apply()
    return main(rest)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
