"""The outcomes of a request: a response, one that is due later, none, or a closed connection.

A real broker handles one request of a connection at a time. fencepost also handles the requests
behind one that waits, which no client can observe. A `BlockingResponse` is the exception: a fault
delays it on purpose, and no later response of its connection may overtake it.

`map_response` and `gather_responses` make responses from others that may be due later.
`take_turns` makes one that takes several turns: a request can name a hundred thousand topics, and
what it is answered is read in `Steps`, `SLICE` of them in a turn, between which others are served.
So the state may change in between, as it may between two requests. What changes the state is never
done so.
"""

from collections.abc import Callable, Generator, Iterable, MutableMapping, Sequence
from typing import Final, TypeAlias, TypeVar

from msgspec import Struct

from fencepost.broker.core.scheduler import Scheduler
from fencepost.broker.core.waits import Wait

T = TypeVar("T")
R = TypeVar("R")
A = TypeVar("A")


class HangUp:
    """The outcome that closes the connection: with acks=0 a failed append has no other sign."""


HANG_UP: Final = HangUp()
Answer: TypeAlias = R | Wait[R] | None
"""A response, one that is due later, or none at all (acks=0)."""


class BlockingResponse(Wait[object]):
    """A response that is due later and blocks the requests behind it on its connection.

    Its result is a response, None (acks=0), HANG_UP, or a `Delivery`.

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
        """Complete with ``convert(answer)``, now or when the answer is complete."""
        if not isinstance(answer, Wait):
            self.complete(convert(answer))
        elif self.done:
            answer.cancel()
        else:
            self.inner = answer
            answer.then(lambda response: self.complete(convert(response)))

    def cancel(self) -> None:
        """Cancel this response and the one that it waits for."""
        super().cancel()
        if self.inner is not None:
            self.inner.cancel()

    def _release(self) -> None:
        super()._release()
        self._pending.pop(self, None)


class ThrottledResponse(Struct, frozen=True):
    """A response that is sent now, while its connection stays blocked."""

    response: object
    """None with acks=0."""
    until: BlockingResponse
    """Complete when the connection is no longer blocked."""


class PacedResponse(Struct, frozen=True):
    """A response whose bytes are sent a few at a time, while its connection stays blocked."""

    response: object
    """None with acks=0."""
    size: int
    """Bytes that are sent at once, at most."""
    bytes_per_s: int | None
    """Their rate by the clock of timers; None: as soon as a client may have read those before."""
    until: BlockingResponse
    """Complete when all of it is sent. Where it is completed before, the rest is sent at once."""


Delivery: TypeAlias = ThrottledResponse | PacedResponse
"""A response that is not simply sent. One more kind joins this union: then the type checker names
the places that must handle it; all that they have in common is the `response`."""


def map_response(answer: T | Wait[T], convert: Callable[[T], R]) -> R | Wait[R]:
    """``convert`` of a response, as soon as that is complete."""
    if not isinstance(answer, Wait):
        return convert(answer)
    if answer.result is not None:  # it is complete already, as often where there is one replica
        return convert(answer.result)
    return gather_responses([answer], lambda answers: convert(answers[0]))


def respond_after(answer: T | Wait[T], respond: Callable[[T], R | Wait[R]]) -> R | Wait[R]:
    """What ``respond`` makes of a response, as soon as that is complete."""
    if not isinstance(answer, Wait):
        return respond(answer)
    whole: Wait[R] = Wait()

    def go_on(found: T | None) -> None:
        if found is not None and not whole.done:
            _complete_from(whole, respond(found))

    answer.then(go_on)
    return whole


def _complete_from(whole: Wait[R], answer: R | Wait[R]) -> None:
    if isinstance(answer, Wait):
        answer.then(whole.complete)
    else:
        whole.complete(answer)


def gather_responses(
    answers: Sequence[T | Wait[T]], convert: Callable[[list[T]], R]
) -> R | Wait[R]:
    """``convert`` of all responses, in their order, as soon as the last one is complete."""
    at_once: list[T] = []
    for answer in answers:
        response = answer.result if isinstance(answer, Wait) else answer
        if response is None:
            break
        at_once.append(response)
    else:
        return convert(at_once)
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
    return whole


def _receiver(arrived: Callable[[int, T], None], index: int) -> Callable[[T | None], None]:
    def receive(answer: T | None) -> None:
        if answer is not None:
            arrived(index, answer)

    return receive


SLICE: Final = 2_000
"""Elements that are read in one turn."""
_TURN: Final = range(SLICE)
Steps: TypeAlias = Generator[None, None, A]
"""Reads an element, yields, and so on; returns what it makes of all. It must not change anything,
nor fail: in a later turn the request would never be answered."""


def read_each(elements: Iterable[T], read: Callable[[T], R]) -> Steps[list[R]]:
    """What is read of each element, one in a step."""
    found: list[R] = []
    for element in elements:
        found.append(read(element))
        yield
    return found


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

    def steps() -> Steps[A]:
        return respond((yield from read_each(elements, read)))

    return take_turns(scheduler, steps())


def take_turns(scheduler: Scheduler, steps: Steps[A | Wait[A]]) -> A | Wait[A]:
    """The answer that the steps return: at once where one turn is enough for them."""
    try:
        for _ in _TURN:
            next(steps)
    except StopIteration as end:
        answer: A | Wait[A] = end.value
        return answer
    whole: Wait[A] = Wait()

    def go_on() -> None:
        if whole.done:  # the connection is gone
            return
        try:
            for _ in _TURN:
                next(steps)
        except StopIteration as end:
            _complete_from(whole, end.value)
        else:
            scheduler.in_later_turn(go_on)

    scheduler.in_later_turn(go_on)
    return whole
