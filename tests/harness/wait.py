"""Waiting for a state that no event announces: asked again until it is reached or time is up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final, TypeVar

WAIT_S: Final = 60.0
_LOOP_WAIT_S: Final = 10.0
_PAUSE_S: Final = 0.02

T = TypeVar("T")


def wait_until(what: str, attempt: Callable[[], T | None], timeout_s: float = WAIT_S) -> T:
    """Call ``attempt`` again until its result is true; that result.

    :raises AssertionError: When it is not true in time.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        found = attempt()
        if found:
            return found
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
        time.sleep(_PAUSE_S)


async def wait_beside_loop(what: str, attempt: Callable[[], T | None]) -> T:
    """As `wait_until`, in a thread: the event loop runs on."""
    return await asyncio.to_thread(wait_until, what, attempt)


async def eventually(condition: Callable[[], bool]) -> None:
    """Run the event loop until a condition holds of a server or client on it."""
    async with asyncio.timeout(_LOOP_WAIT_S):
        while not condition():  # noqa: ASYNC110  # there is no event
            await asyncio.sleep(0)
