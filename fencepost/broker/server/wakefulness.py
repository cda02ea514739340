"""Staying awake for a moment after a request.

A client that asks one thing after the other has its next request here within microseconds. To fall
asleep meanwhile and be woken costs more than the whole answer, on a virtual machine above all.
So the loop keeps polling for as long as a round trip takes before it waits for the network.
"""

import asyncio
import time
from typing import Final

AWAKE_NS: Final = 60_000
"""How long after the last bytes that came; nanoseconds."""


class Wakefulness:
    """Keeps a loop from waiting, by always having a callback in it for the next turn."""

    __slots__ = ("_is_awake", "_loop", "_until_ns")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._is_awake = False
        self._until_ns = 0

    def prolong(self) -> None:
        """Bytes came, or went: more may be close behind."""
        self._until_ns = time.monotonic_ns() + AWAKE_NS
        if not self._is_awake:
            self._is_awake = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        if time.monotonic_ns() < self._until_ns:
            self._loop.call_soon(self._turn)
        else:
            self._is_awake = False
