"""The one thing that a coordinator reads in a member's metadata: which topics it subscribes to."""

import struct

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")


class MalformedSubscription(ValueError):
    """Bytes that are no ConsumerProtocolSubscription."""


def subscribed_topics(metadata: bytes) -> frozenset[str]:
    """The topics of a ConsumerProtocolSubscription, whatever its version: they come first in each.

    :raises MalformedSubscription: When the metadata is something else, as a client's own protocol
        may put there.
    """
    try:
        return frozenset(_topics(metadata))
    except (struct.error, UnicodeDecodeError) as error:
        raise MalformedSubscription(str(error)) from error


def _topics(metadata: bytes) -> list[str]:
    version = _INT16.unpack_from(metadata, 0)[0]
    count = _INT32.unpack_from(metadata, 2)[0]
    if version < 0 or count < 0:
        raise MalformedSubscription(f"version {version} with {count} topics")
    at = 6
    topics = []
    for _ in range(count):
        size = _INT16.unpack_from(metadata, at)[0]
        end = at + 2 + size
        if size < 0 or end > len(metadata):
            raise MalformedSubscription(f"a topic of {size} bytes at {at}")
        topics.append(metadata[at + 2 : end].decode())
        at = end
    return topics
