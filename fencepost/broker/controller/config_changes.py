"""Changes of resources' dynamic configs, for both APIs that alter them.

As in Apache Kafka the checks come in this order: duplicate names, nulls, the kind of resource, the
operations, its name, the resulting configs, and only then whether a topic exists. The name of a
broker is checked before the operations, because the node that is asked checks it. A
resource is changed as a whole or not at all, and does not wait for the others of its request.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final, Protocol

from msgspec import Struct

from fencepost.broker.configs.broker_configs import broker_configs, unknown_broker_config
from fencepost.broker.configs.broker_rules import dynamic_problem
from fencepost.broker.configs.client_metrics_configs import validate_client_metrics_configs
from fencepost.broker.configs.config_def import ConfigError
from fencepost.broker.configs.config_layers import NO_CONFIGS, ConfigLayers
from fencepost.broker.configs.group_configs import validate_group_configs
from fencepost.broker.configs.operations import (
    AlterConfigOp,
    OpType,
    apply_operations,
    check_operations,
)
from fencepost.broker.configs.topic_configs import topic_configs
from fencepost.broker.controller.elr_configs import elr_config_problem
from fencepost.broker.controller.log_level_changes import apply_log_levels, log_level_problem
from fencepost.broker.controller.topic_changes import topic_name_problem
from fencepost.broker.core.log_levels import LogLevels
from fencepost.broker.metadata.features import keeps_eligible_replicas
from fencepost.broker.metadata.image import ClusterImage
from fencepost.protocol.errors import ErrorCode


class ResourceType(IntEnum):
    """What can have configs, numbered as the APIs number it."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Alteration(Struct, frozen=True, kw_only=True):
    """What a request wants of one resource. ``resource_type`` is as the client sent it."""

    resource_type: int
    resource_name: str
    operations: Sequence[AlterConfigOp]


class TopicChange(Struct, frozen=True, kw_only=True):
    """All the dynamic configs that a topic has from now on."""

    topic: str
    configs: Mapping[str, str]


class BrokerChange(Struct, frozen=True, kw_only=True):
    """All the dynamic configs that a broker, or (None) every broker, has from now on."""

    broker_id: int | None
    configs: Mapping[str, str]


class GroupChange(Struct, frozen=True, kw_only=True):
    """All the dynamic configs that a group has from now on."""

    group: str
    configs: Mapping[str, str]


class ClientMetricsChange(Struct, frozen=True, kw_only=True):
    """All the configs that a client metrics subscription has from now on; without any it goes."""

    subscription: str
    configs: Mapping[str, str]


class LogLevelChange(Struct, frozen=True, kw_only=True):
    """Levels of loggers that are set or unset."""

    operations: Sequence[AlterConfigOp]


Decision = (
    TopicChange | BrokerChange | GroupChange | ClientMetricsChange | LogLevelChange | ConfigError
)


class ConfigRegistry(Protocol):
    """What the controller does for configs."""

    image: ClusterImage
    log_levels: LogLevels

    def set_configs_of_topics(self, changed: Mapping[str, Mapping[str, str]]) -> None:
        """Replace the dynamic configs of topics."""
        ...

    def set_broker_configs(self, broker_id: int | None, configs: Mapping[str, str]) -> None:
        """Replace the dynamic configs of a broker, or (None) those of all."""
        ...

    def set_group_configs(self, group: str, configs: Mapping[str, str]) -> None:
        """Replace the dynamic configs of a group."""
        ...

    def set_client_metrics_configs(self, subscription: str, configs: Mapping[str, str]) -> None:
        """Replace the configs of a client metrics subscription."""
        ...


_NOT_A_LIST: Final = "Can't {op} to key {name} because its type is not LIST."
_DUPLICATE: Final = "Each resource must appear at most once."


class ConfigChanges(Struct, frozen=True, kw_only=True):
    """Changes that one node was asked for. They are the controller's to make."""

    registry: ConfigRegistry
    broker_id: int
    """The node that was asked: a broker changes no other's configs."""
    any_broker: bool = False
    """Whether configs of every broker may be changed, as where the controller is asked."""
    layers: ConfigLayers
    """The configs of the node that was asked."""
    replace: bool
    """Whether the operations replace all configs (AlterConfigs) instead of changing some."""

    def apply(
        self, alterations: Sequence[Alteration], *, validate_only: bool
    ) -> list[ConfigError | None]:
        """Change every resource that may be changed; answers what is wrong with each, in order."""
        times = Counter((a.resource_type, a.resource_name) for a in alterations)
        errors: list[ConfigError | None] = []
        topics: dict[str, Mapping[str, str]] = {}
        for alteration in alterations:
            if times[alteration.resource_type, alteration.resource_name] > 1:
                errors.append(_invalid_request(_DUPLICATE))
                continue
            decision = self.decide(alteration)
            if not validate_only:
                self._apply_decision(decision, topics)
            errors.append(decision if isinstance(decision, ConfigError) else None)
        if topics:
            self.registry.set_configs_of_topics(topics)
        return errors

    def decide(self, alteration: Alteration) -> Decision:
        """What an alteration comes to; nothing is changed."""
        name, operations = alteration.resource_name, alteration.operations
        problem = check_operations(operations)
        if problem is not None:
            return problem
        match alteration.resource_type:
            case ResourceType.TOPIC:
                return self._topic(name, operations)
            case ResourceType.BROKER:
                return self._broker(name, operations)
            case ResourceType.GROUP:
                return self._group(name, operations)
            case ResourceType.CLIENT_METRICS:
                return self._client_metrics(name, operations)
            case ResourceType.BROKER_LOGGER if not self.replace:
                return self._logger(name, operations)
            case unknown:
                return _invalid_request(f"Unknown resource type {int(unknown)}")

    def _apply_decision(self, decision: Decision, topics: dict[str, Mapping[str, str]]) -> None:
        """What changes nothing makes no new image.

        :param topics: Collects the changes of topics, which are made in one image.
        """
        registry, image = self.registry, self.registry.image
        match decision:
            case TopicChange(topic=topic, configs=configs):
                if configs != image.configs_of(topic):
                    topics[topic] = configs
            case BrokerChange(broker_id=broker_id, configs=configs):
                if configs != image.broker_configs.get(broker_id, NO_CONFIGS):
                    registry.set_broker_configs(broker_id, configs)
            case GroupChange(group=group, configs=configs):
                registry.set_group_configs(group, configs)
            case ClientMetricsChange(subscription=name, configs=configs):
                registry.set_client_metrics_configs(name, configs)
            case LogLevelChange(operations=operations):
                apply_log_levels(registry.log_levels, operations)
            case ConfigError():
                pass

    def _topic(self, name: str, operations: Sequence[AlterConfigOp]) -> Decision:
        configs = apply_operations(
            NO_CONFIGS if self.replace else self.registry.image.configs_of(name),
            operations,
            topic_configs(),
            not_a_list=_NOT_A_LIST,
        )
        if isinstance(configs, ConfigError):
            return configs
        if not name:
            return _invalid_request("Default topic resources are not allowed.")
        problem = topic_name_problem(name)
        if problem is not None:
            return ConfigError(
                code=ErrorCode.INVALID_TOPIC_EXCEPTION, message=f"Topic name is invalid: {problem}"
            )
        before = self.registry.image.configs_of(name)
        if configs or before:
            invalid = self.layers.topic_problem(configs, before)
        else:  # as for each other topic without configs
            invalid = self.layers.problem_of_defaults
        if invalid is not None:
            return invalid
        if name not in self.registry.image.topics:
            return ConfigError(
                code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                message=f"The topic '{name}' does not exist.",
            )
        return TopicChange(topic=name, configs=configs)

    def _broker(self, name: str, operations: Sequence[AlterConfigOp]) -> Decision:
        broker_id: int | None = None
        if name:
            broker_id = parse_node_id(name)
            if broker_id is None:
                return _invalid_request(f"Node id must be an integer, but it is: {name}")
            if broker_id != self.broker_id and not self.any_broker:
                return _invalid_request(
                    f"Unexpected broker id, expected {self.broker_id}, but received {name}"
                )
        if self.layers.strict:
            set_now = [o.name for o in operations if o.op_type != OpType.DELETE]
            unknown = unknown_broker_config(set_now)
            if unknown is not None:
                return unknown
        configs = apply_operations(
            NO_CONFIGS
            if self.replace
            else self.registry.image.broker_configs.get(broker_id, NO_CONFIGS),
            operations,
            broker_configs(),
            not_a_list="Config value {lower} is not allowed for config key: {name}",
            unknown="Unknown config name: {name}",
        )
        if isinstance(configs, ConfigError):
            return configs
        invalid = dynamic_problem(self.layers, configs, per_broker=broker_id is not None)
        if invalid is None and keeps_eligible_replicas(self.registry.image.features):
            named = {operation.name for operation in operations}
            if self.replace:
                named |= self.registry.image.broker_configs.get(broker_id, NO_CONFIGS).keys()
            invalid = elr_config_problem(broker_id, named, configs)
        return invalid or BrokerChange(broker_id=broker_id, configs=configs)

    def _group(self, name: str, operations: Sequence[AlterConfigOp]) -> Decision:
        configs = self._without_lists(self.registry.image.group_configs.get(name), operations)
        if isinstance(configs, ConfigError):
            return configs
        if not name:
            return _invalid_request("Default group resources are not allowed.")
        return validate_group_configs(configs, self.layers) or GroupChange(
            group=name, configs=configs
        )

    def _client_metrics(self, name: str, operations: Sequence[AlterConfigOp]) -> Decision:
        before = self.registry.image.client_metrics_configs.get(name)
        configs = self._without_lists(before, operations)
        if isinstance(configs, ConfigError):
            return configs
        if not name:
            return _invalid_request("Subscription name can't be empty")
        return validate_client_metrics_configs(configs) or ClientMetricsChange(
            subscription=name, configs=configs
        )

    def _without_lists(
        self, before: Mapping[str, str] | None, operations: Sequence[AlterConfigOp]
    ) -> dict[str, str] | ConfigError:
        """Apply operations where Kafka appends to no config, not even to its lists."""
        return apply_operations(
            NO_CONFIGS if self.replace or before is None else before,
            operations,
            {},
            not_a_list=_NOT_A_LIST,
        )

    def _logger(self, name: str, operations: Sequence[AlterConfigOp]) -> Decision:
        broker_id = parse_node_id(name)
        if broker_id is None:
            return _invalid_request(f"Node id must be an integer, but it is: {name}")
        if broker_id != self.broker_id:
            return _invalid_request(
                f"Unexpected node id. Expected {self.broker_id}, but received {name}"
            )
        levels, strict = self.registry.log_levels, self.layers.strict
        problem = log_level_problem(levels, operations, strict=strict)
        return problem or LogLevelChange(operations=operations)


def parse_node_id(text: str) -> int | None:
    """A broker id as clients write it, None where it is not a number."""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() else None


def _invalid_request(message: str) -> ConfigError:
    return ConfigError(code=ErrorCode.INVALID_REQUEST, message=message)


def _invalid_config(message: str) -> ConfigError:
    return ConfigError(code=ErrorCode.INVALID_CONFIG, message=message)
