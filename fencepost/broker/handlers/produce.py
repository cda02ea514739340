"""Produce (0), versions 3-13: append record batches as the partition's leader.

acks=0 gets no bytes back, but an error closes the connection, the only sign there is. acks=1
answers after the leader's append, acks=-1 when the high watermark has passed it: every in-sync
replica has it. Any other acks is INVALID_REQUIRED_ACKS, unless Kafka's checks before an append find
something else: an unknown partition, or not one batch that this version may carry.

Batches are stamped where they lie in the frame and kept; no record is looked at unless a config
asks. Where a topic has ``check.expected.offsets``, a request that names it is appended whole or
not at all (KIP-27, `produce.expected_offsets`).

Versions: v5 log start offset; v7 zstd; v8 record errors and a message; v10 the leader and its
address on NOT_LEADER_OR_FOLLOWER (KIP-951); v13 topic ids (KIP-516). ApiVersions says 0-13
(KAFKA-18659); versions 0-2 close the connection as they do at a real broker.

Missing: transactions. A batch marked transactional is TRANSACTIONAL_ID_AUTHORIZATION_FAILED, as
it is at a real broker when no transactional id comes with it.
"""

import struct
from collections.abc import Iterator
from dataclasses import replace
from operator import attrgetter
from typing import Final
from uuid import UUID

from fencepost.broker.core.context import PartitionRefusal
from fencepost.broker.core.outcomes import HANG_UP, Answer, HangUp
from fencepost.broker.core.waits import Wait, all_settled
from fencepost.broker.handlers.context import Context
from fencepost.broker.produce.append import (
    ALL,
    PartitionOutcome,
    PendingAppend,
    append_partition,
    error_response,
    find_targets,
    refuse_acks,
)
from fencepost.broker.produce.expected_offsets import append_all_or_none
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.produce import (
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from fencepost.protocol.record_reader import ReadBudget
from fencepost.protocol.records import (
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL_FLAG,
    CorruptBatch,
    batch_size,
)

_LENGTH: Final = struct.Struct(">8xi")
_MAGIC_AT: Final = 16
_ATTRIBUTES_LOW_BYTE: Final = 22


def handle(ctx: Context, request: ProduceRequest) -> Answer[ProduceResponse] | HangUp:
    """Append every batch, then answer as ``acks`` says."""
    may_check = ctx.broker.configs.may_check_expected_offsets
    try:
        is_transactional = _is_transactional(request, every_batch=may_check)
    except CorruptBatch as error:
        return _refuse_each(ctx, request, ErrorCode.CORRUPT_MESSAGE, str(error))
    if is_transactional:
        return _refuse_each(ctx, request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if request.acks not in (ALL, 0, 1):
        outcomes = [
            refuse_acks(ctx, name, topic_id, partition)
            for name, topic_id, partition in _distinct_partitions(request)
        ]
    elif may_check:
        outcomes = append_all_or_none(ctx, find_targets(ctx, request), request.acks)
    else:
        outcomes = _append_each(ctx, request)
    if ctx.refusal is not None:
        outcomes = [_refuse_late(ctx, outcome, ctx.refusal) for outcome in outcomes]
    if request.acks == 0:
        return HANG_UP if any(o.response.error_code for o in outcomes) else None
    pending = [o.appended for o in outcomes if o.appended and not o.appended.is_complete]
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
                    error_response(partition.index, error_code)
                    for partition in topic.partition_data
                ),
            )
            for topic in request.topic_data
        )
    )


def _refuse_late(
    ctx: Context, outcome: PartitionOutcome, refusal: PartitionRefusal
) -> PartitionOutcome:
    """Refuse a partition that was appended to, where a fault says so."""
    name: str | None = outcome.topic
    if outcome.topic_id is not None:
        name = ctx.broker.view.names.get(outcome.topic_id)
    if not refusal.applies_to(name, outcome.response.index):
        return outcome
    refused = error_response(outcome.response.index, refusal.code)
    return PartitionOutcome(outcome.topic, outcome.topic_id, refused)


def _append_each(ctx: Context, request: ProduceRequest) -> list[PartitionOutcome]:
    """Append to each partition by itself; of one that is named twice the last counts, as in Kafka.

    So a request appends to no more partitions than there are, however often it names them.
    """
    topics, acks = request.topic_data, request.acks
    if len(topics) == 1 and len(topics[0].partition_data) == 1:
        (topic,) = topics
        return [
            append_partition(ctx, topic.name, topic.topic_id, topic.partition_data[0], acks, None)
        ]
    budget = ReadBudget()
    return [
        append_partition(ctx, name, topic_id, partition, acks, budget)
        for name, topic_id, partition in _distinct_partitions(request)
    ]


def _distinct_partitions(
    request: ProduceRequest,
) -> Iterator[tuple[str, UUID | None, PartitionProduceData]]:
    """Each partition once, with what the request holds last for it."""
    by_topic: dict[tuple[str, UUID | None], dict[int, PartitionProduceData]] = {}
    for topic in request.topic_data:
        partitions = by_topic.setdefault((topic.name, topic.topic_id), {})
        for partition in topic.partition_data:
            partitions[partition.index] = partition
    for (name, topic_id), partitions in by_topic.items():
        for partition in partitions.values():
            yield name, topic_id, partition


def _refuse_each(
    ctx: Context, request: ProduceRequest, code: ErrorCode, message: str | None = None
) -> ProduceResponse | HangUp:
    """As Kafka refuses a whole request: each partition once, and no topic that names none."""
    if request.acks == 0:
        return HANG_UP
    return _respond(
        ctx,
        [
            PartitionOutcome(
                name, topic_id, replace(error_response(data.index, code), error_message=message)
            )
            for name, topic_id, data in _distinct_partitions(request)
        ],
    )


def _is_transactional(request: ProduceRequest, *, every_batch: bool) -> bool:
    """Whether any batch is marked so; the mark lies at a fixed place of its header.

    :param every_batch: Whether a partition may have more than one, which else is refused anyway.
    :raises CorruptBatch: When a partition before it begins with bytes that are no batch.
    """
    for topic in request.topic_data:
        for partition in topic.partition_data:
            records = partition.records
            if records is None or not batch_size(records) or records[_MAGIC_AT] != MAGIC:
                continue
            if records[_ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL_FLAG:
                return True
            if every_batch and _is_later_transactional(records):
                return True
    return False


def _is_later_transactional(records: Buffer) -> bool:
    at, size = 0, len(records)
    while at + _ATTRIBUTES_LOW_BYTE < size:
        if records[at + _ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL_FLAG:
            return True
        (length,) = _LENGTH.unpack_from(records, at)
        if length < 0:
            return False
        at += length + LOG_OVERHEAD
    return False


def _wait(
    ctx: Context, timeout_ms: int, outcomes: list[PartitionOutcome], pending: list[PendingAppend]
) -> Wait[ProduceResponse]:
    wait: Wait[ProduceResponse] = Wait()
    settled = all_settled(pending, attrgetter("is_complete"))  # until one leads again

    def attempt() -> ProduceResponse | None:
        return _respond(ctx, outcomes) if settled() else None

    wait.watch((a.replica.watermark_watch for a in pending), attempt)
    deadline_ms = ctx.now_ms + max(timeout_ms, 0)
    wait.expire_at(ctx.broker.scheduler, deadline_ms, lambda: _respond(ctx, outcomes))
    return wait


def _respond(ctx: Context, outcomes: list[PartitionOutcome]) -> ProduceResponse:
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
            [  # a list, as this is on the way of each request
                TopicProduceResponse(
                    name=name, topic_id=topic_id, partition_responses=tuple(partitions)
                )
                for (name, topic_id), partitions in topics.items()
            ]
        ),
        node_endpoints=_endpoints(ctx, leaders) if leaders else (),
    )


def _endpoints(ctx: Context, leaders: set[int]) -> tuple[NodeEndpoint, ...]:
    brokers = ctx.broker.view.brokers
    return tuple(
        NodeEndpoint(node_id=b.broker_id, host=ctx.host_of(b), port=ctx.port_of(b), rack=b.rack)
        for b in (brokers[leader] for leader in sorted(leaders))
    )
