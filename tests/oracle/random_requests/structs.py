"""The structs of random requests whose fields belong together, as a resource and its configs."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from fencepost.protocol.apis import Api
from fencepost.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnTransaction
from tests.harness.wire import Value
from tests.oracle.random_requests.config_values import (
    BROKER_CONFIGS,
    GROUP_CONFIGS,
    LOGGER_CONFIGS,
    METRICS_CONFIGS,
    TOPIC_CONFIGS,
)
from tests.oracle.random_requests.messages import Ref

_FIRST_WITH_TRANSACTIONS: Final = 4
_OF_ANOTHER: Final = 0.2
"""How often a transactional id comes with any producer."""
_TOPIC, _BROKER, _LOGGER, _METRICS, _GROUP = 2, 4, 8, 16, 32
_BY_TYPE: Final = {
    _TOPIC: TOPIC_CONFIGS,
    _BROKER: BROKER_CONFIGS,
    _LOGGER: LOGGER_CONFIGS,
    _METRICS: METRICS_CONFIGS,
    _GROUP: GROUP_CONFIGS,
}


Together = Callable[[random.Random, Api, int, Value], Value]
"""Changes a struct whose fields belong together."""


def _resource_type(rng: random.Random) -> int:
    if rng.random() < 0.06:
        return rng.choice((0, 1, 3, 64, -1, 127))
    return rng.choice((_TOPIC, _TOPIC, _TOPIC, _BROKER, _METRICS, _GROUP, _LOGGER))


def _describe_resource(rng: random.Random, _api: Api, _version: int, made: Value) -> Value:
    kind = _resource_type(rng)
    keys = made.configuration_keys
    if keys is not None or kind in (_BROKER, _LOGGER):
        pool = [*_BY_TYPE.get(kind, TOPIC_CONFIGS), "nope"]
        least = 1 if kind == _LOGGER else 0
        keys = tuple(rng.choice(pool) for _ in range(rng.randint(least, 3)))
    return replace(
        made,
        resource_type=kind,
        resource_name=_resource_name(rng, kind, made.resource_name),
        configuration_keys=keys,
    )


def _resource_name(rng: random.Random, kind: int, topic: str) -> str:
    if kind in (_BROKER, _LOGGER) and rng.random() > 0.05:
        return rng.choice(("1", "1", "1", "", "2", "x", "-1"))
    return topic


def _altered_resource(rng: random.Random, _api: Api, _version: int, made: Value) -> Value:
    kind = _resource_type(rng)
    pool = _BY_TYPE.get(kind, TOPIC_CONFIGS)
    configs = []
    for config in made.configs:
        name = rng.choice([*pool, "nope"] if rng.random() < 0.1 else list(pool))
        values = pool.get(name, ("1",))
        value = None if rng.random() < 0.1 else rng.choice(values)
        configs.append(replace(config, name=name, value=value))
    name = _resource_name(rng, kind, made.resource_name)
    return replace(made, resource_type=kind, resource_name=name, configs=tuple(configs))


def _topic_config(rng: random.Random, _api: Api, _version: int, made: Value) -> Value:
    name = rng.choice(list(TOPIC_CONFIGS) if rng.random() < 0.9 else ["nope", ""])
    value = rng.choice((*TOPIC_CONFIGS.get(name, ("1",)), None))
    return replace(made, name=name, value=value)


def _creatable(rng: random.Random, _api: Api, _version: int, made: Value) -> Value:
    """Either numbers or assignments, most of the time."""
    if made.assignments and rng.random() < 0.8:
        return replace(made, num_partitions=-1, replication_factor=-1)
    if rng.random() < 0.8:
        return replace(made, assignments=())
    return made


def _distinct(topics: str, name: str, partitions: str, index: str) -> Together:
    """Name each topic once, and each of its partitions.

    :param topics: Field of the request, and so on inwards: of a topic's name, its partitions, and
        a partition's index.
    """

    def distinct(_rng: random.Random, _api: Api, _version: int, made: Value) -> Value:
        found = {(getattr(each, name), each.topic_id): each for each in getattr(made, topics)}
        once = (
            replace(topic, **{partitions: _each_once(getattr(topic, partitions), index)})
            for topic in found.values()
        )
        return replace(made, **{topics: tuple(once)})

    return distinct


def _each_once(elements: Sequence[Value], key: str) -> tuple[Value, ...]:
    return tuple({getattr(each, key): each for each in elements}.values())


def _named_one_way(_rng: random.Random, _api: Api, _version: int, made: Value) -> Value:
    return made if made.topic_id is None else replace(made, name=None)


def _no_credentials(_rng: random.Random, _api: Api, _version: int, made: Value) -> Value:
    return replace(made, upsertions=())


def _distinct_resources(_rng: random.Random, _api: Api, _version: int, made: Value) -> Value:
    distinct = {(each.resource_type, each.resource_name): each for each in made.resources}
    return replace(made, resources=tuple(distinct.values()))


def _new_group(rng: random.Random, _api: Api, version: int, made: Value) -> Value:
    made = replace(made, protocols=_each_once(made.protocols, "name"))
    if version > 0 or made.group_id == "":
        return made
    return replace(made, group_id=f"{made.group_id}-v0-{rng.randrange(10**9)}")


def _validated(_rng: random.Random, _api: Api, version: int, made: Value) -> Value:
    """An UpdateFeatures that changes nothing: version 0 has nothing to say so."""
    if version > 0:
        return replace(made, validate_only=True)
    updates = tuple(replace(each, feature="nope") for each in made.feature_updates)
    return replace(made, feature_updates=updates)


def _of_own_producer(prefix: str = "") -> Together:
    """Name the producer of the transactional id, most of the time.

    :param prefix: Of the fields' names.
    """

    def own(rng: random.Random, _api: Api, _version: int, made: Value) -> Value:
        name = getattr(made, f"{prefix}transactional_id")
        if not name or rng.random() < _OF_ANOTHER:
            return made
        return replace(made, **{f"{prefix}producer_id": Ref("producer", name)})

    return own


def _added(rng: random.Random, api: Api, version: int, made: Value) -> Value:
    """One transaction at least, where there can be several, and each once."""
    if version < _FIRST_WITH_TRANSACTIONS:
        return _of_own_producer("v3_and_below_")(rng, api, version, made)
    transactions = made.transactions or (AddPartitionsToTxnTransaction(transactional_id="t"),)
    return replace(made, transactions=_each_once(transactions, "transactional_id"))


def _one_marker(_rng: random.Random, _api: Api, _version: int, made: Value) -> Value:
    return replace(made, markers=made.markers[:1])


def _distinct_marked(_rng: random.Random, _api: Api, _version: int, made: Value) -> Value:
    """Name each topic once, and each of its partitions."""
    once = (
        replace(each, partition_indexes=tuple(dict.fromkeys(each.partition_indexes)))
        for each in _each_once(made.topics, "name")
    )
    return replace(made, topics=tuple(once))


STRUCTS: Final[Mapping[str, Together]] = {
    "describe_configs.DescribeConfigsResource": _describe_resource,
    "alter_configs.AlterConfigsResource": _altered_resource,
    "incremental_alter_configs.AlterConfigsResource": _altered_resource,
    "alter_user_scram_credentials.AlterUserScramCredentialsRequest": _no_credentials,
    "produce.ProduceRequest": _distinct("topic_data", "name", "partition_data", "index"),
    "fetch.FetchRequest": _distinct("topics", "topic", "partitions", "partition"),
    "offset_commit.OffsetCommitRequest": _distinct(
        "topics", "name", "partitions", "partition_index"
    ),
    "metadata.MetadataRequestTopic": _named_one_way,
    "alter_configs.AlterConfigsRequest": _distinct_resources,
    "create_topics.CreatableTopicConfig": _topic_config,
    "create_topics.CreatableTopic": _creatable,
    "join_group.JoinGroupRequest": _new_group,
    "update_features.UpdateFeaturesRequest": _validated,
    "add_partitions_to_txn.AddPartitionsToTxnRequest": _added,
    "add_partitions_to_txn.AddPartitionsToTxnTransaction": _of_own_producer(),
    "add_offsets_to_txn.AddOffsetsToTxnRequest": _of_own_producer(),
    "txn_offset_commit.TxnOffsetCommitRequest": _of_own_producer(),
    "end_txn.EndTxnRequest": _of_own_producer(),
    "write_txn_markers.WriteTxnMarkersRequest": _one_marker,
    "write_txn_markers.WritableTxnMarker": _distinct_marked,
}
"""What each struct is changed by, by the module and the name of its class."""
