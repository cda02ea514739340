"""The events of the cluster in the log, a line each.

Warnings are written at once. The others wait until `EventLog.begin`, because the first line imports
structlog, for which the first clients need not wait; then those that waited come first.
"""

from typing import TYPE_CHECKING, Final

from fencepost.broker.core.event_text import event_text
from fencepost.broker.core.events import Event, Events, Kind
from fencepost.broker.core.log_levels import SERVER, Level
from fencepost.broker.metadata.image import INTERNAL_TOPICS
from fencepost.broker.server import logs
from fencepost.protocol.other_protocols import SASL_HANDSHAKE, OtherProtocol

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger as Logger

PART: Final = "events"
"""The value of ``part`` in their lines."""
_LEVELS: Final = {
    Kind.RECORDS_MISSING: Level.ERROR,
    Kind.REPLICA_FAILED: Level.ERROR,
    Kind.STORAGE_FAILED: Level.ERROR,
    Kind.CONFIG_WITHOUT_EFFECT: Level.WARN,
    Kind.MEMORY_FULL: Level.WARN,
    Kind.OTHER_PROTOCOL: Level.DEBUG,
    Kind.PUBLISH_REFUSED: Level.DEBUG,
    Kind.TRANSACTION_CHANGED: Level.DEBUG,
}
"""Levels other than INFO. A client can cause the last ones with each request, and Kafka has the
states of transactions at DEBUG too."""
_INFO: Final = Level.INFO
_WARN: Final = Level.WARN
_OTHER_PROTOCOL: Final = Kind.OTHER_PROTOCOL


class EventLog:
    """Writes events to the log.

    :param events: Their source.
    """

    def __init__(self, events: Events) -> None:
        self._events = events
        self._has_begun = False

    def record(self, event: Event) -> None:
        """Write an event, or leave it to `begin`."""
        level = _level(event)
        if level >= _WARN:
            _write_warning(event, level)
        elif self._has_begun:
            _write(event, level)

    def begin(self) -> None:
        """Write the events so far, and from now on each one at once; again: nothing."""
        if self._has_begun:
            return
        self._has_begun = True
        for event in self._events.since(0):
            level = _level(event)
            if level < _WARN:
                _write(event, level)


def _level(event: Event) -> Level:
    if event.kind is _OTHER_PROTOCOL and event.details["protocol"] == SASL_HANDSHAKE:
        return _WARN  # any other is the reason for which its connection closes
    level = _LEVELS.get(event.kind, _INFO)
    return Level.DEBUG if level is _INFO and event.topic in INTERNAL_TOPICS else level


def _write(event: Event, level: Level) -> None:
    if level < logs.levels.level(SERVER):  # structlog would drop it only after all is formatted
        return
    log = _logger()
    write = log.info if level is Level.INFO else log.debug
    write(event.kind.value, number=event.number, **_place(event), detail=event_text(event))


def _write_warning(event: Event, level: Level) -> None:
    detail = {}
    if event.kind is Kind.OTHER_PROTOCOL:
        detail = {"detail": OtherProtocol.SASL.advice}
    elif event.kind is Kind.MEMORY_FULL:
        detail = {"detail": "Produce is refused; see --max-memory"}
    log = _logger()
    write = log.error if level is Level.ERROR else log.warning
    write(event.kind.value, number=event.number, **_place(event), **event.details, **detail)


def _logger() -> "Logger":
    return logs.logger(part=PART)


def _place(event: Event) -> dict[str, str | int]:
    where = {"topic": event.topic, "partition": event.partition, "broker": event.broker}
    return {name: value for name, value in where.items() if value is not None}
