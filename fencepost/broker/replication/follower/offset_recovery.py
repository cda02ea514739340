"""A follower whose offset is out of range or in the remote tier finds where to start again.

`start_offset` decides what to ask and what to do; this module asks and does it. LOST asks the
leader for one offset after the other, TRACING for the leader epoch of the last record that is left
to the tier. BUILDING reads the auxiliary state of all records up to there from the tier.
"""

from typing import TYPE_CHECKING, Final, assert_never, cast

from fencepost.broker.core.async_tasks import AsyncTask
from fencepost.broker.core.events import Kind
from fencepost.broker.replication.follower.requests import (
    LIST_OFFSETS,
    OFFSET_FOR_LEADER_EPOCH,
    epoch_end_request,
    list_offset_request,
)
from fencepost.broker.replication.follower.start_offset import (
    AuxiliaryState,
    FetchRefusal,
    OffsetAndEpoch,
    SpecialTimestamp,
    StartAction,
    StartDecision,
    StartInputs,
    StartProtocol,
    decide,
)
from fencepost.broker.replication.follower.steps import FollowerState
from fencepost.broker.replication.follower.truncation import report_truncation, truncate
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.list_offsets import ListOffsetsResponse
from fencepost.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochResponse
from fencepost.storage.tier.object_store import TierError

if TYPE_CHECKING:
    from fencepost.broker.replication.follower.follower import Follower

FIRST_LIST_WITH_PENDING: Final = 11
TIER: Final = "Tier"
"""What a step that asks the tier is called."""
REFUSALS: Final = {
    int(ErrorCode.OFFSET_OUT_OF_RANGE): FetchRefusal.OUT_OF_RANGE,
    int(ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE): FetchRefusal.MOVED_TO_TIER,
}


class OffsetRecovery:
    """One follower's way from a refused fetch to the next one that may be served."""

    __slots__ = ("_follower", "_inputs", "_last_epoch", "_start", "_task")

    def __init__(self, follower: "Follower", refusal: FetchRefusal) -> None:
        self._follower = follower
        self._inputs = StartInputs(
            refusal=refusal,
            protocol=start_protocol(follower),
            log_end=follower.replica.log.log_end_offset,
        )
        self._start: OffsetAndEpoch
        """TRACING, BUILDING: where it will start."""
        self._last_epoch: int
        """BUILDING: the leader epoch of the record before."""
        self._task: AsyncTask[AuxiliaryState] | None = None

    def stop(self) -> None:
        """Ask the tier for nothing more."""
        if self._task is not None:
            self._task.stop()
            self._task = None

    def _continue(self) -> None:
        """Ask for one more offset, or do what follows from all that is known."""
        found = decide(self._inputs)
        if isinstance(found, StartDecision):
            self._apply_decision(found)
        else:
            self._follower.continue_in(FollowerState.LOST)

    def ask_offset(self) -> None:
        """LOST: the one that is due."""
        target = decide(self._inputs)
        assert isinstance(target, SpecialTimestamp)
        version = self._follower.version(LIST_OFFSETS)
        request = list_offset_request(self._follower.replica, target, version=version)

        def take(answer: object) -> int:
            partition = cast(ListOffsetsResponse, answer).topics[0].partitions[0]
            if partition.error_code != ErrorCode.NONE:
                self._follower.back_off()
                return partition.error_code
            self._inputs.offsets[target] = OffsetAndEpoch(partition.offset, partition.leader_epoch)
            self._continue()
            return ErrorCode.NONE

        self._follower.send(LIST_OFFSETS, version, request, take, asked=target.name.lower())

    def _apply_decision(self, decision: StartDecision) -> None:
        match decision.action:
            case StartAction.TRUNCATE:
                truncate(self._follower, decision.at.offset)
                self._follower.continue_in(FollowerState.FETCHING)
            case StartAction.START:
                self._start_at(decision.at.offset)
            case StartAction.BUILD:
                self._start = decision.at
                self._last_epoch = decision.at.epoch
                self._follower.continue_in(
                    FollowerState.TRACING if decision.at.epoch > 0 else FollowerState.BUILDING
                )
            case StartAction.BACK_OFF:
                self._follower.back_off(patient=True)
            case _:
                assert_never(decision.action)

    def _start_at(self, offset: int) -> None:
        replica = self._follower.replica
        before = replica.log.log_end_offset
        if offset <= before:
            self._follower.back_off()  # to fetch the same again would be refused again
            return
        replica.truncate_fully_and_start_at(
            offset, now_ms=self._follower.broker.scheduler.wall_ms()
        )
        report_truncation(self._follower, before)
        self._follower.continue_in(FollowerState.FETCHING)

    def ask_epoch_before(self) -> None:
        """TRACING: in which leader epoch the record before the start was written."""
        version = self._follower.version(OFFSET_FOR_LEADER_EPOCH)
        request = epoch_end_request(self._follower.replica, self._start.epoch - 1)
        self._follower.send(
            OFFSET_FOR_LEADER_EPOCH, version, request, self._on_epoch_before_response
        )

    def _on_epoch_before_response(self, answer: object) -> int:
        """The record before the start is of the earlier epoch, if that reaches so far."""
        partition = cast(OffsetForLeaderEpochResponse, answer).topics[0].partitions[0]
        if partition.error_code != ErrorCode.NONE:
            self._follower.back_off()
            return partition.error_code
        if partition.end_offset >= self._start.offset:
            self._last_epoch = partition.leader_epoch
        self._follower.continue_in(FollowerState.BUILDING)
        return ErrorCode.NONE

    def build(self) -> None:
        """BUILDING: read the auxiliary state from the tier."""
        self.stop()
        finish = self._follower.response_handler(TIER, self._on_auxiliary_state)
        self._task = self._follower.broker.remote_log_manager.build_auxiliary_state(
            self._follower.replica, epoch=self._last_epoch, offset=self._start.offset, then=finish
        )

    def _on_auxiliary_state(self, answer: object) -> int:
        """Put the auxiliary state in place; where there is none, go the whole way again later."""
        self._task = None
        if isinstance(answer, TierError):
            self._follower.back_off(patient=True)
            return ErrorCode.KAFKA_STORAGE_ERROR
        auxiliary = cast(AuxiliaryState, answer)
        replica, log_start = self._follower.replica, self._inputs.log_start
        before = replica.log.log_end_offset
        replica.start_from_tier(
            self._start.offset,
            log_start_offset=log_start,
            epochs=auxiliary.since(log_start),
            producers=auxiliary.producers,
            now_ms=self._follower.broker.scheduler.wall_ms(),
        )
        self._follower.truncated_to = replica.log.log_end_offset
        self._follower.broker.events.emit(
            Kind.LOG_STARTED_FROM_TIER,
            topic=replica.topic,
            partition=replica.index,
            broker=replica.broker_id,
            offset=self._start.offset,
            log_start_offset=log_start,
            previous_offset=before,
        )
        self._follower.continue_in(FollowerState.FETCHING)
        return ErrorCode.NONE


def start_protocol(follower: "Follower") -> StartProtocol:
    """KIP-1023's where the log is empty, the feature on, and ListOffsets has it (v11)."""
    broker, log = follower.broker, follower.replica.log
    bootstraps = (
        log.log_end_offset == 0
        and log.config.remote_storage_enable
        and broker.configs.follower_fetch_last_tiered_offset_enable
        and follower.version(LIST_OFFSETS) >= FIRST_LIST_WITH_PENDING
    )
    return StartProtocol.BOOTSTRAP if bootstraps else StartProtocol.OLD
