"""Answers that are there or still to come, put together into other answers."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from fencepost.broker.waits import Wait

T = TypeVar("T")
R = TypeVar("R")


def mapped(answer: T | Wait[T], convert: Callable[[T], R]) -> R | Wait[R]:
    """What ``convert`` makes of an answer, when it is there."""
    return gathered([answer], lambda answers: convert(answers[0]))


def gathered(answers: Sequence[T | Wait[T]], convert: Callable[[list[T]], R]) -> R | Wait[R]:
    """What ``convert`` makes of all answers, in their order, when the last one is there."""
    known: dict[int, T] = {}
    whole: Wait[R] = Wait()

    def arrived(index: int, answer: T) -> None:
        known[index] = answer
        if len(known) == len(answers):
            whole.complete(convert([known[at] for at in range(len(answers))]))

    for index, answer in enumerate(answers):
        if isinstance(answer, Wait):
            answer.then(_receiver(arrived, index))
        else:
            arrived(index, answer)
    if not answers:
        return convert([])
    if whole.done and whole.result is not None:
        return whole.result
    return whole


def _receiver(arrived: Callable[[int, T], None], index: int) -> Callable[[T | None], None]:
    def receive(answer: T | None) -> None:
        if answer is not None:
            arrived(index, answer)

    return receive
