"""Requests that only read, handled a slice in each turn.

A request can name a hundred thousand topics. What it is answered is read in several turns, between
which others are served. So the state may change in between, as it may between two requests. What
changes the state is never done so.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from fencepost.broker.core.scheduler import Scheduler
from fencepost.broker.core.waits import Wait

T = TypeVar("T")
R = TypeVar("R")
A = TypeVar("A")

SLICE: Final = 2_000
"""Elements that are read in one turn."""


def answer_in_slices(
    scheduler: Scheduler,
    elements: Sequence[T],
    read: Callable[[T], R],
    respond: Callable[[list[R]], A],
) -> A | Wait[A]:
    """``respond`` of what is read of each element: at once where one slice is enough.

    :param read: Must not fail, nor change anything.
    """
    if len(elements) <= SLICE:
        return respond([read(element) for element in elements])
    answer: Wait[A] = Wait()
    found: list[R] = []

    def go_on() -> None:
        if answer.done:  # the connection is gone
            return
        start = len(found)
        found.extend(read(element) for element in elements[start : start + SLICE])
        if len(found) < len(elements):
            scheduler.in_later_turn(go_on)
        else:
            answer.complete(respond(found))

    go_on()
    return answer
