"""The loggers of a process and their levels, which BROKER_LOGGER configs name and set (KIP-412).

All brokers of a cluster are one process with one log: a level that is set by one of them holds for
all. Nothing is kept: the next process begins with the level of its options.
"""

from collections.abc import Mapping
from enum import IntEnum
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


class LogLevels:
    """The level of each logger: its own, or that of the root.

    :param root: Of the root, at the start.
    """

    __slots__ = ("_first", "_own", "logs_requests")

    def __init__(self, root: Level = Level.INFO) -> None:
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
        """The level of one of `LOGGERS`, or of the root."""
        return self._own.get(logger, self._own[ROOT])

    def by_name(self) -> Mapping[str, Level]:
        """The levels of all loggers, sorted by name, the root among them."""
        return {name: self.level(name) for name in sorted((ROOT, *LOGGERS))}

    def set_level(self, logger: str, level: Level) -> None:
        """Set the level of a logger."""
        self._own[logger] = level
        self._read()

    def unset_level(self, logger: str) -> None:
        """Let a logger, which is not the root, have the level of the root."""
        self._own.pop(logger, None)
        self._read()

    def _read(self) -> None:
        self.logs_requests = self.level(REQUESTS) <= Level.DEBUG
        """Whether single requests are logged."""
