"""Logs: structured, to stderr, pretty on a terminal and JSON elsewhere.

structlog is imported on first use, after the listeners accept: start-up time counts. Events are
snake_case nouns with key-values; every line of a connection names it and its client id. Single
requests are logged at debug level only. The core logs nothing: its storage failures are events.
"""

import logging
import sys
from functools import cache
from io import TextIOBase
from typing import TYPE_CHECKING, Final, TextIO, cast

from fencepost.broker.core.events import Event, Kind

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger as Logger
    from structlog.typing import Processor


LEVELS: Final = ("debug", "info", "warning", "error")
_level = "info"


def set_level(level: str) -> None:
    """Set the level, one of ``LEVELS``; before the first line is logged."""
    global _level  # noqa: PLW0603  # one process, one log
    _level = level


def is_debug() -> bool:
    """Whether single requests are logged."""
    return _level == "debug"


def logger(**bound: object) -> "Logger":
    """A logger bound to key-values, such as a connection and its client."""
    return _configured().bind(**bound)


class _Stderr(TextIOBase):
    """Standard error at the time a line is written."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


@cache
def _configured() -> "Logger":
    import structlog

    processors: list[Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if sys.stderr.isatty():
        processors.append(structlog.dev.ConsoleRenderer())
    else:
        processors += [
            # Without local variables: a request frame may have a megabyte.
            structlog.processors.ExceptionRenderer(
                structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
            ),
            structlog.processors.JSONRenderer(),
        ]
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[_level.upper()]
        ),
        logger_factory=structlog.PrintLoggerFactory(cast(TextIO, _Stderr())),
        cache_logger_on_first_use=True,
    )
    made: Logger = structlog.get_logger()
    return made


_FAILURES: Final = frozenset({Kind.RECORDS_MISSING, Kind.REPLICA_FAILED, Kind.STORAGE_FAILED})


def log_storage_failure(event: Event) -> None:
    """Log an event if it is a failure of storage."""
    if event.kind in _FAILURES:
        where = {"topic": event.topic, "partition": event.partition, "broker": event.broker}
        place = {name: value for name, value in where.items() if value is not None}
        logger().error(event.kind.value, **place, **event.details)
