"""What a record of the metadata log must say before it is applied.

The file may be damaged, forged, or of another program: its names become paths, its numbers array
sizes and broker ids. Each check says in one line what is wrong and what would be right. A line's
checksum only shows that it was written in one piece.
"""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final
from uuid import UUID

from fencepost.broker.configs.config_def import ConfigDef, InvalidConfig, parse
from fencepost.broker.controller import MAX_BROKER_ID
from fencepost.broker.controller.topic_changes import topic_name_problem
from fencepost.broker.metadata.features import SUPPORTED_UNSTABLE
from fencepost.broker.metadata.image import NO_LEADER, TopicImage

_INT32: Final = 1 << 30
_INT64: Final = 1 << 62
"""Half of what the protocol's numbers hold: they rise with each start."""
_LONGEST: Final = 80
_PARTITION_FIELDS: Final = range(5, 10)
_TOPIC_ID: Final = re.compile(r"[0-9a-f]{32}")
_CLUSTER_ID: Final = re.compile(r"[!-~]{1,249}")


class InvalidRecord(ValueError):
    """A record says what can't be. The text is one line."""


def check_record(record: list[Any], topics: Mapping[str, TopicImage]) -> None:
    """Check one record.

    :param topics: Those that the records before it made.
    :raises InvalidRecord: When it can't be applied.
    """
    if not record or not isinstance(record[0], str):
        raise InvalidRecord(f"{_show(record)} is no record: it begins with no kind")
    check = _CHECKS.get(record[0])
    if check is None:
        raise InvalidRecord(
            f"{_show(record[0])} is no kind of record that is known here: {', '.join(_CHECKS)} are"
        )
    count, function = check
    if len(record) != count:
        raise InvalidRecord(
            f"the record {record[0]!r} has {len(record) - 1} fields, and is to have {count - 1}"
        )
    function(record, topics)


def _check_cluster(record: list[Any], _topics: Mapping[str, TopicImage]) -> None:
    _, layout, cluster_id, starts = record
    _number("the layout", layout, 1, _INT32)
    if not isinstance(cluster_id, str) or not _CLUSTER_ID.fullmatch(cluster_id):
        raise InvalidRecord(
            f"the cluster's id is {_show(cluster_id)}, and is to be text without spaces"
        )
    _number("the number of starts", starts, 0, _INT32)


def _check_brokers(record: list[Any], _topics: Mapping[str, TopicImage]) -> None:
    for broker_id, epoch in _mapping("brokers", record[1]).items():
        if not broker_id.isascii() or not broker_id.isdecimal():
            raise InvalidRecord(f"a broker's id is {_show(broker_id)}, and is to be a number")
        _broker_id(int(broker_id))
        _number(f"the epoch of broker {broker_id}", epoch, 0, _INT64)


def _check_version(record: list[Any], _topics: Mapping[str, TopicImage]) -> None:
    _number("the version of the image", record[1], 0, _INT64)


def _check_features(record: list[Any], _topics: Mapping[str, TopicImage]) -> None:
    for name, level in _mapping("features", record[1]).items():
        if name not in SUPPORTED_UNSTABLE:
            raise InvalidRecord(
                f"the feature {_show(name)} is not known here: {', '.join(SUPPORTED_UNSTABLE)} is"
            )
        _number(f"the level of {name}", level, *SUPPORTED_UNSTABLE[name])


def _check_producer_ids(record: list[Any], _topics: Mapping[str, TopicImage]) -> None:
    _number("the next producer id", record[1], 0, _INT64)


def _check_broker_configs(record: list[Any], _topics: Mapping[str, TopicImage]) -> None:
    _, broker_id, configs = record
    if broker_id is not None:
        _broker_id(broker_id)
    if _mapping("a broker's configs", configs):
        from fencepost.broker.configs.broker_configs import find_broker_config

        _check_configs("broker", configs, {name: find_broker_config(name) for name in configs})


def _check_group_configs(record: list[Any], _topics: Mapping[str, TopicImage]) -> None:
    _, group, configs = record
    if _resource_configs("group", group, configs):
        from fencepost.broker.configs.group_configs import group_configs

        _check_configs(f"group {_show(group)}", configs, group_configs())


def _check_client_metrics_configs(record: list[Any], _topics: Mapping[str, TopicImage]) -> None:
    _, name, configs = record
    if _resource_configs("client metrics subscription", name, configs):
        from fencepost.broker.configs.client_metrics_configs import validate_client_metrics_configs

        for config, text in configs.items():
            if not isinstance(text, str):
                raise InvalidRecord(
                    f"{config} of {_show(name)} is {_show(text)}, and is to be text"
                )
        problem = validate_client_metrics_configs(configs)
        if problem is not None:
            raise InvalidRecord(
                f"client metrics subscription {_show(name)}: {_one_line(problem.message)}"
            )


def _resource_configs(kind: str, name: object, configs: object) -> dict[str, Any]:
    if not isinstance(name, str) or not name:
        raise InvalidRecord(f"{_show(name)} is no name of a {kind}")
    return _mapping(f"the configs of {kind} {_show(name)}", configs)


def _check_topic(record: list[Any], topics: Mapping[str, TopicImage]) -> None:
    _, name, topic_id, configs, partitions = record
    _topic_name(name)
    made = _topic_id(topic_id)
    if any(each.topic_id == made and each.name != name for each in topics.values()):
        raise InvalidRecord(f"topic {name}: its id {topic_id} is that of another topic too")
    _check_topic_configs(name, configs)
    if not isinstance(partitions, list) or not partitions:
        raise InvalidRecord(f"topic {name} has no partitions, and is to have one at least")
    for index, partition in enumerate(partitions):
        _check_partition_fields(f"{name}-{index}", partition)


def _check_partition(record: list[Any], topics: Mapping[str, TopicImage]) -> None:
    _, name, index, partition = record
    topic = _known_topic(name, topics)
    _number(f"an index of topic {name}", index, 0, len(topic.partitions) - 1)
    _check_partition_fields(f"{name}-{index}", partition)


def _check_of_topic(record: list[Any], topics: Mapping[str, TopicImage]) -> None:
    _, name, configs = record
    _known_topic(name, topics)
    _check_topic_configs(name, configs)


def _check_deleted(record: list[Any], topics: Mapping[str, TopicImage]) -> None:
    _, name, topic_id = record
    topic = _known_topic(name, topics)
    if _topic_id(topic_id) != topic.topic_id:
        raise InvalidRecord(
            f"topic {name} is deleted by the id {topic_id}, and has {topic.topic_id.hex}"
        )


_Check = Callable[[list[Any], Mapping[str, TopicImage]], None]
_CHECKS: Final[Mapping[str, tuple[int, _Check]]] = {
    "cluster": (4, _check_cluster),
    "brokers": (2, _check_brokers),
    "version": (2, _check_version),
    "features": (2, _check_features),
    "producer_ids": (2, _check_producer_ids),
    "broker_configs": (3, _check_broker_configs),
    "group_configs": (3, _check_group_configs),
    "client_metrics_configs": (3, _check_client_metrics_configs),
    "topic": (5, _check_topic),
    "partition": (4, _check_partition),
    "configs": (3, _check_of_topic),
    "deleted": (3, _check_deleted),
}
"""The kinds of records, how long each is, and its check."""


def _check_partition_fields(name: str, fields: object) -> None:
    if not isinstance(fields, list) or len(fields) not in _PARTITION_FIELDS:
        raise InvalidRecord(f"partition {name} is {_show(fields)}, and is to have 5 to 9 fields")
    replicas, isr, leader, leader_epoch, partition_epoch, *lists = fields
    _brokers(f"the replicas of {name}", replicas, range(MAX_BROKER_ID + 1))
    if not replicas:
        raise InvalidRecord(f"partition {name} has no replicas, and is to have one at least")
    _brokers(f"the ISR of {name}", isr, replicas)
    if leader != NO_LEADER:
        _brokers(f"the leader of {name}", [leader], replicas)
    _number(f"the leader epoch of {name}", leader_epoch, 0, _INT32)
    _number(f"the partition epoch of {name}", partition_epoch, 0, _INT32)
    kinds = ("eligible leaders", "last known leader", "adding replicas", "removing replicas")
    for kind, brokers in zip(kinds, lists, strict=False):
        _brokers(f"the {kind} of {name}", brokers, replicas)


def _brokers(what: str, brokers: object, among: Collection[int]) -> None:
    """Broker ids, each once, that are among others."""
    if not isinstance(brokers, list):
        raise InvalidRecord(f"{what} are {_show(brokers)}, and are to be a list of broker ids")
    for broker_id in brokers:
        if not isinstance(broker_id, int) or isinstance(broker_id, bool) or broker_id not in among:
            right = f"0 to {MAX_BROKER_ID}" if isinstance(among, range) else f"among {_show(among)}"
            raise InvalidRecord(f"{what}: {_show(broker_id)} is no id of a broker {right}")
    if len(set(brokers)) != len(brokers):
        raise InvalidRecord(f"{what} are {_show(brokers)}, and each is to be there once")


def _check_topic_configs(name: str, configs: object) -> None:
    given = _mapping(f"the configs of topic {name}", configs)
    if given:
        # The table of configs is read only where there are some: a start takes no longer.
        from fencepost.broker.configs.topic_configs import topic_configs

        _check_configs(f"topic {name}", given, topic_configs())


def _check_configs(
    whose: str, configs: Mapping[str, object], table: Mapping[str, ConfigDef | None]
) -> None:
    """Check texts; a broker may have some that no config defines, which ``table`` maps to None."""
    for name, text in configs.items():
        if name not in table:
            raise InvalidRecord(f"{whose}: the config {_show(name)} is not known here")
        if not isinstance(text, str):
            raise InvalidRecord(f"{whose}: {_show(name)} is {_show(text)}, and is to be text")
        config = table[name]
        try:
            if config is not None:
                parse(config, text)
        except InvalidConfig as error:
            raise InvalidRecord(f"{whose}: {_one_line(str(error))}") from error


def _mapping(what: str, found: object) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise InvalidRecord(f"{what} are {_show(found)}, and are to be a JSON object")
    return found


def _topic_name(name: object) -> None:
    problem = topic_name_problem(name) if isinstance(name, str) else "it is no text"
    if problem is not None:
        raise InvalidRecord(f"{_show(name)} is no name of a topic: {_one_line(problem)}")


def _known_topic(name: object, topics: Mapping[str, TopicImage]) -> TopicImage:
    topic = topics.get(name) if isinstance(name, str) else None
    if topic is None:
        raise InvalidRecord(f"{_show(name)} is changed, and no record before has such a topic")
    return topic


def _topic_id(text: object) -> UUID:
    if not isinstance(text, str) or not _TOPIC_ID.fullmatch(text) or not int(text, 16):
        raise InvalidRecord(
            f"a topic's id is {_show(text)}, and is to be 32 hexadecimal digits, not all 0"
        )
    return UUID(text)


def _broker_id(broker_id: object) -> None:
    _number("a broker's id", broker_id, 0, MAX_BROKER_ID)


def _number(what: str, number: object, low: int, high: int) -> None:
    if not isinstance(number, int) or isinstance(number, bool) or not low <= number <= high:
        raise InvalidRecord(
            f"{what} is {_show(number)}, and is to be a number from {low} to {high}"
        )


def _show(found: object) -> str:
    """Anything in one line, shortened."""
    text = ascii(found)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _one_line(text: str) -> str:
    return ascii(text)[1:-1][: 4 * _LONGEST]
