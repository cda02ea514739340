"""What kio knows of a message, as plain shapes. The only module that imports kio.

kio has one class for each (API, version, struct), generated from Kafka's own definitions. fencepost
has one class a struct, of all versions (``fencepost.protocol.messages``). A ``Shape`` ties the two:
the fields of one version in wire order, with the struct's class. From it the writers and readers
are compiled.
"""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import Field, dataclass, fields, is_dataclass
from functools import cache
from pkgutil import resolve_name
from types import NoneType
from typing import Any, Final, Literal, get_args, get_origin


@contextmanager
def _as_if_not_installed(package: str) -> Iterator[None]:
    """Import without an optional package, unless it is imported already.

    kio registers strategies with hypothesis wherever it is installed, as it is where people test:
    a quarter of a second at every start, for nothing that is used here.
    """
    if package in sys.modules:
        yield
        return
    sys.modules[package] = None  # type: ignore[assignment]  # how Python itself says so
    try:
        yield
    finally:
        del sys.modules[package]


with _as_if_not_installed("hypothesis"):
    from kio.schema.index import schema_name_map
    from kio.static.constants import EntityType

Side = Literal["request", "response"]

# kio reads times as timedeltas and datetimes, and error codes as a closed enum. Ours are plain
# integers, as on the wire.
RECORD_KINDS: Final = ("records", "batches")
_PLAIN: Final = {
    "timedelta_i32": "int32",
    "timedelta_i64": "int64",
    "datetime_i64": "int64",
    "error_code": "int16",
}


@dataclass(frozen=True, slots=True)
class FieldSchema:
    """One field of a struct in one version."""

    name: str
    kind: str
    """Wire type of the field or of the array's elements; ``struct`` for a nested one."""
    array: bool
    nullable: bool
    tag: int | None
    default: object
    struct: "StructSchema | None"


@dataclass(frozen=True, slots=True)
class StructSchema:
    """A struct in one version: ``cls`` is ours, ``fields`` stand in wire order."""

    cls: type
    flexible: bool
    fields: tuple[FieldSchema, ...]
    kio_class: Any


@cache
def message_schema(name: str, side: Side, version: int) -> StructSchema:
    """The shape of a request or response body.

    :raises KeyError: When kio has no such API or version.
    """
    paths = schema_name_map[name][version]
    path = paths[EntityType.request] if side == "request" else paths[EntityType.response]
    with _as_if_not_installed("hypothesis"):
        kio_class = resolve_name(path)
    module = importlib.import_module(f"fencepost.protocol.messages.{name}")
    return _shape_of(kio_class, vars(module), side)


def _shape_of(kio_class: Any, classes: dict[str, Any], side: Side) -> StructSchema:
    own_name = f"Response{kio_class.__name__}"
    cls = classes[own_name if side == "response" and own_name in classes else kio_class.__name__]
    shapes = tuple(_field_shape(cls, f, classes, side) for f in fields(kio_class))
    return StructSchema(cls, kio_class.__flexible__, shapes, kio_class)


def _field_shape(cls: Any, f: Field[Any], classes: dict[str, Any], side: Side) -> FieldSchema:
    inner, array, nullable = split_type(f.type)
    name = field_name(f)
    struct = _shape_of(inner, classes, side) if is_dataclass(inner) else None
    kind = "struct" if struct else _wire_type(f.metadata["kafka_type"], side)
    ours = cls.__dataclass_fields__[name]
    nullable = nullable and kind not in ("uuid", "int64")
    return FieldSchema(name, kind, array, nullable, f.metadata.get("tag"), ours.default, struct)


def _wire_type(kafka_type: str, side: Side) -> str:
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


def entity_types(struct: StructSchema) -> dict[str, str]:
    """The name of each field's type in Kafka's definitions, such as ``TopicName`` or ``GroupId``.

    On the wire these are plain strings and numbers.
    """
    return {
        field_name(f): getattr(split_type(f.type)[0], "__name__", "")
        for f in fields(struct.kio_class)
    }
