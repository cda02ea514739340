"""What goes wrong with files, in the log: the core tells it as events, and logs nothing."""

from typing import Final

from fencepost.broker.events import Event, Kind
from fencepost.broker.server import logs

_TROUBLES: Final = frozenset({Kind.REPLICA_FAILED, Kind.STORAGE_FAILED})


def note(event: Event) -> None:
    """Log an event that says that something failed."""
    if event.kind in _TROUBLES:
        where = {"topic": event.topic, "partition": event.partition, "broker": event.broker}
        said = {name: value for name, value in where.items() if value is not None}
        logs.logger().error(event.kind.value, **said, **event.details)
