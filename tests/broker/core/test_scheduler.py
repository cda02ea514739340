"""What is due when, and in which order."""

from __future__ import annotations

import heapq
import sys
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.broker.core.scheduler import (
    ManualClock,
    Scheduler,
    advance,
)

START = 1_000


def start() -> tuple[Scheduler, ManualClock, list[str]]:
    clock = ManualClock(START)
    return Scheduler(clock), clock, []


def test_time_goes_on_and_never_back() -> None:
    clock = ManualClock(START)
    clock.move_to(START + 5)
    assert clock.now_ms() == START + 5
    with pytest.raises(ValueError, match="time goes on"):
        clock.move_to(START + 4)


def test_soon_comes_before_time_and_in_order() -> None:
    scheduler, _, log = start()
    scheduler.at(START, lambda: log.append("due"))
    scheduler.soon(lambda: log.append("first"))
    scheduler.soon(lambda: log.append("second"))
    scheduler.run_due()
    assert log == ["first", "second", "due"]


def test_what_becomes_due_meanwhile_is_run_too() -> None:
    scheduler, _, log = start()
    scheduler.soon(lambda: scheduler.soon(lambda: log.append("inner")))

    def again() -> None:
        scheduler.at(START, lambda: log.append("timed"))

    scheduler.at(START, again)
    scheduler.run_due()
    assert log == ["inner", "timed"]


def test_timers_run_at_their_time_and_those_of_one_time_as_they_were_set() -> None:
    scheduler, clock, log = start()

    def note(name: str) -> None:
        log.append(f"{name}@{clock.now_ms()}")

    for name, delay in (("late", 20), ("early", 10), ("second", 10)):
        scheduler.at(START + delay, partial(note, name))
    advance(scheduler, clock, 9)
    assert log == []
    advance(scheduler, clock, 1)
    assert log == ["early@1010", "second@1010"]
    advance(scheduler, clock, 50)
    assert log[2:] == ["late@1020"]
    assert clock.now_ms() == START + 60


def test_a_cancelled_timer_does_not_run() -> None:
    scheduler, clock, log = start()
    timer = scheduler.at(START + 1, lambda: log.append("no"))
    timer.cancel()
    timer.cancel()
    advance(scheduler, clock, 10)
    assert log == []
    assert scheduler.next_deadline_ms() is None


@pytest.mark.parametrize("target", [5, 10, 30])
def test_a_timer_may_be_moved_either_way(target: int) -> None:
    scheduler, clock, log = start()
    timer = scheduler.at(START + 10, lambda: log.append(str(clock.now_ms())))
    timer.move_to(START + target)
    assert scheduler.next_deadline_ms() == START + target
    advance(scheduler, clock, 100)
    assert log == [str(START + target)]


def test_a_timer_that_ran_or_was_cancelled_is_set_anew_by_a_move() -> None:
    scheduler, clock, log = start()
    timer = scheduler.at(START + 1, lambda: log.append(str(clock.now_ms())))
    advance(scheduler, clock, 5)
    timer.move_to(START + 8)
    advance(scheduler, clock, 5)
    timer.cancel()
    timer.move_to(START + 12)
    advance(scheduler, clock, 5)
    assert log == ["1001", "1008", "1012"]


def test_the_next_deadline_is_now_while_something_is_to_come_soon() -> None:
    scheduler, _, _ = start()
    scheduler.at(START + 7, lambda: None)
    assert scheduler.next_deadline_ms() == START + 7
    scheduler.soon(lambda: None)
    assert scheduler.next_deadline_ms() == START


def test_whoever_drives_is_woken_by_what_is_due_earlier_than_all_else() -> None:
    scheduler, _, log = start()
    scheduler.wake = lambda: log.append("wake")
    for delay in (10, 20, 5):
        scheduler.at(START + delay, lambda: None)
    assert len(log) == 2
    scheduler.soon(lambda: None)
    scheduler.soon(lambda: None)
    assert len(log) == 3


def test_a_timer_that_is_ended_lets_go_of_its_callback() -> None:
    scheduler = Scheduler(ManualClock(START))
    log: list[str] = []
    callback = partial(log.append, "no")
    timer = scheduler.at(START, callback)
    before = sys.getrefcount(callback)
    timer.end()
    assert sys.getrefcount(callback) == before - 1
    scheduler.run_due()
    assert log == []


def test_cancelled_timers_do_not_pile_up() -> None:
    scheduler, clock, log = start()
    scheduler.at(START + 1, lambda: log.append("kept"))
    for _ in range(10_000):
        scheduler.at(START + 60_000, lambda: log.append("no")).cancel()
    assert len(scheduler._heap) < 300
    advance(scheduler, clock, 60_000)
    assert log == ["kept"]


def test_a_failing_callback_leaves_the_others_to_run() -> None:
    scheduler, _, log = start()
    scheduler.soon(log.clear)
    scheduler.soon(partial(log.remove, "nothing"))
    scheduler.soon(lambda: log.append("next"))
    with pytest.raises(ValueError, match="not in list"):
        scheduler.run_due()
    scheduler.run_due()
    assert log == ["next"]


Step = tuple[str, int, int]


@settings(database=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["set", "move", "cancel", "advance"]),
            st.integers(0, 5),
            st.integers(0, 30),
        ),
        max_size=40,
    )
)
def test_it_runs_what_a_plain_list_of_deadlines_would(steps: list[Step]) -> None:
    scheduler, clock, _ = start()
    ran: list[tuple[int, int]] = []
    expected: list[tuple[int, int]] = []
    deadlines: dict[int, int] = {}

    def note(n: int) -> None:
        ran.append((clock.now_ms(), n))

    timers = [scheduler.at(START, partial(note, n)) for n in range(6)]
    for timer in timers:
        timer.cancel()
    for kind, n, delay in steps:
        if kind == "advance":
            end = clock.now_ms() + delay
            due = [(max(at, clock.now_ms()), m) for m, at in deadlines.items() if at <= end]
            expected += heapq.nsmallest(len(due), due)
            deadlines = {m: at for m, at in deadlines.items() if at > end}
            advance(scheduler, clock, delay)
        elif kind == "cancel":
            timers[n].cancel()
            deadlines.pop(n, None)
        else:
            timers[n].move_to(clock.now_ms() + delay)
            deadlines[n] = clock.now_ms() + delay
    assert sorted(ran) == sorted(expected)
    assert [at for at, _ in ran] == sorted(at for at, _ in ran)


def test_a_turn_runs_one_callback_that_asked_for_a_turn_of_its_own() -> None:
    scheduler, _, log = start()
    scheduler.in_later_turn(lambda: log.append("first"))
    scheduler.in_later_turn(lambda: log.append("second"))
    scheduler.soon(lambda: log.append("soon"))
    assert scheduler.next_deadline_ms() == START
    assert scheduler.run_turn()
    assert log == ["soon", "first"]
    assert not scheduler.run_turn()
    assert log == ["soon", "first", "second"]


def test_all_that_is_due_includes_later_turns() -> None:
    scheduler, _, log = start()
    scheduler.in_later_turn(lambda: scheduler.in_later_turn(lambda: log.append("last")))
    scheduler.run_due()
    assert log == ["last"]
    scheduler.in_later_turn(lambda: log.append("never"))
    scheduler.clear()
    scheduler.run_due()
    assert log == ["last"]


def test_a_turn_that_is_over_leaves_the_other_callbacks_to_the_next_one() -> None:
    scheduler, _, log = start()
    names = [str(number) for number in range(5)]
    for name in names:
        scheduler.soon(partial(log.append, name))
    scheduler.in_later_turn(lambda: log.append("later"))
    turns = []
    while scheduler.run_turn(lambda: len(log) % 2 == 0):
        turns.append(len(log))
    assert turns == [2, 4]
    assert log == [*names, "later"]


def test_all_that_is_due_is_run_however_much_it_is() -> None:
    scheduler, _, log = start()
    for _ in range(100):
        scheduler.soon(lambda: log.append("x"))
    scheduler.run_due()
    assert len(log) == 100
