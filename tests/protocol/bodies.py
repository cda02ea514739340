"""The bodies of messages as they are on the wire, without size and header."""

from __future__ import annotations

from typing import Any, TypeAlias

from fencepost.protocol import codec
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.codec.drafts import Draft
from fencepost.protocol.codec.schema import Side

Message: TypeAlias = Any
"""A request or response of any API."""


def encode(
    api: str, version: int, side: Side, message: Message, draft: Draft | None = None
) -> bytes:
    """The body alone."""
    if side == "response":
        chunks = codec.encode_response(BY_NAME[api], version, 1, message, draft)
        return b"".join(chunks)[4 + codec.response_body_offset(BY_NAME[api], version) :]
    head = 16 if BY_NAME[api].is_flexible(version) else 15
    return b"".join(codec.encode_request(BY_NAME[api], version, 1, "c", message, draft))[head:]


def decode(api: str, version: int, side: Side, body: bytes, draft: Draft | None = None) -> Message:
    read = codec.decode_request if side == "request" else codec.decode_response
    return read(BY_NAME[api], version, body, 0, draft)
