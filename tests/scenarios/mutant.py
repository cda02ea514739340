"""Clusters that do something wrong, to show that a scenario notices: ``MUTANT serve ...``.

``python -m tests.scenarios.mutant kip-207-gate serve --brokers 3`` is ``fencepost serve`` with a
broker that does not do what the scenario of that name is about. It does all else as ever.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from fencepost.broker import elections, ladder, steering
from fencepost.broker.configs.own import ListOffsetsGate
from fencepost.broker.controller import Controller
from fencepost.broker.coordination import ReplicaLog
from fencepost.broker.faults import door
from fencepost.broker.faults.held import Throttled
from fencepost.broker.groups import offsets
from fencepost.broker.handlers import fetch, list_offsets, offset_for_leader_epoch, produce
from fencepost.broker.isr import InSyncReplicas
from fencepost.broker.replica import Replica
from fencepost.cli import main
from fencepost.protocol.errors import ErrorCode
from fencepost.storage import validation
from fencepost.storage.producers import ProducerStates
from fencepost.storage.segmented import SegmentedLog

if TYPE_CHECKING:
    from fencepost.broker.broker import Broker
    from fencepost.broker.cluster import Cluster
    from fencepost.broker.context import Context
    from fencepost.broker.groups.group import ClassicGroup
    from fencepost.broker.groups.offsets import Commit
    from fencepost.broker.image import PartitionImage
    from fencepost.protocol.buffers import Buffer
    from fencepost.protocol.messages.offset_for_leader_epoch import (
        EpochEndOffset,
        OffsetForLeaderPartition,
    )
    from fencepost.protocol.records import BatchHeader, Record
    from fencepost.storage.log import AppendResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A wrong behaviour, by the scenario that is to notice it."""

    does: str
    """What is wrong."""
    noticed: str
    """What the scenario says at the step that has to fail, or a part of it."""
    apply: Callable[[], None]


def _set(target: object, name: str, value: object) -> None:
    """Put something in the place of what is there."""
    assert hasattr(target, name), f"{target} has no {name}"
    setattr(target, name, value)


def _gate_whatever_the_config() -> None:
    def gate_of(_broker: Broker, replica: Replica) -> ListOffsetsGate:
        return ListOffsetsGate.OFF if replica.gate_is_open else ListOffsetsGate.KIP

    _set(list_offsets, "gate_of", gate_of)


def _no_gate() -> None:
    _set(list_offsets, "gate_of", lambda _broker, _replica: ListOffsetsGate.OFF)


def _every_epoch_ends_at_the_log_end() -> None:
    look_up = offset_for_leader_epoch._look_up

    def wrong(ctx: Context, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
        found = look_up(ctx, topic, asked)
        log = ctx.broker.replicas[topic, asked.partition].log
        return replace(found, end_offset=log.log_end_offset)

    _set(offset_for_leader_epoch, "_look_up", wrong)


def _offline_brokers_may_join() -> None:
    _set(InSyncReplicas, "_is_online", lambda *_: True)
    _set(Controller, "_may_join", lambda *_: True)


def _no_epoch_is_checked() -> None:
    find_replica = ladder.find_replica

    def wrong(broker: Broker, topic: str, index: int, _epoch: int = -1) -> Replica | ErrorCode:
        return find_replica(broker, topic, index)

    _set(ladder, "find_replica", wrong)
    _set(fetch, "find_replica", wrong)


def _followers_forget_producers() -> None:
    append = SegmentedLog.append_as_follower

    def wrong(self: SegmentedLog, records: Sequence[Buffer], *, now_ms: int) -> AppendResult:
        result = append(self, records, now_ms=now_ms)
        self._producers.clear()
        return result

    _set(SegmentedLog, "append_as_follower", wrong)


def _stop_without_a_word() -> None:
    def wrong(cluster: Cluster, broker_id: int) -> None:
        cluster.brokers[broker_id].go_down(crash=False)

    _set(steering, "stop", wrong)


def _new_coordinators_read_nothing() -> None:
    def wrong(_self: ReplicaLog) -> Iterator[Record]:
        return iter(())

    _set(ReplicaLog, "read_all", wrong)


def _retries_are_appended() -> None:
    def no_duplicate(_self: ProducerStates, _header: BatchHeader) -> None:
        return None

    def no_refusal(_self: ProducerStates, _header: BatchHeader, *, check_sequence: bool) -> None:
        del check_sequence

    _set(ProducerStates, "duplicate_of", no_duplicate)
    _set(ProducerStates, "refusal", no_refusal)


def _throttled_clients_are_read_from() -> None:
    throttled = door._throttled

    def wrong(ctx: Context, response: object, ms: int) -> object:
        outcome = throttled(ctx, response, ms)
        if isinstance(outcome, Throttled):
            outcome.until.complete(None)
        return outcome

    _set(door, "_throttled", wrong)


def _acks_all_waits_for_nobody() -> None:
    _set(produce._Appended, "settled", property(lambda _self: True))
    _set(produce._Appended, "error", property(lambda _self: ErrorCode.NONE))


def _no_checksum_is_checked() -> None:
    _set(validation, "crc_ok", lambda *_: True)


def _whoever_is_up_may_lead() -> None:
    def wrong(_partition: PartitionImage, _broker_id: int) -> bool:
        return True

    _set(elections, "may_lead_cleanly", wrong)


def _strangers_may_commit() -> None:
    def wrong(_group: ClassicGroup | None, _commit: Commit) -> ErrorCode:
        return ErrorCode.NONE

    _set(offsets, "check_commit", wrong)


MUTANTS: Final[dict[str, Mutant]] = {
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
        does="Nobody looks at the epoch that a client knows.",
        noticed="It is told that it is behind.",
        apply=_no_epoch_is_checked,
    ),
    "leader-change-during-produce": Mutant(
        does="Only the leader that appended a batch remembers its number.",
        noticed="to the new leader, which has it at offset 1",
        apply=_followers_forget_producers,
    ),
    "broker-restart": Mutant(
        does="A broker that is stopped tells nobody, and nobody leads in its place.",
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
