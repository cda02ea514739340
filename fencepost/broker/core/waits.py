"""Responses that are due later: acks=all, long polls, joins.

A handler returns a ``Wait`` instead of a response. It is completed by a call, by an attempt that
succeeds after a watched list was notified, or by its deadline. It is independent of event loops.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, Protocol, TypeVar

from fencepost.broker.core.scheduler import Scheduler, Timer

T = TypeVar("T")


class Wait(Generic[T]):
    """A response that is due later. It is completed once; later completions are ignored."""

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
        """Complete it. None means that no response is sent (acks=0)."""
        if self.done:
            return
        self.done = True
        self.result = result
        self._release()
        callback, self._callback = self._callback, None  # else what waited for it stays in a cycle
        if callback is not None:
            callback(result)

    def cancel(self) -> None:
        """Drop it without a response: the connection is closed."""
        self._callback = None
        self.done = True
        self._release()

    def expire_at(self, scheduler: Scheduler, deadline_ms: int, expire: Callable[[], T]) -> None:
        """Complete it with ``expire()`` at ``deadline_ms``."""
        self._timer = scheduler.at(deadline_ms, lambda: self.complete(expire()))

    def watch(self, lists: Iterable["WatchList"], attempt: Callable[[], T | None]) -> None:
        """Try again whenever one of the lists is notified; None from ``attempt`` means not yet."""
        self._try = attempt
        self._lists = tuple(lists)
        for watchers in self._lists:
            watchers.waits[self] = None

    def watch_seldom(
        self,
        scheduler: Scheduler,
        lists: Iterable["WatchList"],
        attempt: Callable[[], T | None],
        pause_ms: int,
    ) -> None:
        """Watch as `watch` does, for an attempt that takes long.

        It is made at the end of a turn, once for all notifications of it, and again after
        ``pause_ms`` at the earliest.
        """
        is_due, next_ms = False, scheduler.now_ms()

        def notified() -> None:
            nonlocal is_due
            if not is_due:
                is_due = True
                scheduler.at(next_ms, try_now)

        def try_now() -> None:
            nonlocal is_due, next_ms
            is_due, next_ms = False, scheduler.now_ms() + pause_ms
            result = None if self.done else attempt()
            if result is not None:
                self.complete(result)

        self.watch(lists, notified)

    def retry(self) -> None:
        """Try to complete it now."""
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


def all_settled(pending: Sequence[T], is_settled: Callable[[T], bool]) -> Callable[[], bool]:
    """Asks whether all of these are settled.

    It is asked each time that one of many changes: then only the last one that was not settled is
    looked at, and all of them once more at the end, as one may be unsettled again.
    """
    left = [*pending]

    def ask() -> bool:
        while left:
            if not is_settled(left[-1]):
                return False
            left.pop()
        left.extend(each for each in pending if not is_settled(each))
        return not left

    return ask


class Watcher(Protocol):
    """What a watch list needs of a `Wait`."""

    def retry(self) -> None:
        """Try to complete it now."""
        ...


class WatchList:
    """The waits that depend on one value: a partition's high watermark, or its log end."""

    __slots__ = ("waits",)

    def __init__(self) -> None:
        self.waits: dict[Watcher, None] = {}

    def notify(self) -> None:
        """The value has changed: let every wait try again, in the order in which they came."""
        if self.waits:
            for wait in tuple(self.waits):
                wait.retry()
