"""What is timed in this process: two things in turns, each portion with the one beside it."""

from __future__ import annotations

import pytest

from bench import inside, load
from bench.inside import Pair

PAIRS = [Pair(whole=12, stripped=10), Pair(whole=100, stripped=10), Pair(whole=8, stripped=10)]


def test_a_cost_is_the_median_of_its_pairs() -> None:
    assert inside.cost(PAIRS) == pytest.approx(2)


def test_so_is_a_ratio() -> None:
    assert inside.throughput(PAIRS) == pytest.approx(10 / 12)


def test_each_is_first_as_often_as_second() -> None:
    told: list[str] = []

    def whole() -> float:
        told.append("whole")
        return 2.0

    def stripped() -> float:
        told.append("stripped")
        return 1.0

    assert inside.in_turns(whole, stripped) == [Pair(whole=2, stripped=1)] * inside.PORTIONS
    assert told[:6] == ["whole", "stripped", "stripped", "whole", "whole", "stripped"]


def test_what_is_timed_is_sent_so_often_after_it_has_settled() -> None:
    sent: list[int] = []
    assert inside.median_us(lambda: sent.append(1), 10) > 0
    assert len(sent) == 10 + 3
    assert inside.mean_us(lambda: sent.append(1), 10) > 0
    assert len(sent) == 2 * (10 + 3)


def test_a_batch_is_appended_to_the_topic_that_it_is_for() -> None:
    server = inside.Inside({"other": {}})
    batch = inside.batch_of(3)
    assert len(batch) > 3 * load.RECORD_BYTES
    server.ask(inside.produce_request(batch, "other"))
    assert (server.log_end("other"), server.log_end(inside.TOPIC)) == (3, 0)
