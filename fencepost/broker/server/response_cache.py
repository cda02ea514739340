"""Answers that repeat, kept encoded: Metadata, as long as the broker's view stays the same.

Clients ask for it again and again, in the same words; ten thousand partitions take tens of
milliseconds to describe.
"""

import struct
from typing import Final

from fencepost.broker.metadata.image import ClusterImage
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.byte_utils import Buffer

MAX_CACHED: Final = 64
CACHED_API: Final = BY_NAME["metadata"]
_CORRELATION_ID_AT: Final = 4

Key = tuple[int, str, bytes]
"""What an answer depends on, besides the view: the version, the address that the client reached,
the request's body."""
Errors = tuple[int, ...]
"""The error codes in an answer."""


class ResponseCache:
    """One broker's encoded answers of its present view."""

    __slots__ = ("_cached", "_view")

    def __init__(self) -> None:
        self._view: ClusterImage | None = None
        self._cached: dict[Key, tuple[bytes, Errors]] = {}

    def get(
        self, view: ClusterImage, key: Key, correlation_id: int
    ) -> tuple[list[Buffer], Errors] | None:
        """The whole frame of an answer that still holds, and the errors in it."""
        if view is not self._view:
            self._view = view
            self._cached.clear()
        kept = self._cached.get(key)
        if kept is None:
            return None
        frame = bytearray(kept[0])
        struct.pack_into(">i", frame, _CORRELATION_ID_AT, correlation_id)
        return [frame], kept[1]

    def put(self, view: ClusterImage, key: Key, chunks: list[Buffer], errors: Errors) -> None:
        """Keep an answer, unless answering changed the view (a topic was created)."""
        if view is self._view:
            if len(self._cached) >= MAX_CACHED:
                self._cached.clear()
            self._cached[key] = b"".join(chunks), errors
