"""The lines of ``serve --trace``: what the API would show, in one JSON object each.

An exchange is a line as ``/v1/trace`` shows it, but however many elements and batches it has; an
event is ``{"event": ..., "newest": ...}`` as ``/v1/events`` tells it, with a number of its own;
what is in files alone has number 0.
"""

from itertools import count

from fencepost.broker.events import IN_FILES_ALONE, Event
from fencepost.broker.server.tracefile import Happened, Item
from fencepost.control.decode import WHOLE
from fencepost.control.feed import event_state
from fencepost.control.trace import decoded


class Lines:
    """Describes what happens, for one trace."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._names: dict[str, str] = {}
        """Of topics by their ids, also of those that are gone."""

    def __call__(self, item: Item) -> bytes:
        """An exchange or an event, without the end of a line."""
        if isinstance(item, Happened):
            return self._event(item.event, item.newest)
        return decoded(item, set(), self._names.get, WHOLE).model_dump_json().encode()

    def _event(self, event: Event, newest: int) -> bytes:
        if event.topic is not None and (topic_id := event.details.get("topic_id")) is not None:
            self._names[str(topic_id)] = event.topic
        number = 0 if event.kind in IN_FILES_ALONE else next(self._numbers)
        text = event_state(number, event).model_dump_json().encode()
        return b'{"event":%b,"newest":%d}' % (text, newest)
