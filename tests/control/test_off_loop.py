"""Imports off the loop: what they change of the interpreter is as before when they have ended."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from collections.abc import Iterator

import pytest

from fencepost.control.off_loop import off_loop


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    """As a process begins; other tests may have changed it."""
    interval, collects = settings()
    sys.setswitchinterval(0.005)
    gc.enable()
    yield
    sys.setswitchinterval(interval)
    if not collects:
        gc.disable()


def settings() -> tuple[float, bool]:
    return sys.getswitchinterval(), gc.isenabled()


async def test_the_loop_goes_on_and_collects_nothing_meanwhile() -> None:
    before = settings()
    turned = threading.Event()
    asyncio.get_running_loop().call_soon(turned.set)

    def import_something() -> tuple[bool, tuple[float, bool]]:
        return turned.wait(10), settings()

    is_turned, (interval, collects) = await off_loop(import_something)
    assert is_turned
    assert interval < before[0]
    assert not collects
    assert settings() == before


async def test_of_several_the_last_one_restores_it() -> None:
    before = settings()
    first_ends, second_ends = threading.Event(), threading.Event()
    first = asyncio.ensure_future(off_loop(first_ends.wait, 10))
    second = asyncio.ensure_future(off_loop(second_ends.wait, 10))
    await asyncio.sleep(0)
    first_ends.set()
    assert await first
    assert settings() != before
    second_ends.set()
    assert await second
    assert settings() == before


async def test_one_that_fails_restores_it_too() -> None:
    before = settings()

    def fail() -> None:
        raise ImportError("no such module")

    with pytest.raises(ImportError, match="no such module"):
        await off_loop(fail)
    assert settings() == before
