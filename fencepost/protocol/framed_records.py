"""Values of Kafka's own logs: a frame, a type and a version as unsigned varints, and a message.

The records of a metadata log (`fencepost.protocol.metadata_records`) and of the topic
``__remote_log_metadata`` (`fencepost.protocol.remote_log_metadata_records`) have this form. kio has
no schemas of them, so their fields are data here, and the codec's readers are compiled from these.
All versions of all these types are flexible (KIP-482).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import Struct

from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.codec.drafts import WireType
from fencepost.protocol.codec.reader import compile_reader, read_uvarint
from fencepost.protocol.codec.schema import FieldSchema, StructSchema, default_value

FRAME: Final = 1
"""The version of the frame, in front of every value."""


class MalformedValue(ValueError):
    """Bytes that are no such value, or of a version that is not known here. The text is a line."""


class RecordField(Struct, frozen=True, kw_only=True):
    """A field of a record, with the versions that have it."""

    name: str
    kind: WireType | None = None
    """Of the field, or of an array's elements; None where that is a struct."""
    struct: "RecordLayout | None" = None
    array: bool = False
    nullable: bool = False
    tag: int | None = None
    since: int = 0
    """The first version that has it."""


class RecordLayout(Struct, frozen=True, kw_only=True):
    """A record, or a struct in one."""

    cls: type[Struct]
    """Its defaults are those of fields that a version does not have."""
    fields: tuple[RecordField, ...]
    """In wire order; tagged fields anywhere."""
    newest: int = 0
    """The newest version that is known."""

    def schema(self, version: int) -> StructSchema:
        """What the codec compiles a reader, or a writer, of a version from."""
        known = [each for each in self.fields if each.since <= version]
        fields = tuple(self._field_schema(each, version) for each in known)
        return StructSchema(self.cls, True, fields)

    def _field_schema(self, f: RecordField, version: int) -> FieldSchema:
        struct = None if f.struct is None else f.struct.schema(version)
        default = default_value(self.cls, f.name)
        return FieldSchema(f.name, f.kind or "struct", f.array, f.nullable, f.tag, default, struct)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordTypes:
    """The types of a log's values."""

    layouts: Mapping[int, RecordLayout]
    """By the number of the type (Kafka: API key). Values of other types are passed over."""
    _readers: dict[tuple[int, int], Callable[[memoryview, int], tuple[Any, int]]] = field(
        default_factory=dict, compare=False, repr=False
    )
    """Compiled when they are first needed."""

    def decode(self, value: Buffer) -> object | None:
        """The record that a value is; None where it is of a type that has no layout.

        :raises MalformedValue: When it is no such value, or of a newer version.
        """
        view = memoryview(value)
        try:
            kind, version, at = self._head(view)
            layout = self.layouts.get(kind)
            if layout is None:
                return None
            record: object = self._reader(kind, version, layout)(view, at)[0]
        except MalformedValue:
            raise
        except Exception as error:  # any failure to read is a fault of the bytes
            raise MalformedValue(f"not a record of this log: {error}") from error
        return record

    @staticmethod
    def _head(view: memoryview) -> tuple[int, int, int]:
        """Type, version, and where the message begins."""
        frame, at = read_uvarint(view, 0)
        if frame != FRAME:
            raise MalformedValue(f"a frame of version {frame}, not {FRAME}")
        kind, at = read_uvarint(view, at)
        version, at = read_uvarint(view, at)
        return kind, version, at

    def _reader(
        self, kind: int, version: int, layout: RecordLayout
    ) -> Callable[[memoryview, int], tuple[Any, int]]:
        reader = self._readers.get((kind, version))
        if version > layout.newest:
            raise MalformedValue(
                f"a {layout.cls.__name__} of version {version}, and {layout.newest} is the "
                "newest that is known"
            )
        if reader is None:
            reader = self._readers[kind, version] = compile_reader(layout.schema(version))
        return reader


ID: Final = RecordField(name="topic_id", kind="uuid")
"""The field of most of these records."""
