"""Answers made of answers."""

from __future__ import annotations

import gc
import weakref

from fencepost.broker.core.outcomes import gather_responses, map_response
from fencepost.broker.core.waits import Wait


def test_what_is_there_is_answered_at_once() -> None:
    assert map_response(3, str) == "3"
    assert gather_responses([3, 4], sum) == 7
    assert gather_responses([], sum) == 0


def test_what_is_to_come_is_waited_for() -> None:
    parked: Wait[int] = Wait()
    answer = map_response(parked, str)
    assert isinstance(answer, Wait)
    assert not answer.done
    parked.complete(3)
    assert answer.result == "3"


def test_the_last_one_completes_all_in_their_order() -> None:
    first: Wait[int] = Wait()
    third: Wait[int] = Wait()
    answer = gather_responses([first, 2, third], tuple)
    assert isinstance(answer, Wait)
    third.complete(3)
    assert not answer.done
    first.complete(1)
    assert answer.result == (1, 2, 3)


def test_a_wait_that_is_over_is_no_wait() -> None:
    parked: Wait[int] = Wait()
    parked.complete(3)
    assert map_response(parked, str) == "3"


def test_who_has_gone_leaves_the_others_to_be_answered() -> None:
    parked: Wait[int] = Wait()
    answer = map_response(parked, str)
    assert isinstance(answer, Wait)
    answer.cancel()
    parked.complete(3)
    assert answer.result is None


def test_a_response_that_was_waited_for_leaves_no_garbage() -> None:
    class Converted:
        """What a response is made into."""

    def convert(_: list[int]) -> Converted:
        return Converted()

    first: Wait[int] = Wait()
    answers: list[Wait[int] | int] = [first, 2]
    whole = gather_responses(answers, convert)
    is_alive = weakref.ref(convert)
    gc.disable()
    try:
        first.complete(1)
        del answers, whole, convert
        assert is_alive() is None
    finally:
        gc.enable()
