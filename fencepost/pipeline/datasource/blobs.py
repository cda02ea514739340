"""The bytes of a segment, a window at a time: of a file, or of an object in the tier."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, Protocol, Self

import numpy as np
import numpy.typing as npt

from fencepost.pipeline.datasource.tier import Tier

WINDOW: Final = 4 << 20
"""Bytes of a file at a time: few enough to be in the processor's cache when they are looked at."""
TIER_WINDOW: Final = 16 << 20
"""Bytes of an object at a time, a request each."""
PADDING: Final = 64
"""Bytes behind each window which are no part of it, so that what looks ahead needs no bounds."""

Bytes = npt.NDArray[np.uint8]


class Blob(Protocol):
    """Bytes that can be read in parts.

    :ivar size: How many there are.
    :ivar window: How many to read at a time.
    """

    size: int
    window: int

    def read_into(self, target: memoryview, position: int) -> int:
        """Fill a buffer from `position` on; fewer bytes where the end comes first.

        :raises OSError: When that fails.
        """

    def close(self) -> None:
        """Let go of it."""


class FileBlob:
    """A file, read by pread: what is cut while it is read is missing, and kills nobody."""

    window = WINDOW

    def __init__(self, path: Path) -> None:
        """:raises OSError: When it can't be opened."""
        self._file = os.open(path, os.O_RDONLY)
        self.size = os.fstat(self._file).st_size

    def read_into(self, target: memoryview, position: int) -> int:
        """Fill a buffer."""
        done = 0
        while done < len(target):
            count = os.preadv(self._file, [target[done:]], position + done)
            if not count:
                break
            done += count
        return done

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class TierBlob:
    """An object in the tier."""

    window = TIER_WINDOW

    def __init__(self, tier: Tier, key: str) -> None:
        """:raises OSError: When there is none."""
        self._tier = tier
        self._key = key
        self.size = tier.size_of(key)

    def read_into(self, target: memoryview, position: int) -> int:
        """Fill a buffer."""
        end = min(position + len(target), self.size)
        if end <= position:
            return 0
        data = self._tier.read_range(self._key, position, end)
        target[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Nothing is held."""


class Window:
    """A part of a blob, which moves forward.

    :ivar position: Where in the blob it begins.
    :ivar length: How many bytes it has.
    :ivar size: Of the blob; less than it said where it is cut meanwhile.
    :ivar data: They, and `PADDING` behind them. Overwritten when it moves.
    """

    def __init__(self, blob: Blob) -> None:
        self._blob = blob
        self.position = 0
        self.length = 0
        self.size = blob.size
        self.data: Bytes = np.zeros(min(blob.window, blob.size) + PADDING, np.uint8)

    @property
    def view(self) -> memoryview:
        """Its bytes, without the padding."""
        return self.data.data[: self.length]

    @property
    def is_last(self) -> bool:
        """Whether it reaches to the blob's end."""
        return self.position + self.length >= self.size

    def move(self, position: int, least: int = 0) -> Self:
        """Begin at another place, no earlier than now, with as much as there is room for.

        :param least: How many bytes are needed, if there are so many.
        :raises OSError: When they can't be read.
        """
        begin = position - self.position
        kept = max(self.length - begin, 0)
        room = max(min(max(self._blob.window, least), self.size - position), kept)
        data = self.data
        if len(data) < room + PADDING:
            data = np.zeros(room + PADDING, np.uint8)
        if kept:
            data[:kept] = self.data[begin : begin + kept]
        self.data = data
        target = data.data[kept:room]
        self.position = position
        self.length = kept + self._blob.read_into(target, position + kept)
        if self.length < room:
            self.size = position + self.length
        return self
