"""Exchanges of the journal, their messages, and events, as JSON.

Messages have Kafka's field names in snake_case, just the fields of their version. Record data is
summarised, other bytes are shown when they are few. Except in trace files a long message is cut:
``topics_left_out: 900`` stands beside a ``topics`` that is 900 elements short.

`TraceLines` writes the lines of ``serve --trace``. An exchange is a line as ``/v1/trace`` shows it,
but with all of its elements and batches. An event is ``{"event": ..., "newest": ...}`` as
``/v1/events`` sends it, numbered from 1 in each trace; events of trace files alone have number 0.
"""

import sys
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any, Final
from uuid import UUID

from msgspec import Struct
from msgspec.json import encode

from fencepost.broker.core.event_text import event_text
from fencepost.broker.core.events import TRACE_FILE_ONLY, Event
from fencepost.broker.produce.expected_offsets import IN_HEADERS
from fencepost.broker.server.journal import AnyExchange
from fencepost.broker.server.trace_file import Item
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.codec import MalformedMessage
from fencepost.protocol.codec.schema import FieldSchema, StructSchema, message_schema
from fencepost.protocol.compression import Codec
from fencepost.protocol.expected_offsets import HEADER, UNSPECIFIED, read_header_value
from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import BatchHeader, CorruptBatch, InvalidRecords, iter_headers
from fencepost.verbs.answers.cluster import EventState, ExchangeState

Json = dict[str, object]


class Limits(Struct, frozen=True, kw_only=True):
    """How much of one message is shown."""

    elements: int = sys.maxsize
    """Array elements, all its arrays together."""
    batches: int = sys.maxsize
    """Record batches of one partition."""


SHORT: Final = Limits(elements=1000, batches=100)
"""For a reader."""
WHOLE: Final = Limits()
"""For files, which are complete."""
MAX_BYTES: Final = 1024
"""Of a field of bytes; only the size of a longer one is shown."""


def request_json(exchange: AnyExchange, topics: set[str], limits: Limits) -> Json:
    """A request as JSON.

    :param topics: Receives the names and ids of the topics in it.
    """
    shape = message_schema(exchange.api.name, "request", exchange.version, exchange.dialect)
    stated = None if exchange.expected_offsets is None else iter(exchange.expected_offsets)
    return _Converter(topics, limits, stated).struct(shape, exchange.request())


def response_json(exchange: AnyExchange, topics: set[str], limits: Limits) -> Json | None:
    """An answer as JSON, None while there is none.

    :param topics: Receives the names and ids of the topics in it.
    """
    try:
        answer = exchange.response()
    except MalformedMessage as error:
        return {"malformed": str(error)}
    if answer is None:
        return None
    shape = message_schema(exchange.api.name, "response", exchange.version, exchange.dialect)
    return _Converter(topics, limits).struct(shape, answer)


class _Converter:
    """One message on its way to JSON."""

    def __init__(
        self,
        topics: set[str],
        limits: Limits,
        stated: Iterator[tuple[int, ...] | None] | None = None,
    ) -> None:
        self._topics = topics
        self._stated = stated
        self._elements_left = limits.elements
        self._max_batches = limits.batches

    def struct(self, shape: StructSchema, message: object) -> Json:
        """A struct and all that is in it."""
        made: Json = {}
        for field in shape.fields:
            value = getattr(message, field.name)
            if field.array and value is not None:
                shown = value[: self._elements_left]
                self._elements_left -= len(shown)
                made[field.name] = [self._value(field, each) for each in shown]
                if len(shown) < len(value):
                    made[f"{field.name}_left_out"] = len(value) - len(shown)
            else:
                made[field.name] = self._value(field, value)
            if _names_topics(shape, field):
                self._add_topics(value)
        return made

    def _value(self, field: FieldSchema, value: Any) -> object:  # noqa: ANN401  # by its kind
        if field.kind == "records" and self._stated is not None:
            stated = next(self._stated)  # of a partition without records too
            return None if value is None else batch_summary([value], self._max_batches, stated)
        if value is None:
            return None
        match field.kind:
            case "struct":
                assert field.struct is not None
                return self.struct(field.struct, value)
            case "uuid":
                return str(value)
            case "records":
                return batch_summary([value], self._max_batches)
            case "batches":
                return batch_summary(value, self._max_batches)
            case "bytes":
                return _bytes_json(value)
            case _:
                plain: object = value
                return plain

    def _add_topics(self, value: object) -> None:
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, str | UUID):
                self._topics.add(str(each))


def _names_topics(shape: StructSchema, field: FieldSchema) -> bool:
    """Whether a field holds names or ids of topics."""
    if field.kind not in ("string", "uuid"):
        return False
    struct = shape.cls.__name__
    return field.name in ("topic", "topic_id", "topic_name", "topic_names", "resource_name") or (
        field.name == "name" and "Topic" in struct and "Config" not in struct
    )


def batch_summary(
    buffers: Sequence[Buffer], most: int, stated: tuple[int, ...] | None = None
) -> Json:
    """Record data without its records: the header of each batch.

    A last batch that is cut off, as Fetch may answer it, is counted in ``bytes`` alone.

    :param most: How many batches are listed.
    :param stated: What the batches expected, before they were stamped; None where that is not
        compared.
    """
    batches: list[Json] = []
    made: Json = {"bytes": sum(map(len, buffers)), "batches": batches}
    count = 0
    try:
        for buffer in buffers:
            for at, header in iter_headers(buffer):
                count += 1
                if count > most:
                    continue
                batches.append(_batch(header))
                if stated is not None:
                    batches[-1]["expected_offset"] = _expected(stated, count - 1, buffer, at)
    except CorruptBatch as error:
        made["corrupt"] = str(error)
    if count > most:
        made["batches_left_out"] = count - most
    return made


def _batch(header: BatchHeader) -> Json:
    try:
        codec = Codec(header.codec).name.lower()
    except ValueError:
        codec = str(header.codec)
    return {
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "count": header.record_count,
        "bytes": header.size,
        "codec": codec,
        "crc": header.crc,
        "epoch": header.partition_leader_epoch,
        "max_timestamp": header.max_timestamp,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "transactional": header.is_transactional,
        "control": header.is_control,
    }


def _expected(stated: tuple[int, ...], index: int, buffer: Buffer, at: int) -> int | None:
    """What the first record of a batch expected, None where it said nothing."""
    if stated == IN_HEADERS:
        return _expected_in_header(buffer, at)
    expected = stated[index] if index < len(stated) else UNSPECIFIED
    return None if expected == UNSPECIFIED else expected


def _expected_in_header(buffer: Buffer, at: int) -> int | None:
    try:
        first = next(iter_records(buffer, at))
    except (CorruptBatch, InvalidRecords, StopIteration):
        return None
    values = [value for name, value in first.headers if name == HEADER]
    expected = read_header_value(values[-1]) if values else None
    return None if expected == UNSPECIFIED else expected


def _bytes_json(value: Buffer) -> Json:
    size = len(value)
    return {"bytes": size, "base64": b64encode(value).decode() if size <= MAX_BYTES else None}


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
        dialect=_dialect(exchange),
        correlation_id=exchange.correlation_id,
        request=request,
        response=response,
        topic_names={text: name for text, name in names if name is not None},
    )


def _dialect(exchange: AnyExchange) -> str | None:
    """The draft whose schemas the exchange has, in place of Kafka's."""
    draft = exchange.dialect
    return draft.name if draft and draft.replaces(exchange.api, exchange.version) else None


def event_state(event: Event) -> EventState:
    """An event as JSON."""
    return EventState(
        number=event.number,
        newest=event.newest,
        text=event_text(event),
        **_event_fields(event),
    )


def _event_fields(event: Event) -> dict[str, Any]:
    """What the files of a trace have of an event, besides its number in the trace."""
    return {
        "kind": event.kind.value,
        "time_ms": event.time_ms,
        "topic": event.topic,
        "partition": event.partition,
        "broker": event.broker,
        "details": dict(event.details),
    }


class TraceLines:
    """Describes what happens, for one trace."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._names: dict[str, str] = {}
        """Of topics by their ids, also of those that are gone."""

    def __call__(self, item: Item) -> bytes:
        """An exchange or an event, without the end of a line."""
        if isinstance(item, Event):
            return self._event(item)
        return encode(exchange_state(item, set(), self._names.get, WHOLE))

    def _event(self, event: Event) -> bytes:
        if event.topic is not None and (topic_id := event.details.get("topic_id")) is not None:
            self._names[str(topic_id)] = event.topic
        number = 0 if event.kind in TRACE_FILE_ONLY else next(self._numbers)
        text = encode({"number": number, **_event_fields(event)})
        return b'{"event":%b,"newest":%d}' % (text, event.newest)
