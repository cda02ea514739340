"""Answers that are not due yet: acks=all, long polls, joins.

A handler returns a ``Wait`` instead of a response. Whoever holds the answer completes it, a watched
thing that changes lets it be tried again, and a deadline ends it. Nothing here knows an event loop.
"""

from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar

from fencepost.broker.core.scheduler import Scheduler, Timer

T = TypeVar("T")


class Wait(Generic[T]):
    """A response to come. It is completed once; later completions are ignored."""

    __slots__ = ("_callback", "_lists", "_timer", "_try", "done", "result")

    def __init__(self) -> None:
        self.done = False
        self.result: T | None = None
        self._callback: Callable[[T | None], None] | None = None
        self._lists: tuple[WatchList, ...] = ()
        self._timer: Timer | None = None
        self._try: Callable[[], T | None] | None = None

    def then(self, callback: Callable[[T | None], None]) -> None:
        """Call with the response when it is there, at once if it is; one callback a wait."""
        if self.done:
            callback(self.result)
        else:
            self._callback = callback

    def complete(self, result: T | None) -> None:
        """Answer. None means that no response is sent (acks=0)."""
        if self.done:
            return
        self.done = True
        self.result = result
        self._release()
        if self._callback is not None:
            self._callback(result)

    def cancel(self) -> None:
        """Nobody waits any more (the connection is gone): forget it without an answer."""
        self._callback = None
        self.done = True
        self._release()

    def expire_at(self, scheduler: Scheduler, deadline_ms: int, expire: Callable[[], T]) -> None:
        """Answer with ``expire()`` at ``deadline_ms`` unless it was answered before."""
        self._timer = scheduler.at(deadline_ms, lambda: self.complete(expire()))

    def watch(self, lists: Iterable["WatchList"], attempt: Callable[[], T | None]) -> None:
        """Try again whenever one of the lists is notified; None from ``attempt`` means not yet."""
        self._try = attempt
        self._lists = tuple(lists)
        for watchers in self._lists:
            watchers.waits[self] = None

    def retry(self) -> None:
        """Try to answer now."""
        if self.done or self._try is None:
            return
        result = self._try()
        if result is not None:
            self.complete(result)

    def _release(self) -> None:
        for watchers in self._lists:
            watchers.waits.pop(self, None)
        self._lists = ()
        self._try = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Watcher(Protocol):
    """A wait for whatever response, as far as a watch list knows it."""

    def retry(self) -> None:
        """Try to answer now."""
        ...


class WatchList:
    """Something that waits watch: a partition's high watermark, its log end."""

    __slots__ = ("waits",)

    def __init__(self) -> None:
        self.waits: dict[Watcher, None] = {}

    def notify(self) -> None:
        """It changed: let every wait try again, in the order in which they came."""
        if self.waits:
            for wait in tuple(self.waits):
                wait.retry()
