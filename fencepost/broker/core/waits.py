"""Responses that are due later: acks=all, long polls, joins.

A handler returns a ``Wait`` instead of a response. It is completed by a call, by an attempt that
succeeds after a watched list was notified, or by its deadline. It is independent of event loops.
"""

from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar

from fencepost.broker.core.scheduler import Scheduler, Timer

T = TypeVar("T")


class Wait(Generic[T]):
    """A response that is due later. It is completed once; later completions are ignored."""

    __slots__ = ("_callback", "_timer", "_try", "_watched", "done", "result")

    def __init__(self) -> None:
        self.done = False
        self.result: T | None = None
        self._callback: Callable[[T | None], None] | None = None
        self._timer: Timer | None = None
        self._try: Callable[[], T | None] | None = None
        self._watched: tuple[tuple[WatchList, Watcher], ...] = ()

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
        self._watch((each, self) for each in lists)

    def watch_each(self, parts: Iterable["Settles"], respond: Callable[[], T]) -> None:
        """Complete it with ``respond()`` once all parts have settled; at once, if they have.

        Each is asked when its own list is notified, so that one which settles early is seen when
        it does, however long others take, and so that many are not asked for each of them.
        """
        left = [each for each in parts if not each.settle()]
        if not left:
            self.complete(respond())
            return
        countdown = _Countdown(len(left), lambda: self.complete(respond()))
        self._watch((each.watch_list, _PartWatcher(each, countdown)) for each in left)

    def _watch(self, watched: Iterable[tuple["WatchList", "Watcher"]]) -> None:
        self._watched = tuple(watched)
        for watchers, watcher in self._watched:
            watchers.waits[watcher] = None

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
        for watchers, watcher in self._watched:
            watchers.waits.pop(watcher, None)
        self._watched = ()
        self._try = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


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


class Settles(Protocol):
    """A part of a response that is due later, such as one of its partitions."""

    @property
    def watch_list(self) -> WatchList:
        """It is notified when the part may settle."""
        ...

    def settle(self) -> bool:
        """Whether its outcome can't change any more; it stays what it was when this was seen."""
        ...


class _Countdown:
    """Parts of one response that have not settled.

    :param end: Called when the last one has.
    """

    __slots__ = ("end", "left")

    def __init__(self, left: int, end: Callable[[], None]) -> None:
        self.left = left
        self.end = end


class _PartWatcher:
    """Lets one part settle."""

    __slots__ = ("_countdown", "_part")

    def __init__(self, part: Settles, countdown: _Countdown) -> None:
        self._part = part
        self._countdown = countdown

    def retry(self) -> None:
        """Look whether it settles, once: the notification may be one within another."""
        watchers = self._part.watch_list.waits
        if self not in watchers or not self._part.settle():
            return
        del watchers[self]
        self._countdown.left -= 1
        if not self._countdown.left:
            self._countdown.end()
