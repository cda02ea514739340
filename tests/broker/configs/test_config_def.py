from __future__ import annotations

import pytest

from fencepost.broker.configs.config_def import (
    ConfigDef,
    ConfigType,
    Effect,
    InvalidConfig,
    Valid,
    Value,
    parse,
    require_effect,
    to_text,
)


def config(kind: ConfigType, default: str | None = None, valid: Valid | None = None) -> ConfigDef:
    return ConfigDef(name="some.config", type=kind, default=default, doc="", valid=valid)


def inert(default: str | None, *, also: str | None = None) -> ConfigDef:
    return ConfigDef(
        name="some.config",
        type=ConfigType.BOOLEAN,
        default=default,
        doc="",
        effect=Effect.INERT,
        reason="threads",
        also=also,
    )


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (ConfigType.BOOLEAN, " TRUE ", True),
        (ConfigType.BOOLEAN, "false", False),
        (ConfigType.INT, " +12 ", 12),
        (ConfigType.INT, "-2147483648", -(2**31)),
        (ConfigType.SHORT, "32767", 32767),
        (ConfigType.LONG, "9223372036854775807", 2**63 - 1),
        (ConfigType.DOUBLE, ".5", 0.5),
        (ConfigType.DOUBLE, "1e-1", 0.1),
        (ConfigType.DOUBLE, "0.5f", 0.5),
        (ConfigType.DOUBLE, "0x1p-1", 0.5),
        (ConfigType.DOUBLE, "-Infinity", float("-inf")),
        (ConfigType.LIST, "", ()),
        (ConfigType.LIST, "b , a,b", ("b", "a")),
        (ConfigType.STRING, " text ", "text"),
        (ConfigType.CLASS, "a.B", "a.B"),
    ],
)
def test_reads_what_kafka_reads(kind: ConfigType, text: str, value: Value) -> None:
    assert parse(config(kind), text) == value


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        (ConfigType.BOOLEAN, "yes", "Expected value to be either true or false"),
        (ConfigType.INT, "", "Not a number of type INT"),
        (ConfigType.INT, "2147483648", "Not a number of type INT"),
        (ConfigType.INT, "1_000", "Not a number of type INT"),
        (ConfigType.INT, "٣", "Not a number of type INT"),
        (ConfigType.INT, "1.5", "Not a number of type INT"),
        (ConfigType.SHORT, "32768", "Not a number of type SHORT"),
        (ConfigType.LONG, "9223372036854775808", "Not a number of type LONG"),
        (ConfigType.DOUBLE, "nan", "Not a number of type DOUBLE"),
        (ConfigType.DOUBLE, "1_0.0", "Not a number of type DOUBLE"),
        (ConfigType.DOUBLE, "", "Not a number of type DOUBLE"),
    ],
)
def test_refuses_what_is_not_of_the_type(kind: ConfigType, text: str, reason: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        parse(config(kind), text)
    assert str(refused.value) == f"Invalid value {text} for configuration some.config: {reason}"


def test_a_list_has_no_empty_entry() -> None:
    with pytest.raises(InvalidConfig, match=r"'some\.config' values must not be empty\."):
        parse(config(ConfigType.LIST), "a,")


@pytest.mark.parametrize(
    ("valid", "kind", "good", "bad", "reason"),
    [
        (Valid(at_least=1), ConfigType.INT, "1", "0", "Value must be at least 1"),
        (
            Valid(at_least=1048576),
            ConfigType.INT,
            "1048576",
            "1048575",
            "Value must be at least 1048576",
        ),
        (Valid(at_most=1), ConfigType.DOUBLE, "1", "1.5", "Value must be no more than 1"),
        (Valid(at_most=0.5), ConfigType.DOUBLE, "0.5", "0.6", "Value must be no more than 0.5"),
        (
            Valid(at_least=1, at_most=9, or_else=-1),
            ConfigType.INT,
            "-1",
            "0",
            "Value must be between 1 and 9 or equal to -1",
        ),
        (
            Valid(one_of=("a", "b")),
            ConfigType.STRING,
            "b",
            "A",
            "String must be one of: a, b",
        ),
        (
            Valid(one_of=("A", "B"), any_case=True),
            ConfigType.STRING,
            "b",
            "c",
            "String must be one of (case insensitive): A, B",
        ),
        (Valid(one_of=("a", "b")), ConfigType.LIST, "b,a", "c", "String must be one of: a, b"),
        (Valid(non_empty=True), ConfigType.STRING, "x", "", "String must be non-empty"),
    ],
)
def test_refuses_what_is_out_of_bounds(
    valid: Valid, kind: ConfigType, good: str, bad: str, reason: str
) -> None:
    checked = config(kind, valid=valid)
    parse(checked, good)
    with pytest.raises(InvalidConfig) as refused:
        parse(checked, bad)
    assert str(refused.value) == f"Invalid value {bad} for configuration some.config: {reason}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, "true"),
        (5, "5"),
        (("a", "b"), "a,b"),
        ((), ""),
        (0.5, "0.5"),
        (1.0, "1.0"),
        (1e-4, "1.0E-4"),
        (12345678.0, "1.2345678E7"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_shows_values_as_java_does(value: Value, text: str | None) -> None:
    assert to_text(value) == text


def test_a_default_is_not_checked_against_the_bounds() -> None:
    assert config(ConfigType.INT, "-1", Valid(at_least=0)).default_value == -1


def test_what_has_no_effect_may_be_set_to_what_holds_anyway() -> None:
    require_effect(inert("true"), " TRUE ", True)
    require_effect(inert("true", also="false"), "false", False)


def test_what_has_no_effect_may_not_be_set_to_anything_else() -> None:
    with pytest.raises(InvalidConfig) as refused:
        require_effect(inert("true"), "false", False)
    message = str(refused.value)
    assert message.startswith("Invalid value false for configuration some.config: ")
    assert "no effect" in message
    assert message.endswith("leave it at its default, true")
    with pytest.raises(InvalidConfig, match=r"leave it unset$"):
        require_effect(inert(None), "false", False)
