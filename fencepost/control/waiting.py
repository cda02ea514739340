"""Waiting for something on behalf of a request, for as long as its asker has patience."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from fastapi import Request

T = TypeVar("T")


async def within(
    timeout_ms: int, request: Request, coming: Coroutine[object, object, T]
) -> T | None:
    """What comes; None where it does not within this real time, or whoever asked is gone."""
    wanted = asyncio.ensure_future(coming)
    tasks = (wanted, asyncio.ensure_future(_hang_up(request)))
    try:
        done, _ = await asyncio.wait(
            tasks, timeout=timeout_ms / 1000, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    return wanted.result() if wanted in done else None


async def _hang_up(request: Request) -> None:
    """Wait until whoever asked does not wait any more."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
