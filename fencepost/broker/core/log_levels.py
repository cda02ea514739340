"""The loggers of a process and their levels, which BROKER_LOGGER configs name and set (KIP-412).

All brokers of a cluster are one process with one log: a level that is set by one of them holds for
all. Nothing is kept: the next process begins with the level of its options.

Beside this server's own loggers there are those of Kafka's classes, so that what sets their levels
works here too. They write nothing.
"""

from collections.abc import Callable, Mapping
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Final


class Level(IntEnum):
    """Kafka's levels; a logger writes the lines of its level and of those above it."""

    TRACE = 5
    """No line is of this level: it writes what DEBUG does."""
    DEBUG = 10
    INFO = 20
    WARN = 30
    ERROR = 40
    FATAL = 50


ROOT: Final = "root"
SERVER: Final = "fencepost.server"
REQUESTS: Final = "fencepost.requests"
LOGGERS: Final[Mapping[str, str]] = {
    "fencepost.control": "the control API",
    REQUESTS: "connections, and at DEBUG each request",
    SERVER: "all else",
    "fencepost.trace": "the files of a trace",
}
"""What each logger tells of, by name. Like `ROOT` they are always there."""
KAFKA_LOGGER: Final = "this server does not have Kafka's loggers: its own are fencepost's"
"""Why the level of one of Kafka's loggers has no effect."""


@cache
def kafka_loggers() -> frozenset[str]:
    """The loggers of an Apache Kafka 4.3.1 broker, by name."""
    text = Path(__file__).with_name("kafka_loggers.txt").read_text("utf-8")
    return frozenset(line for line in text.splitlines() if not line.startswith("#"))


class LogLevels:
    """The level of each logger: its own, or that of the nearest one above, such as the root.

    :param root: Of the root, at the start.
    """

    __slots__ = ("_first", "_found", "_own", "logs_requests", "on_set_without_effect")

    def __init__(self, root: Level = Level.INFO) -> None:
        self.on_set_without_effect: Callable[[str, Level], None] = _ignore
        """Called when one of Kafka's loggers gets a level."""
        self._found: dict[str, Level] = {}
        """What `level` has found since the last change."""
        self.start(root)

    def start(self, root: Level) -> None:
        """Begin with this level of the root, and no other."""
        self._first = root
        self.reset()

    def reset(self) -> None:
        """Back to the start."""
        self._own = {ROOT: self._first}
        self._read()

    def level(self, logger: str) -> Level:
        """The level of a logger."""
        found = self._found.get(logger)
        if found is None:
            name, own = logger, self._own
            while name and name not in own:
                name = name.rpartition(".")[0]
            found = self._found[logger] = own[name or ROOT]
        return found

    def has(self, logger: str) -> bool:
        """Whether there is a logger of this name."""
        return logger == ROOT or logger in LOGGERS or logger in kafka_loggers()

    def by_name(self) -> Mapping[str, Level]:
        """The levels of all loggers, sorted by name, the root among them."""
        return {name: self.level(name) for name in sorted((ROOT, *LOGGERS, *kafka_loggers()))}

    def set_level(self, logger: str, level: Level) -> None:
        """Set the level of a logger."""
        self._own[logger] = level
        self._read()
        if logger != ROOT and logger not in LOGGERS:
            self.on_set_without_effect(logger, level)

    def unset_level(self, logger: str) -> None:
        """Let a logger, which is not the root, have the level of the nearest one above."""
        self._own.pop(logger, None)
        self._read()

    def _read(self) -> None:
        self._found.clear()
        self.logs_requests = self.level(REQUESTS) <= Level.DEBUG
        """Whether single requests are logged."""


def _ignore(_logger: str, _level: Level) -> None:
    pass
