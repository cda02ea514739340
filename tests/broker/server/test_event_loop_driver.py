"""The loop runs the scheduler: at once, at a time, and on when something fails."""

from __future__ import annotations

import asyncio
import json
import time
from functools import partial
from typing import Final

import pytest

from fencepost.broker.core.scheduler import ManualClock, Scheduler, advance
from fencepost.broker.server import event_loop
from fencepost.broker.server.event_loop import LoopDriver, SystemClock
from tests.harness.turns import run_for_a_turn

TODAY_MS: Final = 1_764_000_000_000
DAY_MS: Final = 24 * 3_600_000


def drive() -> tuple[Scheduler, LoopDriver]:
    scheduler = Scheduler(SystemClock())
    return scheduler, LoopDriver(scheduler, asyncio.get_running_loop())


async def test_what_is_due_soon_runs_at_the_end_of_the_turn() -> None:
    scheduler, driver = drive()
    done = asyncio.Event()
    scheduler.soon(done.set)
    assert not done.is_set()
    await done.wait()
    driver.stop()


async def test_a_timer_runs_at_its_time_and_an_earlier_one_before_it() -> None:
    scheduler, driver = drive()
    ran: list[str] = []
    done = asyncio.Event()
    start = scheduler.now_ms()
    scheduler.at(start + 40, done.set)
    scheduler.at(start + 20, lambda: ran.append("earlier"))
    await done.wait()
    assert ran == ["earlier"]
    assert scheduler.now_ms() >= start + 40
    driver.stop()


async def test_a_callback_that_fails_is_logged_and_the_others_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    scheduler, driver = drive()
    done = asyncio.Event()

    def fail() -> None:
        raise RuntimeError("a bug")

    scheduler.soon(fail)
    scheduler.soon(done.set)
    await done.wait()
    driver.stop()
    line = json.loads(capsys.readouterr().err)
    assert (line["event"], line["level"]) == ("callback_failed", "error")
    (error,) = line["exception"]
    assert (error["exc_type"], error["exc_value"]) == ("RuntimeError", "a bug")


async def test_work_after_an_answer_lets_others_have_the_processor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    yielded: list[str] = []
    monkeypatch.setattr(event_loop, "_yield_processor", lambda: yielded.append("yielded"))
    scheduler, driver = drive()
    scheduler.give_way()
    assert yielded == ["yielded"]
    driver.stop()
    scheduler.give_way()
    assert yielded == ["yielded"]


async def test_nothing_runs_after_stop() -> None:
    scheduler, driver = drive()
    ran: list[int] = []
    scheduler.at(scheduler.now_ms() + 500, lambda: ran.append(1))
    await asyncio.sleep(0)
    driver.stop()
    await asyncio.sleep(0.6)
    assert ran == []


async def test_no_time_passes_on_a_manual_clock_but_what_is_due_runs() -> None:
    clock = ManualClock()
    scheduler = Scheduler(clock)
    driver = LoopDriver(scheduler, asyncio.get_running_loop())
    ran: list[str] = []
    done = asyncio.Event()
    scheduler.at(clock.now_ms() + 5, lambda: ran.append("later"))
    scheduler.at(clock.now_ms(), done.set)
    await done.wait()
    await asyncio.sleep(0.02)
    assert ran == []
    assert driver._timer is None, "a clock that stands still needs no timer"
    advance(scheduler, clock, 5)
    assert ran == ["later"]
    driver.stop()


def test_the_system_clock_tells_the_time_of_day() -> None:
    clock = SystemClock()
    assert abs(clock.now_ms() - time.time() * 1000) < 1000


def test_timestamps_follow_a_clock_that_is_set_and_timers_do_not() -> None:
    wall, monotonic = [TODAY_MS - 10 * DAY_MS], [5_000]
    clock = SystemClock(lambda: wall[0] * 1_000_000, lambda: monotonic[0] * 1_000_000)
    began = clock.now_ms()
    assert began == clock.wall_ms() == TODAY_MS - 10 * DAY_MS
    wall[0] = TODAY_MS
    monotonic[0] += 7
    assert (clock.now_ms(), clock.wall_ms()) == (began + 7, TODAY_MS)
    wall[0] -= DAY_MS
    assert (clock.now_ms(), clock.wall_ms()) == (began + 7, TODAY_MS - DAY_MS)


async def test_a_callback_with_a_turn_of_its_own_lets_others_come_before_it() -> None:
    scheduler, driver = drive()
    ran: list[str] = []
    done = asyncio.Event()

    def first() -> None:
        asyncio.get_running_loop().call_soon(ran.append, "another")
        ran.append("first")

    def second() -> None:
        ran.append("second")
        done.set()

    scheduler.in_later_turn(first)
    scheduler.in_later_turn(second)
    await done.wait()
    assert ran == ["first", "another", "second"]
    driver.stop()


async def test_finish_returns_when_all_is_run_and_others_come_in_between() -> None:
    scheduler, driver = drive()
    ran: list[int] = []
    others: list[int] = []
    for number in range(3):
        scheduler.soon(partial(ran.append, number))
        scheduler.soon(run_for_a_turn)

    def other() -> None:
        others.append(len(ran))
        asyncio.get_running_loop().call_soon(other)

    asyncio.get_running_loop().call_soon(other)
    await driver.finish()
    assert ran == [0, 1, 2]
    assert {1, 2} <= set(others)
    await driver.finish()  # nothing is due
    driver.stop()


async def test_a_wait_that_is_cancelled_keeps_no_other_from_its_end() -> None:
    scheduler, driver = drive()
    for _ in range(3):
        scheduler.soon(run_for_a_turn)
    gone, stays = (asyncio.ensure_future(driver.finish()) for _ in range(2))
    await asyncio.sleep(0)
    gone.cancel()
    await stays
    driver.stop()
