"""The simulated remote tier: each operation waits until somebody has it done, or lets it fail.

Operations may overtake each other, as those of many brokers at a real store do. What a segment's
metadata say is there is looked up as it is written: see `TierContents`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from fencepost.protocol.buffers import Buffer
from fencepost.storage.tier.objects import Done, Got, Listed, MemoryObjects, TierError

WHY = "the schedule lets it fail"


class Operation(NamedTuple):
    """Something that the tier is asked for.

    :ivar carry_out: Does it, and tells whoever asked.
    :ivar fail: Tells whoever asked that it can't be done.
    """

    carry_out: Callable[[], None]
    fail: Callable[[TierError], None]
    key: str


class SimulatedObjects:
    """An `ObjectStore` that does one thing at a time, when it is told to.

    :ivar waiting: What it was asked for and has not done, oldest first.
    :ivar changed: Called after an object was written or deleted, with its key.
    """

    def __init__(self) -> None:
        self.waiting: list[Operation] = []
        self.changed: Callable[[str], None] = _unheard
        self._memory = MemoryObjects(lambda callback: callback())

    @property
    def objects(self) -> dict[str, bytes]:
        """What is there, by key."""
        return self._memory.objects

    # -- what brokers ask -----------------------------------------------------------------------

    def put(self, key: str, buffers: Iterable[Buffer], done: Done) -> None:
        """Write an object whole."""
        taken = list(buffers)

        def write() -> None:
            self._memory.objects[key] = b"".join(taken)
            self.changed(key)
            done(None)

        self.waiting.append(Operation(write, done, key))

    def get(self, key: str, start: int, end: int | None, done: Got) -> None:
        """Read an object's bytes."""
        self.waiting.append(Operation(lambda: self._memory.get(key, start, end, done), done, key))

    def delete(self, keys: Sequence[str], done: Done) -> None:
        """Delete objects."""

        def remove() -> None:
            self.lose(keys)
            done(None)

        def remove_some(error: TierError) -> None:
            self.lose(keys[: len(keys) // 2])
            done(error)

        self.waiting.append(Operation(remove, remove_some, keys[0] if keys else ""))

    def list(self, prefix: str, done: Listed) -> None:
        """The keys that begin with a prefix."""
        self.waiting.append(Operation(lambda: self._memory.list(prefix, done), done, prefix))

    # -- what a schedule does -------------------------------------------------------------------

    def carry_out(self, number: int, *, fails: bool = False) -> bool:
        """Have one of the waiting operations done, or fail.

        :param number: Which; where there are fewer it begins anew.
        :returns: Whether there was one.
        """
        if not self.waiting:
            return False
        operation = self.waiting.pop(number % len(self.waiting))
        if fails:
            operation.fail(TierError(operation.key, WHY))
        else:
            operation.carry_out()
        return True

    def lose(self, keys: Iterable[str]) -> None:
        """Objects are gone; some may have been before."""
        for key in keys:
            if self._memory.objects.pop(key, None) is not None:
                self.changed(key)


def _unheard(_key: str) -> None:
    """Nobody listens."""
