from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench import report, rows, stats
from bench.results import Results

TITLES = {"fencepost": "fencepost", "kfake": "kfake"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234.4, "1,234"),
        (10.0, "10"),
        (2.345, "2.3"),
        (1.0, "1"),
        (0.987, "0.99"),
        (0.0123, "0.012"),
        (0.0000123, "0.000012"),
        (0.0, "0"),
    ],
)
def test_a_ratio_shows_two_digits_and_no_exponent(value: float, text: str) -> None:
    assert report.ratio(value) == text


def test_a_measured_cell_shows_its_spread_unless_there_is_one_value() -> None:
    several = stats.Spread(low=1234.0, median=2345.6, high=3456.0, count=3)
    one = stats.Spread(low=2.25, median=2.25, high=2.25, count=1)
    assert report.measured(several, 0) == "2,346 (1,234-3,456)"
    assert report.measured(one, 1) == "2.2"
    assert report.measured(None, 0) == "-"


def test_tables_hold_what_was_measured_and_say_which_goals_are_met() -> None:
    results = Results()
    results.add("fencepost", 0, {"produce_c": 800.0, "reset": 7.0})
    results.add("kfake", 0, {"produce_c": 400.0})
    table = report.figures_table(results, TITLES)
    assert "| produce, C client, acks=1, k records/s | 800 | 400 | 2 |" in table
    assert "a used cluster made empty, ms | 7.0 | - | - |" in table
    assert "ListOffsets" not in table
    targets = report.targets_table(results, TITLES)
    assert "| produce, C client, acks=1 | at least 1 x kfake | 2 | met |" in targets
    assert "| a used cluster made empty | at most 5 ms | 7.0 | **missed** |" in targets
    assert "consume" not in targets


def test_a_goal_whose_peer_is_missing_is_not_measured() -> None:
    results = Results()
    results.add("fencepost", 0, {"produce_c": 800.0})
    targets = report.targets_table(results, TITLES)
    assert "| produce, C client, acks=1 | at least 1 x kfake | - | not measured |" in targets


def test_a_limit_is_shown_as_it_is() -> None:
    results = Results()
    results.add("fencepost", 0, {"replication": 1.234, "first_metadata": 139.0})
    targets = report.targets_table(results, TITLES)
    assert "| throughput, RF 1 over RF 3 | at most 2.5 x | 1.23 | met |" in targets
    assert "| start to first Metadata | at most 300 ms | 139 | met |" in targets


def test_verbs_have_a_table_of_their_own_and_their_99th_percentile_is_the_goal() -> None:
    results = Results()
    for turn, p99 in enumerate([5.0, 11.0, 9.0]):
        hold = {"hold_min": 0.5, "hold_p50": 0.75, "hold_p99": p99, "hold_max": 20.0}
        results.add("fencepost", turn, hold)
    head, _, line = report.verbs_table(results).splitlines()
    assert head == "| control API, ms | fastest | median | p99 | slowest |"
    spreads = "0.50 (0.50-0.50) | 0.75 (0.75-0.75) | 9.00 (5.00-11.00) | 20.00 (20.00-20.00)"
    assert line == f"| hold | {spreads} |"
    goal = "| hold, p99 call | at most 10 ms | 9.00 (5.00-11.00) | met |"
    assert goal in report.targets_table(results, TITLES)
    assert report.figures_table(results, TITLES) == ""


def test_no_verbs_no_table() -> None:
    results = Results()
    results.add("fencepost", 0, {"reset": 1.0})
    assert report.verbs_table(results) == ""
    about = report.About(command="bench", date="2026-01-02", titles=TITLES, versions=[])
    assert "control API" not in report.whole(results, about)


def test_a_run_says_where_it_comes_from_and_what_went_wrong() -> None:
    results = Results(problems=["kfake was not measured: no Go"], others=[0.1, 0.3, 0.2])
    about = report.About(command="bench", date="2026-01-02", titles=TITLES, versions=["a 1", "b 2"])
    text = report.whole(results, about)
    assert text.startswith("Made by `bench` on 2026-01-02; ")
    assert "Versions: a 1; b 2." in text
    assert "- kfake was not measured: no Go" in text
    assert "- Other processes used 20% of the machine (30% at most)." in text


def test_every_target_is_about_a_row_and_row_keys_are_unique() -> None:
    keys = [row.key for row in (*rows.ROWS, *rows.VERB_ROWS)]
    assert len(set(keys)) == len(keys)
    assert {target.row for target in rows.TARGETS} <= set(keys)


def test_the_machine_is_its_shape_and_nothing_else() -> None:
    shape = r"\d+ cores, \d+ GiB of memory, \w+ \w+, \w+ 3\.\d+\.\S+"
    assert re.fullmatch(shape, report.machine())


def test_results_replace_what_stood_between_the_markers(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    report.write(page, "new")
    report.write(page, "newer")
    assert page.read_text() == f"before\n{report.BEGIN}\n\nnewer\n\n{report.END}\nafter\n"


@pytest.mark.parametrize(
    "text",
    [
        "neither",
        f"only {report.BEGIN}",
        f"{report.END} {report.BEGIN}",
        f"{report.BEGIN} {report.BEGIN} {report.END}",
    ],
)
def test_a_page_without_its_markers_is_left_alone(tmp_path: Path, text: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(ValueError, match="markers"):
        report.write(page, "new")
    assert page.read_text() == text
