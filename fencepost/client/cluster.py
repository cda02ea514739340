"""What a cluster is like: metadata, coordinators, producer ids."""

from collections.abc import Sequence
from enum import IntEnum
from typing import Final
from uuid import UUID

from msgspec import Struct

from fencepost.client.batches import NOT_SEQUENCED, Sequenced
from fencepost.client.connection import (
    DESCRIBE_CONFIGS,
    FIND_COORDINATOR,
    INIT_PRODUCER_ID,
    METADATA,
    TIMEOUT_S,
    Connection,
)
from fencepost.client.errors import MalformedAnswer
from fencepost.client.model import Partition
from fencepost.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from fencepost.protocol.messages.find_coordinator import FindCoordinatorRequest
from fencepost.protocol.messages.init_producer_id import InitProducerIdRequest
from fencepost.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)

_MANY_KEYS: Final = 4
"""From this version of FindCoordinator on, it asks for a list of keys."""
_TOPIC: Final = 2
"""The type of a topic in DescribeConfigs."""
_NO_ID: Final = UUID(int=0)


class PartitionMetadata(Struct, frozen=True, kw_only=True):
    """A partition as a broker sees it."""

    error: int
    leader: int
    """Broker id; -1 while there is none."""
    leader_epoch: int
    """-1 before version 7."""
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]
    """Empty before version 5."""


class TopicMetadata(Struct, frozen=True, kw_only=True):
    """A topic as a broker sees it."""

    error: int
    topic_id: UUID | None
    """None before version 10, or where there is no such topic."""
    partitions: dict[int, PartitionMetadata]


class TopicConfigs(Struct, frozen=True, kw_only=True):
    """Configs of a topic."""

    error: int
    values: dict[str, str | None]
    """By name; those that the broker does not know are missing."""


class ClusterMetadata(Struct, frozen=True, kw_only=True):
    """What a broker says of its cluster."""

    version: int
    throttle_time_ms: int
    brokers: dict[int, tuple[str, int]]
    """Host and port by broker id."""
    controller: int
    topics: dict[str, TopicMetadata]

    def partition(self, topic: str, partition: int) -> PartitionMetadata | None:
        """A partition; None where this does not tell of it."""
        found = self.topics.get(topic)
        return None if found is None else found.partitions.get(partition)


class CoordinatorType(IntEnum):
    """What a coordinator coordinates."""

    GROUP = 0
    TRANSACTION = 1


class Coordinator(Struct, frozen=True, kw_only=True):
    """Who coordinates a group or a transactional id."""

    version: int
    throttle_time_ms: int
    error: int
    message: str | None
    broker: int
    """-1 where there is none."""
    host: str
    port: int


class ProducerId(Struct, frozen=True, kw_only=True):
    """The identity of an idempotent or transactional producer."""

    version: int
    throttle_time_ms: int
    error: int
    producer_id: int
    producer_epoch: int


async def metadata(
    connection: Connection,
    topics: Sequence[str],
    *,
    version: int | None = None,
    timeout_s: float = TIMEOUT_S,
) -> ClusterMetadata:
    """Metadata (3) of some topics, none of which is created by asking.

    :param version: None is the highest that both sides know.
    """
    if version is None:
        version = await connection.best_version(METADATA.api, timeout_s=timeout_s)
    wanted = tuple(MetadataRequestTopic(name=topic) for topic in topics)
    request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
    answer = await connection.ask(METADATA, request, version, timeout_s=timeout_s)
    return _read_metadata(answer, version)


async def topic_configs(
    connection: Connection, topic: str, names: Sequence[str], *, timeout_s: float = TIMEOUT_S
) -> TopicConfigs:
    """DescribeConfigs (32) of a topic, of some configs."""
    version = await connection.best_version(DESCRIBE_CONFIGS.api, timeout_s=timeout_s)
    resource = DescribeConfigsResource(
        resource_type=_TOPIC, resource_name=topic, configuration_keys=tuple(names)
    )
    request = DescribeConfigsRequest(resources=(resource,))
    answer = await connection.ask(DESCRIBE_CONFIGS, request, version, timeout_s=timeout_s)
    for found in answer.results:
        values = {each.name: each.value for each in found.configs}
        return TopicConfigs(error=found.error_code, values=values)
    raise MalformedAnswer(f"the answer leaves out topic {topic}")


async def resolve_topic_id(connection: Connection, partition: Partition, timeout_s: float) -> UUID:
    """The id of a partition's topic, or zeros where the broker knows no such topic."""
    if partition.topic_id is not None:
        return partition.topic_id
    seen = await metadata(connection, [partition.topic], timeout_s=timeout_s)
    found = seen.topics.get(partition.topic)
    return _NO_ID if found is None or found.topic_id is None else found.topic_id


async def find_coordinator(
    connection: Connection,
    key: str,
    *,
    of: CoordinatorType = CoordinatorType.GROUP,
    version: int | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Coordinator:
    """FindCoordinator (10) of a group, or from version 1 on of a transactional id."""
    if version is None:
        version = await connection.best_version(FIND_COORDINATOR.api, timeout_s=timeout_s)
    if version < _MANY_KEYS:
        request = FindCoordinatorRequest(key=key, key_type=of)
    else:
        request = FindCoordinatorRequest(coordinator_keys=(key,), key_type=of)
    answer = await connection.ask(FIND_COORDINATOR, request, version, timeout_s=timeout_s)
    found = answer.coordinators[0] if version >= _MANY_KEYS and answer.coordinators else answer
    return Coordinator(
        version=version,
        throttle_time_ms=answer.throttle_time_ms,
        error=found.error_code,
        message=found.error_message,
        broker=found.node_id,
        host=found.host,
        port=found.port,
    )


async def init_producer_id(
    connection: Connection,
    *,
    transactional_id: str | None = None,
    transaction_timeout_ms: int = 2**31 - 1,
    producer: Sequenced = NOT_SEQUENCED,
    version: int | None = None,
    timeout_s: float = TIMEOUT_S,
) -> ProducerId:
    """InitProducerId (22) of an idempotent producer, or of a transactional one.

    With a transactional id it asks the coordinator, which aborts what is open, and fences the
    producers that had the id before.

    :param producer: The present producer id and epoch, to be given the next epoch (KIP-360, version
        3).
    """
    if version is None:
        version = await connection.best_version(INIT_PRODUCER_ID.api, timeout_s=timeout_s)
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=transaction_timeout_ms,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
    )
    answer = await connection.ask(INIT_PRODUCER_ID, request, version, timeout_s=timeout_s)
    return ProducerId(
        version=version,
        throttle_time_ms=answer.throttle_time_ms,
        error=answer.error_code,
        producer_id=answer.producer_id,
        producer_epoch=answer.producer_epoch,
    )


def _read_metadata(answer: MetadataResponse, version: int) -> ClusterMetadata:
    return ClusterMetadata(
        version=version,
        throttle_time_ms=answer.throttle_time_ms,
        brokers={each.node_id: (each.host, each.port) for each in answer.brokers},
        controller=answer.controller_id,
        topics={each.name or "": _read_topic(each) for each in answer.topics},
    )


def _read_topic(topic: MetadataResponseTopic) -> TopicMetadata:
    return TopicMetadata(
        error=topic.error_code,
        topic_id=topic.topic_id,
        partitions={
            each.partition_index: PartitionMetadata(
                error=each.error_code,
                leader=each.leader_id,
                leader_epoch=each.leader_epoch,
                replicas=each.replica_nodes,
                isr=each.isr_nodes,
                offline=each.offline_replicas,
            )
            for each in topic.partitions
        },
    )
