"""Work on very many elements, some of them in a turn: a turn is short, and others are served
between.

It is for work that may be done a little later without a client seeing more than that it is not done
yet. What needs all of it done asks for that (`TurnQueue.finish`).
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")
InLaterTurn = Callable[[Callable[[], None]], None]
"""Calls something in a later turn: `Scheduler.in_later_turn`."""


class TurnQueue(Generic[T]):
    """Elements to be worked on, in the order in which they were added.

    :param most: How many elements are worked on in a turn.
    :param work: Works on some elements; it may add others.
    """

    __slots__ = ("_elements", "_in_later_turn", "_is_scheduled", "_most", "_work")

    def __init__(
        self, in_later_turn: InLaterTurn, most: int, work: Callable[[list[T]], None]
    ) -> None:
        self._in_later_turn = in_later_turn
        self._most = most
        self._work = work
        self._elements: deque[T] = deque()
        self._is_scheduled = False

    @property
    def is_empty(self) -> bool:
        """Whether no elements are left."""
        return not self._elements

    def add(self, elements: Iterable[T]) -> None:
        """Work on these in later turns, after those that are left."""
        self._elements.extend(elements)
        self._schedule()

    def finish(self) -> None:
        """Work on all that are left now."""
        while self._elements:
            self._work(self._take())

    def clear(self) -> None:
        """Work on none of those that are left."""
        self._elements.clear()

    def _schedule(self) -> None:
        if self._elements and not self._is_scheduled:
            self._is_scheduled = True
            self._in_later_turn(self._run)

    def _run(self) -> None:
        self._is_scheduled = False
        taken = self._take()
        self._schedule()
        if taken:
            self._work(taken)

    def _take(self) -> list[T]:
        return [self._elements.popleft() for _ in range(min(self._most, len(self._elements)))]
