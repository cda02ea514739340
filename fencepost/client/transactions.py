"""Requests about a transaction: its partitions, the offsets that it commits, and its end (KIP-98).

AddPartitionsToTxn, AddOffsetsToTxn and EndTxn go to the coordinator of the transactional id,
TxnOffsetCommit to that of the group. With ``transaction.version`` 2 the first two are not needed:
Produce from version 12 on and TxnOffsetCommit from version 5 on add what they name (KIP-890).
"""

from collections.abc import Collection, Mapping
from typing import Final

from fencepost.client.batches import Sequenced
from fencepost.client.connection import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    END_TXN,
    TIMEOUT_S,
    TXN_OFFSET_COMMIT,
    Connection,
)
from fencepost.client.consumer.model import OffsetAndMetadata
from fencepost.client.errors import MalformedAnswer
from fencepost.client.groups import GroupResponse
from fencepost.client.model import ConsumerGroupMetadata, Partition
from fencepost.client.partitions import NO_EPOCH
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from fencepost.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from fencepost.protocol.messages.end_txn import EndTxnRequest
from fencepost.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

LAST_ADD_PARTITIONS_OF_CLIENTS: Final = 3
"""Later versions of AddPartitionsToTxn are for brokers."""


class Ended(GroupResponse, frozen=True, kw_only=True):
    """The answer to EndTxn (26)."""

    producer_id: int
    """Of the next transaction; -1 before version 5, where id and epoch stay."""
    producer_epoch: int


async def add_partitions_to_txn(
    connection: Connection,
    transactional_id: str,
    producer: Sequenced,
    partitions: Collection[Partition],
    *,
    version: int | None = None,
    timeout_s: float = TIMEOUT_S,
) -> GroupResponse:
    """AddPartitionsToTxn (24) of a client; the error is that of the first partition with one."""
    if version is None:
        version = await connection.best_version(ADD_PARTITIONS_TO_TXN.api, timeout_s=timeout_s)
        version = min(version, LAST_ADD_PARTITIONS_OF_CLIENTS)
    topics: dict[str, list[int]] = {}
    for each in partitions:
        topics.setdefault(each.topic, []).append(each.index)
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=tuple(
            AddPartitionsToTxnTopic(name=topic, partitions=tuple(indexes))
            for topic, indexes in topics.items()
        ),
    )
    answer = await connection.ask(ADD_PARTITIONS_TO_TXN, request, version, timeout_s=timeout_s)
    codes = [
        each.partition_error_code
        for topic in answer.results_by_topic_v3_and_below
        for each in topic.results_by_partition
    ]
    # The others of a request that is refused were not attempted; they do not say why.
    reasons = [code for code in codes if code not in (0, ErrorCode.OPERATION_NOT_ATTEMPTED)]
    return GroupResponse(
        version=version,
        throttle_time_ms=answer.throttle_time_ms,
        error=next(iter(reasons), max(codes, default=0)),
    )


async def add_offsets_to_txn(
    connection: Connection,
    transactional_id: str,
    producer: Sequenced,
    group: str,
    *,
    version: int | None = None,
    timeout_s: float = TIMEOUT_S,
) -> GroupResponse:
    """AddOffsetsToTxn (25): the transaction will commit offsets of a group."""
    if version is None:
        version = await connection.best_version(ADD_OFFSETS_TO_TXN.api, timeout_s=timeout_s)
    request = AddOffsetsToTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        group_id=group,
    )
    answer = await connection.ask(ADD_OFFSETS_TO_TXN, request, version, timeout_s=timeout_s)
    return GroupResponse(
        version=version, throttle_time_ms=answer.throttle_time_ms, error=answer.error_code
    )


async def txn_offset_commit(
    connection: Connection,
    transactional_id: str,
    producer: Sequenced,
    who: ConsumerGroupMetadata,
    offsets: Mapping[Partition, OffsetAndMetadata],
    *,
    version: int | None = None,
    timeout_s: float = TIMEOUT_S,
) -> GroupResponse:
    """TxnOffsetCommit (28); the error is that of the first partition with one.

    :param who: The generation and the member are sent from version 3 on (KIP-447).
    """
    if version is None:
        version = await connection.best_version(TXN_OFFSET_COMMIT.api, timeout_s=timeout_s)
    request = TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=who.group,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        generation_id=who.generation,
        member_id=who.member_id,
        group_instance_id=who.instance,
        topics=_offset_topics(offsets),
    )
    answer = await connection.ask(TXN_OFFSET_COMMIT, request, version, timeout_s=timeout_s)
    codes = [each.error_code for topic in answer.topics for each in topic.partitions]
    if len(codes) != len(offsets):
        raise MalformedAnswer("the answer does not tell of each partition")
    return GroupResponse(
        version=version,
        throttle_time_ms=answer.throttle_time_ms,
        error=next((code for code in codes if code), 0),
    )


async def end_txn(
    connection: Connection,
    transactional_id: str,
    producer: Sequenced,
    *,
    committed: bool,
    version: int | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Ended:
    """EndTxn (26): commit or abort."""
    if version is None:
        version = await connection.best_version(END_TXN.api, timeout_s=timeout_s)
    request = EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        committed=committed,
    )
    answer = await connection.ask(END_TXN, request, version, timeout_s=timeout_s)
    return Ended(
        version=version,
        throttle_time_ms=answer.throttle_time_ms,
        error=answer.error_code,
        producer_id=answer.producer_id,
        producer_epoch=answer.producer_epoch,
    )


def _offset_topics(
    offsets: Mapping[Partition, OffsetAndMetadata],
) -> tuple[TxnOffsetCommitRequestTopic, ...]:
    topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
    for partition, offset in offsets.items():
        topics.setdefault(partition.topic, []).append(
            TxnOffsetCommitRequestPartition(
                partition_index=partition.index,
                committed_offset=offset.offset,
                committed_leader_epoch=(
                    NO_EPOCH if offset.leader_epoch is None else offset.leader_epoch
                ),
                committed_metadata=offset.metadata,
            )
        )
    return tuple(
        TxnOffsetCommitRequestTopic(name=topic, partitions=tuple(each))
        for topic, each in topics.items()
    )
