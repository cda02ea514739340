"""Requests in the server's message classes, and the partitions of their answers."""

from __future__ import annotations

from collections.abc import Sequence

from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
)
from fencepost.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionData,
)
from fencepost.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from fencepost.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from tests.harness.driver import Message
from tests.harness.records import records_of


def creatable(
    name: str,
    partitions: int = 1,
    factor: int = 1,
    *,
    assignments: Sequence[tuple[int, Sequence[int]]] = (),
    configs: Sequence[tuple[str, str | None]] = (),
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=-1 if assignments else partitions,
        replication_factor=-1 if assignments else factor,
        assignments=tuple(
            CreatableReplicaAssignment(partition_index=index, broker_ids=tuple(replicas))
            for index, replicas in assignments
        ),
        configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in configs),
    )


def produce_request(
    *batches: tuple[str, int, Buffer], acks: int = -1, timeout_ms: int = 1000
) -> ProduceRequest:
    """Topic names and partition indexes with their batches."""
    return ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=tuple(
            TopicProduceData(
                name=name, partition_data=(PartitionProduceData(index=index, records=records),)
            )
            for name, index, records in batches
        ),
    )


def produced(response: Message) -> PartitionProduceResponse:
    """The only partition of a Produce answer."""
    ((partition,),) = (topic.partition_responses for topic in response.responses)
    assert isinstance(partition, PartitionProduceResponse)
    return partition


def fetch_request(
    *partitions: tuple[str, FetchPartition],
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
    session: tuple[int, int] = (0, -1),
) -> FetchRequest:
    """Partitions by topic name; ``session`` is its id and epoch."""
    topics: dict[str, list[FetchPartition]] = {}
    for name, partition in partitions:
        topics.setdefault(name, []).append(partition)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        session_id=session[0],
        session_epoch=session[1],
        topics=tuple(
            FetchTopic(topic=name, partitions=tuple(asked)) for name, asked in topics.items()
        ),
    )


def from_offset(offset: int, index: int = 0, max_bytes: int = 1 << 20) -> FetchPartition:
    return FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=max_bytes)


def fetched(response: Message) -> PartitionData:
    """The only partition of a Fetch answer."""
    ((partition,),) = (topic.partitions for topic in response.responses)
    assert isinstance(partition, PartitionData)
    return partition


def values(partition: PartitionData) -> list[bytes | None]:
    """The values of all whole batches."""
    return [record.value for record in records_of(partition.records or ())]


def list_offsets_request(
    topic: str,
    timestamp: int = -1,
    *,
    index: int = 0,
    replica_id: int = -1,
    current_leader_epoch: int = -1,
    isolation_level: int = 0,
) -> ListOffsetsRequest:
    """One partition; the timestamp -1 asks for its end."""
    partition = ListOffsetsPartition(
        partition_index=index, timestamp=timestamp, current_leader_epoch=current_leader_epoch
    )
    return ListOffsetsRequest(
        replica_id=replica_id,
        isolation_level=isolation_level,
        topics=(ListOffsetsTopic(name=topic, partitions=(partition,)),),
    )
