"""The follower of one partition: the same requests that a real follower sends.

    TRUNCATING    is new to a leader epoch, and its leader's Fetch can't tell it where their logs
                  part (below v12): asks OffsetForLeaderEpoch for the end of its newest epoch, and
                  cuts until both logs know the same one (KIP-101, KIP-279).
    FETCHING      asks the leader for what comes after its log end, under the leader epoch it knows
                  and with the epoch of its last record (KIP-320). Records are appended as they
                  are; a diverging epoch truncates (KIP-595); no records means that it is caught
                  up: IDLE.
    OUT_OF_RANGE  asks for the leader's log end. If that is below its own it truncates to it and
                  goes on FETCHING; if not, it is BEHIND.
    BEHIND        asks for the leader's log start, starts anew there, and goes on FETCHING.
    IDLE          waits for the leader to ring, or for a new view.
    BACKING_OFF   was refused, or got no answer: waits for either, or ``replica.fetch.backoff.ms``.

One request is on the way at a time. A new leader epoch makes its answer worthless.

A test may hold a follower: it sends nothing then, but what it is told to by a step. Held at an
offset, it goes on until no batch that ends at or before the offset is left.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from fencepost.broker.events import Kind
from fencepost.broker.follower_requests import (
    EARLIEST_LOCAL,
    FETCH,
    LATEST,
    LIST_OFFSETS,
    OFFSET_FOR_LEADER_EPOCH,
    epoch_end_request,
    fetch_request,
    list_offset_request,
)
from fencepost.broker.replica import UNKNOWN_OFFSET, Replica
from fencepost.broker.scheduler import Timer
from fencepost.protocol.apis import Api
from fencepost.protocol.buffers import Buffer
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import FetchResponse, PartitionData
from fencepost.protocol.messages.list_offsets import ListOffsetsResponse
from fencepost.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochResponse
from fencepost.protocol.records import CorruptBatch, iter_headers

if TYPE_CHECKING:
    from fencepost.broker.broker import Broker

FIRST_FETCH_WITH_DIVERGENCE: Final = 12
OFFSET_OUT_OF_RANGE: Final = int(ErrorCode.OFFSET_OUT_OF_RANGE)


class State(Enum):
    """What a follower is doing."""

    IDLE = "idle"
    TRUNCATING = "truncating"
    FETCHING = "fetching"
    OUT_OF_RANGE = "out of range"
    BEHIND = "behind"
    BACKING_OFF = "backing off"


@dataclass(slots=True)
class Hold:
    """A test keeps a follower from fetching."""

    at: int | None = None
    """Where (exclusive end of what it may have); None is wherever it is."""
    reached: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one request of a follower did. Log ends are exclusive."""

    api: str
    """Kafka's name of it."""
    leader: int
    """Whom it asked, as far as it knew."""
    leader_epoch: int
    fetch_offset: int
    """Its log end before."""
    error: int | None
    """What it was answered, an ``ErrorCode`` where Kafka has one; None where no answer came."""
    appended: int
    """Records."""
    truncated_to: int | None
    log_end_offset: int
    """After it, as the high watermark."""
    high_watermark: int


Report = Callable[[Step], None]


class Follower:
    """Steps one replica after its leader, one request at a time."""

    __slots__ = (
        "_account",
        "_broker",
        "_epoch",
        "_fetch_version",
        "_in_flight",
        "_queued",
        "_report",
        "_request",
        "_retry",
        "_truncated_to",
        "hold",
        "replica",
        "state",
    )

    def __init__(self, broker: "Broker", replica: Replica) -> None:
        self._broker = broker
        self.replica = replica
        self.state = State.IDLE
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
        self._report: Report | None = None
        self._account: Callable[[int | None], Step]
        """What the latest request that is reported did, by the error that it was answered."""
        self._truncated_to: int | None = None

    def poke(self) -> None:
        """There may be something to fetch: take steps until there is not."""
        if not self._queued:
            self._queued = True
            self._broker.scheduler.soon(self._run)

    def step(self, report: Report | None = None) -> bool:
        """Send the one request that is due now.

        :param report: Called once with what it did.
        :returns: Whether there was one: a leader has none, nor has who knows no leader.
        """
        replica = self.replica
        if replica.is_leader or replica.leader < 0:
            self.state = State.IDLE
            return False
        if self._retry is not None:
            self._cancel_retry()
        if self._epoch != replica.leader_epoch:
            self._enter_epoch()
        self._report, self._truncated_to = report, None
        if self.state is State.OUT_OF_RANGE:
            self._list_offset(LATEST)
        elif self.state is State.BEHIND:
            self._list_offset(EARLIEST_LOCAL)
        elif self.state is State.TRUNCATING:
            self._ask_epoch_end()
        else:
            self.state = State.FETCHING
            self._fetch()
        return True

    def unanswered(self) -> Step:
        """The latest request that is reported, to which no answer has come."""
        return self._account(None)

    def stop(self) -> None:
        """Its replica leads now, or is gone: no answer counts any more."""
        self._request += 1
        self._in_flight = False
        self._cancel_retry()
        self._epoch = -1
        self.state = State.IDLE

    # -- when -----------------------------------------------------------------------------------

    def _run(self) -> None:
        self._queued = False
        if self._in_flight and self._epoch == self.replica.leader_epoch:
            # The answer comes before whatever its leader rings for later: links keep the order.
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
        self._epoch = replica.leader_epoch
        self._fetch_version = self._version(FETCH)
        self.state = State.FETCHING
        if replica.log.latest_epoch is None:
            # Without epochs all that is known to be everywhere lies below the high watermark.
            self._truncate(replica.high_watermark)
        elif self._fetch_version < FIRST_FETCH_WITH_DIVERGENCE:
            self.state = State.TRUNCATING

    def _again(self, state: State) -> None:
        self.state = state
        self.poke()

    def _rest(self) -> None:
        """Refused, or unheard: try again later, or when something has changed."""
        if self.state is State.TRUNCATING:
            self._epoch = -1  # it has not come to terms with this epoch
        self.state = State.BACKING_OFF
        scheduler = self._broker.scheduler
        deadline_ms = scheduler.now_ms() + max(1, self._broker.configs.replica_fetch_backoff_ms)
        self._retry = scheduler.at(deadline_ms, self.poke)

    def _cancel_retry(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None

    # -- requests -------------------------------------------------------------------------------

    def _version(self, api: Api) -> int:
        return self._broker.network.version(self.replica.leader, api)

    def _send(self, api: Api, version: int, message: object, take: Callable[[object], int]) -> None:
        """Ask the leader.

        :param take: Takes the answer and says with which error code it came.
        """
        replica = self.replica
        self._request += 1
        number, report, start = self._request, self._report, replica.log.log_end_offset
        leader, epoch = replica.leader, replica.leader_epoch
        if report is not None:
            self._account = partial(self._step_report, api, leader, epoch, start)
        self._in_flight = True

        def finish(answer: object | None) -> None:
            if number != self._request:
                return
            self._in_flight = False
            error: int | None = None
            if epoch != replica.leader_epoch or replica.is_leader:
                self.poke()
            elif answer is None:
                self._rest()
            else:
                error = take(answer)
            if report is not None:
                report(self._account(error))

        self._broker.network.request(
            self._broker, leader, api, version, message, finish, lambda: finish(None)
        )

    def _step_report(
        self, api: Api, leader: int, epoch: int, start: int, error: int | None
    ) -> Step:
        end = self.replica.log.log_end_offset
        cut = self._truncated_to
        return Step(
            api=api.title,
            leader=leader,
            leader_epoch=epoch,
            fetch_offset=start,
            error=None if error is None else _named(error),
            appended=max(0, end - start) if cut is None else 0,
            truncated_to=cut,
            log_end_offset=end,
            high_watermark=self.replica.high_watermark,
        )

    # -- fetching -------------------------------------------------------------------------------

    def _fetch(self) -> None:
        broker, version = self._broker, self._fetch_version
        request = fetch_request(
            self.replica, broker.configs, broker_epoch=broker.epoch, version=version
        )
        self._send(FETCH, version, request, self._fetched)

    def _fetched(self, answer: object) -> int:
        response = cast(FetchResponse, answer)
        if not response.responses:
            self._rest()
            return response.error_code
        partition = response.responses[0].partitions[0]
        error_code, diverging = partition.error_code, partition.diverging_epoch
        if error_code == OFFSET_OUT_OF_RANGE:
            self._again(State.OUT_OF_RANGE)
        elif error_code:
            self._rest()
        elif diverging.epoch >= 0:
            self._truncate_to_agreement(diverging.epoch, diverging.end_offset)
            self._again(State.FETCHING)
        else:
            return self._take(partition)
        return error_code

    def _take(self, partition: PartitionData) -> int:
        """Append what was answered; with which error, if it is broken."""
        replica = self.replica
        records = partition.records or ()
        if self.hold is not None:
            records = self._allowed(self.hold, records)
        try:
            if records:
                replica.append_fetched(records, now_ms=self._broker.scheduler.now_ms())
        except CorruptBatch:
            self._rest()
            return ErrorCode.CORRUPT_MESSAGE
        log, start_moved = replica.log, False
        if partition.log_start_offset > log.log_start_offset:
            start = min(partition.log_start_offset, log.log_end_offset)
            start_moved = log.advance_log_start(start)
        replica.learn_watermark(partition.high_watermark)
        if records or start_moved:  # the next fetch tells the leader so
            self._again(State.FETCHING)
        else:
            self.state = State.IDLE
        return ErrorCode.NONE

    def _allowed(self, hold: Hold, records: tuple[Buffer, ...]) -> tuple[Buffer, ...]:
        """What a hold at an offset lets through, and whether it is reached."""
        if hold.at is None or hold.reached or self._report is not None:
            return records
        allowed = _ending_by(records, hold.at)
        if not allowed:
            hold.reached = bool(records) or self.replica.log.log_end_offset >= hold.at
        return allowed

    # -- truncating -----------------------------------------------------------------------------

    def _ask_epoch_end(self) -> None:
        latest = self.replica.log.latest_epoch
        if latest is None:
            self.state = State.FETCHING
            self._fetch()
            return
        version = self._version(OFFSET_FOR_LEADER_EPOCH)
        request = epoch_end_request(self.replica, latest)
        self._send(OFFSET_FOR_LEADER_EPOCH, version, request, self._learned_epoch_end)

    def _learned_epoch_end(self, answer: object) -> int:
        partition = cast(OffsetForLeaderEpochResponse, answer).topics[0].partitions[0]
        if partition.error_code != ErrorCode.NONE:
            self._rest()
        elif partition.end_offset == UNKNOWN_OFFSET:
            self._truncate(self.replica.high_watermark)
            self._again(State.FETCHING)
        else:
            agree = self._truncate_to_agreement(partition.leader_epoch, partition.end_offset)
            self._again(State.FETCHING if agree else State.TRUNCATING)
        return partition.error_code

    def _truncate_to_agreement(self, epoch: int, end_offset: int) -> bool:
        """Cut to where the own log and the leader's last agreed (KIP-101, KIP-279).

        :param epoch: The leader's largest epoch that is not above the own newest, and its end.
        :returns: Whether both logs know that epoch; if not, an older one has to be compared.
        """
        own_epoch, own_end = self.replica.end_offset_for_epoch(epoch)
        self._truncate(end_offset if own_epoch < 0 else min(end_offset, own_end))
        return own_epoch == epoch or own_epoch < 0

    def _truncate(self, offset: int) -> None:
        """Cut there, if the log goes on so far; epochs that begin there or later go anyway."""
        before = self.replica.log.log_end_offset
        if self.replica.truncate_to(offset):
            self._note_truncation(before)

    def _note_truncation(self, before: int) -> None:
        replica = self.replica
        self._truncated_to = replica.log.log_end_offset
        self._broker.events.emit(
            Kind.LOG_TRUNCATED,
            topic=replica.topic,
            partition=replica.index,
            broker=replica.broker_id,
            offset=self._truncated_to,
            previous_offset=before,
        )

    # -- out of range ---------------------------------------------------------------------------

    def _list_offset(self, timestamp: int) -> None:
        version = self._version(LIST_OFFSETS)
        request = list_offset_request(self.replica, timestamp, version=version)

        def take(answer: object) -> int:
            partition = cast(ListOffsetsResponse, answer).topics[0].partitions[0]
            if partition.error_code != ErrorCode.NONE or partition.offset == UNKNOWN_OFFSET:
                self._rest()
            elif timestamp == LATEST:
                self._learn_end(partition.offset)
            else:
                self._start_at(partition.offset)
            return partition.error_code

        self._send(LIST_OFFSETS, version, request, take)

    def _learn_end(self, leader_end: int) -> None:
        if leader_end < self.replica.log.log_end_offset:
            self._truncate(leader_end)
            self._again(State.FETCHING)
        else:
            self._again(State.BEHIND)

    def _start_at(self, offset: int) -> None:
        replica = self.replica
        before = replica.log.log_end_offset
        if offset <= before:
            self._rest()  # to fetch the same again would be refused again
            return
        replica.start_anew_at(offset, now_ms=self._broker.scheduler.now_ms())
        self._note_truncation(before)
        self._again(State.FETCHING)


def _named(code: int) -> int:
    """The error of this code where Kafka has one; a test may make up others."""
    try:
        return ErrorCode(code)
    except ValueError:
        return code


def _ending_by(records: tuple[Buffer, ...], offset: int) -> tuple[Buffer, ...]:
    """The leading whole batches that end at or before ``offset`` (exclusive)."""
    allowed: list[Buffer] = []
    for buffer in records:
        end = 0
        for at, header in iter_headers(buffer):
            if header.last_offset >= offset:
                break
            end = at + header.size
        else:
            allowed.append(buffer)
            continue
        if end:
            allowed.append(memoryview(buffer)[:end])
        break
    return tuple(allowed)
