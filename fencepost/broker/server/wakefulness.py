"""Staying awake for a moment after a request.

A client that asks one thing after the other has its next request here within microseconds. To fall
asleep meanwhile and be woken costs more than the whole answer, on a virtual machine above all.
So the loop keeps polling for as long as a round trip takes before it waits for the network.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

AWAKE_NS: Final = 60_000
"""How long after the last bytes that came; nanoseconds."""


class Wakefulness:
    """Keeps a loop from waiting, by always having a callback in it for the next turn.

    :param meanwhile: What may as well be done then; it is quick. It waits for the second turn: a
        loop may write what it was given at the end of the first.
    """

    __slots__ = ("_is_awake", "_is_first_turn", "_loop", "_meanwhile", "_until_ns")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, meanwhile: Callable[[], None] = lambda: None
    ) -> None:
        self._loop = loop
        self._meanwhile = meanwhile
        self._is_awake = False
        self._is_first_turn = False
        self._until_ns = 0

    def prolong(self) -> None:
        """Bytes came, or went: more may be close behind."""
        self._until_ns = time.monotonic_ns() + AWAKE_NS
        self._is_first_turn = True
        if not self._is_awake:
            self._is_awake = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        if self._is_first_turn:
            self._is_first_turn = False
        else:
            self._meanwhile()
        if time.monotonic_ns() < self._until_ns:
            self._loop.call_soon(self._turn)
        else:
            self._is_awake = False
