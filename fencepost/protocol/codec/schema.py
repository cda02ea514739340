"""The schemas of messages, as plain values. The only module that imports kio.

kio has one class for each (API, version, struct), generated from Kafka's own definitions. fencepost
has one class for each struct, with the fields of all versions (``fencepost.protocol.messages``). A
`StructSchema` joins the two: the fields of one version in wire order, and the struct's class. The
writers and readers are compiled from it. Drafts (`fencepost.protocol.codec.drafts`) put schemas of
their own in the place of kio's.
"""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import Field, fields, is_dataclass
from functools import cache
from pkgutil import resolve_name
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, Literal, get_args, get_origin

from msgspec import NODEFAULT, Struct

if TYPE_CHECKING:
    from fencepost.protocol.codec.drafts import Draft, DraftField, Layouts


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


class FieldSchema(Struct, frozen=True):
    """One field of a struct in one version."""

    name: str
    kind: str
    """Wire type of the field or of the array's elements; ``struct`` for a nested one."""
    array: bool
    nullable: bool
    tag: int | None
    default: object
    struct: "StructSchema | None"


class StructSchema(Struct, frozen=True):
    """A struct in one version: ``cls`` is ours, ``fields`` stand in wire order."""

    cls: type[Struct]
    flexible: bool
    fields: tuple[FieldSchema, ...]
    kio_class: Any
    """kio's class of this version; in a draft's version, of the version that it is based on."""


def message_schema(
    name: str, side: Side, version: int, draft: "Draft | None" = None
) -> StructSchema:
    """The schema of a request or response body.

    :param name: Of the API.
    :param draft: The draft that the connection's peers speak, if any.
    :raises KeyError: When kio has no such API or version, and the draft has none either.
    :raises ValueError: When the draft does not fit the version that it is based on.
    """
    if draft is not None and draft.find(name, version) is None:
        draft = None
    return _message_schema(name, side, version, draft)


@cache
def _message_schema(name: str, side: Side, version: int, draft: "Draft | None") -> StructSchema:
    changed = None if draft is None else draft.find(name, version)
    if changed is None:
        return _kio_schema(name, side, version, {})
    layouts = changed.layouts(side)
    schema = _kio_schema(name, side, changed.base, layouts)
    unknown = layouts.keys() - {struct.cls.__name__ for struct in nested_structs(schema)}
    if unknown:
        raise ValueError(f"no struct of this {name} {side} is named {', '.join(sorted(unknown))}")
    return schema


def nested_structs(schema: StructSchema) -> Iterator[StructSchema]:
    """A struct and all structs in it, from the outside in."""
    yield schema
    for f in schema.fields:
        if f.struct is not None:
            yield from nested_structs(f.struct)


def _kio_schema(name: str, side: Side, version: int, layouts: "Layouts") -> StructSchema:
    paths = schema_name_map[name][version]
    path = paths[EntityType.request] if side == "request" else paths[EntityType.response]
    with _as_if_not_installed("hypothesis"):
        kio_class = resolve_name(path)
    module = importlib.import_module(f"fencepost.protocol.messages.{name}")
    return _Schemas(vars(module), side, layouts).of_struct(kio_class)


class _Schemas(Struct, frozen=True):
    """Makes the schemas of the structs of one message."""

    classes: dict[str, type[Struct]]
    """Ours, by name."""
    side: Side
    layouts: "Layouts"
    """What a draft changes."""

    def of_struct(self, kio_class: Any) -> StructSchema:
        own_name = f"Response{kio_class.__name__}"
        has_own = self.side == "response" and own_name in self.classes
        cls = self.classes[own_name if has_own else kio_class.__name__]
        schemas = [self._of_field(cls, f) for f in fields(kio_class)]
        layout = self.layouts.get(cls.__name__)
        if layout is not None:
            by_name = {schema.name: schema for schema in schemas}
            schemas = [
                by_name[f] if isinstance(f, str) else _draft_field_schema(cls, f) for f in layout
            ]
        return StructSchema(cls, kio_class.__flexible__, tuple(schemas), kio_class)

    def _of_field(self, cls: type[Struct], f: Field[Any]) -> FieldSchema:
        inner, array, nullable = split_type(f.type)
        name = field_name(f)
        struct = self.of_struct(inner) if is_dataclass(inner) else None
        kind = "struct" if struct else _wire_type(f.metadata["kafka_type"], self.side)
        nullable = nullable and kind not in ("uuid", "int64")
        tag = f.metadata.get("tag")
        return FieldSchema(name, kind, array, nullable, tag, default_value(cls, name), struct)


def _draft_field_schema(cls: type[Struct], f: "DraftField") -> FieldSchema:
    default = default_value(cls, f.name)
    if (type(default), default) != (type(f.default), f.default):
        raise ValueError(f"{cls.__name__}.{f.name} is {default!r} by default, not {f.default!r}")
    if f.kind == "presence" and f.tag is None:
        raise ValueError(f"{cls.__name__}.{f.name} has no bytes, so it needs a tag")
    return FieldSchema(f.name, f.kind, f.array, f.nullable, f.tag, default, None)


def default_value(cls: type[Struct], name: str) -> object:
    """What a field is by default; ``NODEFAULT`` where it has to be given.

    :raises KeyError: When the struct has no such field.
    """
    names, defaults = cls.__struct_fields__, cls.__struct_defaults__
    given = dict.fromkeys(names[: len(names) - len(defaults)], NODEFAULT)
    return {**given, **dict(zip(names[len(given) :], defaults, strict=True))}[name]


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
