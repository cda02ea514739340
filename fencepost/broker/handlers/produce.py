"""Produce (0), versions 3-13: append record batches as the partition's leader.

acks=0 gets no bytes back, but an error closes the connection, the only sign there is. acks=1
answers after the leader's append, acks=-1 when the high watermark has passed it: every in-sync
replica has it. Any other acks is INVALID_REQUIRED_ACKS, unless Kafka's checks before an append find
something else: an unknown partition, or not one batch that this version may carry.

Batches are stamped where they lie in the frame and kept; no record is looked at unless a config
asks. Where a topic has ``check.expected.offsets``, a request that names it is appended whole or
not at all (KIP-27, `produce.expected_offsets`).

Versions: v5 log start offset; v7 zstd; v8 record errors and a message; v10 the leader and its
address on NOT_LEADER_OR_FOLLOWER (KIP-951); v11 TRANSACTION_ABORTABLE; v12 adds partitions to
transactions (KIP-890); v13 topic ids (KIP-516). ApiVersions says 0-13
(KAFKA-18659); versions 0-2 close the connection as they do at a real broker.

Transactions (KIP-98, KIP-890): a batch marked transactional without a transactional id in the
request is TRANSACTIONAL_ID_AUTHORIZATION_FAILED for the whole request, batches of several producers
are INVALID_PRODUCER_ID_MAPPING. The first batch of a transaction in a partition is appended when
the coordinator has verified that the partition is part of it; from v12 on the partition is added
instead (``transaction.version`` 2). Before v11 TRANSACTION_ABORTABLE is INVALID_TXN_STATE.
"""

import struct
from collections.abc import Iterator
from typing import Final, TypeAlias
from uuid import UUID

from msgspec.structs import replace

from fencepost.broker.core.context import PartitionRefusal
from fencepost.broker.core.outcomes import HANG_UP, Answer, HangUp
from fencepost.broker.core.waits import Wait
from fencepost.broker.handlers.context import Context
from fencepost.broker.metadata.image import resolve_name
from fencepost.broker.produce.append import (
    ALL,
    CheckedPartition,
    PartitionOutcome,
    PendingAppend,
    TargetOrOutcome,
    append_partition,
    check_before_append,
    error_response,
    find_targets,
    refuse_acks,
)
from fencepost.broker.produce.expected_offsets import append_all_or_none
from fencepost.broker.transactions.produce_verification import (
    NOTHING_TO_VERIFY,
    Refusal,
    Verified,
    transactional_batches,
)
from fencepost.broker.transactions.verification import TransactionSupport
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
    BatchHeader,
    CorruptBatch,
    batch_size,
)

_Outcome: TypeAlias = Answer[ProduceResponse] | HangUp
_FIRST_WITH_IDS: Final = 13
_LENGTH: Final = struct.Struct(">8xi")
_MAGIC_AT: Final = 16
_ATTRIBUTES_LOW_BYTE: Final = 22
_SEVERAL: Final = "Transactional records contained more than one producer ID"


def handle(ctx: Context, request: ProduceRequest) -> _Outcome | Wait[ProduceResponse | HangUp]:
    """Append every batch, then answer as ``acks`` says."""
    may_check = ctx.broker.configs.may_check_expected_offsets
    try:
        is_transactional = _is_transactional(request, every_batch=may_check)
    except CorruptBatch as error:
        return _refuse_each(ctx, request, ErrorCode.CORRUPT_MESSAGE, str(error))
    if is_transactional:
        return _handle_transactional(ctx, request)
    return _append(ctx, request, NOTHING_TO_VERIFY)


def _handle_transactional(
    ctx: Context, request: ProduceRequest
) -> _Outcome | Wait[ProduceResponse | HangUp]:
    """Verify the partitions of the transaction before they are appended to."""
    transactional_id = request.transactional_id
    if transactional_id is None:
        return _refuse_each(ctx, request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    batches = transactional_batches(_checked_batches(ctx, request))
    if len(batches.producers) > 1:
        return _refuse_each(ctx, request, ErrorCode.INVALID_PRODUCER_ID_MAPPING, _SEVERAL)
    if not batches.producers:
        return _append(ctx, request, NOTHING_TO_VERIFY)
    verified = ctx.broker.produce_verification.verify(
        transactional_id,
        batches,
        TransactionSupport.of_produce(ctx.version),
        ctx.peer.connection_id,
    )
    if not isinstance(verified, Wait):
        return _append(ctx, request, verified)
    response: Wait[ProduceResponse | HangUp] = Wait()

    def append(found: Verified | None) -> None:
        if found is None or response.done:  # the connection is gone
            return
        scheduler = ctx.broker.scheduler
        later = ctx._replace(now_ms=scheduler.now_ms(), wall_ms=scheduler.wall_ms())
        outcome = _append(later, request, found)
        if isinstance(outcome, Wait):
            outcome.then(response.complete)
        else:
            response.complete(outcome)

    verified.then(append)
    return response


def _checked_batches(
    ctx: Context, request: ProduceRequest
) -> Iterator[tuple[tuple[str, int], tuple[BatchHeader, ...]]]:
    """The batches of each partition that may be appended to: as in Kafka, no other counts."""
    for topic, topic_id, data in _distinct_partitions(request):
        checked = check_before_append(ctx, topic, topic_id, data)
        if isinstance(checked, CheckedPartition):
            yield (checked.name, data.index), checked.headers


def _append(ctx: Context, request: ProduceRequest, verified: Verified) -> _Outcome:
    if request.acks not in (ALL, 0, 1):
        outcomes = _refuse_acks(ctx, request, verified)
    elif ctx.broker.configs.may_check_expected_offsets:
        targets = find_targets(ctx, request, verified.guards)
        if verified.refusals:
            targets = [_refuse_unverified(each, verified) for each in targets]
        outcomes = append_all_or_none(ctx, targets, request.acks)
    else:
        outcomes = _append_each(ctx, request, verified)
    if ctx.refusal is not None:
        outcomes = [_refuse_late(ctx, outcome, ctx.refusal) for outcome in outcomes]
    if request.acks == 0:
        return HANG_UP if any(o.response.error_code for o in outcomes) else None
    pending = [o.appended for o in outcomes if o.appended and not o.appended.is_settled]
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


def _append_each(
    ctx: Context, request: ProduceRequest, verified: Verified
) -> list[PartitionOutcome]:
    """Append to each partition by itself; of one that is named twice the last counts, as in Kafka.

    So a request appends to no more partitions than there are, however often it names them.
    """
    topics, acks = request.topic_data, request.acks
    if verified is not NOTHING_TO_VERIFY:
        return _append_verified(ctx, request, verified)
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


def _refuse_acks(
    ctx: Context, request: ProduceRequest, verified: Verified
) -> list[PartitionOutcome]:
    """Refuse acks that Kafka does not know; what it verifies or checks before comes first."""
    outcomes = []
    for topic, topic_id, data in _distinct_partitions(request):
        refusal = verified.refusals.get((_name_of(ctx, topic, topic_id), data.index))
        if refusal is not None:
            outcomes.append(_unverified(topic, topic_id, data.index, refusal))
        else:
            outcomes.append(refuse_acks(ctx, topic, topic_id, data))
    return outcomes


def _name_of(ctx: Context, topic: str, topic_id: UUID | None) -> str:
    """A topic's name; empty where its id is not known."""
    by_id = ctx.version >= _FIRST_WITH_IDS
    name = resolve_name(ctx.broker.view, topic, topic_id, by_id=by_id)
    return "" if isinstance(name, ErrorCode) else name


def _append_verified(
    ctx: Context, request: ProduceRequest, verified: Verified
) -> list[PartitionOutcome]:
    """The same, of a transaction."""
    budget, outcomes = ReadBudget(), []
    for topic, topic_id, data in _distinct_partitions(request):
        partition = _name_of(ctx, topic, topic_id), data.index
        refusal = verified.refusals.get(partition)
        if refusal is not None:
            outcomes.append(_unverified(topic, topic_id, data.index, refusal))
        else:
            guard = verified.guards.get(partition)
            outcomes.append(
                append_partition(ctx, topic, topic_id, data, request.acks, budget, guard)
            )
    return outcomes


def _refuse_unverified(target: TargetOrOutcome, verified: Verified) -> TargetOrOutcome:
    if isinstance(target, PartitionOutcome):
        return target
    refusal = verified.refusals.get((target.replica.topic, target.index))
    if refusal is None:
        return target
    return _unverified(target.topic, target.topic_id, target.index, refusal)


def _unverified(
    topic: str, topic_id: UUID | None, index: int, refusal: Refusal
) -> PartitionOutcome:
    response = replace(error_response(index, refusal.code), error_message=refusal.message)
    return PartitionOutcome(topic, topic_id, response)


def _distinct_partitions(
    request: ProduceRequest,
) -> Iterator[tuple[str, UUID | None, PartitionProduceData]]:
    """Each partition once, with what the request holds last for it."""
    topics = request.topic_data
    if len(topics) == 1 and len(topics[0].partition_data) == 1:
        yield topics[0].name, topics[0].topic_id, topics[0].partition_data[0]
        return
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
    wait.watch_each(pending, lambda: _respond(ctx, outcomes))
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
