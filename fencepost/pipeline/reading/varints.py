"""Zig-zag varints, many at a time."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from fencepost.pipeline.reading.blobs import Bytes
from fencepost.pipeline.reading.headers import Integers

LONGEST: Final = 10
"""Bytes of the longest varint."""
_MORE: Final = 0x80


def read_varints(data: Bytes, at: Integers) -> tuple[Integers, Integers]:
    """The varints at positions, and where each ends.

    :param data: Goes on for `LONGEST` bytes behind the last position.
    :returns: Where one has more than `LONGEST` bytes, any value, and an end so many bytes on.
    """
    first = data[at]
    end = at + 1
    long = np.flatnonzero(first >= _MORE)
    raw = (first & 0x7F).astype(np.uint64)
    if len(long):
        raw[long], end[long] = _go_on(data, raw[long], end[long])
    return (raw >> np.uint64(1)).view(np.int64) ^ -(raw & np.uint64(1)).view(np.int64), end


def _go_on(
    data: Bytes, raw: npt.NDArray[np.uint64], end: Integers
) -> tuple[npt.NDArray[np.uint64], Integers]:
    """The same of those that have more than one byte.

    :param raw: What the first byte says.
    :param end: Behind it.
    """
    left = np.arange(len(raw))
    for index in range(1, LONGEST):
        byte = data[end[left]]
        raw[left] |= (byte & 0x7F).astype(np.uint64) << np.uint64(7 * index)
        end[left] += 1
        left = left[byte >= _MORE]
        if not len(left):
            return raw, end
    end[left] += 1  # one byte more than there may be, which tells
    return raw, end
