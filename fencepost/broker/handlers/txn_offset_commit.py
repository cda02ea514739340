"""TxnOffsetCommit (28), versions 0 to 5: commit a group's offsets in a transaction (KIP-98).

They are pending until the transaction's marker comes: a commit makes them the group's, an abort
drops them. Partitions that there are not are refused; the others are committed together. The group
is checked as for OffsetCommit, but in any state of it (KIP-447): INVALID_GROUP_ID without a name,
ILLEGAL_GENERATION also for a group that does not exist, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
Before the first commit of a transaction its coordinator is asked whether the group's partition of
``__consumer_offsets`` is part of it, or from v5 on to add it (KIP-890): INVALID_TXN_STATE,
INVALID_PRODUCER_EPOCH, INVALID_PRODUCER_ID_MAPPING, CONCURRENT_TRANSACTIONS.

Versions: 2 the leader epoch of the last consumed record (KIP-320), and COORDINATOR_LOAD_IN_PROGRESS
where older clients, which cannot bear it, see COORDINATOR_NOT_AVAILABLE (KAFKA-7296); 3 generation
and member of the consumer, and compact types (KIP-447); 4 TRANSACTION_ABORTABLE and 5 the
partition of ``__consumer_offsets`` is added to the transaction (KIP-890).
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from fencepost.broker.coordinator import partition_for
from fencepost.broker.coordinator.shard import CLIENT_ERRORS, TransactionalProducer
from fencepost.broker.core.outcomes import map_response, respond_after
from fencepost.broker.core.waits import Wait
from fencepost.broker.groups import requests
from fencepost.broker.groups.group_coordinator import OFFSETS_TOPIC, GroupCoordinatorShard
from fencepost.broker.groups.offsets import NO_RETENTION, Commit, PartitionCommit
from fencepost.broker.handlers.context import Context
from fencepost.broker.transactions.verification import (
    Refused,
    TransactionSupport,
    add_or_verify,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from fencepost.storage.log.verification import VerificationGuard

_FIRST_WITH_LOADING: Final = 2


class _Result(NamedTuple):
    topic: str
    partition: int | None
    """None for a topic that there is not, and of which no partition is named: Kafka answers it."""
    error_code: int = ErrorCode.NONE


def handle(
    ctx: Context, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse | Wait[TxnOffsetCommitResponse]:
    refused: list[_Result] = []
    commits: list[PartitionCommit] = []
    for topic in request.topics:
        if not topic.partitions and topic.name not in ctx.broker.view.topics:
            refused.append(_Result(topic.name, None))
        for each in topic.partitions:
            index = each.partition_index
            if ctx.broker.view.partition(topic.name, index) is None:
                refused.append(_Result(topic.name, index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            else:
                commits.append(_partition_commit(topic.name, each))

    def respond(codes: Iterable[ErrorCode]) -> TxnOffsetCommitResponse:
        known = [_code_in(ctx.version, code) for code in codes]
        if not refused:
            return _as_named(request.topics, known)
        committed = (
            _Result(each.topic, each.partition, code)
            for each, code in zip(commits, known, strict=True)
        )
        return _response([*refused, *committed])

    if not commits:
        return _response(refused)
    return map_response(_commit(ctx, request, tuple(commits)), respond)


def refuse(request: TxnOffsetCommitRequest, error_code: int) -> TxnOffsetCommitResponse:
    return _response(
        _Result(topic.name, partition.partition_index, error_code)
        for topic in request.topics
        for partition in topic.partitions
    )


def _partition_commit(topic: str, partition: TxnOffsetCommitRequestPartition) -> PartitionCommit:
    return PartitionCommit(
        topic=topic,
        topic_id=None,
        partition=partition.partition_index,
        offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata,
    )


def _commit(
    ctx: Context, request: TxnOffsetCommitRequest, partitions: tuple[PartitionCommit, ...]
) -> requests.Codes | Wait[requests.Codes]:
    shard = ctx.broker.coordinator.shard_for_named_group(request.group_id)
    if isinstance(shard, ErrorCode):
        return (shard,) * len(partitions)
    commit = _group_commit(request, partitions)

    def go_on(verified: _Verified) -> requests.Codes | Wait[requests.Codes]:
        if verified.error is not ErrorCode.NONE:
            return (CLIENT_ERRORS.get(verified.error, verified.error),) * len(partitions)
        producer = TransactionalProducer(
            request.producer_id, request.producer_epoch, verified.guard
        )
        return requests.commit_in_transaction(shard, commit, producer)

    return respond_after(_verify(ctx, request, shard), go_on)


class _Verified(NamedTuple):
    """Whether the transaction may write to the group's partition of ``__consumer_offsets``."""

    error: ErrorCode
    guard: VerificationGuard | None = None


def _verify(
    ctx: Context, request: TxnOffsetCommitRequest, shard: GroupCoordinatorShard
) -> _Verified | Wait[_Verified]:
    """Ask the transaction's coordinator, unless the transaction has written there before."""
    support = TransactionSupport.of_txn_offset_commit(ctx.version)
    producer = TransactionalProducer(request.producer_id, request.producer_epoch)
    guard = shard.start_verification(
        producer, supports_epoch_bump=support is TransactionSupport.ADD
    )
    if isinstance(guard, ErrorCode):
        return _Verified(guard)
    adds = support is TransactionSupport.ADD
    if guard is None or not (adds or ctx.broker.configs.transaction_partition_verification_enable):
        return _Verified(ErrorCode.NONE, guard)
    count = len(ctx.broker.view.topics[OFFSETS_TOPIC].partitions)
    partition = (OFFSETS_TOPIC, partition_for(request.group_id, count))
    verified: Wait[_Verified] = Wait()

    def answered(refused: Refused) -> None:
        verified.complete(_Verified(refused.get(partition, ErrorCode.NONE), guard))

    add_or_verify(
        ctx.broker,
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        (partition,),
        support,
        answered,
    )
    return verified


def _group_commit(
    request: TxnOffsetCommitRequest, partitions: tuple[PartitionCommit, ...]
) -> Commit:
    return Commit(
        group_id=request.group_id,
        generation=request.generation_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        retention_time_ms=NO_RETENTION,
        partitions=partitions,
        missing_group_error=ErrorCode.ILLEGAL_GENERATION,
    )


def _code_in(version: int, code: ErrorCode) -> ErrorCode:
    """The code that a client of this version can bear."""
    if version < _FIRST_WITH_LOADING and code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return code


def _as_named(
    topics: Iterable[TxnOffsetCommitRequestTopic], codes: Iterable[ErrorCode]
) -> TxnOffsetCommitResponse:
    """As in Kafka, an entry each time that a topic is named.

    :param codes: One for each partition of all topics.
    """
    rest = iter(codes)
    return TxnOffsetCommitResponse(
        topics=tuple(
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=tuple(
                    TxnOffsetCommitResponsePartition(
                        partition_index=each.partition_index, error_code=next(rest)
                    )
                    for each in topic.partitions
                ),
            )
            for topic in topics
            if topic.partitions
        )
    )


def _response(results: Iterable[_Result]) -> TxnOffsetCommitResponse:
    """One entry for each topic; refused partitions come first."""
    topics: dict[str, list[TxnOffsetCommitResponsePartition]] = {}
    for topic, partition, error_code in results:
        of_topic = topics.setdefault(topic, [])
        if partition is not None:
            of_topic.append(
                TxnOffsetCommitResponsePartition(partition_index=partition, error_code=error_code)
            )
    return TxnOffsetCommitResponse(
        topics=tuple(
            TxnOffsetCommitResponseTopic(name=name, partitions=tuple(partitions))
            for name, partitions in topics.items()
        )
    )
