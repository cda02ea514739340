"""Memory is freed bit by bit, and the loop has its turn between."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from fencepost.broker.server import event_loop
from fencepost.broker.server.event_loop import DeferredFree


async def test_works_are_done_in_order_and_not_at_once() -> None:
    steps: list[str] = []
    done = asyncio.Event()

    def work(name: str) -> Iterator[None]:
        for _ in range(3):
            steps.append(name)
            yield
        if name == "b":
            done.set()

    reclaimer = DeferredFree(asyncio.get_running_loop())
    for name in "ab":
        reclaimer.add(work(name))
    assert steps == []
    async with asyncio.timeout(10):
        await done.wait()
    assert steps == ["a", "a", "a", "b", "b", "b"]
    assert reclaimer.is_idle


async def test_long_works_leave_the_loop_to_others() -> None:
    done = asyncio.Event()
    turns = 0

    def work() -> Iterator[None]:
        for _ in range(20):
            end = time.perf_counter() + event_loop.SLICE_S
            while time.perf_counter() < end:
                pass
            yield
        done.set()

    DeferredFree(asyncio.get_running_loop()).add(work())
    while not done.is_set():
        await asyncio.sleep(0)
        turns += 1
    assert turns >= 20


async def test_it_goes_on_with_what_comes_after_it_was_idle() -> None:
    reclaimer = DeferredFree(asyncio.get_running_loop())
    for _ in range(2):
        done = asyncio.Event()
        reclaimer.add(_setting(done))
        async with asyncio.timeout(10):
            await done.wait()


async def test_stopped_it_frees_nothing_more() -> None:
    reclaimer = DeferredFree(asyncio.get_running_loop())
    done = asyncio.Event()
    reclaimer.add(_setting(done))
    reclaimer.stop()
    await asyncio.sleep(3 * event_loop.PAUSE_S)
    assert not done.is_set()
    assert reclaimer.is_idle


def _setting(done: asyncio.Event) -> Iterator[None]:
    yield
    done.set()


async def test_as_much_is_freed_at_once_as_is_needed() -> None:
    steps: list[int] = []

    def work() -> Iterator[None]:
        for n in range(10):
            steps.append(n)
            yield

    reclaimer = DeferredFree(asyncio.get_running_loop())
    reclaimer.add(work())
    reclaimer.run_until(lambda: len(steps) >= 4)
    assert len(steps) == 4
    reclaimer.run_until(lambda: False)
    assert (len(steps), reclaimer.is_idle) == (10, True)
    reclaimer.stop()
