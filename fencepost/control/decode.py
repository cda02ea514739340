"""Messages as JSON: Kafka's field names in snake_case, just the fields of their version.

Record data is summarised, other bytes are shown when they are few, and a long message is cut:
``topics_left_out: 900`` stands beside a ``topics`` that is 900 elements short.
"""

from base64 import b64encode
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from fencepost.broker.server.journal import AnyExchange
from fencepost.protocol.buffers import Buffer
from fencepost.protocol.codec import MalformedMessage
from fencepost.protocol.codec.schema import FieldShape, Shape, message_shape
from fencepost.protocol.compression import Codec
from fencepost.protocol.records import BatchHeader, CorruptBatch, iter_headers

Json = dict[str, object]

MAX_ELEMENTS: Final = 1000
"""Array elements of one message that are shown, all its arrays together."""
MAX_BATCHES: Final = 100
"""Record batches of one partition that are listed."""
MAX_BYTES: Final = 1024
"""Of a field of bytes; only the size of a longer one is shown."""


def decoded_request(exchange: AnyExchange, topics: set[str]) -> Json:
    """A request as JSON.

    :param topics: Receives the names and ids of the topics in it.
    """
    shape = message_shape(exchange.api.name, "request", exchange.version)
    return _Reading(topics).struct(shape, exchange.request())


def decoded_response(exchange: AnyExchange, topics: set[str]) -> Json | None:
    """An answer as JSON, None while there is none.

    :param topics: Receives the names and ids of the topics in it.
    """
    try:
        answer = exchange.response()
    except MalformedMessage as error:
        return {"malformed": str(error)}
    if answer is None:
        return None
    shape = message_shape(exchange.api.name, "response", exchange.version)
    return _Reading(topics).struct(shape, answer)


class _Reading:
    """One message on its way to JSON."""

    def __init__(self, topics: set[str]) -> None:
        self._topics = topics
        self._room = MAX_ELEMENTS

    def struct(self, shape: Shape, message: object) -> Json:
        """A struct and all that is in it."""
        made: Json = {}
        for field in shape.fields:
            value = getattr(message, field.name)
            if field.array and value is not None:
                shown = value[: self._room]
                self._room -= len(shown)
                made[field.name] = [self._value(field, each) for each in shown]
                if len(shown) < len(value):
                    made[f"{field.name}_left_out"] = len(value) - len(shown)
            else:
                made[field.name] = self._value(field, value)
            if _names_topics(shape, field):
                self._note(value)
        return made

    def _value(self, field: FieldShape, value: Any) -> object:  # noqa: ANN401  # by its kind
        if value is None:
            return None
        match field.kind:
            case "struct":
                assert field.struct is not None
                return self.struct(field.struct, value)
            case "uuid":
                return str(value)
            case "records":
                return summary([value])
            case "batches":
                return summary(value)
            case "bytes":
                return _few_bytes(value)
            case _:
                plain: object = value
                return plain

    def _note(self, value: object) -> None:
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, str | UUID):
                self._topics.add(str(each))


def _names_topics(shape: Shape, field: FieldShape) -> bool:
    """Whether a field holds names or ids of topics."""
    if field.kind not in ("string", "uuid"):
        return False
    struct = shape.cls.__name__
    return field.name in ("topic", "topic_id", "topic_name", "topic_names", "resource_name") or (
        field.name == "name" and "Topic" in struct and "Config" not in struct
    )


def summary(buffers: Sequence[Buffer]) -> Json:
    """Record data without its records: the header of each batch.

    A last batch that is cut off, as Fetch may answer it, is counted in ``bytes`` alone.
    """
    batches: list[Json] = []
    made: Json = {"bytes": sum(map(len, buffers)), "batches": batches}
    count = 0
    try:
        for buffer in buffers:
            for _, header in iter_headers(buffer):
                count += 1
                if count <= MAX_BATCHES:
                    batches.append(_batch(header))
    except CorruptBatch as error:
        made["corrupt"] = str(error)
    if count > MAX_BATCHES:
        made["batches_left_out"] = count - MAX_BATCHES
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
        "epoch": header.partition_leader_epoch,
        "max_timestamp": header.max_timestamp,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "transactional": header.is_transactional,
        "control": header.is_control,
    }


def _few_bytes(value: Buffer) -> Json:
    size = len(value)
    return {"bytes": size, "base64": b64encode(value).decode() if size <= MAX_BYTES else None}
