"""Rules between broker configs, as Apache Kafka 4.3.1 has them: which sets of values it refuses.

Each rule is Kafka's, and its message. Left out are those that compare a config that acts with one
that has no effect here (``replica.lag.time.max.ms`` with ``replica.fetch.wait.max.ms``): a test may
want a lag of 100 ms.
"""

from collections.abc import Callable, Mapping
from typing import Final

from fencepost.broker.configs.broker_configs import broker_configs, validate_dynamic_configs
from fencepost.broker.configs.config_def import ConfigError, InvalidConfig, Value, parse
from fencepost.broker.configs.config_layers import ConfigLayers
from fencepost.broker.configs.topic_configs import broker_synonyms, validate_local_retention
from fencepost.protocol.errors import ErrorCode

_MEBIBYTE: Final = 1 << 20
_CONTROLLER: Final = "CONTROLLER"
_PROTOCOLS: Final = "listener.security.protocol.map"
_OVERRIDES: Final = "max.connections.per.ip.overrides"
_THREADS: Final = (
    "background.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
    "remote.log.reader.threads",
)
_NOT_ABOVE: Final = {
    f"group.{kind}.assignment.interval.ms": f"group.{kind}.max.assignment.interval.ms"
    for kind in ("consumer", "share", "streams")
}
_NOT_BELOW: Final = {
    f"group.{kind}.assignment.interval.ms": f"group.{kind}.min.assignment.interval.ms"
    for kind in ("consumer", "share", "streams")
}


def static_problem(configs: Mapping[str, str]) -> ConfigError | None:
    """Why brokers may not start with these configs, of which each by itself is valid."""
    message = _first(_RULES, ConfigLayers(static=configs), configs)
    return None if message is None else ConfigError(code=ErrorCode.INVALID_CONFIG, message=message)


def dynamic_problem(
    now: ConfigLayers, configs: Mapping[str, str], *, per_broker: bool
) -> ConfigError | None:
    """Why these may not be all the dynamic configs of a broker, or (not ``per_broker``) of all.

    :param now: The broker's configs.
    """
    problem = validate_dynamic_configs(
        configs, per_broker=per_broker, on_disk=now.on_disk, strict=now.strict
    )
    if problem is not None:
        return problem
    then = now.with_dynamic(configs, per_broker=per_broker)
    message = _first(_RULES, then, configs)
    if message is None:
        change = _change_problem(now, then, configs) or _local_retention_problem(
            configs, now.topic_defaults
        )
        if change is not None:
            message = (
                "Invalid value org.apache.kafka.common.config.ConfigException: "
                f"{change} for configuration Invalid dynamic configuration"
            )
    return None if message is None else ConfigError(code=ErrorCode.INVALID_REQUEST, message=message)


_Rule = Callable[[ConfigLayers], str | None]


def _first(
    rules: Mapping[tuple[str, ...], _Rule], layers: ConfigLayers, configs: Mapping[str, str]
) -> str | None:
    """The message of the first rule that is broken, of those about some of the configs."""
    for names, rule in rules.items():
        if configs.keys() & set(names):
            message = rule(layers)
            if message is not None:
                return message
    return None


# -- of every set --------------------------------------------------------------------------------


def _cleaner_memory(layers: ConfigLayers) -> str | None:
    size, threads = (
        _int(layers, f"log.cleaner.{name}") for name in ("dedupe.buffer.size", "threads")
    )
    if not threads:
        return "/ by zero"
    if size // threads > _MEBIBYTE:
        return None
    return (
        "requirement failed: log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner "
        "thread."
    )


def _queued_bytes(layers: ConfigLayers) -> str | None:
    queued = _int(layers, "queued.max.request.bytes")
    if queued <= 0 or queued >= _int(layers, "socket.request.max.bytes"):
        return None
    return (
        "requirement failed: queued.max.request.bytes must be larger or equal to "
        "socket.request.max.bytes"
    )


def _connections_per_ip(layers: ConfigLayers) -> str | None:
    try:
        overrides = parse_overrides(str(layers.value(_OVERRIDES)))
    except InvalidConfig as error:
        return str(error)
    if overrides or _int(layers, "max.connections.per.ip"):
        return None
    return (
        "requirement failed: max.connections.per.ip can be set to zero only if "
        "max.connections.per.ip.overrides property is set."
    )


def parse_overrides(text: str) -> dict[str, int]:
    """Read ``max.connections.per.ip.overrides``: connections by host or address.

    :raises InvalidConfig: In the words of Java, which Kafka passes on.
    """
    found = {}
    for entry in filter(None, (piece.strip() for piece in text.split(","))):
        host, colon, number = entry.rpartition(":")
        if not colon:
            raise InvalidConfig(
                f"Error parsing configuration property '{_OVERRIDES}': "
                f"begin 0, end -1, length {len(entry)}"
            )
        number = number.strip()
        if not number.removeprefix("-").isdecimal() or not number.isascii():
            raise InvalidConfig(f'For input string: "{number}"')
        found[host.strip()] = int(number)
    return found


def _assignment_intervals(layers: ConfigLayers) -> str | None:
    for name, limit in _NOT_ABOVE.items():
        if _int(layers, name) > _int(layers, limit):
            return f"{name} must be less than or equal to {limit}"
    for name, limit in _NOT_BELOW.items():
        if _int(layers, name) < _int(layers, limit):
            return f"{name} must be greater than or equal to {limit}"
    return None


def _protocol_map(layers: ConfigLayers) -> str | None:
    for entry in str(layers.value(_PROTOCOLS)).split(","):
        if ":" not in entry:
            return (
                f"Error parsing configuration property '{_PROTOCOLS}': "
                f"begin 0, end -1, length {len(entry.strip())}"
            )
    return None


def _listeners(layers: ConfigLayers) -> str | None:
    if not layers.is_dynamic("listeners"):  # fencepost's own
        return None
    listeners = _tuple(layers.value("listeners"))
    named = [each.partition(":")[0].upper() for each in listeners]
    mapped = [each.partition(":")[0].strip() for each in str(layers.value(_PROTOCOLS)).split(",")]
    for name in named:
        if name not in mapped and name != _CONTROLLER:
            return (
                f"Error creating broker listeners from '[{', '.join(listeners)}]': "
                f"No security protocol defined for listener {name}"
            )
    if _CONTROLLER in named:
        return None
    return (
        "requirement failed: controller.listener.names must contain at least one value appearing "
        "in the 'listeners' configuration when running the KRaft controller role"
    )


_RULES: Final[Mapping[tuple[str, ...], _Rule]] = {
    ("log.cleaner.dedupe.buffer.size", "log.cleaner.threads"): _cleaner_memory,
    ("queued.max.request.bytes", "socket.request.max.bytes"): _queued_bytes,
    ("max.connections.per.ip", _OVERRIDES): _connections_per_ip,
    (*_NOT_ABOVE, *_NOT_ABOVE.values(), *_NOT_BELOW.values()): _assignment_intervals,
    (_PROTOCOLS,): _protocol_map,
    ("listeners",): _listeners,
}
"""By the configs that they are about."""


# -- of changes ----------------------------------------------------------------------------------


def _change_problem(
    now: ConfigLayers, then: ConfigLayers, configs: Mapping[str, str]
) -> str | None:
    """What a running broker does not change to."""
    for name in sorted(configs.keys() & set(_THREADS)):
        wanted, current = _int(then, name), _int(now, name)
        wrong = f"Dynamic thread count update validation failed for {name}={wanted}, value should"
        if wanted > 2 * current:
            return f"{wrong} not be greater than double the current value {current}"
        if wanted < current // 2:
            return f"{wrong} be at least half the current value {current}"
    wanted, current = _int(then, "log.cleaner.threads"), _int(now, "log.cleaner.threads")
    if wanted > 2 * current:
        return (
            "Log cleaner threads cannot be increased to more than double the current value "
            f"{current}"
        )
    if wanted < current // 2:
        return (
            f"Log cleaner threads cannot be reduced to less than half the current value {current}"
        )
    for name in ("max.connections", "max.connection.creation.rate"):
        if name in configs and _int(then, name) <= 0:
            return f"Invalid {name} {configs[name]}"
    return None


def _local_retention_problem(
    configs: Mapping[str, str], defaults: Mapping[str, Value]
) -> str | None:
    """Whether more would be kept here than in all.

    :param defaults: What holds without these configs, by topic config.
    """
    table = broker_configs()
    for unit in ("bytes", "ms"):
        total, local = f"retention.{unit}", f"local.retention.{unit}"
        names = broker_synonyms()[total], broker_synonyms()[local]
        if not configs.keys() & names:
            continue
        limit, kept = (
            parse(table[name], configs[name]) if name in configs else defaults[topic_config]
            for name, topic_config in zip(names, (total, local), strict=True)
        )
        try:
            validate_local_retention(names[1], kept, names[0], limit)
        except InvalidConfig as error:
            return str(error)
    return None


def _int(layers: ConfigLayers, name: str) -> int:
    value = layers.value(name)
    assert isinstance(value, int)
    return value


def _tuple(value: Value) -> tuple[str, ...]:
    assert isinstance(value, tuple)
    return value
