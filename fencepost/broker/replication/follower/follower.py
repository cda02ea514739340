"""The follower of one partition: the same requests that a real follower sends.

    TRUNCATING    is new to a leader epoch, and its leader's Fetch can't tell it where their logs
                  part (below v12): asks OffsetForLeaderEpoch for the end of its newest epoch, and
                  cuts until both logs know the same one (KIP-101, KIP-279).
    FETCHING      asks the leader for what comes after its log end, under the leader epoch it knows
                  and with the epoch of its last record (KIP-320). Records are appended as they
                  are; a diverging epoch truncates (KIP-595); no records means that it is caught
                  up: IDLE.
    LOST          its offset is out of range, or in the remote tier: asks for offsets of the
                  leader until a row of `start_offset.TABLE` fits (KIP-405, KIP-1023). It cuts
                  its log, or starts it again, and goes on FETCHING; or leaves records to the tier.
    TRACING       asks OffsetForLeaderEpoch for the epoch before the one that it will start in,
                  to know in which epoch the last record was written that it leaves.
    BUILDING      has the leader epochs and producers up to that record read from the tier, starts
                  behind it, and goes on FETCHING.
    IDLE          waits for the leader to ring, or for a new leader epoch.
    BACKING_OFF   was refused, or got no answer: waits for the leader to ring, for a change of the
                  partition, or ``replica.fetch.backoff.ms``. Where leader or tier need time it
                  waits for that, or a new leader epoch.

One request is on the way at a time. A new leader epoch makes its answer worthless.

A test may hold a follower: it sends nothing then, but what it is told to by a step. Held at an
offset, it goes on until no batch that ends at or before the offset is left.
"""

from collections.abc import Callable
from typing import Final, NamedTuple, cast

from fencepost.broker.core.scheduler import Timer
from fencepost.broker.metadata.features import limit_versions
from fencepost.broker.replication.follower import truncation
from fencepost.broker.replication.follower.offset_recovery import REFUSALS, OffsetRecovery
from fencepost.broker.replication.follower.requests import (
    FETCH,
    fetch_request,
)
from fencepost.broker.replication.follower.steps import (
    FollowerState,
    Hold,
    Report,
    Step,
    batches_ending_by,
    first_batches,
    known_error,
)
from fencepost.broker.replication.node import FollowerNode
from fencepost.broker.replication.replica import Replica
from fencepost.protocol.apis import Api
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import FetchResponse, PartitionData
from fencepost.protocol.records import CorruptBatch
from fencepost.storage.files.file_system import StorageFailure

FIRST_FETCH_WITH_DIVERGENCE: Final = 12
BATCHES_AT_ONCE: Final = 500
"""That are appended of an answer, which takes a millisecond: a MiB may have 10,000. The follower
asks for the others again; a step that a test asks for takes all."""


class _ReportedRequest(NamedTuple):
    """What a `Step` tells of a request before it is answered."""

    api: str
    asked: str | None
    leader: int
    leader_epoch: int
    fetch_offset: int


class Follower:
    """Steps one replica after its leader, one request at a time."""

    __slots__ = (
        "_epoch",
        "_fetch_version",
        "_has_all_committed",
        "_in_flight",
        "_only_retry_wakes",
        "_queued",
        "_recovery",
        "_report",
        "_reported",
        "_request",
        "_retry",
        "broker",
        "hold",
        "replica",
        "state",
        "truncated_to",
    )

    def __init__(self, broker: FollowerNode, replica: Replica) -> None:
        self.broker = broker
        self.replica = replica
        self.state = FollowerState.IDLE
        self.hold: Hold | None = None
        self._queued = False
        self._in_flight = False
        self._request = 0
        """The number of the latest request: answers of earlier ones are worthless."""
        self._epoch = -1
        """The leader epoch that it has come to terms with."""
        self._fetch_version = FETCH.max_version
        """The one that the leader of this epoch serves."""
        self._retry: Timer | None = None
        self._only_retry_wakes = False
        """Whether nothing but time and a new leader epoch ends its rest."""
        self._has_all_committed = False
        """Whether the last answer in this epoch left it nothing below the leader's watermark."""
        self._recovery: OffsetRecovery | None = None
        """LOST, TRACING, BUILDING: where it goes on."""
        self._report: Report | None = None
        self._reported: _ReportedRequest
        """The latest one of which a report was asked for."""
        self.truncated_to: int | None = None

    def wake(self) -> None:
        """There may be something to fetch: take steps until there is not."""
        if not self._queued:
            self._queued = True
            self.broker.scheduler.soon(self._run)

    def on_metadata_change(self) -> None:
        """The partition has changed. One that is caught up in this leader epoch sleeps on: when
        there is something to fetch its leader rings.
        """
        if self.state is not FollowerState.IDLE or self._epoch != self.replica.leader_epoch:
            self.wake()

    def step(self, report: Report | None = None) -> bool:
        """Send the one request that is due now.

        :param report: Called once with what it did.
        :returns: Whether there was one: a leader has none, nor has who knows no leader.
        """
        replica = self.replica
        if replica.is_leader or replica.leader < 0:
            self.state = FollowerState.IDLE
            return False
        if self._retry is not None:
            self._cancel_retry()
        if self._epoch != replica.leader_epoch:
            try:
                self._enter_epoch()
            except StorageFailure as failure:
                self.broker.mark_offline(replica, failure)
                return False
        self._report, self.truncated_to = report, None
        match self.state:
            case FollowerState.TRUNCATING:
                truncation.ask_epoch_end(self)
            case FollowerState.LOST | FollowerState.TRACING | FollowerState.BUILDING:
                self._recover(self.state)
            case _:
                self.fetch()
        return True

    def unanswered_step(self) -> Step:
        """The latest request that is reported, to which no answer has come."""
        return self._step_report(None)

    @property
    def is_at_rest(self) -> bool:
        """Whether it does nothing until it is woken."""
        return (
            self.state is FollowerState.IDLE
            and not self._queued
            and not self._in_flight
            and self._retry is None
        )

    def stop(self) -> None:
        """Its replica leads now, or is gone: no answer counts any more."""
        self._request += 1
        self._in_flight = False
        self._cancel_retry()
        self._stop_recovery()
        self._epoch = -1
        self.state = FollowerState.IDLE

    # -- when -----------------------------------------------------------------------------------

    def _run(self) -> None:
        self._queued = False
        if self._in_flight and self._epoch == self.replica.leader_epoch:
            # The answer comes before whatever its leader rings for later: links keep the order.
            return
        if self._only_retry_wakes and self._epoch == self.replica.leader_epoch:
            return
        if self.hold is None or not self._is_held(self.hold):
            self.step()

    def _is_held(self, hold: Hold) -> bool:
        if self._epoch != self.replica.leader_epoch and hold.at is not None:
            hold.reached = self.replica.log.log_end_offset >= hold.at
        return hold.at is None or hold.reached

    def _enter_epoch(self) -> None:
        """A new leader epoch: find out where the logs part before anything is appended."""
        replica = self.replica
        self._stop_recovery()
        self._epoch = replica.leader_epoch
        self._has_all_committed = False
        self._fetch_version = self.version(FETCH)
        self.state = FollowerState.FETCHING
        if replica.log.latest_epoch is None:
            # Without epochs all that is known to be everywhere lies below the high watermark.
            truncation.truncate(self, replica.high_watermark)
        elif self._fetch_version < FIRST_FETCH_WITH_DIVERGENCE:
            self.state = FollowerState.TRUNCATING

    def continue_in(self, state: FollowerState) -> None:
        """Do this next, in this turn, unless held."""
        self.state = state
        self.wake()

    def back_off(self, *, patient: bool = False) -> None:
        """Refused, or unheard: try again later, or when something has changed.

        :param patient: Whether only to try later: what it waits for does not ring.
        """
        if self.state is FollowerState.TRUNCATING:
            self._epoch = -1  # it has not come to terms with this epoch
        self._rest(max(1, self.broker.configs.replica_fetch_backoff_ms))
        self._only_retry_wakes = patient

    def _rest(self, delay_ms: int) -> None:
        self.state = FollowerState.BACKING_OFF
        scheduler = self.broker.scheduler
        self._retry = scheduler.at(scheduler.now_ms() + delay_ms, self._on_backoff_over)

    def _on_backoff_over(self) -> None:
        self._only_retry_wakes = False
        self.wake()

    def _cancel_retry(self) -> None:
        self._only_retry_wakes = False
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None

    def _recover(self, state: FollowerState) -> None:
        recovery = self._recovery
        assert recovery is not None, "it comes with the state LOST"
        if state is FollowerState.LOST:
            recovery.ask_offset()
        elif state is FollowerState.TRACING:
            recovery.ask_epoch_before()
        else:
            recovery.build()

    def _stop_recovery(self) -> None:
        if self._recovery is not None:
            if self.state is FollowerState.BUILDING:
                self._recovery.stop()
            self._recovery = None  # each of them would keep the other, and the log, in memory

    # -- requests -------------------------------------------------------------------------------

    def version(self, api: Api) -> int:
        """The highest that the leader serves, as far as the features here let it be used."""
        highest = self.broker.network.version(self.replica.leader, api)
        return min(highest, limit_versions(self.broker.view.features, {}).get(api.name, highest))

    def send(
        self,
        api: Api,
        version: int,
        message: object,
        take: Callable[[object], int],
        *,
        asked: str | None = None,
    ) -> None:
        """Ask the leader.

        :param take: Takes the answer and says with which error code it came.
        :param asked: For the report: what for.
        """
        finish = self.response_handler(api.title, take, asked)
        self.broker.network.request(
            self.broker.broker_id,
            self.replica.leader,
            api,
            version,
            message,
            finish,
            lambda: finish(None),
        )

    def response_handler(
        self, api: str, take: Callable[[object], int], asked: str | None = None
    ) -> Callable[[object | None], None]:
        """What to give the answer to what is sent now; None is none."""
        replica = self.replica
        self._request += 1
        number, report, start = self._request, self._report, replica.log.log_end_offset
        leader, epoch = replica.leader, replica.leader_epoch
        if report is not None:
            self._reported = _ReportedRequest(api, asked, leader, epoch, start)
        self._in_flight = True

        def finish(answer: object | None) -> None:
            if number != self._request:
                return
            self._in_flight = False
            error: int | None = None
            if epoch != replica.leader_epoch or replica.is_leader:
                self.wake()
            elif answer is None:
                self.back_off()
            else:
                try:
                    error = take(answer)
                except StorageFailure as failure:
                    self.broker.mark_offline(replica, failure)
                    error = ErrorCode.KAFKA_STORAGE_ERROR
            if report is not None:
                report(self._step_report(error))

        return finish

    def _step_report(self, error: int | None) -> Step:
        """What the reported request did; ``error`` is None where no answer came."""
        request = self._reported
        end = self.replica.log.log_end_offset
        cut = self.truncated_to
        return Step(
            api=request.api,
            asked=request.asked,
            leader=request.leader,
            leader_epoch=request.leader_epoch,
            fetch_offset=request.fetch_offset,
            error=None if error is None else known_error(error),
            appended=max(0, end - request.fetch_offset) if cut is None else 0,
            truncated_to=cut,
            log_end_offset=end,
            high_watermark=self.replica.high_watermark,
            state=self.state,
        )

    # -- fetching -------------------------------------------------------------------------------

    def fetch(self) -> None:
        """Ask for what comes after the log end."""
        delay_ms = self._throttled_ms()
        if delay_ms:
            self._rest(delay_ms)
            self._only_retry_wakes = True
            return
        self.state = FollowerState.FETCHING
        broker, version = self.broker, self._fetch_version
        registration = broker.epoch
        request = fetch_request(
            self.replica, broker.configs, broker_epoch=registration, version=version
        )
        self.send(
            FETCH, version, request, lambda answer: self._on_fetch_response(answer, registration)
        )

    def _throttled_ms(self) -> int:
        """How long it may not fetch; a step that a test asks for is never held back."""
        replica, throttle = self.replica, self.broker.follower_throttle
        if self._report is not None or not throttle.applies_to(replica.topic, replica.index):
            return 0
        image = self.broker.view.partition(replica.topic, replica.index)
        if image is not None and self.broker.broker_id in image.isr:
            return 0
        # As in Kafka: without the next fetch the leader would not see that it has caught up.
        return 0 if self._has_all_committed else throttle.delay_ms()

    def _on_fetch_response(self, answer: object, registration: int) -> int:
        response = cast(FetchResponse, answer)
        if not response.responses:
            self.back_off()
            return response.error_code
        partition = response.responses[0].partitions[0]
        error_code, diverging = partition.error_code, partition.diverging_epoch
        if error_code in REFUSALS:
            self._recovery = OffsetRecovery(self, REFUSALS[error_code])
            self.continue_in(FollowerState.LOST)
        elif error_code:
            self.back_off()
        elif diverging.epoch >= 0:
            truncation.truncate_to_common_offset(self, diverging.epoch, diverging.end_offset)
            self.continue_in(FollowerState.FETCHING)
        else:
            return self._append_response(partition, registration)
        return error_code

    def _append_response(self, partition: PartitionData, registration: int) -> int:
        """Append what was answered; with which error, if it is broken.

        :param registration: The epoch of the broker's registration when it was asked for.
        """
        replica, wall_ms = self.replica, self.broker.scheduler.wall_ms()
        if replica.start_over_if_deleted(partition.log_start_offset, now_ms=wall_ms):
            self.continue_in(FollowerState.FETCHING)
            return ErrorCode.NONE
        records = partition.records or ()
        if self.hold is not None:
            records = self._limit_to_hold(self.hold, records)
        try:
            if self._report is None:
                records = first_batches(records, BATCHES_AT_ONCE)
            if records:
                replica.append_fetched(records, now_ms=wall_ms)
                if self.broker.follower_throttle.applies_to(replica.topic, replica.index):
                    self.broker.follower_throttle.record(sum(map(len, records)))
        except CorruptBatch:
            self.back_off()
            return ErrorCode.CORRUPT_MESSAGE
        replica.update_high_watermark(partition.high_watermark)
        self._has_all_committed = replica.log.log_end_offset >= partition.high_watermark
        # As in Kafka: only what is committed is deleted, whatever the leader says its log start is.
        start = min(partition.log_start_offset, replica.high_watermark)
        start_moved = replica.log.advance_log_start(start)
        # The next fetch tells the leader so, or in which registration it has all (KIP-903).
        if records or start_moved or registration != self.broker.epoch:
            self.continue_in(FollowerState.FETCHING)
        else:
            self.state = FollowerState.IDLE
        return ErrorCode.NONE

    def _limit_to_hold(self, hold: Hold, records: tuple[Buffer, ...]) -> tuple[Buffer, ...]:
        """What a hold at an offset lets through, and whether it is reached."""
        if hold.at is None or hold.reached or self._report is not None:
            return records
        allowed = batches_ending_by(records, hold.at)
        if not allowed:
            hold.reached = bool(records) or self.replica.log.log_end_offset >= hold.at
        return allowed
