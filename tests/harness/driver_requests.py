"""The requests that tests send to a `Driver` most: topics, Produce, Fetch, ListOffsets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from msgspec.structs import replace

from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.core.context import Context
from fencepost.broker.network.links import OnResponse
from fencepost.protocol.apis import Api
from fencepost.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
)
from fencepost.protocol.messages.fetch import (
    FetchRequest,
    PartitionData,
)
from fencepost.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
)
from fencepost.protocol.messages.produce import (
    PartitionProduceResponse,
)
from tests.harness.driver import NEWEST, Asked, Driver, Message
from tests.harness.records import batch
from tests.harness.typed_requests import (
    fetch_request,
    fetched,
    from_offset,
    list_offsets_request,
    produce_request,
    produced,
)


def create(
    driver: Driver, name: str, replicas: Sequence[Sequence[int]] = ((1,),), **configs: str
) -> UUID:
    """Create a topic by a call of the controller; config names have underscores for dots."""
    topic = driver.cluster.controller.create_topic(
        NewTopic(
            name=name,
            assignments=tuple(map(tuple, replicas)),
            configs={key.replace("_", "."): value for key, value in configs.items()},
        )
    )
    driver.cluster.scheduler.run_due()
    return topic.topic_id


def count_fetches(driver: Driver) -> Counter[int]:
    """Counts the followers' fetches from now on, by the broker that fetches."""
    sent: Counter[int] = Counter()
    observe = driver.cluster.network.observe

    def count(api: Api, ctx: Context[Any], request: object) -> OnResponse:
        if isinstance(request, FetchRequest):
            sent[request.replica_state.replica_id] += 1
        return observe(api, ctx, request)

    driver.cluster.network.observe = count
    return sent


def create_topics(
    driver: Driver,
    *topics: CreatableTopic,
    version: int = NEWEST,
    validate_only: bool = False,
    broker_id: int = 1,
) -> Message:
    request = CreateTopicsRequest(topics=topics, timeout_ms=1000, validate_only=validate_only)
    return driver.ask(broker_id, "create_topics", version, request).topics


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


def produce(
    driver: Driver, topic: str, *values: bytes, index: int = 0, acks: int = -1
) -> PartitionProduceResponse:
    return produced(send_produce(driver, topic, *values, index=index, acks=acks).response)


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
    request = list_offsets_request(
        topic,
        timestamp,
        index=index,
        replica_id=replica_id,
        current_leader_epoch=current_leader_epoch,
        isolation_level=isolation_level,
    )
    ((answer,),) = (
        t.partitions for t in driver.ask(broker_id, "list_offsets", version, request).topics
    )
    assert isinstance(answer, ListOffsetsPartitionResponse)
    return answer
