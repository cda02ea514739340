"""What kio knows of a message, as plain shapes. The only module that imports kio.

kio has one class for each (API, version, struct), generated from Kafka's own definitions. fencepost
has one class a struct, of all versions (``fencepost.protocol.messages``). A ``Shape`` ties the two:
the fields of one version in wire order, with the struct's class. From it the writers and readers
are compiled, and kio's native reader is pointed at our classes.
"""

import importlib
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from pkgutil import resolve_name
from types import NoneType
from typing import Any, Final, Literal, get_args, get_origin

from kio.schema.index import schema_name_map
from kio.serial import entity_reader
from kio.static.constants import EntityType

Side = Literal["request", "response"]
NativeReader = Callable[[bytes | bytearray | memoryview, int], tuple[Any, int]]

# kio reads times as timedeltas and datetimes, and error codes as a closed enum. Ours are plain
# integers, as on the wire.
RECORDS: Final = ("records", "batches")
_PLAIN: Final = {
    "timedelta_i32": "int32",
    "timedelta_i64": "int64",
    "datetime_i64": "int64",
    "error_code": "int16",
}


@dataclass(frozen=True, slots=True)
class FieldShape:
    """One field of a struct in one version."""

    name: str
    kind: str
    """Wire type of the field or of the array's elements; ``struct`` for a nested one."""
    array: bool
    nullable: bool
    tag: int | None
    default: object
    struct: "Shape | None"


@dataclass(frozen=True, slots=True)
class Shape:
    """A struct in one version: ``cls`` is ours, ``fields`` stand in wire order."""

    cls: type
    flexible: bool
    fields: tuple[FieldShape, ...]
    kio_class: Any
    holds_records: bool
    """Whether record batches lie in it or below it; these are passed on without a copy."""


@cache
def message_shape(name: str, side: Side, version: int) -> Shape:
    """The shape of a request or response body.

    :raises KeyError: When kio has no such API or version.
    """
    paths = schema_name_map[name][version]
    path = paths[EntityType.request] if side == "request" else paths[EntityType.response]
    kio_class = resolve_name(path)
    module = importlib.import_module(f"fencepost.protocol.messages.{name}")
    return _shape_of(kio_class, vars(module), side)


def _shape_of(kio_class: Any, classes: dict[str, Any], side: Side) -> Shape:
    own_name = f"Response{kio_class.__name__}"
    cls = classes[own_name if side == "response" and own_name in classes else kio_class.__name__]
    shapes = tuple(_field_shape(cls, f, classes, side) for f in fields(kio_class))
    holds = any(f.kind in RECORDS or (f.struct and f.struct.holds_records) for f in shapes)
    return Shape(cls, kio_class.__flexible__, shapes, kio_class, holds)


def _field_shape(cls: Any, f: Field[Any], classes: dict[str, Any], side: Side) -> FieldShape:
    inner, array, nullable = split_type(f.type)
    name = field_name(f)
    struct = _shape_of(inner, classes, side) if is_dataclass(inner) else None
    kind = "struct" if struct else _wire_type(f.metadata["kafka_type"], side)
    ours = cls.__dataclass_fields__[name]
    nullable = nullable and kind not in ("uuid", "int64")
    return FieldShape(name, kind, array, nullable, f.metadata.get("tag"), ours.default, struct)


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


def native_reader(shape: Shape) -> NativeReader:
    """Make kio's native reader produce instances of our classes.

    It reads the class it is given through ``dataclasses.fields`` and sets just those fields; what
    a version lacks is then found on the class, where the default shadows the empty slot.
    """
    reader: NativeReader = entity_reader(_versioned(shape))
    return reader


def _versioned(shape: Shape) -> Any:
    """A subclass of our class that shows kio the fields of one version, and holds the defaults."""
    known = {f.name for f in shape.fields}
    lacking = {f.name: f.default for f in fields(shape.cls) if f.name not in known}
    kio_class = shape.kio_class
    traits = {
        name: getattr(kio_class, name)
        for name in ("__type__", "__version__", "__flexible__", "__api_key__", "__header_schema__")
        if hasattr(kio_class, name)
    }
    own = {"__slots__": (), "__module__": shape.cls.__module__, "__qualname__": shape.cls.__name__}
    cls: Any = type(shape.cls.__name__, (shape.cls,), {**own, **traits, **lacking})
    cls.__dataclass_fields__ = {
        ours.name: _retyped(theirs, ours)
        for theirs, ours in zip(fields(kio_class), shape.fields, strict=True)
    }
    return cls


def _retyped(theirs: Any, ours: FieldShape) -> Any:
    """A kio field with our name, our classes inside and plain numbers for times and errors."""
    copy: Any = Field(
        default=theirs.default if ours.tag is None else ours.default,
        default_factory=MISSING,  # type: ignore[arg-type]  # what dataclasses itself passes
        init=True,
        repr=True,
        hash=None,
        compare=True,
        metadata=dict(theirs.metadata),
        kw_only=True,
    )
    if ours.struct is not None:
        inner = _versioned(ours.struct)
        base: Any = tuple.__class_getitem__((inner, ...)) if ours.array else inner
        copy.type = base | None if ours.nullable else base
    else:
        copy.metadata = {**theirs.metadata, "kafka_type": ours.kind}
        copy.type = _plain_type(theirs, ours)
    copy.name = ours.name
    copy._field_type = theirs._field_type  # noqa: SLF001  # dataclasses.fields() looks at it
    return copy


def _plain_type(theirs: Field[Any], ours: FieldShape) -> Any:
    """The annotation that kio expects for the wire type that we read instead."""
    if ours.kind == theirs.metadata["kafka_type"]:
        return theirs.type
    return tuple[int, ...] if ours.array else int
