"""Topic configs: the table, the broker configs that hold their defaults, and validation.

CreateTopics, AlterConfigs and IncrementalAlterConfigs all call `validate_topic_configs`. The rules
for tiered topics (KIP-405, KIP-950) are those of Apache Kafka 4.3.1; each raises `InvalidConfig`,
in Kafka's words, where configs contradict each other.
"""

from collections.abc import Mapping
from functools import cache
from typing import Final

from fencepost.broker.configs.config_def import (
    ConfigError,
    InvalidConfig,
    Table,
    Value,
    has_leader_epochs,
    parse,
    require_effect,
)
from fencepost.broker.configs.config_table import config_tables
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.lookup import config_name_hint
from fencepost.storage.log.config import INHERITED

_UNLIMITED: Final = -1
_DISABLED: Final = (
    "Tiered Storage functionality is disabled in the broker. "
    "Topic cannot be configured with remote log storage."
)
_POLICY: Final = (
    "Remote log storage only supports topics with cleanup.policy=delete or "
    "cleanup.policy being an empty list."
)
_DISABLED_WITHOUT_DELETE: Final = (
    "It is invalid to disable remote storage without deleting remote data. If you want to keep the "
    "remote data and turn to read only, please set "
    "`remote.storage.enable=true,remote.log.copy.disable=true`. If you want to disable remote "
    "storage and delete all remote data, please set "
    "`remote.storage.enable=false,remote.log.delete.on.disable=true`."
)
_COPY_DISABLED: Final = (
    "When `remote.log.copy.disable` is set to true, the `{local}` and `{total}` must be set to the "
    "identical value because there will be no more logs copied to the remote storage."
)
_PAIRS: Final = (
    ("retention.bytes", "local.retention.bytes"),
    ("retention.ms", "local.retention.ms"),
)


def validate_remote_storage(values: Mapping[str, Value], *, tiered: bool) -> None:
    """Require that a topic with these configs may be tiered.

    :param values: All of its configs.
    :param tiered: Whether the broker serves tiered storage.
    """
    if not tiered:
        raise InvalidConfig(_DISABLED)
    if values["cleanup.policy"] not in ((), ("delete",)):
        raise InvalidConfig(_POLICY)
    version = values["message.format.version"]
    if not (isinstance(version, str) and has_leader_epochs(version)):
        raise InvalidConfig(
            "Remote log storage needs leader epochs, which message.format.version has from 0.11 on"
        )
    if values["check.expected.offsets"] and values["check.expected.offsets.scope"] == "key":
        raise InvalidConfig(
            "check.expected.offsets.scope=key does not go with remote.storage.enable=true: the "
            "keys of records that are only in the tier are not known"
        )
    for total, local in _PAIRS:
        validate_local_retention(local, values[local], total, values[total])
    if values["remote.log.copy.disable"]:
        for total, local in _PAIRS:
            if values[local] not in (INHERITED, values[total]):
                raise InvalidConfig(_COPY_DISABLED.format(local=local, total=total))


def validate_local_retention(local: str, kept: Value, total: str, limit: Value) -> None:
    """Require that local retention is at most the retention of the whole log.

    :param local: Name of the config whose value is ``kept``.
    :param total: Name of the config whose value is ``limit``.
    """
    assert isinstance(kept, int)
    assert isinstance(limit, int)
    if limit == _UNLIMITED or kept == INHERITED:
        return
    invalid = f"Invalid value {kept} for configuration {local}: "
    if kept == _UNLIMITED:
        raise InvalidConfig(f"{invalid}Value must not be -1 as {total} value is set as {limit}.")
    if kept > limit:
        raise InvalidConfig(f"{invalid}Value must not be more than {total} property value: {limit}")


def validate_remote_storage_disable(values: Mapping[str, Value]) -> None:
    """Require that remote data are deleted where tiering is switched off."""
    if not values["remote.log.delete.on.disable"]:
        raise InvalidConfig(_DISABLED_WITHOUT_DELETE)


def topic_configs() -> Table:
    """Every topic config, by name."""
    return config_tables().topic


@cache
def broker_synonyms() -> Mapping[str, str]:
    """The broker config that a topic config takes its default from, by topic config."""
    return {name: config.synonym for name, config in topic_configs().items() if config.synonym}


@cache
def topic_defaults() -> Mapping[str, Value]:
    """The defaults of every topic config, parsed, where no broker config says otherwise."""
    return {name: config.default_value for name, config in topic_configs().items()}


def validate_topic_configs(
    configs: Mapping[str, str | None],
    defaults: Mapping[str, Value] | None = None,
    *,
    tiered: bool = False,
    on_disk: bool = False,
    strict: bool = False,
    before: Mapping[str, str] | None = None,
) -> ConfigError | None:
    """Whether a topic may have these configs, all of them together; None when it may.

    `ConfigLayers.topic_problem` asks it for a broker. ``defaults`` are the values of the configs
    that are not among them; Kafka's own where left out. ``tiered`` says whether the broker serves
    tiered storage; ``before`` are the configs that the topic has so far. With ``strict`` one that
    has no effect is refused; whether it has may depend on logs in files (``on_disk``). The error is
    always INVALID_CONFIG, in Kafka's words where the rule is Kafka's.
    """
    message = _null(configs) or _unknown(configs)
    if message is None:
        try:
            values = _require_valid(configs, defaults)
            if strict:
                _require_effects(configs, on_disk=on_disk)
            _require_tier(values, before or {}, tiered=tiered)
        except InvalidConfig as error:
            message = str(error)
    return None if message is None else ConfigError(code=ErrorCode.INVALID_CONFIG, message=message)


def _unknown(configs: Mapping[str, str | None]) -> str | None:
    table = topic_configs()
    for name in configs:
        if name not in table:
            others = {broker: topic for topic, broker in broker_synonyms().items()}
            hint = config_name_hint(name, table, others, "topic")
            return f"Unknown topic config name: {name}{hint}"
    return None


def _null(configs: Mapping[str, str | None]) -> str | None:
    nulls = [name for name, text in configs.items() if text is None]
    return f"Null value not supported for topic configs: {','.join(nulls)}" if nulls else None


def _require_valid(
    configs: Mapping[str, str | None], defaults: Mapping[str, Value] | None
) -> Mapping[str, Value]:
    """All configs that the topic has then."""
    table = topic_configs()
    parsed = {name: parse(table[name], text) for name, text in configs.items() if text is not None}
    values = {**(topic_defaults() if defaults is None else defaults), **parsed}
    _require_order(values)
    return values


def _require_effects(configs: Mapping[str, str | None], *, on_disk: bool) -> None:
    table = topic_configs()
    for name, text in configs.items():
        if text is not None:
            require_effect(table[name], text, parse(table[name], text), on_disk=on_disk)


def _require_tier(values: Mapping[str, Value], before: Mapping[str, str], *, tiered: bool) -> None:
    name = "remote.storage.enable"
    if values[name]:
        validate_remote_storage(values, tiered=tiered)
    elif name in before and parse(topic_configs()[name], before[name]):
        validate_remote_storage_disable(values)


def _require_order(values: Mapping[str, Value]) -> None:
    low, high = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    if isinstance(low, int) and isinstance(high, int) and low > high:
        raise InvalidConfig(
            f"conflict topic config setting min.compaction.lag.ms ({low}) "
            f"> max.compaction.lag.ms ({high})"
        )
