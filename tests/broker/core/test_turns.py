"""Very many elements are worked on some in a turn, in their order."""

from __future__ import annotations

from fencepost.broker.core.scheduler import ManualClock, Scheduler
from fencepost.broker.core.turns import TurnQueue


def start(most: int = 2) -> tuple[Scheduler, TurnQueue[int], list[list[int]]]:
    scheduler = Scheduler(ManualClock())
    done: list[list[int]] = []
    return scheduler, TurnQueue(scheduler.in_later_turn, most, done.append), done


def test_so_many_are_worked_on_in_each_turn() -> None:
    scheduler, queue, done = start()
    queue.add(range(5))
    assert done == []
    for expected in ([[0, 1]], [[0, 1], [2, 3]], [[0, 1], [2, 3], [4]]):
        scheduler.run_turn()
        assert done == expected
    assert not scheduler.run_turn()


def test_what_is_added_meanwhile_follows_in_the_same_turns() -> None:
    scheduler, queue, done = start()
    queue.add(range(3))
    scheduler.run_turn()
    queue.add([3])
    scheduler.run_turn()
    assert done == [[0, 1], [2, 3]]
    assert not scheduler.run_turn()


def test_the_rest_is_worked_on_at_once_where_it_has_to_be() -> None:
    scheduler, queue, done = start()
    queue.add(range(5))
    queue.finish()
    assert done == [[0, 1], [2, 3], [4]]
    queue.add([5, 6, 7])
    for _ in range(3):
        scheduler.run_turn()
    assert done[3:] == [[5, 6], [7]]


def test_the_rest_may_be_dropped() -> None:
    scheduler, queue, done = start()
    queue.add(range(5))
    scheduler.run_turn()
    queue.clear()
    scheduler.run_due()
    assert done == [[0, 1]]


def test_work_that_fails_does_not_keep_the_rest_from_being_done() -> None:
    scheduler = Scheduler(ManualClock())
    done: list[int] = []

    def work(elements: list[int]) -> None:
        if elements == [0]:
            raise ValueError(elements)
        done.extend(elements)

    queue = TurnQueue(scheduler.in_later_turn, 1, work)
    queue.add([0, 1])
    try:
        scheduler.run_turn()
    except ValueError:
        scheduler.run_turn()
    assert done == [1]
