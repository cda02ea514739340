"""What is freed as soon as nothing refers to it, and what only the garbage collector would find."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def without_collector(kind: type[T]) -> Iterator[Callable[[], list[T]]]:
    """What is in cycles from now on stays in memory.

    Gives a function that finds the objects of exactly this class which were made since, and are
    still there.
    """
    gc.collect()
    before = {id(each): each for each in _all(kind)}
    gc.disable()
    try:
        yield lambda: [each for each in _all(kind) if id(each) not in before]
    finally:
        gc.enable()


def _all(kind: type[T]) -> list[T]:
    return [each for each in gc.get_objects() if type(each) is kind]
