"""A loop stays awake for a moment after each request, and then sleeps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import pytest

from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.server.event_loop import POLL_NS, BusyPoll
from fencepost.protocol.frames import RequestMemory
from tests.harness.in_process_server import running
from tests.harness.typed_client import produce


class Loop:
    """What is to be called in the next turn; with nothing there, a loop waits for the network."""

    def __init__(self) -> None:
        self.ready: list[Callable[[], None]] = []

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.ready.append(callback)

    def turn(self) -> None:
        ready, self.ready = self.ready, []
        for callback in ready:
            callback()


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    time = [0]
    monkeypatch.setattr("time.monotonic_ns", lambda: time[0])
    return time


def start() -> tuple[Loop, BusyPoll]:
    loop = Loop()
    return loop, BusyPoll(cast(asyncio.AbstractEventLoop, loop))


def test_something_else_is_done_meanwhile_once_what_is_due_is_written(now: list[int]) -> None:
    loop, done = Loop(), list[int]()
    awake = BusyPoll(cast(asyncio.AbstractEventLoop, loop), lambda: done.append(now[0]))
    awake.extend()
    loop.turn()
    assert done == []
    now[0] = 1
    loop.turn()
    assert done == [1]
    now[0] = 2
    awake.extend()  # within the moment
    loop.turn()
    assert done == [1]
    now[0] = 3
    loop.turn()
    assert done == [1, 3]


def test_it_polls_until_the_moment_is_over(now: list[int]) -> None:
    loop, awake = start()
    assert not loop.ready
    awake.extend()
    now[0] = POLL_NS - 1
    loop.turn()
    assert len(loop.ready) == 1
    now[0] = POLL_NS
    loop.turn()
    assert not loop.ready


def test_each_request_prolongs_the_moment_and_none_doubles_the_polling(now: list[int]) -> None:
    loop, awake = start()
    awake.extend()
    now[0] = POLL_NS - 1
    awake.extend()
    assert len(loop.ready) == 1
    now[0] = POLL_NS
    loop.turn()
    assert len(loop.ready) == 1


def test_it_wakes_again(now: list[int]) -> None:
    loop, awake = start()
    awake.extend()
    now[0] = POLL_NS
    loop.turn()
    awake.extend()
    assert len(loop.ready) == 1


async def test_a_server_makes_memory_ready_for_the_next_frames_until_it_has_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wanted_more: list[bool] = []
    make_ready = RequestMemory.make_ready

    def observed(memory: RequestMemory) -> bool:
        wanted_more.append(make_ready(memory))
        return wanted_more[-1]

    monkeypatch.setattr(RequestMemory, "make_ready", observed)
    async with running(topics=(NewTopic(name="t", configs={}),)) as server:
        for _ in range(1_000):  # a moment may be over before the loop had an idle turn
            await produce(server, "t", values=[bytes(20_000)])
            if wanted_more[-2:] == [True, False]:
                break
    assert wanted_more[-2:] == [True, False]
