"""Answers that hold a connection up.

A real broker takes up one request of a connection at a time. Here those behind one that waits are
taken up too, which nobody can tell, until a fault makes an answer late on purpose: then nothing may
overtake it.

Answers that are there or still to come, put together into other answers.
"""

from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from fencepost.broker.core.waits import Wait


class BlockingResponse(Wait[object]):
    """An answer to come that holds up all that its client asked behind it.

    It is a response, None (acks=0), HANG_UP, or `ThrottledResponse`.

    :param pending: The blocking responses that are not complete, with the broker of each. This one
        is in it until it is complete or cancelled.
    :param broker_id: The broker that has to respond.
    """

    __slots__ = ("_pending", "inner")

    def __init__(self, pending: MutableMapping["BlockingResponse", int], broker_id: int) -> None:
        super().__init__()
        self._pending = pending
        self.inner: Wait[object] | None = None
        """The response that this one waits for."""
        pending[self] = broker_id

    def complete_from(self, answer: object, convert: Callable[[object], object]) -> None:
        """Be completed by ``convert`` of an answer, when that is there."""
        if not isinstance(answer, Wait):
            self.complete(convert(answer))
        elif self.done:
            answer.cancel()
        else:
            self.inner = answer
            answer.then(lambda response: self.complete(convert(response)))

    def cancel(self) -> None:
        """Nobody waits any more; what it waited for is not waited for either."""
        super().cancel()
        if self.inner is not None:
            self.inner.cancel()

    def _release(self) -> None:
        super()._release()
        self._pending.pop(self, None)


@dataclass(frozen=True, slots=True)
class ThrottledResponse:
    """An answer that goes out at once, while its connection is held up longer."""

    response: object
    """None is acks=0's."""
    until: BlockingResponse
    """Completed when the connection goes on."""


Delivery: TypeAlias = ThrottledResponse
"""A response that is not simply sent. One more kind joins this union: then the type checker names
the places that must handle it; all that they have in common is the `response`."""


T = TypeVar("T")
R = TypeVar("R")


def map_response(answer: T | Wait[T], convert: Callable[[T], R]) -> R | Wait[R]:
    """What ``convert`` makes of an answer, when it is there."""
    return gather_responses([answer], lambda answers: convert(answers[0]))


def gather_responses(
    answers: Sequence[T | Wait[T]], convert: Callable[[list[T]], R]
) -> R | Wait[R]:
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
