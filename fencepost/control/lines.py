"""The lines of ``serve --trace``: what the API would show, in one JSON object each.

An exchange is a line as ``/v1/trace`` shows it, an event is ``{"event": ...}`` as ``/v1/events``
tells it, with a number of its own.
"""

from itertools import count

from fencepost.broker.events import Event
from fencepost.broker.server.journal import AnyExchange
from fencepost.control.feed import event_state
from fencepost.control.trace import decoded


class Lines:
    """Describes what happens, for one trace."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def __call__(self, item: AnyExchange | Event) -> bytes:
        """An exchange or an event, without the end of a line."""
        if isinstance(item, Event):
            event = event_state(next(self._numbers), item)
            return b'{"event":%b}' % event.model_dump_json().encode()
        return decoded(item, set()).model_dump_json().encode()
