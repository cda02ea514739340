"""The appends of a produce request: each partition with its leader, and its outcome.

Each partition is appended to by itself; or the request is taken apart first, and all of them are
appended to, or none (`expected_offsets`). What is made for each request is a `struct`, not frozen
at run time: that would double what it takes to make one.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, TypeAlias
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace

from fencepost.broker.configs.effective_configs import BrokerConfigs
from fencepost.broker.core import context
from fencepost.broker.core.events import Events
from fencepost.broker.core.waits import WatchList
from fencepost.broker.metadata.image import resolve_name
from fencepost.broker.network.links import BrokerId
from fencepost.broker.replication.node import ReplicaHolder
from fencepost.broker.replication.partition_checks import find_leader
from fencepost.broker.replication.replica import Replica
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
)
from fencepost.protocol.record_reader import ReadBudget
from fencepost.protocol.records import BatchHeader
from fencepost.storage.log.append_result import AppendRejected, AppendResult
from fencepost.storage.log.validation import open_batch, open_batches
from fencepost.storage.log.verification import VerificationGuard

ALL: Final = -1
_NONE: Final = ErrorCode.NONE
_new_tuple: Final = tuple.__new__
_FIRST_WITH_ZSTD: Final = 7
_FIRST_WITH_IDS: Final = 13


class ProduceNode(ReplicaHolder, Protocol):
    """What an append needs of the leader's broker."""

    broker_id: BrokerId
    configs: BrokerConfigs
    events: Events


Context: TypeAlias = context.Context[ProduceNode]
Guards: TypeAlias = Mapping[tuple[str, int], VerificationGuard]
"""Of the partitions that were verified, by topic and index."""


class PendingAppend(Struct, eq=False):
    """An append that acks=all waits for.

    It settles as soon as its records are committed or its broker ceases to lead, whatever its
    broker's log has later, and however long other partitions hold the answer back: as in Kafka.
    Nothing is answered NOT_ENOUGH_REPLICAS_AFTER_APPEND, which a Kafka answers where the ISR
    shrinks in the instant between: no high watermark rises while it is too small (KIP-966).
    """

    replica: Replica
    next_offset: int
    """Exclusive: the high watermark must reach it."""
    error: ErrorCode = ErrorCode.REQUEST_TIMED_OUT
    """What it answers: REQUEST_TIMED_OUT until it is settled."""
    is_settled: bool = False

    @property
    def watch_list(self) -> WatchList:
        """It is notified when the high watermark rises and when the leadership ends."""
        return self.replica.watermark_watch

    def settle(self) -> bool:
        """Whether its outcome can't change any more."""
        if not self.is_settled:
            found = self._outcome()
            if found is not None:
                self.error, self.is_settled = found, True
        return self.is_settled

    def _outcome(self) -> ErrorCode | None:
        replica = self.replica
        if not replica.is_leader:
            failed = replica.failed
            return ErrorCode.KAFKA_STORAGE_ERROR if failed else ErrorCode.NOT_LEADER_OR_FOLLOWER
        return _NONE if replica.high_watermark >= self.next_offset else None


def pending_append(replica: Replica, last_offset: int) -> PendingAppend:
    """The wait for records that were appended just now; it may have settled already.

    :param last_offset: Of them, inclusive.
    """
    pending = PendingAppend(replica, last_offset + 1)
    pending.settle()
    return pending


class PartitionOutcome(Struct, frozen=True):
    """One partition's answer, and what it still waits for."""

    topic: str
    topic_id: UUID | None
    response: PartitionProduceResponse
    appended: PendingAppend | None = None


class AppendTarget(Struct, frozen=True):
    """A partition of a request that its leader may append to."""

    topic: str
    topic_id: UUID | None
    index: int
    records: Buffer
    replica: Replica
    guard: VerificationGuard | None = None
    """As for `Log.append_as_leader`."""

    def append(self, ctx: Context, acks: int, budget: ReadBudget) -> PartitionOutcome:
        """Append to this partition, independently of the others."""
        result = self.replica.append(
            self.records,
            now_ms=ctx.wall_ms,
            allow_zstd=allows_zstd(ctx.version),
            budget=budget,
            guard=self.guard,
        )
        return self.outcome(result, acks)

    def outcome(self, result: AppendResult | AppendRejected, acks: int) -> PartitionOutcome:
        """The outcome of an append."""
        return _outcome(self.topic, self.topic_id, self.index, self.replica, result, acks)


TargetOrOutcome: TypeAlias = AppendTarget | PartitionOutcome
"""A partition of a request, or why nothing can be appended to it."""


def append_partition(
    ctx: Context,
    topic: str,
    topic_id: UUID | None,
    data: PartitionProduceData,
    acks: int,
    budget: ReadBudget | None,
    guard: VerificationGuard | None = None,
) -> PartitionOutcome:
    """Append to one partition, independently of the others, without an `AppendTarget`.

    :param budget: What the request may still unpack to; None where it has nothing else.
    :param guard: As for `Log.append_as_leader`.
    """
    replica = _find_replica(ctx, topic, topic_id, data.index, acks)
    if isinstance(replica, PartitionOutcome):
        return replica
    result = replica.append(
        data.records or b"",
        now_ms=ctx.wall_ms,
        allow_zstd=allows_zstd(ctx.version),
        budget=budget,
        guard=guard,
    )
    return _outcome(topic, topic_id, data.index, replica, result, acks)


def refuse_acks(
    ctx: Context, topic: str, topic_id: UUID | None, data: PartitionProduceData
) -> PartitionOutcome:
    """The answer to acks that Kafka does not know: what it checks before an append comes first."""
    checked = check_before_append(ctx, topic, topic_id, data)
    if isinstance(checked, PartitionOutcome):
        return checked
    acks_error = error_response(data.index, ErrorCode.INVALID_REQUIRED_ACKS)
    return PartitionOutcome(topic, topic_id, acks_error)


class CheckedPartition(NamedTuple):
    """A partition that exists, and whose records this version may carry."""

    name: str
    """The topic's."""
    headers: tuple[BatchHeader, ...]
    """Of its batches; one, unless the topic has ``check.expected.offsets``."""


def check_before_append(
    ctx: Context, topic: str, topic_id: UUID | None, data: PartitionProduceData
) -> CheckedPartition | PartitionOutcome:
    """What Kafka checks of a partition before it looks for its leader; else the answer."""
    name = resolve_name(ctx.broker.view, topic, topic_id, by_id=ctx.version >= _FIRST_WITH_IDS)
    if isinstance(name, ErrorCode):
        return PartitionOutcome(topic, topic_id, error_response(data.index, name))
    if ctx.broker.view.partition(name, data.index) is None:
        unknown = error_response(data.index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return PartitionOutcome(topic, topic_id, unknown)
    configs, records = ctx.broker.configs, data.records or b""
    allow_zstd = allows_zstd(ctx.version)
    if configs.may_check_expected_offsets and configs.log_config(name).check_expected_offsets:
        batches = open_batches(records, allow_zstd=allow_zstd)
        if not isinstance(batches, AppendRejected):
            return CheckedPartition(name, tuple(header for _, header in batches))
        return PartitionOutcome(topic, topic_id, _rejected(data.index, batches))
    batch = open_batch(records, allow_zstd=allow_zstd)
    if not isinstance(batch, AppendRejected):
        return _new_tuple(CheckedPartition, (name, (batch[1],)))
    return PartitionOutcome(topic, topic_id, _rejected(data.index, batch))


def find_targets(
    ctx: Context, request: ProduceRequest, guards: Guards = MappingProxyType({})
) -> list[TargetOrOutcome]:
    """The partitions of a request, in its order, as this broker sees them."""
    found: list[TargetOrOutcome] = []
    for topic in request.topic_data:
        for data in topic.partition_data:
            name, topic_id = topic.name, topic.topic_id
            replica = _find_replica(ctx, name, topic_id, data.index, request.acks)
            if isinstance(replica, Replica):
                guard = guards.get((replica.topic, data.index))
                records = data.records or b""
                found.append(AppendTarget(name, topic_id, data.index, records, replica, guard))
            else:
                found.append(replica)
    return found


def allows_zstd(version: int) -> bool:
    """Whether a request of this version may carry zstd."""
    return version >= _FIRST_WITH_ZSTD


def error_response(index: int, code: int, log_start_offset: int = -1) -> PartitionProduceResponse:
    """A partition's answer that is only a code."""
    return PartitionProduceResponse(
        index=index, error_code=code, base_offset=-1, log_start_offset=log_start_offset
    )


def _find_replica(
    ctx: Context, topic: str, topic_id: UUID | None, index: int, acks: int
) -> Replica | PartitionOutcome:
    """The leader of a partition, if it is here and may append; else the answer."""
    name = resolve_name(ctx.broker.view, topic, topic_id, by_id=ctx.version >= _FIRST_WITH_IDS)
    if isinstance(name, ErrorCode):
        return PartitionOutcome(topic, topic_id, error_response(index, name))
    refusal = ctx.refusal
    if refusal is not None and not refusal.is_late and refusal.applies_to(name, index):
        return PartitionOutcome(topic, topic_id, error_response(index, refusal.code))
    replica = find_leader(ctx.broker, name, index)
    if isinstance(replica, ErrorCode):
        return PartitionOutcome(topic, topic_id, _not_leader_response(ctx, name, index, replica))
    if acks == ALL and not replica.has_min_isr():
        refused = error_response(index, ErrorCode.NOT_ENOUGH_REPLICAS, replica.log.log_start_offset)
        return PartitionOutcome(topic, topic_id, refused)
    return replica


def _outcome(
    topic: str,
    topic_id: UUID | None,
    index: int,
    replica: Replica,
    result: AppendResult | AppendRejected,
    acks: int,
) -> PartitionOutcome:
    if isinstance(result, AppendRejected):
        return PartitionOutcome(topic, topic_id, _rejected(index, result))
    response = PartitionProduceResponse(
        index=index,
        base_offset=result.first_offset,
        log_append_time_ms=result.log_append_time_ms,
        log_start_offset=result.log_start_offset,
    )
    waits = pending_append(replica, result.last_offset) if acks == ALL else None
    return PartitionOutcome(topic, topic_id, response, waits)


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


def _not_leader_response(
    ctx: Context, topic: str, index: int, code: ErrorCode
) -> PartitionProduceResponse:
    """A refusal with a hint at the leader, where this broker knows one (KIP-951)."""
    response = error_response(index, code)
    known = ctx.broker.view.partition(topic, index)
    if code is not ErrorCode.NOT_LEADER_OR_FOLLOWER or known is None:
        return response
    epoch = ctx.broker.configs.client_leader_epoch(topic, known.leader_epoch)
    leader = LeaderIdAndEpoch(leader_id=known.leader, leader_epoch=epoch)
    return replace(response, current_leader=leader)
