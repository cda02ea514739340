"""What kio knows of the wire: the lines of the files beside fencepost/protocol/messages.

kio has one class for each (API, version, struct), generated from Kafka's own definitions.
fencepost has one class for each struct, and reads its fields in each version from these lines
(`fencepost.protocol.codec.schema`): kio's classes take ten times as long to import.
"""

from collections.abc import Container, Iterator, Mapping
from dataclasses import Field, fields, is_dataclass
from importlib import import_module
from pkgutil import resolve_name
from types import NoneType
from typing import Any, Final, get_args, get_origin

from kio.schema.index import schema_name_map
from kio.static.constants import EntityType

from fencepost.protocol.codec.schema import Side, StructSchema

# kio reads times as timedeltas and datetimes, and error codes as a closed enum. Ours are plain
# integers, as on the wire.
_PLAIN: Final = {
    "timedelta_i32": "int32",
    "timedelta_i64": "int64",
    "datetime_i64": "int64",
    "error_code": "int16",
}
_SIDES: Final[tuple[Side, ...]] = ("request", "response")


def schema_lines(api: str, classes: Container[str]) -> str:
    """The lines of an API: the structs of each side, the message itself first.

    :param classes: The names of ours.
    """
    lines = []
    for side in _SIDES:
        found: dict[str, dict[int, str]] = {}
        for version in sorted(schema_name_map[api]):
            for struct, text in _structs(_message(api, version, side), side, classes):
                found.setdefault(struct, {})[version] = text
        for struct, texts in found.items():
            for first, last, text in _runs(texts):
                lines.append(f"{side} {struct} {first}-{last} {text}\n")
    return "".join(lines)


def kio_class(schema: StructSchema) -> Any:
    """Kio's class of a struct in its version."""
    api = schema.cls.__module__.rpartition(".")[2]
    module = import_module(_message(api, schema.version, schema.side).__module__)
    name = schema.cls.__name__
    return getattr(module, name, None) or getattr(module, name.removeprefix("Response"))


def _message(api: str, version: int, side: Side | None) -> Any:
    paths = schema_name_map[api][version]
    return resolve_name(
        paths[EntityType.request] if side == "request" else paths[EntityType.response]
    )


def _runs(texts: Mapping[int, str]) -> Iterator[tuple[int, int, str]]:
    """Versions in a row with the same text: the first one, the last one (inclusive), the text."""
    first = last = -2
    for version, text in sorted(texts.items()):
        if version == last + 1 and text == texts[last]:
            last = version
            continue
        if first >= 0:
            yield first, last, texts[last]
        first = last = version
    yield first, last, texts[last]


def _structs(cls: Any, side: Side, classes: Container[str]) -> Iterator[tuple[str, str]]:
    """A struct and all in it, from the outside in: our name, and how it is in this version."""
    is_flexible = "flexible" if cls.__flexible__ else "fixed"
    yield (
        own_name(cls, side, classes),
        " ".join([is_flexible, *(_field(f, side, classes) for f in fields(cls))]),
    )
    for f in fields(cls):
        inner = split_type(f.type)[0]
        if is_dataclass(inner):
            yield from _structs(inner, side, classes)


def own_name(cls: Any, side: Side, classes: Container[str]) -> str:
    """The name of our class: the response's gives way where those of the two sides differ."""
    name: str = cls.__name__
    return f"Response{name}" if side == "response" and f"Response{name}" in classes else name


def _field(f: Field[Any], side: Side, classes: Container[str]) -> str:
    """``name:kind:type``; the kind with ``[]`` for an array, ``?`` if it may be null, ``@tag``."""
    inner, array, nullable = split_type(f.type)
    if is_dataclass(inner):
        kind = own_name(inner, side, classes)
    else:
        kind = wire_type(f.metadata["kafka_type"], side)
    if array:
        kind += "[]"
    if nullable and kind not in ("uuid", "int64"):
        kind += "?"
    if f.metadata.get("tag") is not None:
        kind += f"@{f.metadata['tag']}"
    return f"{field_name(f)}:{kind}:{getattr(inner, '__name__', '')}"


def wire_type(kafka_type: str, side: Side) -> str:
    """A request holds one buffer of batches; an answer holds many, to be sent one by one."""
    if kafka_type == "records" and side == "response":
        return "batches"
    return _PLAIN.get(kafka_type, kafka_type)


def field_name(f: Field[Any]) -> str:
    """Kafka's name of a kio field: kio drops the unit of times and escapes ``id``."""
    name = f.name.removesuffix("_")
    is_time = "time" in _time_type(f) and not name.endswith(("_ms", "_timestamp"))
    return f"{name}_ms" if is_time else name


def _time_type(f: Field[Any]) -> str:
    kafka_type = f.metadata.get("kafka_type", "")
    return str(kafka_type) if kafka_type in _PLAIN else ""


def split_type(annotation: Any) -> tuple[Any, bool, bool]:
    """The innermost type of an annotation, whether it is an array, whether it may be null."""
    args = get_args(annotation)
    nullable = NoneType in args
    if nullable:
        annotation = next(a for a in args if a is not NoneType)
        args = get_args(annotation)
    if get_origin(annotation) is tuple:
        return split_type(args[0])[0], True, nullable
    return annotation, False, nullable
