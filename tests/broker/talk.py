"""What the tests of the handlers ask for again and again, in few words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from fencepost.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionData,
)
from fencepost.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from fencepost.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from fencepost.protocol.records import Record, build_batch, iter_headers, iter_records
from tests.broker.driver import NEWEST, Asked, Driver, Message

TIMESTAMP = 1_699_999_000_000
"""Of records that do not say otherwise: a little before the drivers' clocks start."""


def create(
    driver: Driver, name: str, replicas: Sequence[Sequence[int]] = ((1,),), **configs: str
) -> UUID:
    """Create a topic behind the handlers' backs; config names with underscores for dots."""
    topic = driver.cluster.controller.create_topic(
        NewTopic(
            name=name,
            assignments=tuple(map(tuple, replicas)),
            configs={key.replace("_", "."): value for key, value in configs.items()},
        )
    )
    driver.cluster.scheduler.run_due()
    return topic.topic_id


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


def create_topics(
    driver: Driver,
    *topics: CreatableTopic,
    version: int = NEWEST,
    validate_only: bool = False,
    broker_id: int = 1,
) -> Message:
    request = CreateTopicsRequest(topics=topics, timeout_ms=1000, validate_only=validate_only)
    return driver.ask(broker_id, "create_topics", version, request).topics


def batch(
    *values: bytes,
    timestamp: int = TIMESTAMP,
    producer: tuple[int, int, int] | None = None,
    codec: int = 0,
) -> bytearray:
    """A batch with these values. ``producer`` is its id, epoch and base sequence."""
    records = [
        Record(index, timestamp + index, b"k%d" % index, value, ())
        for index, value in enumerate(values)
    ]
    if producer is None:
        return build_batch(records, codec=codec)
    producer_id, epoch, sequence = producer
    return build_batch(
        records,
        codec=codec,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
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


def send_produce(
    driver: Driver,
    topic: str,
    *values: bytes,
    index: int = 0,
    acks: int = -1,
    timeout_ms: int = 1000,
    broker_id: int | None = None,
    version: int = 12,
) -> Asked:
    """Send one batch to the partition's leader."""
    if broker_id is None:
        broker_id = driver.leader(topic, index).broker_id
    records = batch(*values)
    request = produce_request((topic, index, records), acks=acks, timeout_ms=timeout_ms)
    return driver.send(broker_id, "produce", version, request)


def produced(response: Message) -> PartitionProduceResponse:
    """The only partition of a Produce answer."""
    ((partition,),) = (topic.partition_responses for topic in response.responses)
    assert isinstance(partition, PartitionProduceResponse)
    return partition


def produce(
    driver: Driver, topic: str, *values: bytes, index: int = 0, acks: int = -1
) -> PartitionProduceResponse:
    return produced(send_produce(driver, topic, *values, index=index, acks=acks).response)


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


def fetch(
    driver: Driver,
    topic: str,
    offset: int,
    *,
    index: int = 0,
    broker_id: int | None = None,
    version: int = 12,
    current_leader_epoch: int = -1,
) -> PartitionData:
    """The records that are available, without waiting for more."""
    if broker_id is None:
        broker_id = driver.leader(topic, index).broker_id
    asked = replace(from_offset(offset, index), current_leader_epoch=current_leader_epoch)
    request = fetch_request((topic, asked))
    return fetched(driver.ask(broker_id, "fetch", version, request))


def values(partition: PartitionData) -> list[bytes | None]:
    """The values of all whole batches."""
    found: list[bytes | None] = []
    for buffer in partition.records or ():
        for at, _ in iter_headers(buffer):
            found += [record.value for record in iter_records(buffer, at)]
    return found


def list_offset(
    driver: Driver,
    topic: str,
    timestamp: int,
    *,
    index: int = 0,
    broker_id: int | None = None,
    version: int = NEWEST,
    replica_id: int = -1,
    current_leader_epoch: int = -1,
    isolation_level: int = 0,
) -> ListOffsetsPartitionResponse:
    if broker_id is None:
        broker_id = driver.leader(topic, index).broker_id
    partition = ListOffsetsPartition(
        partition_index=index, timestamp=timestamp, current_leader_epoch=current_leader_epoch
    )
    request = ListOffsetsRequest(
        replica_id=replica_id,
        isolation_level=isolation_level,
        topics=(ListOffsetsTopic(name=topic, partitions=(partition,)),),
    )
    ((answer,),) = (
        t.partitions for t in driver.ask(broker_id, "list_offsets", version, request).topics
    )
    assert isinstance(answer, ListOffsetsPartitionResponse)
    return answer
