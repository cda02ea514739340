"""The bytes of one response, sent a few at a time: at a rate, or in pieces.

A fault wants a response so (`PacedResponse`). The rate is by the cluster's clock: a manual one
sends nothing until it is advanced. Pieces come `PIECE_GAP_MS` apart, so that a client reads each by
itself; with a manual clock, which they are not to wait for, in turns of the event loop.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from fencepost.broker.core.outcomes import PacedResponse
from fencepost.broker.core.scheduler import ManualClock, Scheduler, Timer
from fencepost.protocol.byte_utils import Buffer

PIECE_GAP_MS: Final = 1


class PacedOutput:
    """A response on its way.

    :param send: Takes bytes that are to be sent now.
    """

    def __init__(
        self, response: PacedResponse, scheduler: Scheduler, send: Callable[[Buffer], None]
    ) -> None:
        self._until = response.until
        self._bytes_per_s = response.bytes_per_s
        self._size = response.size
        self._scheduler = scheduler
        self._send = send
        self._slices: Iterator[memoryview] = iter(())
        self._next: memoryview | None = None
        """The first of those that are left."""
        self._begun_ms = 0
        self._taken = 0
        """Bytes up to the end of the next slice."""
        self._timer: Timer | None = None
        self._is_over = False

    def begin(self, chunks: Sequence[Buffer]) -> None:
        """Send the first bytes: the turn of the response has come."""
        self._slices = _slices(chunks, self._size)
        self._begun_ms = self._scheduler.now_ms()
        self._go_on()

    def send_rest(self) -> None:
        """Send all that is left, at once."""
        self._stop()
        self._send_next()
        for each in self._slices:
            self._send(each)

    def cancel(self) -> None:
        """Send nothing more: the connection is gone."""
        self._stop()
        self._until.cancel()

    def _stop(self) -> None:
        self._is_over = True
        if self._timer is not None:
            self._timer.end()

    def _go_on(self) -> None:
        """Send the next bytes, now or when they are due."""
        if self._is_over:
            return
        self._next = next(self._slices, None)
        if self._next is None:
            self._stop()
            self._until.complete(None)
        elif self._bytes_per_s is None:
            self._send_next()
            self._leave_gap()
        else:
            # The time of all bytes so far: rounded for each slice it would add up.
            self._taken += len(self._next)
            ms = -(-self._taken * 1000 // self._bytes_per_s)
            self._timer = self._scheduler.at(self._begun_ms + ms, self._on_due)

    def _leave_gap(self) -> None:
        scheduler = self._scheduler
        if isinstance(scheduler.clock, ManualClock):
            scheduler.in_later_turn(self._go_on)
        else:
            self._timer = scheduler.at(scheduler.now_ms() + PIECE_GAP_MS, self._go_on)

    def _on_due(self) -> None:
        self._send_next()
        self._go_on()

    def _send_next(self) -> None:
        following, self._next = self._next, None
        if following is not None:
            self._send(following)


def _slices(chunks: Sequence[Buffer], size: int) -> Iterator[memoryview]:
    for chunk in chunks:
        view = memoryview(chunk)
        for at in range(0, len(view), size):
            yield view[at : at + size]
