"""The costliest requests of a size, for each API and version, made from its schema.

A shape names one array of the request, or its tagged fields or texts, and fills the request with
them up to a size: the fewest bytes an element, so the most elements. Names are unknown, all the
same, or spread over what the cluster has. The bytes are written here and not by the codec, which
would refuse half of them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias
from uuid import UUID

from fencepost.protocol.apis import Api
from fencepost.protocol.codec.code_builder import FIXED_WIDTH_CODES
from fencepost.protocol.codec.schema import FieldSchema, StructSchema, message_schema
from tests.harness.records import batch
from tests.harness.wire import uvarint

Path: TypeAlias = tuple[str, ...]
Names: TypeAlias = Literal["unknown", "same", "spread"]
"""Whom a request names: none that the cluster has, one of them again and again, or all in turn."""
NAMES: Final[tuple[Names, ...]] = ("unknown", "same", "spread")
TOPICS: Final = 20
"""Topics of the cluster that the requests are for."""
PARTITIONS: Final = 2
GROUP: Final = "group"
_LONGEST: Final = 32_767
_SIZE: Final = 4 + 2 + 2 + 4
_NUMBERS: Final[Mapping[str, int]] = {
    "acks": 1,
    "controller_mutation": 0,
    "current_leader_epoch": -1,
    "generation_id": -1,
    "generation_id_or_member_epoch": -1,
    "last_fetched_epoch": -1,
    "max_bytes": 1 << 20,
    "member_epoch": -1,
    "num_partitions": -1,
    "offset": 0,
    "partition_max_bytes": 1 << 20,
    "producer_epoch": -1,
    "producer_id": -1,
    "rebalance_timeout_ms": 10_000,
    "replica_id": -1,
    "replication_factor": -1,
    "resource_type": 2,
    "response_partition_limit": 2000,
    "session_epoch": -1,
    "session_timeout_ms": 10_000,
    "timeout_ms": 1000,
    "timestamp": -1,
}
"""By field; what is not here is 0. A request that is refused at once costs nothing."""
_INDEXES: Final = frozenset(
    {"partition", "partition_index", "partition_indexes", "partitions", "index"}
)
_TEXTS: Final[Mapping[str, str]] = {"group_id": GROUP, "protocol_type": "consumer"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One way to fill a request of an API and version."""

    api: Api
    version: int
    path: Path
    """The array that is filled, or the field whose text is."""
    kind: Literal["elements", "outer", "tags", "text", "lies"]
    names: Names = "unknown"

    @property
    def name(self) -> str:
        """For a test's name."""
        path = ".".join(self.path) or "top"
        return f"{self.api.title} v{self.version} {self.kind} of {path}, {self.names}"

    def body(self, size: int, ids: Mapping[str, UUID]) -> bytes:
        """A body of about so many bytes.

        :param ids: Of the cluster's topics, by name.
        """
        schema = message_schema(self.api.name, "request", self.version)
        one, two = (len(_Writer(self, count, ids).write(schema)) for count in (1, 2))
        return _Writer(self, max(1, (size - one) // max(two - one, 1)), ids).write(schema)

    def frame(self, size: int, ids: Mapping[str, UUID]) -> bytes:
        """A whole request."""
        head = struct.pack(">hhih", self.api.key, self.version, 1, -1)
        head += b"\0" * self.api.is_flexible(self.version)
        body = head + self.body(size, ids)
        return struct.pack(">i", len(body)) + body


def shapes(api: Api, version: int, *, thorough: bool = True) -> Iterator[Shape]:
    """All shapes of a version.

    :param thorough: Else only those that name what the cluster does not have, and no long texts.
    """
    schema = message_schema(api.name, "request", version)
    for path, _ in _arrays(schema):
        for names in NAMES if thorough else NAMES[:1]:
            yield Shape(api=api, version=version, path=path, kind="elements", names=names)
            if len(path) > 1:
                yield Shape(api=api, version=version, path=path, kind="outer", names=names)
    if schema.flexible:
        yield Shape(api=api, version=version, path=(), kind="tags")
        for path, f in _arrays(schema):
            if f.struct is not None:
                yield Shape(api=api, version=version, path=path, kind="tags")
        for f in schema.fields:
            if f.tag is not None:
                yield Shape(api=api, version=version, path=(f.name,), kind="lies")
    for path in _texts(schema) if thorough else ():
        yield Shape(api=api, version=version, path=path, kind="text")


def _arrays(schema: StructSchema, path: Path = ()) -> Iterator[tuple[Path, FieldSchema]]:
    for f in schema.fields:
        if f.array:
            yield (*path, f.name), f
        if f.struct is not None:
            yield from _arrays(f.struct, (*path, f.name))


def _texts(schema: StructSchema, path: Path = ()) -> Iterator[Path]:
    for f in schema.fields:
        if f.kind in ("string", "bytes") and not f.array and f.tag is None:
            yield (*path, f.name)
        if f.struct is not None and f.tag is None:
            yield from _texts(f.struct, (*path, f.name))


@dataclass(slots=True)
class _Writer:
    """Writes one request."""

    shape: Shape
    count: int
    ids: Mapping[str, UUID]
    topic_names: list[str] = field(default_factory=list)

    def write(self, schema: StructSchema) -> bytes:
        self.topic_names = sorted(self.ids)
        out = bytearray()
        self._struct(out, schema, (), 0)
        return bytes(out)

    def _struct(self, out: bytearray, schema: StructSchema, path: Path, index: int) -> None:
        for f in schema.fields:
            if f.tag is None:
                self._field(out, f, (*path, f.name), index, schema.flexible)
        if schema.flexible:
            self._tags(out, schema, path)

    def _tags(self, out: bytearray, schema: StructSchema, path: Path) -> None:
        shape = self.shape
        if shape.kind == "tags" and shape.path == path:
            out += uvarint(self.count) + b"\x63\0" * self.count
            return
        tagged = [f for f in schema.fields if f.tag is not None and (*path, f.name) == shape.path]
        if shape.kind == "lies":
            lies = [self._lie(f) for f in tagged]
            out += uvarint(self.count * len(lies)) + b"".join(lies) * self.count
            return
        written = [self._tagged(f, (*path, f.name)) for f in self._filled_tags(schema, path)]
        out += uvarint(len(written)) + b"".join(written)

    def _filled_tags(self, schema: StructSchema, path: Path) -> list[FieldSchema]:
        depth = len(path) + 1
        return [
            f
            for f in schema.fields
            if f.tag is not None and self.shape.path[:depth] == (*path, f.name)
        ]

    def _tagged(self, f: FieldSchema, path: Path) -> bytes:
        body = bytearray()
        if f.struct is not None and not f.array:
            self._struct(body, f.struct, path, 0)
        else:
            self._field(body, f, path, 0, True)
        return uvarint(f.tag or 0) + uvarint(len(body)) + bytes(body)

    def _lie(self, f: FieldSchema) -> bytes:
        """A tagged field of which each byte is a field again, as its size is said to be none."""
        text = b"\x7f" if f.kind in ("string", "bytes") or f.array else b""
        return uvarint(f.tag or 0) + b"\0" + text

    def _field(
        self, out: bytearray, f: FieldSchema, path: Path, index: int, flexible: bool
    ) -> None:
        if f.array:
            self._array(out, f, path, flexible)
        elif f.struct is not None:
            if f.nullable:
                out += b"\x01"
            self._struct(out, f.struct, path, index)
        else:
            self._scalar(out, f, path, index, flexible)

    def _array(self, out: bytearray, f: FieldSchema, path: Path, flexible: bool) -> None:
        count = self._count(path)
        out += uvarint(count + 1) if flexible else struct.pack(">i", count)
        for index in range(count):
            if f.struct is not None:
                self._struct(out, f.struct, path, index)
            else:
                self._scalar(out, f, path, index, flexible)

    def _count(self, path: Path) -> int:
        shape = self.shape
        if shape.path[: len(path)] != path:
            return 0
        filled = shape.path[:1] if shape.kind == "outer" else shape.path
        return self.count if path == filled and shape.kind in ("elements", "outer") else 1

    def _scalar(
        self, out: bytearray, f: FieldSchema, path: Path, index: int, flexible: bool
    ) -> None:
        if f.kind in FIXED_WIDTH_CODES:
            out += struct.pack(f">{FIXED_WIDTH_CODES[f.kind]}", self._fixed(f, index))
            return
        value = self._sized(f, path, index)
        if value is None:
            out += b"\0" if flexible else struct.pack(">h" if f.kind == "string" else ">i", -1)
        elif flexible:
            out += uvarint(len(value) + 1) + value
        else:
            out += struct.pack(">h" if f.kind == "string" else ">i", len(value)) + value

    def _fixed(self, f: FieldSchema, index: int) -> object:
        if f.kind == "uuid":
            return self._id(index).bytes
        if f.kind == "float64":
            return 0.0
        if f.name in _INDEXES:
            return {"unknown": index, "same": 0, "spread": index % PARTITIONS}[self.shape.names]
        return _NUMBERS.get(f.name, 0)

    def _id(self, index: int) -> UUID:
        match self.shape.names:
            case "unknown":
                return UUID(int=index + 1)
            case "same":
                return self.ids[self.topic_names[0]]
            case "spread":
                return self.ids[self.topic_names[index % len(self.topic_names)]]

    def _sized(self, f: FieldSchema, path: Path, index: int) -> bytes | None:
        shape = self.shape
        if shape.kind == "text" and path == shape.path:
            return b"x" * (min(self.count, _LONGEST) if f.kind == "string" else self.count)
        if f.kind in ("records", "batches"):
            return bytes(batch(b""))
        if f.kind == "bytes":
            return b""
        if f.name in _TEXTS:
            return _TEXTS[f.name].encode()
        if f.nullable and not f.array and self.ids and f.name not in ("name", "topic"):
            return None
        match shape.names:
            case "unknown":
                return b"%x" % index
            case "same":
                return self.topic_names[0].encode()
            case "spread":
                return self.topic_names[index % len(self.topic_names)].encode()
