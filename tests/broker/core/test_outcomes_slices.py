"""What is only read of many elements is read in several turns."""

from __future__ import annotations

from fencepost.broker.core.outcomes import (
    SLICE,
    Steps,
    answer_in_slices,
    read_each,
    respond_after,
    take_turns,
)
from fencepost.broker.core.scheduler import ManualClock, Scheduler
from fencepost.broker.core.waits import Wait


def test_few_elements_are_answered_at_once() -> None:
    scheduler = Scheduler(ManualClock())
    assert answer_in_slices(scheduler, range(SLICE), str, len) == SLICE


def test_many_are_read_a_slice_in_each_turn() -> None:
    scheduler = Scheduler(ManualClock())
    read: list[int] = []

    def read_one(element: int) -> int:
        read.append(element)
        return element

    elements = range(3 * SLICE + 1)
    answer = answer_in_slices(scheduler, elements, read_one, len)
    assert isinstance(answer, Wait)
    counts = [len(read)]
    while not answer.done:
        scheduler.run_turn()
        counts.append(len(read))
    assert counts == [SLICE, 2 * SLICE, 3 * SLICE, 3 * SLICE + 1]
    assert read == list(elements)
    assert answer.result == len(elements)


def test_nothing_more_is_read_for_a_connection_that_is_gone() -> None:
    scheduler = Scheduler(ManualClock())
    read: list[int] = []
    answer = answer_in_slices(scheduler, range(2 * SLICE), read.append, len)
    assert isinstance(answer, Wait)
    answer.cancel()
    scheduler.run_due()
    assert len(read) == SLICE


def test_turns_may_end_with_an_answer_that_is_due_later() -> None:
    scheduler = Scheduler(ManualClock())
    later: Wait[str] = Wait()

    def steps() -> Steps[str | Wait[str]]:
        yield from read_each(range(SLICE), str)
        return later

    answer = take_turns(scheduler, steps())
    assert isinstance(answer, Wait)
    scheduler.run_due()
    assert not answer.done
    later.complete("a")
    assert answer.result == "a"


def test_what_follows_a_response_waits_for_it_and_may_take_long_itself() -> None:
    assert respond_after("a", str.upper) == "A"
    first: Wait[str] = Wait()
    second: Wait[str] = Wait()
    asked: list[str] = []

    def respond(found: str) -> str | Wait[str]:
        asked.append(found)
        return second

    answer: str | Wait[str] = respond_after(first, respond)
    assert isinstance(answer, Wait)
    first.complete("a")
    assert (asked, answer.done) == (["a"], False)
    second.complete("b")
    assert answer.result == "b"
