"""Brokers that do something wrong with replicas, coordinators, and the requests of clients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from fencepost.broker.configs.effective_configs import ListOffsetsGate
from fencepost.broker.controller import elections, requests
from fencepost.broker.coordinator.commit_queue import LoadedBatch, ReplicaLog
from fencepost.broker.core.outcomes import ThrottledResponse
from fencepost.broker.faults.interceptor import Interception
from fencepost.broker.groups import offsets
from fencepost.broker.handlers import fetch, list_offsets, offset_for_leader_epoch
from fencepost.broker.node import operator_actions
from fencepost.broker.produce import append
from fencepost.broker.replication import partition_checks
from fencepost.broker.replication.isr import IsrManager
from fencepost.broker.replication.replica import Replica
from fencepost.protocol.errors import ErrorCode
from fencepost.storage.log import validation
from fencepost.storage.log.producer_state import ProducerStateManager
from fencepost.storage.log.segmented_log import SegmentedLog
from tests.scenario.mutation import Mutant, set_attribute

if TYPE_CHECKING:
    from fencepost.broker.groups.classic_group import ClassicGroup
    from fencepost.broker.groups.offsets import Commit
    from fencepost.broker.handlers.context import Context
    from fencepost.broker.metadata.image import PartitionImage
    from fencepost.broker.node.broker import Broker
    from fencepost.broker.node.cluster import Cluster
    from fencepost.protocol.byte_utils import Buffer
    from fencepost.protocol.messages.offset_for_leader_epoch import (
        EpochEndOffset,
        OffsetForLeaderPartition,
    )
    from fencepost.protocol.records import BatchHeader
    from fencepost.storage.log.append_result import AppendResult


def _gate_whatever_the_config() -> None:
    def gate_of(_broker: Broker, replica: Replica) -> ListOffsetsGate:
        return ListOffsetsGate.OFF if replica.gate_is_open else ListOffsetsGate.KIP

    set_attribute(list_offsets, "effective_gate", gate_of)


def _no_gate() -> None:
    set_attribute(list_offsets, "effective_gate", lambda _broker, _replica: ListOffsetsGate.OFF)


def _every_epoch_ends_at_the_log_end() -> None:
    look_up = offset_for_leader_epoch._look_up

    def wrong(ctx: Context, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
        found = look_up(ctx, topic, asked)
        log = ctx.broker.replicas[topic, asked.partition].log
        return replace(found, end_offset=log.log_end_offset)

    set_attribute(offset_for_leader_epoch, "_look_up", wrong)


def _offline_brokers_may_join() -> None:
    set_attribute(IsrManager, "_is_online", lambda *_: True)
    set_attribute(requests, "is_eligible", lambda *_: True)


def _no_epoch_is_checked() -> None:
    find_replica = partition_checks.find_replica

    def wrong(
        broker: Broker, topic: str, index: int, _epoch: int = -1, *, is_broker: bool = False
    ) -> Replica | ErrorCode:
        return find_replica(broker, topic, index, is_broker=is_broker)

    set_attribute(partition_checks, "find_replica", wrong)
    set_attribute(fetch, "find_replica", wrong)


def _followers_forget_producers() -> None:
    append = SegmentedLog.append_as_follower

    def wrong(
        self: SegmentedLog, records: Sequence[Buffer], *, now_ms: int, high_watermark: int = 0
    ) -> AppendResult:
        result = append(self, records, now_ms=now_ms, high_watermark=high_watermark)
        self._state.producers.clear()
        return result

    set_attribute(SegmentedLog, "append_as_follower", wrong)


def _stop_without_a_word() -> None:
    def wrong(cluster: Cluster, broker_id: int) -> Iterator[None]:
        cluster.brokers[broker_id].stop(crash=False)
        yield

    set_attribute(operator_actions, "stopping", wrong)


def _new_coordinators_read_nothing() -> None:
    def wrong(_self: ReplicaLog) -> Iterator[LoadedBatch]:
        return iter(())

    set_attribute(ReplicaLog, "read_all", wrong)


def _retries_are_appended() -> None:
    def no_duplicate(_self: ProducerStateManager, _header: BatchHeader) -> None:
        return None

    def no_refusal(_self: ProducerStateManager, _header: BatchHeader, **_how: object) -> None:
        return None

    set_attribute(ProducerStateManager, "duplicate_of", no_duplicate)
    set_attribute(ProducerStateManager, "refusal", no_refusal)


def _throttled_clients_are_read_from() -> None:
    throttle = Interception.throttle

    def wrong(self: Interception, response: object, ms: int) -> object:
        outcome = throttle(self, response, ms)
        if isinstance(outcome, ThrottledResponse):
            outcome.until.complete(None)
        return outcome

    set_attribute(Interception, "throttle", wrong)


def _acks_all_waits_for_nobody() -> None:
    set_attribute(append.PendingAppend, "_outcome", lambda _self: ErrorCode.NONE)


def _no_checksum_is_checked() -> None:
    set_attribute(validation, "crc_ok", lambda *_: True)


def _whoever_is_up_may_lead() -> None:
    def wrong(_partition: PartitionImage, _broker_id: int) -> bool:
        return True

    set_attribute(elections, "is_clean_leader", wrong)


def _strangers_may_commit() -> None:
    def wrong(_group: ClassicGroup | None, _commit: Commit) -> ErrorCode:
        return ErrorCode.NONE

    set_attribute(offsets, "check_commit", wrong)


MUTANTS: Final = {
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
