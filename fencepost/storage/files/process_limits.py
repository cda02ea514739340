"""What all logs of a process hold together, each kind within one bound.

A log could open each of its files and load each of its indexes anew whenever it is asked; that
they are held is a matter of speed. So that ten thousand logs hold no more than ten, what can be
had again goes, the oldest first, unless it was used since its last turn.
"""

from collections import OrderedDict
from typing import Final, Protocol

from fencepost.storage.files.tail_cache import TailCache

_TAIL_BYTES: Final = 64 << 20
_INDEX_BYTES: Final = 32 << 20
_OPEN_FILES: Final = 512


class Evictable(Protocol):
    """Something that can be had again.

    :ivar used: Set by whoever uses it.
    """

    used: bool

    def release(self) -> None:
        """Let go of it."""


class BoundedCache:
    """Things held, up to a limit of what they cost together.

    :param limit: In whatever unit `hold` counts.
    """

    __slots__ = ("_cost", "_held", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._cost = 0
        self._held: OrderedDict[int, tuple[Evictable, int]] = OrderedDict()

    @property
    def cost(self) -> int:
        """Of everything that is held."""
        return self._cost

    def add(self, thing: Evictable, cost: int) -> None:
        """Hold something that is not held yet; others may go for it."""
        self._cost += cost
        # At most once round: where everything was used, the oldest goes all the same.
        for _ in range(len(self._held) + 1):
            if self._cost <= self._limit or not self._held:
                break
            key, (oldest, price) = self._held.popitem(last=False)
            if oldest.used:
                oldest.used = False
                self._held[key] = oldest, price
            else:
                self._cost -= price
                oldest.release()
        self._held[id(thing)] = thing, cost

    def remove(self, thing: Evictable) -> None:
        """Forget something that goes by itself; it may not be held."""
        found = self._held.pop(id(thing), None)
        if found is not None:
            self._cost -= found[1]


class ProcessLimits:
    """The bounds of one process.

    :ivar recent: The buffers appended last (bytes).
    :ivar indexes: The indexes of closed segments (bytes).
    :ivar open_files: Files held open.
    """

    __slots__ = ("indexes", "open_files", "tail_cache")

    def __init__(
        self,
        *,
        recent_bytes: int = _TAIL_BYTES,
        index_bytes: int = _INDEX_BYTES,
        open_files: int = _OPEN_FILES,
    ) -> None:
        self.tail_cache = TailCache(recent_bytes)
        self.indexes = BoundedCache(index_bytes)
        self.open_files = BoundedCache(open_files)
