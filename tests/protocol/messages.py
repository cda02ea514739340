"""Messages of any API and version with random content, as fencepost's classes and as kio's."""

from __future__ import annotations

from dataclasses import Field, fields
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st
from kio.schema.errors import ErrorCode as KioErrorCode

from fencepost.protocol.apis import APIS, Api
from fencepost.protocol.codec.schema import FieldSchema, Side, StructSchema
from tools.kio_schemas import kio_class, split_type

Value: TypeAlias = Any
"""A field's value, whatever its type."""
Content: TypeAlias = dict[str, Value]
"""A struct's fields by name: numbers, texts and bytes are plain, nested structs are contents."""

SIDES: Final[tuple[Side, ...]] = ("request", "response")
EVERY: Final = [
    (api, version, side)
    for api in APIS
    for version in range(api.min_version, api.max_version + 1)
    for side in SIDES
]
"""Every message that is served."""
_NO_TIME: Final = -1
_FAR_FUTURE_MS: Final = 4_102_444_800_000
"""kio reads later times inexactly: it goes by way of floats."""
_INTEGERS: Final = {
    "int8": 8,
    "int16": 16,
    "int32": 32,
    "int64": 64,
    "timedelta_i32": 32,
    "timedelta_i64": 48,
}
_NUMBERS: Final = {
    kind: st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) for kind, bits in _INTEGERS.items()
}
_ZEROS: Final[dict[str, Value]] = {"string": "", "bytes": b"", "uuid": None, "bool": False}
_KINDS: Final[dict[str, st.SearchStrategy[Value]]] = {
    **_NUMBERS,
    "uint16": st.integers(0, (1 << 16) - 1),
    "bool": st.booleans(),
    "float64": st.floats(allow_nan=False),
    "string": st.text(st.characters(codec="utf-8"), max_size=200),
    "bytes": st.binary(max_size=200),
    "records": st.binary(max_size=300),
    "uuid": st.uuids() | st.none(),
    "error_code": st.sampled_from([code.value for code in KioErrorCode]),
    "datetime_i64": st.integers(0, _FAR_FUTURE_MS),
}


def title(case: tuple[Api, int, Side]) -> str:
    api, version, side = case
    return f"{api.title}-v{version}-{side}"


def contents(schema: StructSchema) -> st.SearchStrategy[Content]:
    """Any content that a message of this schema may have."""
    return st.fixed_dictionaries(
        {
            f.name: _field(f, theirs)
            for theirs, f in zip(fields(kio_class(schema)), schema.fields, strict=True)
        }
    )


def smallest(schema: StructSchema) -> Content:
    """A content with one element in every array, all else being as by default."""
    content: Content = {}
    for f in schema.fields:
        value = smallest(f.struct) if f.struct is not None else _ZEROS.get(f.kind, 0)
        if f.array:
            value = (value,)
        content[f.name] = value if f.array or f.struct is not None else f.default
    return content


def _field(f: FieldSchema, theirs: Field[Value]) -> st.SearchStrategy[Value]:
    kio_type = theirs.metadata.get("kafka_type", "")
    one = contents(f.struct) if f.struct is not None else _KINDS[kio_type]
    value: st.SearchStrategy[Value] = one
    if kio_type == "datetime_i64" and split_type(theirs.type)[2]:
        value = st.just(_NO_TIME) | value
    if f.array:
        value = st.lists(one, max_size=3).map(tuple)
    if f.nullable:
        value = st.none() | value
    return value


def ours(schema: StructSchema, content: Content) -> Value:
    """The content as fencepost's class."""
    values = {}
    for f in schema.fields:
        value = content[f.name]
        if f.kind == "batches" and value is not None:
            # Two buffers on the way out are one on the wire.
            value = tuple(part for part in (value[:7], value[7:]) if part)
        values[f.name] = _nested(f, value, ours)
    return schema.cls(**values)


def kios(schema: StructSchema, content: Content) -> Value:
    """The content as kio's class for this version."""
    values = {}
    for theirs, f in zip(fields(kio_class(schema)), schema.fields, strict=True):
        value = _nested(f, content[f.name], kios)
        kio_type = theirs.metadata.get("kafka_type", "")
        if f.array and value is not None:
            value = tuple(_as_kio(kio_type, item) for item in value)
        elif not f.array:
            value = _as_kio(kio_type, value)
        values[theirs.name] = value
    return kio_class(schema)(**values)


def _nested(f: FieldSchema, value: Value, build: Value) -> Value:
    if f.struct is None or value is None:
        return value
    if f.array:
        return tuple(build(f.struct, item) for item in value)
    return build(f.struct, value)


def _as_kio(kio_type: str, value: Value) -> Value:
    if value is None or (kio_type == "datetime_i64" and value == _NO_TIME):
        return None
    if kio_type.startswith("timedelta"):
        return timedelta(milliseconds=value)
    if kio_type == "datetime_i64":
        return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=value)
    return KioErrorCode(value) if kio_type == "error_code" else value


def content_of(schema: StructSchema, message: Value) -> Content:
    """A message's content, whichever of fencepost's classes of this struct it is."""
    found = {}
    for f in schema.fields:
        value = getattr(message, f.name)
        if f.kind == "batches" and value is not None:
            value = b"".join(value)
        elif f.kind == "records" and value is not None:
            value = bytes(value)
        found[f.name] = _nested(f, value, content_of)
    return found
