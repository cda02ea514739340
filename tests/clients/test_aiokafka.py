"""aiokafka 0.14: producer, consumer, groups, admin; all in asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import MessageSizeTooLargeError, OffsetOutOfRangeError
from aiokafka.structs import OffsetAndMetadata

from tests.harness import batches
from tests.harness.served_cluster import Cluster, unique
from tests.harness.wait import wait_beside_loop

T = 1_700_000_000_000
VALUES = [b"value %d, and more of the same, and more of the same" % i for i in range(300)]
WAIT_S = 30


@asynccontextmanager
async def producer(cluster: Cluster, **options: object) -> AsyncIterator[AIOKafkaProducer]:
    # Its own default, acks=1, answers before a reader can see the record.
    settings = {"acks": "all", **options}
    made = AIOKafkaProducer(bootstrap_servers=cluster.bootstrap, **settings)
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


@asynccontextmanager
async def consumer(
    cluster: Cluster, *topics: str, **options: object
) -> AsyncIterator[AIOKafkaConsumer]:
    settings = {"auto_offset_reset": "earliest", "enable_auto_commit": False, **options}
    made = AIOKafkaConsumer(*topics, bootstrap_servers=cluster.bootstrap, **settings)
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


@asynccontextmanager
async def admin(cluster: Cluster) -> AsyncIterator[AIOKafkaAdminClient]:
    made = AIOKafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    await made.start()
    try:
        yield made
    finally:
        await made.close()


async def send(cluster: Cluster, topic: str, values: list[bytes], **options: object) -> None:
    async with producer(cluster, **options) as source:
        futures = [await source.send(topic, value, partition=0) for value in values]
        await asyncio.wait_for(asyncio.gather(*futures), WAIT_S)


async def read(source: AIOKafkaConsumer, count: int) -> list[ConsumerRecord[bytes, bytes]]:
    received: list[ConsumerRecord[bytes, bytes]] = []
    async with asyncio.timeout(WAIT_S):
        while len(received) < count:
            received.append(await source.getone())
    return received


# -- records ------------------------------------------------------------------------------------


@pytest.mark.parametrize("acks", [0, 1, "all"])
async def test_records_come_back_in_order(cluster: Cluster, acks: int | str) -> None:
    topic = cluster.create_topic("aio")
    await send(cluster, topic, VALUES, acks=acks)
    async with consumer(cluster, topic) as source:
        records = await read(source, 300)
    assert [record.value for record in records] == VALUES
    assert [record.offset for record in records] == list(range(300))


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
async def test_codecs_arrive_compressed(cluster: Cluster, codec: str) -> None:
    topic = cluster.create_topic(f"aio-{codec}")
    await send(cluster, topic, VALUES, compression_type=codec, linger_ms=50)
    stored, _ = batches.parse(cluster.stored(topic))
    assert {batch.codec for batch in stored} == {codec}
    async with consumer(cluster, topic) as source:
        assert [record.value for record in await read(source, 300)] == VALUES


async def test_key_headers_and_timestamp(cluster: Cluster) -> None:
    topic = cluster.create_topic("aio")
    headers = [("a", b"1"), ("b", b"")]
    async with producer(cluster) as source:
        sent = await source.send_and_wait(topic, None, b"k", 0, T, headers)
    assert (sent.offset, sent.timestamp) == (0, T)
    async with consumer(cluster, topic) as reader:
        (record,) = await read(reader, 1)
    assert (record.key, record.value, record.timestamp) == (b"k", None, T)
    assert list(record.headers) == headers


async def test_idempotent_producer(cluster: Cluster) -> None:
    topic = cluster.create_topic("aio")
    await send(cluster, topic, VALUES, enable_idempotence=True)
    stored, _ = batches.parse(cluster.stored(topic))
    assert len({batch.producer_id for batch in stored}) == 1
    assert stored[0].producer_id >= 0
    assert [batch.base_sequence for batch in stored] == [batch.base_offset for batch in stored]


async def test_too_large_for_the_topic(cluster: Cluster) -> None:
    topic = cluster.create_topic("aio", configs={"max.message.bytes": "5000"})
    with pytest.raises(MessageSizeTooLargeError):
        await send(cluster, topic, [bytes(6000)])


# -- offsets ------------------------------------------------------------------------------------


async def test_beginning_end_and_times(cluster: Cluster) -> None:
    topic = cluster.create_topic("aio", configs={"retention.ms": "-1"})
    partition = TopicPartition(topic, 0)
    async with producer(cluster) as source:
        for i in range(5):
            await source.send_and_wait(topic, b"v", partition=0, timestamp_ms=T + 1000 * i)
    async with consumer(cluster) as reader:
        assert await reader.beginning_offsets([partition]) == {partition: 0}
        assert await reader.end_offsets([partition]) == {partition: 5}
        found = await reader.offsets_for_times({partition: T + 1500})
        assert (found[partition].offset, found[partition].timestamp) == (2, T + 2000)
        assert await reader.offsets_for_times({partition: T + 9000}) == {partition: None}


async def test_out_of_range_without_a_policy(cluster: Cluster) -> None:
    topic = cluster.create_topic("aio")
    await send(cluster, topic, [b"v"])
    async with consumer(cluster, auto_offset_reset="none") as reader:
        partition = TopicPartition(topic, 0)
        reader.assign([partition])
        reader.seek(partition, 500)
        with pytest.raises(OffsetOutOfRangeError):
            await asyncio.wait_for(reader.getone(), WAIT_S)


async def test_committed_offsets_and_metadata(cluster: Cluster) -> None:
    topic, group = cluster.create_topic("aio"), unique("group")
    partition = TopicPartition(topic, 0)
    await send(cluster, topic, VALUES[:10])
    async with consumer(cluster, topic, group_id=group) as reader:
        assert await reader.committed(partition) is None
        await read(reader, 4)
        await reader.commit({partition: OffsetAndMetadata(4, "a note")})
        assert await reader.committed(partition) == 4
    async with consumer(cluster, topic, group_id=group) as reader:
        assert [record.offset for record in await read(reader, 6)] == [4, 5, 6, 7, 8, 9]


# -- groups -------------------------------------------------------------------------------------


async def test_a_second_member_takes_its_share(cluster: Cluster) -> None:
    topic, group = cluster.create_topic("aio", partitions=4), unique("group")
    options = {"group_id": group, "heartbeat_interval_ms": 200}
    async with consumer(cluster, topic, **options) as first:
        await wait_beside_loop("all are its own", lambda: len(first.assignment()) == 4)
        async with consumer(cluster, topic, **options) as second:

            def shared() -> bool:
                both = [*first.assignment(), *second.assignment()]
                return len(both) == 4 and len(set(both)) == 4 and len(first.assignment()) == 2

            await wait_beside_loop("they share", shared)
        await wait_beside_loop("all are its own again", lambda: len(first.assignment()) == 4)


# -- admin --------------------------------------------------------------------------------------


async def test_topics(cluster: Cluster) -> None:
    topic = unique("aio-admin")
    async with admin(cluster) as client:
        created = await client.create_topics([NewTopic(topic, 2, 3)])
        assert [entry[1] for entry in created.topic_errors] == [0]
        await wait_beside_loop("it is there", lambda: cluster.metadata(topic)["ErrorCode"] == 0)
        (described,) = await client.describe_topics([topic])
        assert (described["topic"], len(described["partitions"])) == (topic, 2)
        await client.create_partitions({topic: NewPartitions(3)})
        await wait_beside_loop("three", lambda: len(cluster.metadata(topic)["Partitions"]) == 3)
        deleted = await client.delete_topics([topic])
        assert [entry[1] for entry in deleted.topic_error_codes] == [0]
        await wait_beside_loop("it is gone", lambda: cluster.metadata(topic)["ErrorCode"] == 3)


async def test_configs(cluster: Cluster) -> None:
    topic = cluster.create_topic("aio", configs={"retention.ms": "777"})
    async with admin(cluster) as client:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        (answer,) = await client.describe_configs([resource])
        (found,) = answer.resources
        entries = {entry[0]: entry[1] for entry in found[4]}
        assert entries["retention.ms"] == "777"
        assert entries["cleanup.policy"] == "delete"


async def test_cluster_and_groups(cluster: Cluster) -> None:
    topic, group = cluster.create_topic("aio"), unique("group")
    async with admin(cluster) as client:
        described = await client.describe_cluster()
        assert sorted(broker["node_id"] for broker in described["brokers"]) == [1, 2, 3]
        async with consumer(cluster, topic, group_id=group) as reader:
            await wait_beside_loop("it is a member", lambda: bool(reader.assignment()))
            assert (group, "consumer") in await client.list_consumer_groups()
            (answer,) = await client.describe_consumer_groups([group])
            (found,) = answer.groups
            assert found[:4] == (0, group, "Stable", "consumer")
            await reader.commit({TopicPartition(topic, 0): 0})
        offsets = await client.list_consumer_group_offsets(group)
        assert offsets[TopicPartition(topic, 0)].offset == 0
