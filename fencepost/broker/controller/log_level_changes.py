"""Changes of loggers' levels by IncrementalAlterConfigs (KIP-412): what is refused, and the rest.

All operations on a broker's loggers are checked before any level changes. A logger that loses its
own level has that of the nearest one above, such as the root.
"""

from collections.abc import Sequence
from typing import Final

from fencepost.broker.configs.config_def import ConfigError
from fencepost.broker.configs.operations import AlterConfigOp, OpType
from fencepost.broker.core.log_levels import KAFKA_LOGGER, LOGGERS, ROOT, Level, LogLevels
from fencepost.protocol.errors import ErrorCode

_LEVELS: Final = sorted(Level.__members__)


def log_level_problem(
    levels: LogLevels, operations: Sequence[AlterConfigOp], *, strict: bool
) -> ConfigError | None:
    """What is wrong with the first wrong operation, in Kafka's words; None where all are right.

    :param strict: Whether the level of one of Kafka's loggers, which has no effect, is refused.
    """
    problems = (_problem(levels, operation, strict=strict) for operation in operations)
    return next(filter(None, problems), None)


def apply_log_levels(levels: LogLevels, operations: Sequence[AlterConfigOp]) -> None:
    """Set and unset levels by operations that `log_level_problem` accepts."""
    for operation in operations:
        if operation.op_type == OpType.DELETE:
            levels.unset_level(operation.name)
        else:
            levels.set_level(operation.name, Level[operation.value or ""])


def _problem(levels: LogLevels, operation: AlterConfigOp, *, strict: bool) -> ConfigError | None:
    name, level = operation.name, operation.value
    if operation.op_type not in (OpType.SET, OpType.DELETE):
        known = [op.name for op in OpType if op == operation.op_type]
        op = known[0] if known else str(operation.op_type)
        return _invalid_request(f"{op} operation is not allowed for the BROKER_LOGGER resource")
    if not levels.has(name):
        return _invalid_config(f"Logger {name} does not exist!")
    if strict and name != ROOT and name not in LOGGERS:
        return _invalid_config(f"{name} has no effect in fencepost: {KAFKA_LOGGER}")
    if operation.op_type == OpType.DELETE:
        if name == ROOT:
            return _invalid_request("Removing the log level of the root logger is not allowed")
    elif level not in _LEVELS:
        return _invalid_config(
            f"Cannot set the log level of {name} to {level} as it is not a supported log level. "
            f"Valid log levels are {', '.join(_LEVELS)}"
        )
    return None


def _invalid_request(message: str) -> ConfigError:
    return ConfigError(code=ErrorCode.INVALID_REQUEST, message=message)


def _invalid_config(message: str) -> ConfigError:
    return ConfigError(code=ErrorCode.INVALID_CONFIG, message=message)
