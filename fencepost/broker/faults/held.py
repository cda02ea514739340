"""Answers that hold a connection up.

A real broker takes up one request of a connection at a time. Here those behind one that waits are
taken up too, which nobody can tell, until a fault makes an answer late on purpose: then nothing may
overtake it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fencepost.broker.waits import Wait

if TYPE_CHECKING:
    from fencepost.broker.faults.registry import Faults


class Held(Wait[object]):
    """An answer to come that holds up all that its client asked behind it.

    It is a response, None (acks=0), HANG_UP, or `Throttled`.

    :param broker_id: Who owes it: with that broker it is over.
    """

    __slots__ = ("_faults", "inner")

    def __init__(self, faults: "Faults", broker_id: int) -> None:
        super().__init__()
        self._faults = faults
        self.inner: Wait[object] | None = None
        """What it waits for in its turn."""
        faults.held[self] = broker_id

    def follow(self, answer: object, convert: Callable[[object], object]) -> None:
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
        self._faults.held.pop(self, None)


@dataclass(frozen=True, slots=True)
class Throttled:
    """An answer that goes out at once, while its connection is held up longer."""

    response: object
    """None is acks=0's."""
    until: Held
    """Completed when the connection goes on."""
