"""CRC-32C, computed by the processor.

The package behind it takes 20 ms to import, most of it for a command line of its own; it
is imported at the first checksum, which is after the listeners accept.
"""

from collections.abc import Callable
from functools import cache

from fencepost.protocol.buffers import Buffer


def crc32c(data: Buffer, value: int = 0) -> int:
    """The checksum of ``data``, going on from ``value``, that of what stood before it."""
    return _implementation()(data, value)


@cache
def _implementation() -> Callable[[Buffer, int], int]:
    from crc32c import crc32c as implementation

    return implementation
