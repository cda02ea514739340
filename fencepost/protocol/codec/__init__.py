"""Typed messages to bytes and back, for every API and version that is served.

Readers and writers are made on first use and kept: a schema module costs 5-20 ms to import, and
there are hundreds.
"""

import struct
from functools import cache
from typing import Any, Final

from fencepost.protocol.apis import Api
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.codec.reader import Read, compile_reader
from fencepost.protocol.codec.schema import Side, message_schema
from fencepost.protocol.codec.writer import Writer, compile_writer

_API_VERSIONS: Final = 18
_RESPONSE_HEAD: Final = struct.Struct(">ii")
"""Size and correlation id; the empty tagged fields of a flexible header are a zero behind them."""


class MalformedMessage(ValueError):
    """Bytes that are no message of the API and version they claim to be."""


def decode_request(api: Api, version: int, frame: Buffer, offset: int = 0) -> Any:
    """Read a request body that starts at ``offset`` of a frame; bytes behind it are ignored.

    :raises MalformedMessage: When the bytes are not such a request.
    """
    return _decode(api, "request", version, frame, offset)


def decode_response(api: Api, version: int, frame: Buffer, offset: int = 0) -> Any:
    """Read a response body that starts at ``offset`` of a frame, header and size not counted.

    :raises MalformedMessage: When the bytes are not such a response.
    """
    return _decode(api, "response", version, frame, offset)


def encode_response(api: Api, version: int, correlation_id: int, message: object) -> list[Buffer]:
    """A whole response frame, size and header included, as buffers to be written in order.

    The header of an ApiVersions answer has version 0 always: its client cannot know better yet.
    """
    out = bytearray(9 if api.is_flexible(version) and api.key != _API_VERSIONS else 8)
    chunks = _writer(api.name, "response", version)(out, message)
    size = len(out) if len(chunks) == 1 else sum(map(len, chunks))
    _RESPONSE_HEAD.pack_into(out, 0, size - 4, correlation_id)
    return chunks


def encode_request(
    api: Api, version: int, correlation_id: int, client_id: str | None, message: object
) -> list[Buffer]:
    """A whole request frame, size and header included, as buffers to be written in order."""
    name = None if client_id is None else client_id.encode()
    out = bytearray(struct.pack(">ihhi", 0, api.key, version, correlation_id))
    out += struct.pack(">h", -1) if name is None else struct.pack(">h", len(name)) + name
    if api.is_flexible(version):
        out.append(0)
    chunks = _writer(api.name, "request", version)(out, message)
    struct.pack_into(">i", out, 0, sum(map(len, chunks)) - 4)
    return chunks


def response_body_offset(api: Api, version: int) -> int:
    """Where the body starts in a response frame without its size: behind the header.

    Right for peers that send no tagged fields in response headers, which no Kafka version does.
    """
    return 5 if api.is_flexible(version) and api.key != _API_VERSIONS else 4


def _decode(api: Api, side: Side, version: int, frame: Buffer, offset: int) -> Any:
    try:
        return _reader(api.name, side, version)(memoryview(frame), offset)[0]
    except Exception as error:  # whatever a reader says of foreign bytes, they are at fault
        raise MalformedMessage(f"not a {api.title} v{version} {side}: {error}") from error


@cache
def _reader(name: str, side: Side, version: int) -> Read:
    return compile_reader(message_schema(name, side, version))


@cache
def _writer(name: str, side: Side, version: int) -> Writer:
    return compile_writer(message_schema(name, side, version))
