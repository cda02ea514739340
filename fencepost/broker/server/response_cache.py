"""A cache of encoded Metadata responses, valid while the broker's view is the same.

Clients repeat the same Metadata request; with ten thousand partitions the response takes tens of
milliseconds to encode.
"""

import struct
from typing import Final

from fencepost.broker.metadata.image import ClusterImage
from fencepost.broker.metadata.topic_fragments import TopicFragments
from fencepost.broker.server.journal import Exchange
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.codec.error_codes import error_code_finder
from fencepost.protocol.errors import ErrorCode

MAX_CACHED: Final = 64
CACHED_API: Final = BY_NAME["metadata"]
_CORRELATION_ID_AT: Final = 4

Key = tuple[int, str, bytes]
"""All that a response depends on besides the view: the version, the address that the client
reached, the request's body."""
Errors = tuple[int, ...]
"""The error codes in a response."""


class ResponseCache:
    """One broker's encoded responses, for its present view."""

    __slots__ = ("_cached", "_view", "fragments")

    def __init__(self) -> None:
        self.fragments: Final = TopicFragments()
        """The encoded topics, which a new response has as well where they are the same."""
        self._view: ClusterImage | None = None
        self._cached: dict[Key, tuple[bytes, Errors]] = {}

    def get(
        self, view: ClusterImage, key: Key, correlation_id: int
    ) -> tuple[list[Buffer], Errors] | None:
        """The frame of a cached response, and the errors in it."""
        if view is not self._view:
            self._view = view
            self._cached.clear()
        cached = self._cached.get(key)
        if cached is None:
            return None
        frame = bytearray(cached[0])
        struct.pack_into(">i", frame, _CORRELATION_ID_AT, correlation_id)
        return [frame], cached[1]

    def put(
        self,
        view: ClusterImage,
        key: Key,
        chunks: list[Buffer],
        exchange: Exchange,
        response: object,
    ) -> None:
        """Add a response, unless its request changed the view (created a topic).

        One that lacks a topic is not added: asked for again, it is tried again to create.

        :param chunks: What encodes the response.
        """
        if view is self._view:
            errors = error_code_finder(exchange.api, exchange.version, exchange.dialect)(response)
            if ErrorCode.UNKNOWN_TOPIC_OR_PARTITION in errors:
                return
            if len(self._cached) >= MAX_CACHED:
                self._cached.clear()
            self._cached[key] = b"".join(chunks), errors
