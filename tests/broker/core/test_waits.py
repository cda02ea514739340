"""Answers that are not due yet."""

from __future__ import annotations

from functools import partial

from fencepost.broker.core.scheduler import ManualClock, Scheduler, advance
from fencepost.broker.core.waits import Wait, WatchList


def waiting() -> tuple[Wait[str], list[str | None]]:
    wait: Wait[str] = Wait()
    answers: list[str | None] = []
    wait.then(answers.append)
    return wait, answers


def test_the_first_answer_counts() -> None:
    wait, answers = waiting()
    wait.complete("a")
    wait.complete("b")
    assert (answers, wait.result, wait.done) == (["a"], "a", True)


def test_whoever_comes_late_is_answered_at_once() -> None:
    wait: Wait[str] = Wait()
    wait.complete("a")
    answers: list[str | None] = []
    wait.then(answers.append)
    assert answers == ["a"]


def test_none_is_an_answer_too() -> None:
    wait, answers = waiting()
    wait.complete(None)
    assert answers == [None]


def test_it_is_tried_at_each_notice_until_it_can_be_answered() -> None:
    wait, answers = waiting()
    one, two = WatchList(), WatchList()
    tries = iter([None, None, "there"])
    wait.watch([one, two], lambda: next(tries))
    one.notify()
    two.notify()
    assert answers == []
    one.notify()
    assert answers == ["there"]
    two.notify()
    assert not one.waits
    assert not two.waits


def test_a_deadline_ends_it_and_an_answer_ends_the_deadline() -> None:
    clock = ManualClock(0)
    scheduler = Scheduler(clock)
    late, late_answers = waiting()
    late.expire_at(scheduler, 10, lambda: "expired")
    prompt, prompt_answers = waiting()
    prompt.expire_at(scheduler, 10, lambda: "expired")
    prompt.complete("answered")
    advance(scheduler, clock, 9)
    assert late_answers == []
    advance(scheduler, clock, 1)
    assert (late_answers, prompt_answers) == (["expired"], ["answered"])
    assert scheduler.next_deadline_ms() is None


def test_what_is_cancelled_answers_nobody_and_watches_nothing() -> None:
    clock = ManualClock(0)
    scheduler = Scheduler(clock)
    wait, answers = waiting()
    watched = WatchList()
    wait.watch([watched], lambda: "there")
    wait.expire_at(scheduler, 10, lambda: "expired")
    wait.cancel()
    watched.notify()
    advance(scheduler, clock, 20)
    wait.complete("late")
    assert answers == []
    assert not watched.waits
    assert scheduler.next_deadline_ms() is None


def test_waits_are_tried_in_the_order_in_which_they_came() -> None:
    watched, order = WatchList(), list[str]()
    waits = []
    for name in ("a", "b", "c"):
        wait: Wait[str] = Wait()
        wait.then(lambda answer: order.append(answer or ""))
        wait.watch([watched], partial(str, name))
        waits.append(wait)
    watched.notify()
    assert order == ["a", "b", "c"]


def test_a_notice_may_come_from_an_answer() -> None:
    watched = WatchList()
    first, _ = waiting()
    second, answers = waiting()
    first.watch([watched], lambda: "first")
    second.watch([watched], lambda: "second")
    first._callback = lambda _: watched.notify()
    watched.notify()
    assert answers == ["second"]


def test_a_retry_of_what_is_answered_does_nothing() -> None:
    wait, answers = waiting()
    wait.watch([WatchList()], lambda: "again")
    wait.complete("once")
    wait.retry()
    assert answers == ["once"]


def test_an_attempt_that_takes_long_is_made_once_for_many_notices_and_not_soon_again() -> None:
    clock = ManualClock(0)
    scheduler = Scheduler(clock)
    wait, answers = waiting()
    one, two = WatchList(), WatchList()
    tries: list[int] = []

    def attempt() -> str | None:
        tries.append(clock.now_ms())
        return "there" if len(tries) == 3 else None

    wait.watch_seldom(scheduler, [one, two], attempt, pause_ms=20)
    for now_ms in (5, 6, 30, 31, 70):
        advance(scheduler, clock, now_ms - clock.now_ms())
        one.notify()
        two.notify()
        scheduler.run_due()
    assert tries == [5, 25, 45]
    assert answers == ["there"]


class Part:
    """One of what a wait waits for."""

    def __init__(self, *, watch_list: WatchList | None = None) -> None:
        self.watch_list = watch_list or WatchList()
        self.is_due = False
        self.asked = 0

    def settle(self) -> bool:
        self.asked += 1
        return self.is_due

    def happen(self) -> None:
        self.is_due = True
        self.watch_list.notify()


def test_of_many_parts_each_is_asked_when_it_may_have_settled() -> None:
    wait, answers = waiting()
    parts = [Part() for _ in range(100)]
    parts[0].is_due = True
    wait.watch_each(parts, lambda: "all")
    for part in parts[1:]:
        assert answers == []
        part.watch_list.notify()
        part.happen()
    assert answers == ["all"]
    assert {part.asked for part in parts} == {1, 3}
    assert not any(part.watch_list.waits for part in parts)


def test_parts_that_have_settled_before_are_answered_at_once() -> None:
    wait, answers = waiting()
    wait.watch_each([], lambda: "none")
    assert answers == ["none"]


def test_parts_of_a_wait_that_has_ended_are_not_asked() -> None:
    wait, answers = waiting()
    part = Part()
    wait.watch_each([part], lambda: "late")
    wait.cancel()
    part.happen()
    assert (answers, part.asked) == ([], 1)


def test_a_part_that_settles_in_a_notice_within_another_counts_once() -> None:
    watched = WatchList()
    first, _ = waiting()
    second, answers = waiting()
    parts = [Part(watch_list=watched), Part()]
    first.watch([watched], lambda: "first")
    first._callback = lambda _: parts[0].happen()
    second.watch_each(parts, lambda: "both")
    watched.notify()
    assert answers == []
    parts[1].happen()
    assert answers == ["both"]
