"""Exchanges and events, each as one JSON object.

`TraceLines` writes the lines of ``serve --trace``. An exchange is a line as ``/v1/trace`` shows it,
with all of its elements and batches; an event is ``{"event": ..., "newest": ...}`` as
``/v1/events`` sends it, numbered from 1 in each trace. Events of trace files alone have number 0.
"""

from collections.abc import Callable
from itertools import count

from fencepost.broker.core.events import TRACE_FILE_ONLY, Event
from fencepost.broker.server.journal import AnyExchange
from fencepost.broker.server.trace_file import Item, TraceEvent
from fencepost.control.message_json import WHOLE, Limits, request_json, response_json
from fencepost.verbs.answers.journal import EventState, ExchangeState


def exchange_state(
    exchange: AnyExchange,
    topics: set[str],
    name_of: Callable[[str], str | None],
    limits: Limits,
) -> ExchangeState:
    """An exchange for a reader.

    :param topics: Receives the names and ids of the topics in it.
    :param name_of: Gives the name that belongs to a topic id, None where it is not known.
    """
    request = request_json(exchange, topics, limits)
    response = response_json(exchange, topics, limits)
    names = ((text, name_of(text)) for text in sorted(topics))
    return ExchangeState(
        number=exchange.number,
        time_ms=exchange.time_ms,
        answered_ms=exchange.answered_ms,
        elapsed_us=exchange.elapsed_us,
        newest=exchange.newest,
        broker=exchange.broker_id,
        connection=exchange.connection_id,
        client_id=exchange.client_id,
        api=exchange.api.title,
        version=exchange.version,
        correlation_id=exchange.correlation_id,
        request=request,
        response=response,
        topic_names={text: name for text, name in names if name is not None},
    )


def event_state(number: int, event: Event) -> EventState:
    """An event as JSON.

    :param number: Its place among all that are told.
    """
    return EventState(
        number=number,
        kind=event.kind,
        time_ms=event.time_ms,
        topic=event.topic,
        partition=event.partition,
        broker=event.broker,
        details=dict(event.details),
    )


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
