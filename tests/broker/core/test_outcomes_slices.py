"""What is only read of many elements is read in several turns."""

from __future__ import annotations

from fencepost.broker.core.outcomes import SLICE, answer_in_slices
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
