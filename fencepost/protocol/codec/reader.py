"""Readers that leave record batches where they lie.

kio's native reader copies everything it reads. For the messages that carry record batches (Produce
requests, Fetch responses) that would be one more copy of all data, into a place that can't be
stamped. These few are read in Python instead, with batches as views of the frame.
"""

import struct
from collections.abc import Callable
from typing import Any
from uuid import UUID

from fencepost.protocol.codec.schema import FieldShape, Shape
from fencepost.protocol.codec.writer import FIXED

Read = Callable[[memoryview, int], tuple[Any, int]]


def compile_reader(shape: Shape) -> Read:
    """A reader of a body in a frame, from a position: returns the message and where it ends.

    :raises ValueError: (in the reader) When the bytes are not such a body.
    """
    plain = [(f.name, _field_reader(f, shape.flexible)) for f in shape.fields if f.tag is None]
    tagged = {f.tag: (f.name, _tag_reader(f)) for f in shape.fields if f.tag is not None}
    cls = shape.cls

    def read(view: memoryview, pos: int) -> tuple[Any, int]:
        values: dict[str, Any] = {}
        for name, read_field in plain:
            values[name], pos = read_field(view, pos)
        if shape.flexible:
            count, pos = read_uvarint(view, pos)
            for _ in range(count):
                tag, pos = read_uvarint(view, pos)
                size, pos = read_uvarint(view, pos)
                if tag in tagged:
                    name, read_field = tagged[tag]
                    values[name], _ = read_field(view, pos)
                pos = _end(view, pos, size)
        return cls(**values), pos

    return read


def read_uvarint(view: memoryview, pos: int) -> tuple[int, int]:
    """An unsigned variable-length integer of at most five bytes, and the position behind it."""
    value = shift = 0
    while True:
        if pos >= len(view):
            raise ValueError("the frame ends inside a number")
        byte = view[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, pos
        shift += 7
        if shift > 28:
            raise ValueError("a number is longer than five bytes")


def _end(view: memoryview, pos: int, size: int) -> int:
    if size < 0 or pos + size > len(view):
        raise ValueError(f"{size} bytes wanted at {pos}, the frame has {len(view)}")
    return pos + size


def _field_reader(f: FieldShape, flexible: bool) -> Read:
    if f.struct is not None:
        item = compile_reader(f.struct)
        if not f.array and f.nullable:
            return _nullable(item)
    elif f.kind in FIXED:
        item = _fixed_reader(f.kind)
    else:
        item = _sized_reader(f.kind, flexible)
    return _array_reader(item, flexible) if f.array else item


def _tag_reader(f: FieldShape) -> Read:
    """As a field of a flexible version; presence says that it is not null."""
    if f.struct is not None and not f.array:
        return compile_reader(f.struct)
    return _field_reader(f, True)


def _fixed_reader(kind: str) -> Read:
    unpack, size = struct.Struct(f">{FIXED[kind]}").unpack_from, struct.calcsize(f">{FIXED[kind]}")

    def read(view: memoryview, pos: int) -> tuple[Any, int]:
        end = _end(view, pos, size)
        (value,) = unpack(view, pos)
        if kind == "uuid":
            value = UUID(bytes=value) if any(value) else None
        return value, end

    return read


def _length(view: memoryview, pos: int, flexible: bool, code: str) -> tuple[int, int]:
    """A length, -1 for null."""
    if flexible:
        size, pos = read_uvarint(view, pos)
        return size - 1, pos
    end = _end(view, pos, struct.calcsize(code))
    return struct.unpack_from(code, view, pos)[0], end


def _sized_reader(kind: str, flexible: bool) -> Read:
    code = ">h" if kind == "string" else ">i"

    def read(view: memoryview, pos: int) -> tuple[Any, int]:
        size, pos = _length(view, pos, flexible, code)
        if size < 0:
            return None, pos
        end = _end(view, pos, size)
        part = view[pos:end]
        if kind == "string":
            return str(part, "utf-8"), end
        if kind == "batches":
            return (part,), end
        return (part if kind == "records" else bytes(part)), end

    return read


def _array_reader(item: Read, flexible: bool) -> Read:
    def read(view: memoryview, pos: int) -> tuple[Any, int]:
        count, pos = _length(view, pos, flexible, ">i")
        if count < 0:
            return None, pos
        _end(view, pos, count)  # an element has at least a byte: refuse before looping
        values = []
        for _ in range(count):
            value, pos = item(view, pos)
            values.append(value)
        return tuple(values), pos

    return read


def _nullable(item: Read) -> Read:
    def read(view: memoryview, pos: int) -> tuple[Any, int]:
        end = _end(view, pos, 1)
        return item(view, end) if view[pos] < 0x80 else (None, end)

    return read
