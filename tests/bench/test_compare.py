"""What counts as a change of a figure, and what as noise."""

from __future__ import annotations

import pytest

from bench import compare, history, rows
from bench.compare import Verdict
from bench.history import Values


def values(**by_row: dict[str, list[float]]) -> Values:
    return by_row


def verdict_of(old: Values, new: Values) -> Verdict:
    (change,) = compare.changes(old, new)
    return change.verdict


def ours(row: str, *found: float) -> Values:
    return {row: {"fencepost": list(found)}}


def test_a_tenth_more_time_beyond_all_rounds_is_worse() -> None:
    assert verdict_of(ours("reset", 10, 10.2, 10.4), ours("reset", 11.3, 11.5, 11.9)) == (
        Verdict.WORSE
    )


def test_a_tenth_less_throughput_is_worse_and_more_is_better() -> None:
    high, low = ours("produce_c", 100, 101, 99), ours("produce_c", 88, 89, 90)
    assert verdict_of(high, low) is Verdict.WORSE
    assert verdict_of(low, high) is Verdict.BETTER


def test_less_than_a_tenth_is_the_same_however_narrow_the_spread() -> None:
    assert verdict_of(ours("reset", 10, 10, 10), ours("reset", 10.9, 10.9, 10.9)) is Verdict.SAME


def test_rounds_that_overlap_are_noise_whatever_their_medians() -> None:
    assert verdict_of(ours("reset", 10, 11, 30), ours("reset", 29, 40, 50)) is Verdict.NOISE


def test_two_rounds_say_nothing() -> None:
    assert verdict_of(ours("reset", 10, 11), ours("reset", 20, 21, 22)) is Verdict.FEW


def test_what_the_peer_lost_as_well_was_the_machine() -> None:
    old = values(produce_c={"fencepost": [100, 101, 101], "kfake": [50, 51, 51]})
    slower = values(produce_c={"fencepost": [80, 81, 81], "kfake": [40, 41, 41]})
    steady = values(produce_c={"fencepost": [80, 81, 81], "kfake": [50, 51, 51]})
    assert verdict_of(old, slower) is Verdict.NOISE
    assert verdict_of(old, steady) is Verdict.WORSE


def test_a_faster_machine_does_not_make_a_figure_worse_that_is_as_it_was() -> None:
    old = values(produce_c={"fencepost": [100, 101, 101], "kfake": [50, 51, 51]})
    new = values(produce_c={"fencepost": [100, 101, 101], "kfake": [70, 71, 71]})
    assert verdict_of(old, new) is Verdict.SAME


def test_rows_that_only_one_has_and_differences_around_zero_are_left_out() -> None:
    old = values(reset={"fencepost": [1, 1]}, files_growth={"fencepost": [-0.5, 0.2]})
    new = values(plugin={"fencepost": [1, 1]}, files_growth={"fencepost": [3, 4]})
    assert list(compare.changes(old, new)) == []


def test_another_version_measured_in_turns_is_compared_with_this_one() -> None:
    both = values(reset={"fencepost": [20, 21, 22], "baseline": [10, 11, 12]})
    (change,) = compare.changes(both, both, "baseline")
    assert change.verdict is Verdict.WORSE


def run(commit: str, **by_row: dict[str, list[float]]) -> history.Run:
    return history.Run(
        commit=commit, date="2026-01-02", machine="m", scale="whole", others=0.1, values=by_row
    )


def test_a_comparison_names_what_is_worse_and_by_how_much() -> None:
    old, new = (
        run("a" * 40, reset={"fencepost": [10, 10.1, 10.2]}, plugin={"fencepost": [9, 9, 9]}),
        run("b" * 40 + "+", reset={"fencepost": [15, 15.1, 15.2]}, plugin={"fencepost": [9, 9, 9]}),
    )
    text, worse = compare.compared(old, new)
    assert worse
    assert "|  | aaaaaaaaaa | bbbbbbbbbb+ | change | of the peer |  |" in text
    title = rows.row("reset").title
    line = f"| {title}, ms | 10.1 (10.0-10.2) | 15.1 (15.0-15.2) | 50% worse | - | **worse** |"
    assert line in text
    assert f"beyond the noise: {title}." in text


def test_a_comparison_without_a_worse_figure_says_so() -> None:
    old = run("a" * 40, reset={"fencepost": [10, 10.1, 10.2]})
    text, worse = compare.compared(old, old)
    assert not worse
    assert "beyond the noise: none." in text


@pytest.mark.parametrize(
    ("cost", "text"),
    [(1.0, "0 %"), (1.25, "25% worse"), (0.8, "25% better"), (0.5, "100% better")],
)
def test_a_cost_in_words(cost: float, text: str) -> None:
    assert compare.described(cost) == text
