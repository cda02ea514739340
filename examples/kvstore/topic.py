"""The topic that is the store's log: a partition for each shard, kept for ever, and checked."""

import asyncio
from typing import Final

from fencepost.client.client import Client
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from fencepost.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)

CHECK: Final = "check.expected.offsets"
MAX_REPLICAS: Final = 3
_PAUSE_S: Final = 0.05
_TOPIC: Final = 2
"""The type of a topic in DescribeConfigs."""


class UnfitTopic(Exception):
    """The topic can't be created, or does not check what it must check."""


async def prepare(client: Client, topic: str, shards: int) -> int:
    """Create the topic, if it is not there, and wait until all shards have a leader.

    :returns: How many shards it has, which may be other than asked for where it was there.
    :raises UnfitTopic: When it can't be the log of a store.
    :raises KafkaClientError: When no broker answers.
    """
    await _create(client, topic, shards)
    await _require_checks(client, topic)
    while True:
        found = (await client.refresh(topic)).topics.get(topic)
        partitions = {} if found is None else found.partitions
        if partitions and all(each.leader >= 0 for each in partitions.values()):
            return len(partitions)
        await asyncio.sleep(_PAUSE_S)


async def _create(client: Client, topic: str, shards: int) -> None:
    seen = await client.refresh()
    replicas = min(MAX_REPLICAS, len(seen.brokers))
    configs = {
        CHECK: "true",
        "min.insync.replicas": str(min(2, replicas)),
        # A replica that acknowledges must not forget, and no other may lead.
        "unclean.leader.election.enable": "false",
        "retention.ms": "-1",
        "retention.bytes": "-1",
    }
    wanted = CreatableTopic(
        name=topic,
        num_partitions=shards,
        replication_factor=replicas,
        configs=tuple(
            CreatableTopicConfig(name=name, value=value) for name, value in configs.items()
        ),
    )
    api = BY_NAME["create_topics"]
    broker = await client.broker(seen.controller)
    request = CreateTopicsRequest(topics=(wanted,))
    answer: CreateTopicsResponse = await broker.ask_any(
        api, await broker.best_version(api), request
    )
    (created,) = answer.topics
    if created.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
        raise UnfitTopic(f"{topic} can't be created: {created.error_message}")


async def _require_checks(client: Client, topic: str) -> None:
    api = BY_NAME["describe_configs"]
    broker = await client.broker((await client.refresh()).controller)
    resource = DescribeConfigsResource(
        resource_type=_TOPIC, resource_name=topic, configuration_keys=(CHECK,)
    )
    answer: DescribeConfigsResponse = await broker.ask_any(
        api, await broker.best_version(api), DescribeConfigsRequest(resources=(resource,))
    )
    values = {config.name: config.value for each in answer.results for config in each.configs}
    if values.get(CHECK) != "true":
        raise UnfitTopic(f"{topic} does not have {CHECK}=true, and two leaders would ruin it")
