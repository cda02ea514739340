"""Fetch (1), versions 4-18: read record batches, for consumers and for followers.

A consumer reads up to the high watermark; one that is read_committed up to the last stable offset,
and is sent the aborted transactions, of which it leaves the records out (KIP-98). A follower reads
to the log end, and its fetch offset tells the leader how far it is. From v11 a follower serves
consumers too, up to its own high watermark (KIP-392). The batch that holds the offset comes first
and whole; what follows is cut at the byte limits. Too little to answer waits for ``min_bytes``; an
error, a diverging epoch and a preferred read replica answer at once.

What is not here any more but in the tier is read from there for consumers (KIP-405), for
``remote.fetch.max.wait.ms`` at most, whatever else there is to answer; what has not come by then is
answered with no records. As in Kafka it may have all bytes that are left, which those partitions
that come after it go without. A follower is refused: OFFSET_MOVED_TO_TIERED_STORAGE, with the log
start.

A follower that the partition is not assigned to is not served: UNKNOWN_LEADER_EPOCH where it knows
the leader's epoch, as the assignment may be on its way. One whose registration is older than the
leader knows is NOT_LEADER_OR_FOLLOWER (KIP-903).

Versions: v5 log start offset; v7 sessions (KIP-227); v9 current leader epoch (KIP-320); v11 rack,
and the preferred read replica in the answer (KIP-392, `fetch.fetch_source`); v12 last fetched
epoch and diverging epoch (KIP-595); v13 topic ids; v15 replica state; v16 the leader, and for
clients its address, on NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH (KIP-951); v17 directory id;
v18 the follower's high watermark. In the dialect ``kip-320-draft`` v9 is another one
(`fetch.kip_320_draft`).
"""

from functools import partial
from typing import Final
from uuid import UUID

from msgspec import Struct, field
from msgspec.structs import replace

from fencepost.broker.core.context import PartitionRefusal
from fencepost.broker.core.outcomes import SLICE, Answer, Steps, take_turns
from fencepost.broker.core.waits import Wait, WatchList
from fencepost.broker.fetch import kip_320_draft
from fencepost.broker.fetch.aborted_transactions import FoundRecords, find_aborted
from fencepost.broker.fetch.fetch_sessions import CachedPartition, FetchPlan, Key, move_to_end
from fencepost.broker.fetch.fetch_source import (
    FIRST_FROM_FOLLOWERS,
    FetchSource,
    RemoteFetch,
    fetch_source_of,
    preferred_read_replica,
)
from fencepost.broker.fetch.partition_answers import (
    NOT_DIVERGING,
    diverging_epoch,
    error_answer,
    moved_answer,
)
from fencepost.broker.handlers.context import Context
from fencepost.broker.metadata.image import resolve_name
from fencepost.broker.replication.partition_checks import NO_EPOCH, find_replica
from fencepost.broker.replication.replica import Replica
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from fencepost.storage.files.file_system import StorageFailure
from fencepost.storage.log.interface import OffsetMovedToTier, OffsetOutOfRange

READ_COMMITTED: Final = 1
ISOLATION_LEVELS: Final = (0, READ_COMMITTED)
FIRST_WITH_IDS: Final = 13
_MANY: Final = 200
"""Partitions: a waiting request for more is not read again at each append."""
_PAUSE_MS: Final = 4
"""For each so many partitions, which take about a tenth of it to read, between two times."""
_HINTED: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def handle(ctx: Context, request: FetchRequest) -> Answer[FetchResponse]:
    """Read the batches that the log has, or wait for more."""
    plan = ctx.broker.fetch_sessions.plan(request, ctx.version, ctx.now_ms)
    if plan.error:
        return FetchResponse(error_code=plan.error)
    if request.isolation_level not in ISOLATION_LEVELS and _is_any_known(ctx, plan):
        return _refuse_isolation_level(ctx, request, plan)
    source = fetch_source_of(request, ctx.version)
    is_drafted = ctx.is_drafted("fetch") and not source.is_follower
    reading = _Reading(ctx, request, plan, source, is_drafted=is_drafted)
    if len(plan.partitions) > SLICE and not reading.fetcher.is_follower:
        return take_turns(ctx.broker.scheduler, _read_in_turns(reading))
    reading.read()
    return _answer(reading)


def _read_in_turns(reading: "_Reading") -> Steps[FetchResponse | Wait[FetchResponse]]:
    yield from reading.steps()
    answer = _answer(reading)
    if isinstance(answer, Wait):
        answer.retry()  # an append between two turns notified no wait
    return answer


def _answer(reading: "_Reading") -> FetchResponse | Wait[FetchResponse]:
    ctx, request, plan = reading.ctx, reading.request, reading.plan
    if reading.tiered:
        return _wait_for_tier(ctx, reading)
    if reading.enough or request.max_wait_ms <= 0 or not plan.partitions:
        return reading.respond()
    return _wait(ctx, request, reading)


def refuse(request: FetchRequest, error_code: int) -> FetchResponse:
    """The same error at the top (v7+) and for every partition that the request names."""
    return FetchResponse(
        error_code=error_code,
        responses=tuple(
            FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=tuple(
                    error_answer(p.partition, error_code, aborted=()) for p in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def _is_any_known(ctx: Context, plan: FetchPlan) -> bool:
    """Whether there is anything to read: Kafka looks at the isolation level only then."""
    view = ctx.broker.view
    for topic, topic_id, index in plan.partitions:
        name = resolve_name(view, topic, topic_id, by_id=ctx.version >= FIRST_WITH_IDS)
        if not isinstance(name, ErrorCode) and view.partition(name, index) is not None:
            return True
    return False


def _refuse_isolation_level(ctx: Context, request: FetchRequest, plan: FetchPlan) -> FetchResponse:
    """As Kafka refuses what its handler fails over: by partitions up to v12, and at the top."""
    if not plan.incremental:
        ctx.broker.fetch_sessions.remove(plan.session_id)
    refused = refuse(request, ErrorCode.UNKNOWN_SERVER_ERROR)
    return replace(
        refused,
        responses=refused.responses if ctx.version < FIRST_WITH_IDS else (),
        session_id=request.session_id,
    )


def _wait(ctx: Context, request: FetchRequest, reading: "_Reading") -> Wait[FetchResponse]:
    wait: Wait[FetchResponse] = Wait()

    def attempt() -> FetchResponse | None:
        reading.read()
        return reading.respond() if reading.enough else None

    def expire() -> FetchResponse:
        if not reading.fetcher.is_follower:
            reading.read()  # no truncation since then notified this wait
        return reading.respond()

    scheduler, count = ctx.broker.scheduler, len(reading.plan.partitions)
    many = count > _MANY and not reading.fetcher.is_follower
    if many:
        wait.watch_seldom(scheduler, reading.watched, attempt, count // _MANY * _PAUSE_MS)
    else:
        wait.watch(reading.watched, attempt)
    wait.expire_at(scheduler, ctx.now_ms + request.max_wait_ms, expire)
    return wait


def _wait_for_tier(ctx: Context, reading: "_Reading") -> Wait[FetchResponse]:
    """Answer when all that is in the tier has come, or not come in time."""
    wait: Wait[FetchResponse] = Wait()
    missing = set(reading.tiered)

    def take(key: Key, outcome: FoundRecords | ErrorCode) -> None:
        if wait.done:
            return
        reading.take(key, outcome)
        missing.discard(key)
        if not missing:
            wait.complete(reading.respond())

    patience_ms = ctx.broker.configs.remote_fetch_max_wait_ms
    wait.expire_at(ctx.broker.scheduler, ctx.now_ms + patience_ms, reading.respond)
    reader = ctx.broker.remote_log_manager.reader
    for key, part in reading.tiered.items():
        part.read(reader, partial(take, key))
    return wait


class _Reading(Struct):
    """One request's reads; read again when something that it watches changed."""

    ctx: Context
    request: FetchRequest
    plan: FetchPlan
    fetcher: FetchSource
    is_drafted: bool
    """Whether the checks are those of `kip_320_draft`."""
    size: int = 0
    """Bytes of the records that were read."""
    promised: int = 0
    """Bytes that those of the tier may have."""
    final: bool = False
    """Whether an answer is one that must not wait for the others."""
    answers: dict[Key, PartitionData] = field(default_factory=dict)
    tiered: dict[Key, RemoteFetch] = field(default_factory=dict)
    """What is to be read from the tier; until it is, there are no records in the answer."""
    watched: list[WatchList] = field(default_factory=list)
    unknown_ids: list[Key] = field(default_factory=list)
    unknown: list[Key] = field(default_factory=list)
    """Partitions that are not read because the broker does not know them. They are answered last,
    and a consumer's topic ids before the other ones."""

    @property
    def enough(self) -> bool:
        """Whether to answer without waiting longer."""
        return self.final or bool(self.tiered) or self.size >= self.request.min_bytes

    def read(self) -> None:
        """Read every partition, within the byte limits of the request."""
        for _ in self.steps():
            pass

    def steps(self) -> Steps[None]:
        """Read as `read` does, a partition in each step."""
        self.size, self.promised, self.final = 0, 0, False
        self.answers.clear()
        self.tiered.clear()
        self.watched.clear()
        self.unknown_ids.clear()
        self.unknown.clear()
        limit = self.request.max_bytes
        if not self.fetcher.is_follower:
            limit = min(limit, self.ctx.broker.configs.fetch_max_bytes)
        left = limit
        # A copy: between two steps another request may change the session.
        for key, cached in tuple(self.plan.partitions.items()):
            if self.ctx.refusal is None:
                answer = self._read_partition(key, cached, left)
            else:
                answer = self._read_unless_refused(key, cached, left, self.ctx.refusal)
            self.answers[key] = answer
            if (
                answer.error_code
                or answer.diverging_epoch.epoch >= 0
                or answer.preferred_read_replica >= 0
            ):
                self.final = True
                self.tiered.pop(key, None)
            elif key in self.tiered:
                # How much it will be is not known yet, and the limit is to hold.
                self.promised += self.tiered[key].max_bytes
            elif answer.records:
                self.size += sum(map(len, answer.records))
            left = max(0, limit - self.size - self.promised)
            yield
        for key in (*self.unknown_ids, *self.unknown):
            self.answers[key] = self.answers.pop(key)

    def take(self, key: Key, outcome: FoundRecords | ErrorCode) -> None:
        """Put into the answer what the tier gave."""
        if isinstance(outcome, ErrorCode):
            self.answers[key] = error_answer(key[2], outcome)
        else:
            records, aborted = outcome
            self.answers[key] = replace(
                self.answers[key], records=records, aborted_transactions=aborted
            )

    def respond(self) -> FetchResponse:
        """What was read, less what an incremental session has been told already."""
        topics: list[tuple[tuple[str, UUID | None], list[PartitionData]]] = []
        leaders: set[int] = set()
        sent: list[Key] = []
        for key, answer in self.answers.items():
            if self.plan.session_id and not self._is_news(self.plan.partitions.get(key), answer):
                continue
            if answer.records:
                sent.append(key)
            if answer.current_leader.leader_id >= 0:
                leaders.add(answer.current_leader.leader_id)
            if not topics or topics[-1][0] != key[:2]:  # as in Kafka, a topic may come twice
                topics.append((key[:2], []))
            topics[-1][1].append(answer)
        if self.plan.session_id:
            # As in Kafka, a new session has the order of its first answer.
            move_to_end(self.plan.partitions, sent if self.plan.incremental else list(self.answers))
        return FetchResponse(
            session_id=self.plan.session_id,
            responses=tuple(
                FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=tuple(partitions))
                for (name, topic_id), partitions in topics
            ),
            node_endpoints=self._endpoints(leaders) if leaders else (),
        )

    def _is_news(self, cached: CachedPartition | None, answer: PartitionData) -> bool:
        if cached is None:
            return True
        news = not self.plan.incremental or cached.has_changed(answer)
        cached.update_response(answer)
        return news

    def _read_unless_refused(
        self, key: Key, cached: CachedPartition, left: int, refusal: PartitionRefusal
    ) -> PartitionData:
        """A late refusal reads as well: a follower's fetch then counts as one."""
        topic, topic_id, index = key
        name = topic or (None if topic_id is None else self.ctx.broker.view.names.get(topic_id))
        is_refused = refusal.applies_to(name, index)
        if is_refused and not refusal.is_late:
            return error_answer(index, refusal.code)
        answer = self._read_partition(key, cached, left)
        return error_answer(index, refusal.code) if is_refused else answer

    def _read_partition(self, key: Key, cached: CachedPartition, left: int) -> PartitionData:
        ctx, (topic, topic_id, index), asked = self.ctx, key, cached.request
        by_id = ctx.version >= FIRST_WITH_IDS
        name = cached.name or resolve_name(ctx.broker.view, topic, topic_id, by_id=by_id)
        if isinstance(name, ErrorCode):
            (self.unknown if self.fetcher.is_follower else self.unknown_ids).append(key)
            return error_answer(index, name, aborted=())
        if by_id:
            cached.name = name
            known = ctx.broker.view.topics.get(name)
            if known is not None and known.topic_id != topic_id:
                return error_answer(index, ErrorCode.INCONSISTENT_TOPIC_ID)
        epoch = max(asked.current_leader_epoch, NO_EPOCH)  # any negative one is none
        is_broker = self.fetcher.is_follower
        replica = find_replica(ctx.broker, name, index, epoch, is_broker=is_broker)
        if isinstance(replica, Replica):
            replica = self.fetcher.error_for(replica, epoch) or replica
        if isinstance(replica, ErrorCode):
            if replica is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                self.unknown.append(key)
                return error_answer(index, replica, aborted=())
            return self._refused(name, index, replica)
        self.watched.append(
            replica.end_watch if self.fetcher.reads_to_log_end else replica.watermark_watch
        )
        return self._read_replica(key, replica, asked, left)

    def _refused(self, topic: str, index: int, code: ErrorCode) -> PartitionData:
        known = self.ctx.broker.view.partition(topic, index)
        if code not in _HINTED or self.ctx.version < 16 or known is None:
            return error_answer(index, code)
        epoch = self.ctx.broker.configs.client_leader_epoch(topic, known.leader_epoch)
        leader = LeaderIdAndEpoch(leader_id=known.leader, leader_epoch=epoch)
        return error_answer(index, code, leader=leader)

    def _read_replica(
        self, key: Key, replica: Replica, asked: FetchPartition, left: int
    ) -> PartitionData:
        log, index = replica.log, asked.partition
        preferred = self._preferred(replica, asked.fetch_offset)
        if preferred >= 0:
            return PartitionData(
                partition_index=index,
                high_watermark=replica.high_watermark,
                last_stable_offset=replica.last_stable_offset,
                log_start_offset=log.log_start_offset,
                aborted_transactions=None,
                preferred_read_replica=preferred,
                records=(),
            )
        diverging = self._divergence(replica, asked)
        if isinstance(diverging, ErrorCode):
            return error_answer(index, diverging)
        records: tuple[Buffer, ...] = ()
        aborted: tuple[AbortedTransaction, ...] | None = None
        if diverging is None:
            found = self._read_log(key, replica, asked, left)
            if isinstance(found, PartitionData):
                return found
            records, aborted = found
            if self.fetcher.is_follower:
                if self.fetcher.is_stale(self.ctx.broker.view):
                    return self._refused(replica.topic, index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
                self._record_follower(replica, asked)
                records = self._throttled(replica, records)
        return PartitionData(
            partition_index=index,
            high_watermark=replica.high_watermark,
            last_stable_offset=replica.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=aborted,
            records=records,
            diverging_epoch=diverging or NOT_DIVERGING,
        )

    def _throttled(self, replica: Replica, records: tuple[Buffer, ...]) -> tuple[Buffer, ...]:
        """What the follower is sent now: nothing where it is throttled, and the rate is reached."""
        throttle, follower = self.ctx.broker.leader_throttle, self.fetcher.replica_id
        if not records or not throttle.applies_to(replica.topic, replica.index):
            return records
        delay_ms = 0 if follower in replica.isr else throttle.delay_ms()
        if not delay_ms:
            throttle.record(sum(map(len, records)))
            return records
        wake = partial(replica.notify_follower, follower, replica.topic, replica.index)
        throttle.call_later(delay_ms, (follower, replica.topic, replica.index), wake)
        return ()

    def _divergence(
        self, replica: Replica, asked: FetchPartition
    ) -> EpochEndOffset | ErrorCode | None:
        """Where the logs part, or why the consumer is refused.

        Apache Kafka overlooks an unknown epoch where the offset is only in the tier.
        """
        if self.is_drafted:
            return kip_320_draft.find_truncation(replica, asked)
        found, log = diverging_epoch(replica, asked), replica.log
        if isinstance(found, ErrorCode) and self.ctx.broker.configs.apache:
            is_in_tier = log.log_start_offset <= asked.fetch_offset < log.local_log_start_offset
            return None if is_in_tier else found
        return found

    def _bound(self, replica: Replica) -> int:
        """Exclusive end of what is sent."""
        if self.fetcher.reads_to_log_end:
            return replica.log.log_end_offset
        return replica.last_stable_offset if self._is_committed else replica.high_watermark

    @property
    def _is_committed(self) -> bool:
        """Whether only records of committed transactions are asked for, and by a consumer."""
        committed = self.request.isolation_level == READ_COMMITTED
        return committed and not self.fetcher.reads_to_log_end

    def _read_log(
        self, key: Key, replica: Replica, asked: FetchPartition, left: int
    ) -> FoundRecords | PartitionData:
        """What is here; of what is in the tier nothing yet, and a follower's refusal."""
        index, offset = asked.partition, asked.fetch_offset
        bound, committed = self._bound(replica), self._is_committed
        max_bytes = min(asked.partition_max_bytes, left)
        is_first = not self.size and not self.promised
        if max_bytes < 0 and replica.log.log_start_offset <= offset < bound:
            return error_answer(index, ErrorCode.UNKNOWN_SERVER_ERROR)  # Kafka's reader fails
        try:
            records = replica.log.read(
                offset, max_bytes=max_bytes, upper_bound=bound, min_one_batch=is_first
            ).buffers
            return records, find_aborted(replica.log, offset, records) if committed else None
        except OffsetMovedToTier:
            if self.fetcher.reads_to_log_end:
                return moved_answer(index, replica)
            self.tiered[key] = RemoteFetch(replica, offset, max_bytes, bound, is_first, committed)
            return (), () if committed else None
        except OffsetOutOfRange:
            if self.is_drafted and kip_320_draft.is_above_log_end(replica, asked):
                return (), () if committed else None
            return error_answer(index, ErrorCode.OFFSET_OUT_OF_RANGE)
        except StorageFailure as failure:
            self.ctx.broker.mark_offline(replica, failure)
            return error_answer(index, ErrorCode.KAFKA_STORAGE_ERROR)

    def _preferred(self, replica: Replica, fetch_offset: int) -> int:
        """The broker that the consumer is sent to, -1 for none."""
        if self.fetcher.is_follower or self.ctx.version < FIRST_FROM_FOLLOWERS:
            return -1
        return preferred_read_replica(self.ctx.broker, replica, self.request.rack_id, fetch_offset)

    def _record_follower(self, replica: Replica, asked: FetchPartition) -> None:
        replica.record_fetch(
            self.fetcher.replica_id,
            fetch_offset=asked.fetch_offset,
            log_start_offset=asked.log_start_offset,
            now_ms=self.ctx.now_ms,
            broker_epoch=self.fetcher.broker_epoch,
        )
        replica.record_fetch_response(self.fetcher.replica_id)

    def _endpoints(self, leaders: set[int]) -> tuple[NodeEndpoint, ...]:
        if self.fetcher.is_follower:  # brokers know each other's addresses
            return ()
        brokers = self.ctx.broker.view.brokers
        return tuple(
            NodeEndpoint(
                node_id=b.broker_id, host=self.ctx.host_of(b), port=self.ctx.port_of(b), rack=b.rack
            )
            for b in (brokers[leader] for leader in sorted(leaders))
        )
