"""What a config is: its type, its default, the values it takes, and whether it acts here.

Texts are read as Apache Kafka 4.3.1 reads them. A text that it refuses is refused in its words,
because clients and tools look for them.

fencepost's own addition is `ConfigDef.effect`: whether setting a config changes anything that a
client or a reader of files could see. One without effect is taken, as Kafka takes it, and reported
once (`reports`); with ``--strict-configs`` it is refused (`require_effect`). The value that holds
anyway, its default, is neither. A config begins to act when its row in the data file says ``acts``
and a class of attributes declares it (see `effective_configs`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, TypeAlias

from msgspec import Struct

from fencepost.protocol.errors import ErrorCode

Value: TypeAlias = bool | int | float | str | tuple[str, ...] | None
"""A parsed config: lists are tuples; None is a config without a value."""


class ConfigType(IntEnum):
    """A config's type, numbered as DescribeConfigs v3+ answers it."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class UpdateMode(IntEnum):
    """How a broker config may change while the broker runs."""

    READ_ONLY = 0
    PER_BROKER = 1
    CLUSTER_WIDE = 2
    """For one broker or, as a default, for all of them."""


class Effect(IntEnum):
    """What setting a config does here."""

    ACTS = 0
    INERT = 1
    """Nothing."""
    FIXED = 2
    """Nothing: fencepost gives it its value itself, from its own options."""
    ON_DISK = 3
    """It acts where logs are kept in files (``--data-dir``), and is inert elsewhere."""


class ConfigError(Struct, frozen=True, kw_only=True):
    """Why a change of configs is refused: an error code and one line for a reader."""

    code: ErrorCode
    message: str


class InvalidConfig(ValueError):
    """A text that a config does not take; its message is Kafka's."""


class Valid(Struct, frozen=True, kw_only=True):
    """Which values a config takes, beyond its type. Bounds are inclusive."""

    at_least: float | None = None
    at_most: float | None = None
    or_else: int | None = None
    """A single value outside the bounds that is taken too."""
    one_of: tuple[str, ...] = ()
    """For lists: every entry must be one of these."""
    any_case: bool = False
    """Whether ``one_of`` looks past upper and lower case."""
    non_empty: bool = False
    throttled_replicas: bool = False
    format_version: bool = False
    """A release of Kafka, as ``message.format.version`` takes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigDef:
    """One config. ``default`` is text, None where Kafka has no default."""

    name: str
    type: ConfigType
    default: str | None
    doc: str
    valid: Valid | None = None
    mode: UpdateMode = UpdateMode.READ_ONLY
    """Broker configs only."""
    by_listener: bool = False
    """A broker config that changes at run time for single listeners only, under their prefix."""
    hidden: bool = False
    """DescribeConfigs shows it only where it is set, as Kafka's internal configs."""
    effect: Effect = Effect.ACTS
    reason: str = ""
    """Why it has no effect, where it has none."""
    also: str | None = None
    """A second text of an inert config that is as true here as the default."""
    synonym: str | None = None
    """The broker config that a config of a topic or a group takes its default from."""
    default_value: Value = field(init=False, compare=False, repr=False)
    """The default, parsed; not checked, since Kafka's own defaults may lie outside its bounds."""

    def __post_init__(self) -> None:
        # Each broker of each cluster reads hundreds of defaults, each time its configs change.
        value = None if self.default is None else _parse_type(self, self.default)
        object.__setattr__(self, "default_value", value)

    @property
    def sensitive(self) -> bool:
        """Whether its value is never shown: it is a secret, or what it is is not known."""
        return self.type in (ConfigType.PASSWORD, ConfigType.UNKNOWN)


Table: TypeAlias = Mapping[str, ConfigDef]
"""Configs by name."""

_INTEGERS: Final = {ConfigType.SHORT: 15, ConfigType.INT: 31, ConfigType.LONG: 63}
_DECIMAL: Final = frozenset("0123456789.eE+-")
_RELEASES: Final = (
    *("0.8.0", "0.8.1", "0.8.2", "0.9.0", "0.10.0", "0.10.1", "0.10.2", "0.11.0"),
    *("1.0", "1.1", "2.0", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8"),
    *("3.0", "3.1", "3.2", "3.3", "3.4", "3.5", "3.6", "3.7", "3.8", "3.9"),
    *("4.0", "4.1", "4.2", "4.3"),
)
_WITH_EPOCHS: Final = frozenset(_RELEASES[_RELEASES.index("0.11.0") :])


def parse(config: ConfigDef, text: str) -> Value:
    """Read a text as a value of this config.

    :raises InvalidConfig: When the text is not of its type, or not a value it takes.
    """
    value = _parse_type(config, text.strip())
    if config.valid is not None:
        _check(config, config.valid, value)
    return value


def has_no_effect(config: ConfigDef, text: str, value: Value, *, on_disk: bool = False) -> bool:
    """Whether a text would change nothing here, and is not what holds anyway.

    :param on_disk: Whether logs are kept in files.
    """
    if config.effect is Effect.ACTS or (config.effect is Effect.ON_DISK and on_disk):
        return False
    if config.effect is Effect.FIXED:
        return True
    is_also = config.also is not None and text.strip() == config.also
    return not is_also and value != config.default_value


def require_effect(config: ConfigDef, text: str, value: Value, *, on_disk: bool = False) -> None:
    """Refuse a text that would change nothing here, however right it is for Kafka.

    :param on_disk: Whether logs are kept in files.
    :raises InvalidConfig: When the config has no effect and ``value`` is not what holds anyway.
    """
    if not has_no_effect(config, text, value, on_disk=on_disk):
        return
    if config.effect is Effect.FIXED:
        raise InvalidConfig(
            f"Configuration {config.name} cannot be set in fencepost: {config.reason}"
        )
    shown = "[hidden]" if config.sensitive else to_text(value)
    raise InvalidConfig(
        f"Invalid value {shown} for configuration {config.name}: it has no effect in fencepost "
        f"({config.reason}); leave it {_as_it_is(config)}"
    )


def _as_it_is(config: ConfigDef) -> str:
    if config.default is None:
        return "unset"
    return f"at its default, {config.default}" if config.default else "empty"


def to_text(value: Value) -> str | None:
    """A value as Kafka shows it."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case tuple():
            return ",".join(value)
        case float():
            return _java_double(value)
        case _:
            return str(value)


def _parse_type(config: ConfigDef, text: str) -> Value:
    match config.type:
        case ConfigType.BOOLEAN:
            return _boolean(config.name, text)
        case ConfigType.SHORT | ConfigType.INT | ConfigType.LONG:
            return _integer(config, text)
        case ConfigType.DOUBLE:
            return _double(config, text)
        case ConfigType.LIST:
            return _list(config.name, text)
        case _:
            return text


def _boolean(name: str, text: str) -> bool:
    lowered = text.lower()
    if lowered not in {"true", "false"}:
        raise _invalid(name, text, "Expected value to be either true or false")
    return lowered == "true"


def _integer(config: ConfigDef, text: str) -> int:
    digits = text[1:] if text[:1] in {"+", "-"} else text
    # str.isdigit alone would take other scripts' digits, int() underscores.
    if digits.isascii() and digits.isdigit():
        value = int(text)
        bound = 1 << _INTEGERS[config.type]
        if -bound <= value < bound:
            return value
    raise _invalid(config.name, text, f"Not a number of type {config.type.name}")


def _double(config: ConfigDef, text: str) -> float:
    number = text
    if number.lstrip("+-") in {"NaN", "Infinity"}:
        return float(number)
    if number.lower().startswith(("0x", "-0x", "+0x")):
        read = float.fromhex
    else:
        read = float
        number = number[:-1] if number[-1:] in {"f", "F", "d", "D"} else number
        if not _DECIMAL.issuperset(number):
            number = ""
    try:
        return read(number)
    except ValueError:
        raise _invalid(config.name, text, "Not a number of type DOUBLE") from None


def _list(name: str, text: str) -> tuple[str, ...]:
    if not text:
        return ()
    entries = [entry.strip() for entry in text.split(",")]
    if not all(entries):
        raise InvalidConfig(f"Configuration '{name}' values must not be empty.")
    return tuple(dict.fromkeys(entries))


def _check(config: ConfigDef, valid: Valid, value: Value) -> None:
    if isinstance(value, tuple):
        _check_list(config.name, valid, value)
    elif isinstance(value, str):
        _check_text(config.name, valid, value)
    elif value is not None:
        _check_number(config.name, valid, value)


def _check_number(name: str, valid: Valid, value: float) -> None:
    if valid.or_else is not None:
        if value != valid.or_else and not _within(valid, value):
            raise _invalid(
                name,
                to_text(value),
                f"Value must be between {valid.at_least} and {valid.at_most} "
                f"or equal to {valid.or_else}",
            )
        return
    if valid.at_least is not None and value < valid.at_least:
        raise _invalid(name, to_text(value), f"Value must be at least {valid.at_least}")
    if valid.at_most is not None and value > valid.at_most:
        raise _invalid(name, to_text(value), f"Value must be no more than {valid.at_most}")


def _within(valid: Valid, value: float) -> bool:
    return not (
        (valid.at_least is not None and value < valid.at_least)
        or (valid.at_most is not None and value > valid.at_most)
    )


def _check_text(name: str, valid: Valid, value: str) -> None:
    if valid.non_empty and not value:
        raise _invalid(name, value, "String must be non-empty")
    if valid.format_version and release_of(value) is None:
        raise _invalid(name, value, "Expected a release of Kafka from 0.8.0 to 4.3, as in 0.10.2")
    if not valid.one_of:
        return
    allowed = ", ".join(valid.one_of)
    if valid.any_case:
        if value.upper() not in {one.upper() for one in valid.one_of}:
            raise _invalid(name, value, f"String must be one of (case insensitive): {allowed}")
    elif value not in valid.one_of:
        raise _invalid(name, value, f"String must be one of: {allowed}")


def _check_list(name: str, valid: Valid, entries: tuple[str, ...]) -> None:
    if valid.throttled_replicas:
        if entries not in {(), ("*",)} and not all(map(_is_replica, entries)):
            raise _invalid(
                name,
                f"[{', '.join(entries)}]",
                f"{name} must be the literal '*' or a list of replicas in the following format: "
                "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
            )
        return
    for entry in entries:
        if valid.one_of and entry not in valid.one_of:
            raise _invalid(name, entry, f"String must be one of: {', '.join(valid.one_of)}")


def _is_replica(text: str) -> bool:
    partition, _, broker = text.partition(":")
    return all(part.isascii() and part.isdigit() for part in (partition, broker))


def _invalid(name: str, text: str | None, reason: str) -> InvalidConfig:
    return InvalidConfig(f"Invalid value {text} for configuration {name}: {reason}")


def _java_double(value: float) -> str:
    """As Java's Double.toString: a mantissa and E outside [1e-3, 1e7)."""
    text = repr(value)
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return text
    if text in {"nan", "inf", "-inf"}:
        return text.replace("nan", "NaN").replace("inf", "Infinity")
    mantissa, _, exponent = f"{value:.17e}".partition("e")
    for digits in range(17):
        short = f"{value:.{digits}e}"
        if float(short) == value:
            mantissa, _, exponent = short.partition("e")
            break
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


def release_of(text: str) -> str | None:
    """The release that a version of Kafka belongs to (``0.10.2`` for ``0.10.2.1`` or
    ``0.10.2-IV0``), None where it belongs to none.
    """
    numbers, dash, level = text.partition("-IV")
    parts = numbers.split(".")
    if not all(part.isascii() and part.isdigit() for part in (*parts, level if dash else "0")):
        return None
    release = ".".join(parts[: 3 if parts[0] == "0" else 2])
    return release if release in _RELEASES else None


def has_leader_epochs(version: str) -> bool:
    """Whether batches of a message format carry leader epochs: since 0.11."""
    return release_of(version) in _WITH_EPOCHS
