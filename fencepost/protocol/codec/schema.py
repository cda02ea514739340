"""The schemas of messages, as plain values.

fencepost has one class for each struct, with the fields of all versions
(``fencepost.protocol.messages``). A `StructSchema` joins it with the fields of one version in wire
order. The writers and readers are compiled from it. Beside the module of an API's classes is a file
with a line for each struct and the versions in which it is the same, which
``python -m tools.generate_messages`` writes from kio's schemas, and they are made from Kafka's own
definitions. Drafts (`fencepost.protocol.codec.drafts`) put schemas of their own in their place.

A line says side, struct, first and last version, ``flexible`` or ``fixed``, and the fields in wire
order: ``name:kind:type``. The kind is a wire type or a struct, with ``[]`` for an array, ``?``
where it may be null, and ``@`` before the tag of a tagged field. The type is that of Kafka's
definitions.
"""

import importlib
from collections.abc import Iterator
from functools import cache
from pkgutil import get_data
from types import ModuleType
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from msgspec import NODEFAULT, Struct

from fencepost.protocol import messages

if TYPE_CHECKING:
    from fencepost.protocol.codec.drafts import Draft, DraftField, Layouts

Side = Literal["request", "response"]
RECORD_KINDS: Final = ("records", "batches")


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
    entity: str = ""
    """The type in Kafka's definitions, such as ``TopicName`` or ``GroupId``; empty of a draft's."""


class StructSchema(Struct, frozen=True):
    """A struct in one version: ``cls`` is ours, ``fields`` stand in wire order."""

    cls: type[Struct]
    flexible: bool
    fields: tuple[FieldSchema, ...]
    side: Side | None = None
    """None of what is no message of an API."""
    version: int = 0
    """Of Kafka's definition; in a draft's version, of the one that it is based on."""


def message_schema(
    name: str, side: Side, version: int, draft: "Draft | None" = None
) -> StructSchema:
    """The schema of a request or response body.

    :param name: Of the API.
    :param draft: The draft that the connection's peers speak, if any.
    :raises KeyError: When Kafka has no such version, and the draft has none either.
    :raises ValueError: When the draft does not fit the version that it is based on.
    """
    if draft is not None and draft.find(name, version) is None:
        draft = None
    return _message_schema(name, side, version, draft)


@cache
def _message_schema(name: str, side: Side, version: int, draft: "Draft | None") -> StructSchema:
    changed = None if draft is None else draft.find(name, version)
    if changed is None:
        return _file_schema(name, side, version, {})
    layouts = changed.layouts(side)
    schema = _file_schema(name, side, changed.base, layouts)
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


class _StructLine(NamedTuple):
    """A struct in some versions."""

    first: int
    last: int
    """Inclusive."""
    flexible: bool
    fields: tuple[str, ...]


_Lines = dict[str, list[_StructLine]]
"""By the name of our class, that of the message itself first."""


@cache
def _read_lines(name: str) -> dict[str, _Lines]:
    """The lines of an API by side."""
    content = get_data(messages.__name__, f"{name}.txt")
    assert content is not None, "the package was imported without a loader"
    sides: dict[str, _Lines] = {"request": {}, "response": {}}
    for line in content.decode().splitlines():
        side, struct, versions, flexible, *fields = line.split(" ")
        first, _, last = versions.partition("-")
        read = _StructLine(int(first), int(last), flexible == "flexible", tuple(fields))
        sides[side].setdefault(struct, []).append(read)
    return sides


def read_schemas(name: str) -> tuple[dict[str, _Lines], ModuleType]:
    """The lines of an API by side, and the module of its classes; read once."""
    return _read_lines(name), importlib.import_module(f"{messages.__name__}.{name}")


def _file_schema(name: str, side: Side, version: int, layouts: "Layouts") -> StructSchema:
    sides, module = read_schemas(name)
    lines = sides[side]
    schemas = _Schemas(vars(module), lines, side, version, layouts)
    return schemas.of_struct(next(iter(lines)))


class _Schemas(Struct, frozen=True):
    """Makes the schemas of the structs of one message."""

    classes: dict[str, type[Struct]]
    """Ours, by name."""
    lines: _Lines
    side: Side
    version: int
    layouts: "Layouts"
    """What a draft changes."""

    def of_struct(self, name: str) -> StructSchema:
        cls = self.classes[name]
        found = [each for each in self.lines[name] if each.first <= self.version <= each.last]
        if not found:
            raise KeyError(self.version)
        schemas = [self._of_field(cls, field) for field in found[0].fields]
        layout = self.layouts.get(name)
        if layout is not None:
            by_name = {schema.name: schema for schema in schemas}
            schemas = [
                by_name[f] if isinstance(f, str) else _draft_field_schema(cls, f) for f in layout
            ]
        return StructSchema(cls, found[0].flexible, tuple(schemas), self.side, self.version)

    def _of_field(self, cls: type[Struct], text: str) -> FieldSchema:
        name, kind, entity = text.split(":")
        kind, _, tag = kind.partition("@")
        nullable, kind = kind.endswith("?"), kind.removesuffix("?")
        array, kind = kind.endswith("[]"), kind.removesuffix("[]")
        struct = self.of_struct(kind) if kind in self.lines else None
        return FieldSchema(
            name,
            kind if struct is None else "struct",
            array,
            nullable,
            int(tag) if tag else None,
            default_value(cls, name),
            struct,
            entity,
        )


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


def entity_types(struct: StructSchema) -> dict[str, str]:
    """The name of each field's type in Kafka's definitions, such as ``TopicName`` or ``GroupId``.

    On the wire these are plain strings and numbers.
    """
    return {f.name: f.entity for f in struct.fields}
