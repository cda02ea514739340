"""The expected offsets of a produce request (KIP-27), which is appended whole or refused whole.

The expected offsets are recorded before the append, which overwrites them in the same bytes.

Every partition of the request is staged first: checked in full, with nothing appended. Where an
expected offset does not match, in whatever partition, nothing is appended to any. Partitions that
are refused for a reason of their own answer that, and keep no other from being appended to; what
an idempotent producer sends again, and is in the log already, is a success in any company.
"""

import struct
from collections.abc import Sequence
from typing import Final, TypeAlias

from msgspec.structs import replace

from fencepost.broker.core.events import Kind
from fencepost.broker.produce.append import (
    AppendTarget,
    Context,
    PartitionOutcome,
    ProduceNode,
    TargetOrOutcome,
    allows_zstd,
)
from fencepost.broker.replication.replica import Replica
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.messages.produce import ProduceRequest, TopicProduceData
from fencepost.protocol.record_reader import ReadBudget
from fencepost.protocol.records import LOG_OVERHEAD
from fencepost.storage.log.append_result import AppendRejected
from fencepost.storage.log.config import ExpectedOffsetsScope, ExpectedOffsetsSource
from fencepost.storage.log.expected_offsets import matches_upcoming_offset
from fencepost.storage.log.staging import StagedRecords, Staging

IN_HEADERS: Final[tuple[int, ...]] = ()
"""Of a partition whose records state it in headers, which are not stamped."""

ExpectedOffsets: TypeAlias = tuple[tuple[int, ...] | None, ...]
"""For each partition of the request, in its order, the base offsets of its batches; None where they
are not compared, or not with the end of the log."""

_HEAD: Final = struct.Struct(">qi")
_MOST_NAMED: Final = 16
"""Partitions that a refusal of the others names."""
_BY_KEY: Final = ExpectedOffsetsScope.KEY
_BY_HEADER: Final = ExpectedOffsetsSource.HEADER
"""An enum's members take long to look up, for what every request waits for."""


def extract_expected_offsets(broker: ProduceNode, request: ProduceRequest) -> ExpectedOffsets:
    """The expected offsets of a request, which has not been appended yet."""
    found: list[tuple[int, ...] | None] = []
    for topic in request.topic_data:
        source = _source(broker, topic)
        for partition in topic.partition_data:
            records = partition.records
            if records is None or source is None:
                found.append(None)
            elif source is _BY_HEADER:
                found.append(IN_HEADERS)
            else:
                found.append(_base_offsets(records))
    return tuple(found)


def _source(broker: ProduceNode, topic: TopicProduceData) -> ExpectedOffsetsSource | None:
    name: str | None = topic.name
    if topic.topic_id is not None:
        name = broker.view.names.get(topic.topic_id)
    config = broker.configs.log_config(name or "")
    if not config.check_expected_offsets or config.check_expected_offsets_scope is _BY_KEY:
        return None
    return config.check_expected_offsets_source


def _base_offsets(records: Buffer) -> tuple[int, ...]:
    found: list[int] = []
    at, size = 0, len(records)
    while at + LOG_OVERHEAD <= size:
        base_offset, length = _HEAD.unpack_from(records, at)
        found.append(base_offset)
        if length <= 0:
            break
        at += length + LOG_OVERHEAD
    return tuple(found)


_StagedTarget: TypeAlias = tuple[AppendTarget, StagedRecords | AppendRejected]


def append_all_or_none(
    ctx: Context, found: Sequence[TargetOrOutcome], acks: int
) -> list[PartitionOutcome]:
    """Append to every partition of a request, unless an expected offset does not match."""
    budget = ReadBudget(times=2)  # expected offsets are compared before records are checked
    if _all_match(found):
        return [
            each if isinstance(each, PartitionOutcome) else each.append(ctx, acks, budget)
            for each in found
        ]
    checked = _stage_all(ctx, found, budget)
    culprits = [each for each in checked if isinstance(each, tuple) and _mismatches(each)]
    if culprits:
        _emit_mismatches(ctx, culprits)
        refusal = _refusal_of_others(culprits)
        return [
            _refuse(ctx, each, refusal, acks) if isinstance(each, tuple) else each
            for each in checked
        ]
    return [
        _append_staged(ctx, each, acks) if isinstance(each, tuple) else each for each in checked
    ]


def _all_match(found: Sequence[TargetOrOutcome]) -> bool:
    """Whether the headers alone say so: then nothing is staged, and a request costs what it did.

    Of a partition that is named twice, the second batch is not where the first one's end is yet.
    """
    replicas = set()
    for each in found:
        if isinstance(each, PartitionOutcome):
            continue
        log = each.replica.log
        if each.replica in replicas or not matches_upcoming_offset(
            each.records, log.config, log.log_end_offset
        ):
            return False
        replicas.add(each.replica)
    return True


def _stage_all(
    ctx: Context, found: Sequence[TargetOrOutcome], budget: ReadBudget
) -> list[_StagedTarget | PartitionOutcome]:
    """A partition that is named twice is checked as it will be after the first time."""
    stagings: dict[Replica, Staging] = {}
    checked: list[_StagedTarget | PartitionOutcome] = []
    for each in found:
        if isinstance(each, PartitionOutcome):
            checked.append(each)
            continue
        staging = stagings.get(each.replica)
        if staging is None:
            staging = stagings[each.replica] = each.replica.begin_staging(now_ms=ctx.wall_ms)
        result = each.replica.stage_records(
            staging,
            each.records,
            allow_zstd=allows_zstd(ctx.version),
            budget=budget,
            guard=each.guard,
        )
        checked.append((each, result))
    return checked


def _mismatches(checked: _StagedTarget) -> bool:
    result = checked[1]
    return isinstance(result, AppendRejected) and result.mismatch is not None


def _emit_mismatches(ctx: Context, culprits: Sequence[_StagedTarget]) -> None:
    """Emit an event for each partition, with the first record that does not match."""
    for target, result in culprits:
        assert isinstance(result, AppendRejected), "that is why it is one"
        assert result.mismatch is not None, "likewise"
        ctx.broker.events.emit(
            Kind.PUBLISH_REFUSED,
            topic=target.replica.topic,
            partition=target.replica.index,
            broker=ctx.broker.broker_id,
            client_id=ctx.client_id,
            **result.mismatch._asdict(),
        )


def _refusal_of_others(culprits: Sequence[_StagedTarget]) -> AppendRejected:
    """What is answered for partitions that nothing is wrong with."""
    names = ", ".join(target.replica.log.name for target, _ in culprits[:_MOST_NAMED])
    if len(culprits) > _MOST_NAMED:  # each other partition is answered all of them
        names += f" and {len(culprits) - _MOST_NAMED} more"
    _, first = culprits[0]
    assert isinstance(first, AppendRejected), "that is why it is one"
    return AppendRejected(
        error=first.error,
        message="Nothing was appended, because the expected offset of a record in the same request "
        f"does not match: {names}",
    )


def _refuse(
    ctx: Context, checked: _StagedTarget, refusal: AppendRejected, acks: int
) -> PartitionOutcome:
    target, result = checked
    if isinstance(result, AppendRejected):
        return target.outcome(result, acks)
    if result.is_duplicate:
        return _append_staged(ctx, checked, acks)
    log_start_offset = target.replica.log.log_start_offset
    return target.outcome(replace(refusal, log_start_offset=log_start_offset), acks)


def _append_staged(ctx: Context, checked: _StagedTarget, acks: int) -> PartitionOutcome:
    target, result = checked
    if isinstance(result, AppendRejected):
        return target.outcome(result, acks)
    return target.outcome(target.replica.append_staged(result, now_ms=ctx.wall_ms), acks)
