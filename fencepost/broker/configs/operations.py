"""The operations of IncrementalAlterConfigs on a resource's dynamic configs.

All operations are checked before any config changes: the result is either the configs that the
resource has afterwards, or one error.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final

from msgspec import Struct

from fencepost.broker.configs.config_def import ConfigError, ConfigType, Table
from fencepost.protocol.errors import ErrorCode

_MAX_LENGTH: Final = 32_767
_TOO_LONG: Final = (
    "The configuration value cannot be added because it exceeds the maximum value size of "
    f"{_MAX_LENGTH} bytes."
)


class OpType(IntEnum):
    """What IncrementalAlterConfigs can do to a config."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class AlterConfigOp(Struct, frozen=True, kw_only=True):
    """One config of a request. ``op_type`` is as the client sent it, known or not."""

    name: str
    op_type: int = OpType.SET
    value: str | None


def check_operations(operations: Sequence[AlterConfigOp]) -> ConfigError | None:
    """What is wrong with a resource's operations, whatever the resource; None when nothing is."""
    if not operations:
        return None
    if len({operation.name for operation in operations}) < len(operations):
        return _invalid_request("Error due to duplicate config keys")
    nulls = [o.name for o in operations if o.value is None and o.op_type != OpType.DELETE]
    if nulls:
        return _invalid_request(f"Null value not supported for : {', '.join(nulls)}")
    return None


def apply_operations(
    configs: Mapping[str, str],
    operations: Sequence[AlterConfigOp],
    table: Table,
    *,
    not_a_list: str,
    unknown: str | None = None,
) -> dict[str, str] | ConfigError:
    """The configs after some operations, still to be validated.

    APPEND and SUBTRACT begin at the default where a list is not set; they add what is not yet there
    and remove what is. ``not_a_list`` is the error message for any other config, with places for
    ``{op}``, ``{lower}`` (the same in lower case) and ``{name}``; ``unknown``, with a place for
    ``{name}``, is the one for what is no config at all, where that is another. An operation that
    Kafka does not know is INVALID_REQUEST, and a text that is too long for Kafka's metadata
    INVALID_CONFIG.
    """
    result = dict(configs)
    for operation in operations:
        name, text = operation.name, operation.value or ""
        match operation.op_type:
            case OpType.SET:
                result[name] = text
            case OpType.DELETE:
                result.pop(name, None)
            case OpType.APPEND | OpType.SUBTRACT:
                config = table.get(name)
                op = OpType(operation.op_type)
                if config is None and unknown is not None:
                    return ConfigError(
                        code=ErrorCode.INVALID_CONFIG, message=unknown.format(name=name)
                    )
                if config is None or config.type is not ConfigType.LIST:
                    message = not_a_list.format(op=op.name, lower=op.name.lower(), name=name)
                    return ConfigError(code=ErrorCode.INVALID_CONFIG, message=message)
                now = result.get(name, config.default or "")
                result[name] = _changed(now, op, text)
            case other:
                return _invalid_request(f"Unknown operations type {other}")
    if any(len(result.get(operation.name, "")) > _MAX_LENGTH for operation in operations):
        return ConfigError(code=ErrorCode.INVALID_CONFIG, message=_TOO_LONG)
    return result


def _changed(now: str, op: OpType, change: str) -> str:
    """As at a real broker, entries are compared as they are written, spaces and all."""
    entries = now.split(",") if now else []
    changed = change.split(",")
    if op is OpType.APPEND:
        known = frozenset(entries)
        entries += [entry for entry in dict.fromkeys(changed) if entry not in known]
    else:
        gone = frozenset(changed)
        entries = [entry for entry in entries if entry not in gone]
    return ",".join(entries)


def _invalid_request(message: str) -> ConfigError:
    return ConfigError(code=ErrorCode.INVALID_REQUEST, message=message)
