"""Readers compiled from schemas, as the writers are.

kio's native reader is faster, and must not read a peer's bytes: it allocates memory for as many
elements as an array claims to have before it reads the first, and the process is aborted where that
fails. These readers accept no length that is beyond the frame, and return record batches as views
of the frame. They read each byte once: an array whose elements can't all be in the bytes that are
left is refused before its first element is read, and a tagged field may not end behind its size.
"""

import struct
from collections.abc import Callable, Generator
from typing import Any, Final, NoReturn
from uuid import UUID

from fencepost.protocol.codec.code_builder import FIXED_WIDTH_CODES, CodeBuilder
from fencepost.protocol.codec.schema import RECORD_KINDS, FieldSchema, StructSchema, nested_structs

Read = Callable[[memoryview, int], tuple[Any, int]]
SlicedRead = Callable[[memoryview, int], Generator[None, None, tuple[Any, int]]]
MAX_ELEMENTS: Final = 1_000_000
"""Of the arrays of one request, with its tagged fields."""
MAX_TAGGED_FIELDS: Final = 100_000
"""Of one message. An unknown one has two bytes and takes as long as an element of twenty."""


def compile_reader(schema: StructSchema, *, slices: bool = False) -> Any:
    """A reader of a body in a frame, from a position: returns the message and where it ends.

    :param slices: Makes the reader a generator, which yields after each `SLICE` elements and
        returns the same: see `SlicedRead`.

    The reader raises ``ValueError``, ``IndexError`` or ``struct.error`` when the bytes are not such
    a body.
    """
    src = CodeBuilder(slices=slices)
    src.constants.update(
        short=_short,
        beyond=_beyond,
        too_many=_too_many_tags,
        most=MAX_TAGGED_FIELDS,
        null=_not_nullable,
        uvarint=read_uvarint,
        UUID=UUID,
    )
    src.line("def read(view, at):")
    src.depth += 1
    src.line("size = len(view)")
    src.begin_slices()
    if any(each.flexible for each in nested_structs(schema)):
        src.line("tags = 0")
    message = _struct(src, schema)
    src.line(f"return {message}, at")
    return src.function("read", f"reader of {schema.cls.__name__}")


def read_uvarint(view: memoryview, pos: int) -> tuple[int, int]:
    """An unsigned variable-length integer of at most five bytes, and the position behind it."""
    value = 0
    for shift in range(0, 35, 7):
        byte = view[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, pos
    raise ValueError("a number is longer than five bytes")


def _short(at: int, wanted: int, size: int) -> NoReturn:
    raise ValueError(f"{wanted} bytes wanted at {at}, the frame has {size}")


def _too_many_tags() -> NoReturn:
    raise ValueError(f"more than {MAX_TAGGED_FIELDS} tagged fields")


def _beyond(tag: int, at: int, stop: int) -> NoReturn:
    raise ValueError(f"tagged field {tag} reaches to {at}, its size only to {stop}")


def _not_nullable(name: str) -> NoReturn:
    raise ValueError(f"{name} is null, which it must not be")


def _struct(src: CodeBuilder, schema: StructSchema) -> str:
    """Emit the reading of a struct; returns the variable that holds it."""
    values: dict[str, str] = {}
    run: list[FieldSchema] = []
    for f in schema.fields:
        if f.tag is not None:
            continue
        if f.kind in FIXED_WIDTH_CODES and not f.array:
            run.append(f)
            continue
        _flush(src, run, values)
        values[f.name] = _value(src, f, schema.flexible)
    _flush(src, run, values)
    tagged = [f for f in schema.fields if f.tag is not None]
    if schema.flexible:
        values.update(_tags(src, tagged))
    return _instance(src, schema.cls, values)


def _instance(src: CodeBuilder, cls: type, values: dict[str, str]) -> str:
    """Emit the making of an instance; what is not among the values is as by default."""
    message, made = src.new_variable("m"), src.constant(cls)
    arguments = ", ".join(f"{name}={value}" for name, value in values.items())
    src.line(f"{message} = {made}({arguments})")
    return message


def _flush(src: CodeBuilder, run: list[FieldSchema], values: dict[str, str]) -> None:
    """Read a run of fixed-width fields with one call."""
    if not run:
        return
    packed = src.packer("".join(FIXED_WIDTH_CODES[f.kind] for f in run))
    names = [src.new_variable("v") for _ in run]
    src.line(f"{', '.join(names)}, = {packed}.unpack_from(view, at)")
    src.line(f"at += {src.constants[packed].size}")
    for f, name in zip(run, names, strict=True):
        values[f.name] = _fixed(f.kind, name)
    run.clear()


def _fixed(kind: str, name: str) -> str:
    return f"(UUID(bytes={name}) if any({name}) else None)" if kind == "uuid" else name


def _value(src: CodeBuilder, f: FieldSchema, flexible: bool) -> str:
    if f.array:
        return _array(src, f, flexible)
    if f.struct is not None:
        return _nullable(src, f.struct) if f.nullable else _struct(src, f.struct)
    return _sized(src, f, flexible)


def _length(src: CodeBuilder, flexible: bool, code: str) -> str:
    """Emit the reading of a length, -1 for null."""
    size = src.new_variable("n")
    if flexible:
        src.line(f"{size} = view[at]; at += 1")
        src.line(f"if {size} > 127: {size}, at = uvarint(view, at - 1)")
        src.line(f"{size} -= 1")
    else:
        packed = src.packer(code)
        src.line(f"{size}, = {packed}.unpack_from(view, at); at += {src.constants[packed].size}")
    return size


def _sized(src: CodeBuilder, f: FieldSchema, flexible: bool) -> str:
    """Strings, bytes and batches."""
    kind = f.kind
    size = _length(src, flexible, "h" if kind == "string" else "i")
    value, stop = src.new_variable("t"), src.new_variable("p")
    _null(src, f.name, f.nullable and not f.array, size, value)
    src.line("else:")
    src.depth += 1
    src.line(f"{stop} = at + {size}")
    src.line(f"if {stop} > size: short(at, {size}, size)")
    part = f"view[at:{stop}]"
    whole = {"string": f"str({part}, 'utf-8')", "records": part, "batches": f"({part},)"}
    src.line(f"{value} = {whole.get(kind, f'bytes({part})')}; at = {stop}")
    src.depth -= 1
    return value


def _null(src: CodeBuilder, name: str, allowed: bool, length: str, value: str) -> None:
    """Emit what a negative length means; an ``else`` has to follow."""
    missing = f"{value} = None" if allowed else f"null({name!r})"
    src.line(f"if {length} < 0: {missing}")


def _array(src: CodeBuilder, f: FieldSchema, flexible: bool) -> str:
    count = _length(src, flexible, "i")
    value, items = src.new_variable("a"), src.new_variable("l")
    _null(src, f.name, f.nullable, count, value)
    src.line("else:")
    src.depth += 1
    least = _least_element(f, flexible)
    wanted = count if least == 1 else f"{count} * {least}"
    src.line(f"if at + {wanted} > size: short(at, {wanted}, size)")
    src.line(f"{items} = []")
    src.line(f"for _ in range({count}):")
    src.depth += 1
    if f.struct is not None:
        item = _struct(src, f.struct)
    elif f.kind in FIXED_WIDTH_CODES:
        one: dict[str, str] = {}
        _flush(src, [f], one)
        item = one[f.name]
    else:
        item = _sized(src, f, flexible)
    src.line(f"{items}.append({item})")
    src.end_element()
    src.depth -= 1
    src.line(f"{value} = tuple({items})")
    src.depth -= 1
    return value


def _least_element(f: FieldSchema, flexible: bool) -> int:
    """The fewest bytes that an element of an array has on the wire, one at least."""
    return max(1, _least_struct(f.struct) if f.struct is not None else _least_value(f, flexible))


def _least_struct(schema: StructSchema) -> int:
    least = sum(_least_field(f, schema.flexible) for f in schema.fields if f.tag is None)
    return least + schema.flexible


def _least_field(f: FieldSchema, flexible: bool) -> int:
    if f.array:
        return 1 if flexible else 4
    if f.struct is not None:
        return 1 if f.nullable else _least_struct(f.struct)
    return _least_value(f, flexible)


def _least_value(f: FieldSchema, flexible: bool) -> int:
    if f.kind in FIXED_WIDTH_CODES:
        return struct.calcsize(f">{FIXED_WIDTH_CODES[f.kind]}")
    if flexible:
        return 1
    return 2 if f.kind == "string" else 4


def _nullable(src: CodeBuilder, schema: StructSchema) -> str:
    """A struct behind a byte that says whether it is there (KIP-893)."""
    value = src.new_variable("o")
    src.line(f"{value} = None")
    src.line("at += 1")
    src.line("if view[at - 1] < 128:")
    src.depth += 1
    src.line(f"{value} = {_struct(src, schema)}")
    src.depth -= 1
    return value


def _tags(src: CodeBuilder, tagged: list[FieldSchema]) -> dict[str, str]:
    """Tagged fields (KIP-482): those that are known, by any order; others are passed over."""
    values = {f.name: src.new_variable("x") for f in tagged}
    for f in tagged:
        src.line(f"{values[f.name]} = {src.constant(f.default)}")
    count, tag, size, stop = (src.new_variable(stem) for stem in ("c", "g", "z", "p"))
    src.line(f"{count} = view[at]; at += 1")
    src.line(f"if {count}:")
    src.depth += 1
    src.line(f"if {count} > 127: {count}, at = uvarint(view, at - 1)")
    src.line(f"tags += {count}")
    src.line("if tags > most: too_many()")
    src.line(f"for _ in range({count}):")
    src.depth += 1
    src.line(f"{tag} = view[at]; at += 1")
    src.line(f"if {tag} > 127: {tag}, at = uvarint(view, at - 1)")
    src.line(f"{size} = view[at]; at += 1")
    src.line(f"if {size} > 127: {size}, at = uvarint(view, at - 1)")
    src.line(f"{stop} = at + {size}")
    src.line(f"if {stop} > size: short(at, {size}, size)")
    for f in tagged:
        src.line(f"if {tag} == {f.tag}:")
        src.depth += 1
        src.line(f"{values[f.name]} = {_tag_value(src, f)}")
        src.line(f"if at > {stop}: beyond({f.tag}, at, {stop})")
        src.depth -= 1
    src.line(f"at = {stop}")
    src.end_element()
    src.depth -= 2
    return values


def _tag_value(src: CodeBuilder, f: FieldSchema) -> str:
    """As a field of a flexible version; being there says that it is not null."""
    if f.kind == "presence":
        return "True"
    if f.struct is not None and not f.array:
        return _struct(src, f.struct)
    if f.kind in FIXED_WIDTH_CODES and not f.array:
        one: dict[str, str] = {}
        _flush(src, [f], one)
        return one[f.name]
    assert f.kind not in RECORD_KINDS, "no message has batches in a tagged field"
    return _value(src, f, True)
