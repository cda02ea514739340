"""Requests about one partition: produce, fetch, list offsets, the end of an epoch.

Each takes a connection to the broker that is asked, whether that leads or not, and answers the
partition's part of the answer. A version of None is the highest that both sides know.
"""

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from fencepost.client.aborted_transactions import aborted_transactions
from fencepost.client.batches import decode_records
from fencepost.client.cluster import resolve_topic_id
from fencepost.client.connection import (
    FETCH,
    LIST_OFFSETS,
    OFFSET_FOR_LEADER_EPOCH,
    PRODUCE,
    TIMEOUT_S,
    Connection,
)
from fencepost.client.errors import MalformedAnswer
from fencepost.client.model import EpochEnd, Fetched, FoundOffset, Isolation, Partition, Produced
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from fencepost.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from fencepost.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from fencepost.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)

CONSUMER: Final = -1
"""The replica id of a consumer."""
NO_EPOCH: Final = -1
NO_TIMESTAMP: Final = -1
DEFAULT_MAX_BYTES: Final = 1 << 20
_PRODUCE_TOPIC_IDS: Final = 13
_FETCH_TOPIC_IDS: Final = 13


async def produce(
    connection: Connection,
    partition: Partition,
    records: Buffer,
    *,
    acks: int = -1,
    wait_ms: int = 30_000,
    transactional_id: str | None = None,
    version: int | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Produced | None:
    """Produce (0): send batches as they are. None with acks=0, which is not answered.

    :param wait_ms: How long the broker may wait for other replicas, with acks=-1.
    :param transactional_id: Of the producer whose transaction the batches belong to.
    """
    answers = await produce_set(
        connection,
        {partition: records},
        acks=acks,
        wait_ms=wait_ms,
        transactional_id=transactional_id,
        version=version,
        timeout_s=timeout_s,
    )
    return None if answers is None else answers[partition]


async def produce_set(
    connection: Connection,
    records: Mapping[Partition, Buffer],
    *,
    acks: int = -1,
    wait_ms: int = 30_000,
    transactional_id: str | None = None,
    version: int | None = None,
    timeout_s: float = TIMEOUT_S,
) -> dict[Partition, Produced] | None:
    """Produce (0) to several partitions in one request; otherwise as `produce`.

    :param records: Batches as they are, one behind the other, for each partition.
    """
    if version is None:
        version = await connection.best_version(PRODUCE.api, timeout_s=timeout_s)
    named: dict[Partition, str | UUID] = {
        partition: await resolve_topic_id(connection, partition, timeout_s)
        if version >= _PRODUCE_TOPIC_IDS
        else partition.topic
        for partition in records
    }
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=wait_ms,
        topic_data=_by_topic(records, named),
    )
    if acks == 0:
        await connection.send(PRODUCE, request, version)
        return None
    answer = await connection.ask(PRODUCE, request, version, timeout_s=timeout_s)
    found = {
        (topic.topic_id if version >= _PRODUCE_TOPIC_IDS else topic.name, part.index): _produced(
            part, answer.throttle_time_ms, version
        )
        for topic in answer.responses
        for part in topic.partition_responses
    }
    answers: dict[Partition, Produced] = {}
    for partition, name in named.items():
        if (name, partition.index) not in found:
            raise _missing_partition(partition)
        answers[partition] = found[name, partition.index]
    return answers


async def fetch(
    connection: Connection,
    partition: Partition,
    offset: int,
    *,
    epoch: int = NO_EPOCH,
    last_epoch: int = NO_EPOCH,
    isolation: Isolation = Isolation.READ_UNCOMMITTED,
    wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = DEFAULT_MAX_BYTES,
    rack: str = "",
    version: int | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Fetched:
    """Fetch (1) from an offset on, without a session.

    :param epoch: The leader epoch that the client believes in; -1: no check. From version 9 on;
        KIP-320's draft has none in its version 9.
    :param last_epoch: The epoch of the record before the offset; -1: no check. From version 12 on,
        and in version 9 of KIP-320's draft.
    """
    if version is None:
        version = await connection.best_version(FETCH.api, timeout_s=timeout_s)
    part = FetchPartition(
        partition=partition.index,
        fetch_offset=offset,
        partition_max_bytes=max_bytes,
        current_leader_epoch=epoch,
        last_fetched_epoch=last_epoch,
    )
    if version >= _FETCH_TOPIC_IDS:
        topic_id = await resolve_topic_id(connection, partition, timeout_s)
        topic = FetchTopic(topic_id=topic_id, partitions=(part,))
    else:
        topic = FetchTopic(topic=partition.topic, partitions=(part,))
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation,
        topics=(topic,),
        rack_id=rack,
    )
    answer = await connection.ask(FETCH, request, version, timeout_s=timeout_s)
    return _fetched(answer, _fetched_part(answer, partition), offset, version)


async def list_offsets(
    connection: Connection,
    partition: Partition,
    at: int,
    *,
    epoch: int = NO_EPOCH,
    isolation: Isolation = Isolation.READ_UNCOMMITTED,
    replica: int = CONSUMER,
    version: int | None = None,
    timeout_s: float = TIMEOUT_S,
) -> FoundOffset:
    """ListOffsets (2) at a timestamp in ms, or at an `OffsetSpec`.

    :param epoch: The leader epoch that the client believes in; -1: no check. From version 4 on;
        KIP-320's draft has none in its version 4.
    """
    if version is None:
        version = await connection.best_version(LIST_OFFSETS.api, timeout_s=timeout_s)
    part = ListOffsetsPartition(
        partition_index=partition.index, current_leader_epoch=epoch, timestamp=at
    )
    request = ListOffsetsRequest(
        replica_id=replica,
        isolation_level=isolation,
        topics=(ListOffsetsTopic(name=partition.topic, partitions=(part,)),),
        timeout_ms=round(timeout_s * 1000),
    )
    answer = await connection.ask(LIST_OFFSETS, request, version, timeout_s=timeout_s)
    for topic in answer.topics:
        for each in topic.partitions:
            return FoundOffset(
                version=version,
                throttle_time_ms=answer.throttle_time_ms,
                error=each.error_code,
                offset=each.offset,
                timestamp=each.timestamp,
                epoch=each.leader_epoch,
            )
    raise _missing_partition(partition)


async def offset_for_leader_epoch(
    connection: Connection,
    partition: Partition,
    asked: int,
    *,
    epoch: int = NO_EPOCH,
    version: int | None = None,
    timeout_s: float = TIMEOUT_S,
) -> EpochEnd:
    """OffsetForLeaderEpoch (23): where an epoch ends in the broker's log.

    :param asked: The epoch asked about.
    :param epoch: The leader epoch that the client believes in; -1: no check.
    """
    if version is None:
        version = await connection.best_version(OFFSET_FOR_LEADER_EPOCH.api, timeout_s=timeout_s)
    part = OffsetForLeaderPartition(
        partition=partition.index, current_leader_epoch=epoch, leader_epoch=asked
    )
    topic = OffsetForLeaderTopic(topic=partition.topic, partitions=(part,))
    request = OffsetForLeaderEpochRequest(topics=(topic,), replica_id=CONSUMER)
    answer = await connection.ask(OFFSET_FOR_LEADER_EPOCH, request, version, timeout_s=timeout_s)
    for answered in answer.topics:
        for each in answered.partitions:
            return EpochEnd(
                version=version,
                throttle_time_ms=answer.throttle_time_ms,
                error=each.error_code,
                epoch=each.leader_epoch,
                end_offset=each.end_offset,
            )
    raise _missing_partition(partition)


def _by_topic(
    records: Mapping[Partition, Buffer], named: Mapping[Partition, str | UUID]
) -> tuple[TopicProduceData, ...]:
    topics: dict[str | UUID, list[PartitionProduceData]] = {}
    for partition, batches in records.items():
        data = PartitionProduceData(index=partition.index, records=batches)
        topics.setdefault(named[partition], []).append(data)
    return tuple(
        TopicProduceData(topic_id=name, partition_data=tuple(data))
        if isinstance(name, UUID)
        else TopicProduceData(name=name, partition_data=tuple(data))
        for name, data in topics.items()
    )


def _produced(part: PartitionProduceResponse, throttle_time_ms: int, version: int) -> Produced:
    current = part.current_leader
    return Produced(
        version=version,
        throttle_time_ms=throttle_time_ms,
        error=part.error_code,
        message=part.error_message,
        base_offset=part.base_offset,
        log_append_time_ms=part.log_append_time_ms,
        log_start_offset=part.log_start_offset,
        record_errors=tuple(
            (each.batch_index, each.batch_index_error_message) for each in part.record_errors
        ),
        leader=(current.leader_id, current.leader_epoch) if current.leader_id >= 0 else None,
    )


def _fetched_part(answer: FetchResponse, partition: Partition) -> PartitionData:
    for topic in answer.responses:
        for part in topic.partitions:
            return part
    if answer.error_code != ErrorCode.NONE:  # then of the whole answer
        return PartitionData(error_code=answer.error_code, high_watermark=-1)
    raise _missing_partition(partition)


def _fetched(answer: FetchResponse, part: PartitionData, offset: int, version: int) -> Fetched:
    diverging, current = part.diverging_epoch, part.current_leader
    return Fetched(
        version=version,
        throttle_time_ms=answer.throttle_time_ms,
        error=part.error_code or answer.error_code,
        high_watermark=part.high_watermark,
        last_stable_offset=part.last_stable_offset,
        log_start_offset=part.log_start_offset,
        diverging=(diverging.epoch, diverging.end_offset) if diverging.epoch >= 0 else None,
        leader=(current.leader_id, current.leader_epoch) if current.leader_id >= 0 else None,
        preferred_read_replica=part.preferred_read_replica,
        content=decode_records(part.records or (), offset),
        aborted=aborted_transactions(part),
    )


def _missing_partition(partition: Partition) -> MalformedAnswer:
    return MalformedAnswer(f"the answer does not tell of {partition.topic}-{partition.index}")
