"""The lines of ``serve --trace``: what the API would show, in one JSON object each.

An exchange is a line as ``/v1/trace`` shows it, but however many elements and batches it has; an
event is ``{"event": ..., "newest": ...}`` as ``/v1/events`` tells it, with a number of its own;
what is in files alone has number 0.
"""

from itertools import count

from fencepost.broker.core.events import TRACE_FILE_ONLY, Event
from fencepost.broker.server.trace_file import Item, TraceEvent
from fencepost.control.event_stream import event_state
from fencepost.control.journal import exchange_state
from fencepost.control.message_json import WHOLE


class TraceLines:
    """Describes what happens, for one trace."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._names: dict[str, str] = {}
        """Of topics by their ids, also of those that are gone."""

    def __call__(self, item: Item) -> bytes:
        """An exchange or an event, without the end of a line."""
        if isinstance(item, TraceEvent):
            return self._event(item.event, item.newest)
        return exchange_state(item, set(), self._names.get, WHOLE).model_dump_json().encode()

    def _event(self, event: Event, newest: int) -> bytes:
        if event.topic is not None and (topic_id := event.details.get("topic_id")) is not None:
            self._names[str(topic_id)] = event.topic
        number = 0 if event.kind in TRACE_FILE_ONLY else next(self._numbers)
        text = event_state(number, event).model_dump_json().encode()
        return b'{"event":%b,"newest":%d}' % (text, newest)
