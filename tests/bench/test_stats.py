from __future__ import annotations

import pytest

from bench import stats
from bench.results import Results
from bench.rows import Target


def test_spread_of_an_odd_and_an_even_number_of_values() -> None:
    assert stats.Spread.of([3.0, 1.0, 2.0]) == stats.Spread(low=1.0, median=2.0, high=3.0, count=3)
    assert stats.Spread.of([4.0, 1.0]).median == 2.5


@pytest.mark.parametrize("function", [stats.Spread.of, lambda v: stats.percentile(v, 50)])
def test_nothing_measured_has_no_spread(function: object) -> None:
    assert callable(function)
    with pytest.raises(ValueError, match="no values"):
        function([])


@pytest.mark.parametrize(
    ("percent", "wanted"), [(0, 1.0), (1, 1.0), (50, 50.0), (99, 99.0), (99.5, 100.0), (100, 100.0)]
)
def test_percentile_is_the_nearest_rank(percent: float, wanted: float) -> None:
    assert stats.percentile([float(n) for n in range(100, 0, -1)], percent) == wanted


def test_percentile_of_one_value_is_that_value() -> None:
    assert stats.percentile([7.0], 99) == 7.0


def test_a_summary_has_both_ends() -> None:
    values = [float(n) for n in range(200, 0, -1)]
    assert stats.summary(values) == {"min": 1.0, "p50": 100.0, "p99": 198.0, "max": 200.0}


def test_ratios_pair_equal_rounds_only() -> None:
    assert stats.ratios({0: 6.0, 1: 8.0, 3: 1.0}, {1: 2.0, 0: 3.0, 2: 5.0}) == [2.0, 4.0]


def test_ratios_leave_out_a_peer_that_measured_nothing() -> None:
    assert stats.ratios({0: 6.0, 1: 8.0}, {0: 0.0, 1: 4.0}) == [2.0]


def results(ours: list[float], theirs: list[float]) -> Results:
    made = Results()
    for turn, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        made.add("fencepost", turn, {"produce_c": one})
        made.add("kfake", turn, {"produce_c": other})
    return made


def test_the_ratio_is_the_median_of_the_pairs_and_not_the_ratio_of_the_medians() -> None:
    ratio = results([10.0, 20.0, 90.0], [10.0, 40.0, 30.0]).ratio("produce_c", "kfake")
    assert ratio == stats.Spread(low=0.5, median=1.0, high=3.0, count=3)


def test_a_target_about_a_peer_looks_at_the_ratio_and_without_one_at_our_value() -> None:
    made = results([10.0], [5.0])
    against_peer = made.judged(Target(row="produce_c", peer="kfake", limit=1.0))
    absolute = made.judged(Target(row="produce_c", limit=1.0))
    assert against_peer is not None
    assert absolute is not None
    assert (against_peer.median, absolute.median) == (2.0, 10.0)


@pytest.mark.parametrize(
    ("at_least", "value", "met"),
    [(True, 1.0, True), (True, 0.99, False), (False, 1.0, True), (False, 1.01, False)],
)
def test_a_bound_includes_its_limit(at_least: bool, value: float, met: bool) -> None:
    assert Target(row="reset", limit=1.0, at_least=at_least).met(value) is met


def test_what_was_not_measured_is_none() -> None:
    made = results([1.0], [1.0])
    assert made.spread("reset", "fencepost") is None
    assert made.ratio("produce_c", "kafka") is None
