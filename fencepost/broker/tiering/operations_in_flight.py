"""The operations of the remote tier that have begun and not ended, for those who wait for one.

A tier in memory ends its operations within the turn; one in files or in S3 takes its time. What a
fault delays has not begun.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from fencepost.broker.core.scheduler import Scheduler
from fencepost.protocol.byte_utils import Buffer
from fencepost.storage.tier.object_store import (
    DoneCallback,
    ListCallback,
    ObjectStore,
    ReadCallback,
)

T = TypeVar("T")


class OperationsInFlight:
    """How many operations are in flight, and callbacks for the end of the next one."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._waiting: list[Callable[[], None]] = []
        self.count = 0

    def on_next_end(self, callback: Callable[[], None]) -> None:
        """Call back once, after what follows from the end of the next operation."""
        self._waiting.append(callback)

    def tracked(self, done: Callable[[T], None]) -> Callable[[T], None]:
        """Count an operation that begins now, until its callback has run."""
        self.count += 1

        def end(outcome: T) -> None:
            self.count -= 1
            done(outcome)
            waiting, self._waiting = self._waiting, []
            for callback in waiting:
                self._scheduler.soon(callback)

        return end


class TrackedObjectStore:
    """An `ObjectStore` whose operations are tracked."""

    def __init__(self, store: ObjectStore, in_flight: OperationsInFlight) -> None:
        self._store = store
        self._in_flight = in_flight

    def put(self, key: str, buffers: Iterable[Buffer], done: DoneCallback) -> None:
        """Write an object."""
        self._store.put(key, buffers, self._in_flight.tracked(done))

    def get(self, key: str, start: int, end: int | None, done: ReadCallback) -> None:
        """Read an object's bytes."""
        self._store.get(key, start, end, self._in_flight.tracked(done))

    def delete(self, keys: Sequence[str], done: DoneCallback) -> None:
        """Delete objects."""
        self._store.delete(keys, self._in_flight.tracked(done))

    def list(self, prefix: str, done: ListCallback) -> None:
        """List keys."""
        self._store.list(prefix, self._in_flight.tracked(done))
