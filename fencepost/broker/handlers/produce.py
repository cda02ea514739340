"""Produce (0), versions 3-13: append record batches as the partition's leader.

acks=0 gets no bytes back, but an error closes the connection, the only sign there is. acks=1
answers after the leader's append, acks=-1 when the high watermark has passed it: every in-sync
replica has it. Batches are stamped where they lie in the frame and kept; no record is looked at
unless a config asks.

Versions: v5 log start offset; v7 zstd; v8 record errors and a message; v10 the leader and its
address on NOT_LEADER_OR_FOLLOWER (KIP-951); v13 topic ids (KIP-516). ApiVersions says 0-13
(KAFKA-18659); versions 0-2 close the connection as they do at a real broker.

Missing: transactions. A batch marked transactional is TRANSACTIONAL_ID_AUTHORIZATION_FAILED, as
it is at a real broker when no transactional id comes with it.
"""

from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from fencepost.broker.context import HANG_UP, Answer, Context, HangUp
from fencepost.broker.ladder import find_leader
from fencepost.broker.replica import Replica
from fencepost.broker.topics import resolve_name, shown_epoch
from fencepost.broker.waits import Wait
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from fencepost.storage.log import AppendRejected

ALL: Final = -1
_ATTRIBUTES_LOW_BYTE: Final = 22
_TRANSACTIONAL: Final = 0x10
_FIRST_WITH_ZSTD: Final = 7


@dataclass(frozen=True, slots=True)
class _Appended:
    """An append that acks=all waits for.

    As long as its broker leads, in whatever epoch, the records are in the leader's log.
    """

    replica: Replica
    next_offset: int
    """Exclusive: the high watermark must reach it."""

    @property
    def settled(self) -> bool:
        """Whether waiting can't change it any more."""
        return not self.replica.is_leader or self.replica.high_watermark >= self.next_offset

    @property
    def error(self) -> ErrorCode:
        """What it answers now; REQUEST_TIMED_OUT while it is not settled."""
        if not self.replica.is_leader:
            failed = self.replica.failed
            return ErrorCode.KAFKA_STORAGE_ERROR if failed else ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.replica.high_watermark < self.next_offset:
            return ErrorCode.REQUEST_TIMED_OUT
        if not self.replica.has_enough_replicas():
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class _Outcome:
    """One partition's answer, and what it still waits for."""

    topic: str
    topic_id: UUID | None
    response: PartitionProduceResponse
    appended: _Appended | None = None


def handle(ctx: Context, request: ProduceRequest) -> Answer[ProduceResponse] | HangUp:
    """Append every batch, then answer as ``acks`` says."""
    if request.acks not in (ALL, 0, 1):
        return refuse(request, ErrorCode.INVALID_REQUIRED_ACKS)
    if _is_transactional(request):
        return refuse(request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    outcomes = [
        _append(ctx, topic.name, topic.topic_id, partition, request.acks)
        for topic in request.topic_data
        for partition in topic.partition_data
    ]
    if request.acks == 0:
        return HANG_UP if any(o.response.error_code for o in outcomes) else None
    pending = [o.appended for o in outcomes if o.appended and not o.appended.settled]
    if request.acks != ALL or not pending:
        return _respond(ctx, outcomes)
    return _wait(ctx, request.timeout_ms, outcomes, pending)


def refuse(request: ProduceRequest, error_code: int) -> ProduceResponse:
    """The same error for every partition."""
    return ProduceResponse(
        responses=tuple(
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=tuple(
                    _error(partition.index, error_code) for partition in topic.partition_data
                ),
            )
            for topic in request.topic_data
        )
    )


def _is_transactional(request: ProduceRequest) -> bool:
    """Whether any batch is marked so; the mark lies at a fixed place of its header."""
    for topic in request.topic_data:
        for partition in topic.partition_data:
            records = partition.records
            if (
                records is not None
                and len(records) > _ATTRIBUTES_LOW_BYTE
                and records[_ATTRIBUTES_LOW_BYTE] & _TRANSACTIONAL
            ):
                return True
    return False


def _append(
    ctx: Context, topic: str, topic_id: UUID | None, data: PartitionProduceData, acks: int
) -> _Outcome:
    name = resolve_name(ctx.broker.view, topic, topic_id, by_id=ctx.version >= 13)
    if isinstance(name, ErrorCode):
        return _Outcome(topic, topic_id, _error(data.index, name))
    replica = find_leader(ctx.broker, name, data.index)
    if isinstance(replica, ErrorCode):
        return _Outcome(topic, topic_id, _moved(ctx, name, data.index, replica))
    if acks == ALL and not replica.has_enough_replicas():
        refused = _error(data.index, ErrorCode.NOT_ENOUGH_REPLICAS, replica.log.log_start_offset)
        return _Outcome(topic, topic_id, refused)
    result = replica.append(
        data.records or b"", now_ms=ctx.now_ms, allow_zstd=ctx.version >= _FIRST_WITH_ZSTD
    )
    if isinstance(result, AppendRejected):
        return _Outcome(topic, topic_id, _rejected(data.index, result))
    response = PartitionProduceResponse(
        index=data.index,
        base_offset=result.first_offset,
        log_append_time_ms=result.log_append_time_ms,
        log_start_offset=result.log_start_offset,
    )
    appended = _Appended(replica, result.last_offset + 1)
    return _Outcome(topic, topic_id, response, appended if acks == ALL else None)


def _error(index: int, code: int, log_start_offset: int = -1) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index, error_code=code, base_offset=-1, log_start_offset=log_start_offset
    )


def _moved(ctx: Context, topic: str, index: int, code: ErrorCode) -> PartitionProduceResponse:
    """A refusal with a hint at the leader, where this broker knows one (KIP-951)."""
    response = _error(index, code)
    known = ctx.broker.view.partition(topic, index)
    if code is not ErrorCode.NOT_LEADER_OR_FOLLOWER or known is None:
        return response
    epoch = shown_epoch(ctx.broker.configs, topic, known.leader_epoch)
    leader = LeaderIdAndEpoch(leader_id=known.leader, leader_epoch=epoch)
    return replace(response, current_leader=leader)


def _rejected(index: int, result: AppendRejected) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index,
        error_code=result.error,
        base_offset=-1,
        log_start_offset=result.log_start_offset,
        record_errors=tuple(
            BatchIndexAndErrorMessage(batch_index=at, batch_index_error_message=message)
            for at, message in result.record_errors
        ),
        error_message=result.message,
    )


def _wait(
    ctx: Context, timeout_ms: int, outcomes: list[_Outcome], pending: list[_Appended]
) -> Wait[ProduceResponse]:
    wait: Wait[ProduceResponse] = Wait()

    def attempt() -> ProduceResponse | None:
        if all(appended.settled for appended in pending):
            return _respond(ctx, outcomes)
        return None

    wait.watch((a.replica.watermark_watch for a in pending), attempt)
    deadline_ms = ctx.now_ms + max(timeout_ms, 0)
    wait.expire_at(ctx.broker.scheduler, deadline_ms, lambda: _respond(ctx, outcomes))
    return wait


def _respond(ctx: Context, outcomes: list[_Outcome]) -> ProduceResponse:
    topics: dict[tuple[str, UUID | None], list[PartitionProduceResponse]] = {}
    leaders: set[int] = set()
    for outcome in outcomes:
        response = outcome.response
        if outcome.appended is not None and (error := outcome.appended.error):
            response = replace(response, error_code=error)
        if response.current_leader.leader_id >= 0:
            leaders.add(response.current_leader.leader_id)
        topics.setdefault((outcome.topic, outcome.topic_id), []).append(response)
    return ProduceResponse(
        responses=tuple(
            TopicProduceResponse(
                name=name, topic_id=topic_id, partition_responses=tuple(partitions)
            )
            for (name, topic_id), partitions in topics.items()
        ),
        node_endpoints=_endpoints(ctx, leaders) if leaders else (),
    )


def _endpoints(ctx: Context, leaders: set[int]) -> tuple[NodeEndpoint, ...]:
    brokers = ctx.broker.view.brokers
    return tuple(
        NodeEndpoint(node_id=b.broker_id, host=ctx.host_of(b), port=b.port, rack=b.rack)
        for b in (brokers[leader] for leader in sorted(leaders))
    )
