"""Writers compiled from schemas: one Python function for each (API, side, version).

Building and walking generic writers costs more than the network (15-17 us an answer). A compiled
writer packs runs of fixed-width fields with one ``struct`` call and has its loops inline. Record
batches are not copied: the writer returns the encoded bytes around them and the batches themselves.
"""

import struct
from collections.abc import Callable, Generator
from typing import Any, Final

from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.codec.code_builder import FIXED_WIDTH_CODES, CodeBuilder
from fencepost.protocol.codec.encoded_array import MAY_BE_ENCODED, EncodedArray
from fencepost.protocol.codec.schema import RECORD_KINDS, FieldSchema, StructSchema

Writer = Callable[[bytearray, Any], list[Buffer]]
"""Appends a body to the bytes so far; returns all buffers in order, the first being those bytes."""
SlicedWriter = Callable[[bytearray, Any], Generator[None, None, list[Buffer]]]
"""The same, in slices."""
MAX_STRING_BYTES: Final = 32_767
"""Of a string on the wire, in every version."""
ZERO_UUID = bytes(16)


def uvarint(value: int) -> bytes:
    """An unsigned variable-length integer, seven bits a byte, lowest first."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def compile_writer(schema: StructSchema, *, slices: bool = False) -> Any:
    """Compile the writer of a body.

    :param slices: Makes the writer a generator, which yields after each `SLICE` elements and
        returns the same: see `SlicedWriter`.

    A value that does not fit its field raises ``struct.error``, ``AttributeError`` or ``TypeError``
    in the writer: a bug of the caller, not of a peer.
    """
    src = CodeBuilder(slices=slices)
    src.constants.update(uvarint=uvarint, ZERO=ZERO_UUID, encoded=EncodedArray)
    src.line("def write(out, m):")
    src.depth += 1
    src.line("chunks = [out]")
    src.begin_slices()
    _struct(src, schema, "m", "out")
    src.line("return chunks")
    return src.function("write", f"writer of {schema.cls.__name__}")


def _struct(src: CodeBuilder, schema: StructSchema, var: str, out: str) -> None:
    """Emit the fields of a struct, runs of fixed width joined, then its tagged fields."""
    run: list[tuple[str, str]] = []
    for f in schema.fields:
        if f.tag is not None:
            continue
        if f.kind in FIXED_WIDTH_CODES and not f.array:
            run.append((FIXED_WIDTH_CODES[f.kind], _fixed_value(f.kind, f"{var}.{f.name}")))
            continue
        _flush(src, run, out)
        _value(src, f, f"{var}.{f.name}", schema.flexible, out)
    _flush(src, run, out)
    if schema.flexible:
        _tags(src, [f for f in schema.fields if f.tag is not None], var, out)


def _fixed_value(kind: str, value: str) -> str:
    return f"({value}.bytes if {value} is not None else ZERO)" if kind == "uuid" else value


def _flush(src: CodeBuilder, run: list[tuple[str, str]], out: str) -> None:
    if run:
        code = "".join(code for code, _ in run)
        src.line(f"{out} += {src.packer(code)}.pack({', '.join(value for _, value in run)})")
        run.clear()


def _value(src: CodeBuilder, f: FieldSchema, value: str, flexible: bool, out: str) -> None:
    if f.array:
        _array(src, f, value, flexible, out)
    elif f.struct is not None:
        _nested(src, f, f.struct, value, out)
    elif f.kind in RECORD_KINDS:
        _records(src, value, flexible, out)
    else:
        _text(src, f, value, flexible, out)


def _nested(src: CodeBuilder, f: FieldSchema, inner: StructSchema, value: str, out: str) -> None:
    """A struct in place; nullable ones are marked by a leading byte (KIP-893)."""
    var = src.new_variable("s")
    src.line(f"{var} = {value}")
    if not f.nullable:
        _struct(src, inner, var, out)
        return
    src.line(f"if {var} is None: {out}.append(255)")
    src.line("else:")
    src.depth += 1
    src.line(f"{out}.append(1)")
    _struct(src, inner, var, out)
    src.depth -= 1


def _array(src: CodeBuilder, f: FieldSchema, value: str, flexible: bool, out: str) -> None:
    var, item = src.new_variable("a"), src.new_variable("e")
    src.line(f"{var} = {value}")
    src.line(f"if {var} is None: {out} += {_null(flexible, 'i')}")
    src.line("else:")
    src.depth += 1
    _length(src, var, flexible, "i", out)
    if f.struct is not None and f.struct.cls.__name__ in MAY_BE_ENCODED:
        src.line(f"if type({var}) is encoded: {out} += {var}.data; {var} = ()")
    src.line(f"for {item} in {var}:")
    src.depth += 1
    mark = len(src.lines)
    if f.struct is not None:
        _struct(src, f.struct, item, out)
    elif f.kind in FIXED_WIDTH_CODES:
        src.line(
            f"{out} += {src.packer(FIXED_WIDTH_CODES[f.kind])}.pack({_fixed_value(f.kind, item)})"
        )
    else:
        _text(src, f, item, flexible, out)
    src.end_element()
    if len(src.lines) == mark:
        src.line("pass")
    src.depth -= 2


def _text(src: CodeBuilder, f: FieldSchema, value: str, flexible: bool, out: str) -> None:
    """Strings and bytes, with a length before them."""
    var = src.new_variable("t")
    src.line(f"{var} = {value}")
    src.line(f"if {var} is None: {out} += {_null(flexible, 'h' if f.kind == 'string' else 'i')}")
    src.line("else:")
    src.depth += 1
    if f.kind == "string":
        src.line(f"{var} = {var}.encode()")
        if f.name == "error_message":  # it may quote a name of the request, which is as long
            src.constants["cut"] = _cut
            src.line(f"if len({var}) > {MAX_STRING_BYTES}: {var} = cut({var})")
    _length(src, var, flexible, "h" if f.kind == "string" else "i", out)
    src.line(f"{out} += {var}")
    src.depth -= 1


def _cut(message: bytes) -> bytes:
    """The beginning of a message, without a character that would be cut in two."""
    return message[:MAX_STRING_BYTES].decode(errors="ignore").encode()


def _records(src: CodeBuilder, value: str, flexible: bool, out: str) -> None:
    """Record batches, untouched: one buffer, or a tuple of them."""
    var, size = src.new_variable("r"), src.new_variable("n")
    src.line(f"{var} = {value}")
    src.line(f"if {var} is None: {out} += {_null(flexible, 'i')}")
    src.line("else:")
    src.depth += 1
    src.line(f"if type({var}) is not tuple: {var} = ({var},)")
    src.line(f"{size} = sum(map(len, {var}))")
    packed = src.packer("i")
    src.line(f"{out} += uvarint({size} + 1)" if flexible else f"{out} += {packed}.pack({size})")
    src.line(f"if {var}:")
    src.line(f"    chunks += {var}")
    src.line(f"    {out} = bytearray()")
    src.line(f"    chunks.append({out})")
    src.depth -= 1


def _length(src: CodeBuilder, var: str, flexible: bool, code: str, out: str) -> None:
    if not flexible:
        src.line(f"{out} += {src.packer(code)}.pack(len({var}))")
        return
    size = src.new_variable("n")
    src.line(f"{size} = len({var}) + 1")
    src.line(f"if {size} < 128: {out}.append({size})")
    src.line(f"else: {out} += uvarint({size})")


def _null(flexible: bool, code: str) -> str:
    return r"b'\x00'" if flexible else repr(struct.pack(f">{code}", -1))


def _tags(src: CodeBuilder, tagged: list[FieldSchema], var: str, out: str) -> None:
    """Tagged fields (KIP-482): those that differ from their default, by rising tag."""
    if not tagged:
        src.line(f"{out}.append(0)")
        return
    tags = src.new_variable("g")
    src.line(f"{tags} = []")
    for f in sorted(tagged, key=lambda f: f.tag or 0):
        default = src.constant(f.default)
        src.line(f"if {var}.{f.name} != {default}:")
        src.depth += 1
        body = src.new_variable("b")
        src.line(f"{body} = bytearray()")
        _tag_value(src, f, f"{var}.{f.name}", body)
        src.line(f"{tags}.append(uvarint({f.tag}) + uvarint(len({body})) + {body})")
        src.depth -= 1
    src.line(f"{out} += uvarint(len({tags}))")
    src.line(f"for {tags} in {tags}: {out} += {tags}")


def _tag_value(src: CodeBuilder, f: FieldSchema, value: str, body: str) -> None:
    if f.kind == "presence":
        return
    if f.kind in FIXED_WIDTH_CODES and not f.array:
        src.line(
            f"{body} += {src.packer(FIXED_WIDTH_CODES[f.kind])}.pack({_fixed_value(f.kind, value)})"
        )
    elif f.struct is not None and not f.array:
        var = src.new_variable("s")
        src.line(f"{var} = {value}")
        _struct(src, f.struct, var, body)
    else:
        _value(src, f, value, True, body)
