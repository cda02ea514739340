"""Typed messages to bytes and back, for every API and version that is served.

Readers and writers are made on first use and kept: a schema module costs 5-20 ms to import, and
there are hundreds.

Each function takes the draft that the connection's peers speak (`fencepost.protocol.codec.drafts`).
With None all versions are Kafka's.
"""

import struct
from collections.abc import Generator
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fencepost.protocol.apis import Api
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.codec.code_builder import FIXED_WIDTH_CODES, SLICE
from fencepost.protocol.codec.reader import MAX_ELEMENTS, Read, SlicedRead, compile_reader
from fencepost.protocol.codec.schema import Side, StructSchema, message_schema, read_schemas
from fencepost.protocol.codec.writer import SlicedWriter, Writer, compile_writer

if TYPE_CHECKING:
    from fencepost.protocol.codec.drafts import Draft

_API_VERSIONS: Final = 18
_RESPONSE_HEAD: Final = struct.Struct(">ii")
"""Size and correlation id; the empty tagged fields of a flexible header are a zero behind them."""


class SlicedRequest(NamedTuple):
    """A request that was read in slices."""

    message: Any
    elements: int
    """Of its arrays, rounded down to whole slices."""


class MalformedMessage(ValueError):
    """Bytes that are no message of the API and version they claim to be."""


def prepare(api: Api) -> None:
    """Read ahead what the readers and writers of an API, in all versions, are made from."""
    read_schemas(api.name)


def decode_request(
    api: Api, version: int, frame: Buffer, offset: int = 0, draft: "Draft | None" = None
) -> Any:
    """Read a request body that starts at ``offset`` of a frame; bytes behind it are ignored.

    :raises MalformedMessage: When the bytes are not such a request.
    """
    read = _reader(api.name, "request", version, draft)
    try:
        return read(memoryview(frame), offset)[0]
    except Exception as error:  # any failure to read is a fault of the bytes
        raise MalformedMessage(f"not a {api.title} v{version} request: {error}") from error


def decode_request_in_slices(
    api: Api, version: int, frame: Buffer, offset: int = 0, draft: "Draft | None" = None
) -> Generator[None, None, SlicedRequest]:
    """Read as `decode_request` does, yielding after some thousands of elements.

    :raises MalformedMessage: When the bytes are not such a request, or it has more than
        `MAX_ELEMENTS`.
    """
    slices = _sliced_reader(api.name, version, draft)(memoryview(frame), offset)
    elements = 0
    while True:
        try:
            next(slices)
        except StopIteration as end:
            return SlicedRequest(end.value[0], elements)
        except Exception as error:  # any failure to read is a fault of the bytes
            raise MalformedMessage(f"not a {api.title} v{version} request: {error}") from error
        elements += SLICE
        if elements > MAX_ELEMENTS:
            raise MalformedMessage(f"a {api.title} of more than {MAX_ELEMENTS} elements")
        yield


def decode_response(
    api: Api, version: int, frame: Buffer, offset: int = 0, draft: "Draft | None" = None
) -> Any:
    """Read a response body that starts at ``offset`` of a frame, header and size not counted.

    :raises MalformedMessage: When the bytes are not such a response.
    """
    read = _reader(api.name, "response", version, draft)
    try:
        return read(memoryview(frame), offset)[0]
    except Exception as error:  # as above
        raise MalformedMessage(f"not a {api.title} v{version} response: {error}") from error


def encode_response(
    api: Api, version: int, correlation_id: int, message: object, draft: "Draft | None" = None
) -> list[Buffer]:
    """A whole response frame, size and header included, as buffers to be written in order.

    The header of an ApiVersions answer has version 0 always: its client cannot know better yet.
    """
    out = bytearray(9 if version >= api.first_flexible and api.key != _API_VERSIONS else 8)
    chunks = _writer(api.name, "response", version, draft)(out, message)
    size = len(out) if len(chunks) == 1 else sum(map(len, chunks))
    _RESPONSE_HEAD.pack_into(out, 0, size - 4, correlation_id)
    return chunks


def encode_response_in_slices(
    api: Api, version: int, correlation_id: int, message: object, draft: "Draft | None" = None
) -> Generator[None, None, list[Buffer]]:
    """Write as `encode_response` does, yielding after some thousands of elements."""
    out = bytearray(9 if api.is_flexible(version) and api.key != _API_VERSIONS else 8)
    chunks = yield from _sliced_writer(api.name, version, draft)(out, message)
    _RESPONSE_HEAD.pack_into(out, 0, sum(map(len, chunks)) - 4, correlation_id)
    return chunks


def encode_request(
    api: Api,
    version: int,
    correlation_id: int,
    client_id: str | None,
    message: object,
    draft: "Draft | None" = None,
) -> list[Buffer]:
    """A whole request frame, size and header included, as buffers to be written in order."""
    name = None if client_id is None else client_id.encode()
    out = bytearray(struct.pack(">ihhi", 0, api.key, version, correlation_id))
    out += struct.pack(">h", -1) if name is None else struct.pack(">h", len(name)) + name
    if api.is_flexible(version):
        out.append(0)
    chunks = _writer(api.name, "request", version, draft)(out, message)
    struct.pack_into(">i", out, 0, sum(map(len, chunks)) - 4)
    return chunks


def encode_element(api: Api, version: int, path: tuple[str, ...], element: object) -> bytes:
    """Encode one element of an array of a response, which must hold no record batches.

    :param path: The names of the arrays from the response to the element's.
    """
    out = bytearray()
    _element_writer(api.name, version, path)(out, element)
    return bytes(out)


def split_element(
    api: Api, version: int, path: tuple[str, ...], element: object, field: str
) -> tuple[bytes, bytes]:
    """What an encoded element has before a field of four bytes, and what it has behind that.

    :param path: As of `encode_element`.
    :param field: An ``int32``; before it are fields of fixed width alone.
    """
    data = encode_element(api, version, path, element)
    at = _field_offset(api.name, version, path, field)
    return data[:at], data[at + 4 :]


def response_body_offset(api: Api, version: int) -> int:
    """Where the body starts in a response frame without its size: behind the header.

    Right for peers that send no tagged fields in response headers, which no Kafka version does.
    """
    return 5 if api.is_flexible(version) and api.key != _API_VERSIONS else 4


def _element_schema(name: str, version: int, path: tuple[str, ...]) -> StructSchema:
    schema = message_schema(name, "response", version)
    for array in path:
        schema = next(f.struct for f in schema.fields if f.name == array and f.struct is not None)
    return schema


@cache
def _element_writer(name: str, version: int, path: tuple[str, ...]) -> Writer:
    write: Writer = compile_writer(_element_schema(name, version, path))
    return write


@cache
def _field_offset(name: str, version: int, path: tuple[str, ...], field: str) -> int:
    fields = _element_schema(name, version, path).fields
    before = fields[: [f.name for f in fields].index(field)]
    return struct.calcsize(">" + "".join(FIXED_WIDTH_CODES[f.kind] for f in before))


@cache
def _reader(name: str, side: Side, version: int, draft: "Draft | None") -> Read:
    read: Read = compile_reader(message_schema(name, side, version, draft))
    return read


@cache
def _sliced_reader(name: str, version: int, draft: "Draft | None") -> SlicedRead:
    read: SlicedRead = compile_reader(message_schema(name, "request", version, draft), slices=True)
    return read


@cache
def _sliced_writer(name: str, version: int, draft: "Draft | None") -> SlicedWriter:
    schema = message_schema(name, "response", version, draft)
    write: SlicedWriter = compile_writer(schema, slices=True)
    return write


@cache
def _writer(name: str, side: Side, version: int, draft: "Draft | None") -> Writer:
    write: Writer = compile_writer(message_schema(name, side, version, draft))
    return write
