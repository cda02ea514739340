"""Results kept by commit: what is replaced, what is found, how much stays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench import history
from bench.history import NotKept, Run

RUN = Run(
    commit="a" * 40,
    date="2026-01-02",
    machine="2 cores",
    scale="whole",
    others=0.25,
    values={"reset": {"fencepost": [3.5, 4.0]}},
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.jsonl"


def test_without_a_file_nothing_is_kept(path: Path) -> None:
    assert history.read(path) == []


def test_what_is_kept_is_read_again(path: Path) -> None:
    history.keep(RUN, path)
    history.keep(replace(RUN, commit="b" * 40), path)
    assert history.read(path) == [RUN, replace(RUN, commit="b" * 40)]


def test_a_second_run_of_a_commit_replaces_the_rows_that_it_has(path: Path) -> None:
    history.keep(replace(RUN, values={**RUN.values, "plugin": {"fencepost": [9]}}), path)
    history.keep(replace(RUN, values={"reset": {"fencepost": [5]}}), path)
    (run,) = history.read(path)
    assert run.values == {"reset": {"fencepost": [5]}, "plugin": {"fencepost": [9]}}


def test_another_machine_or_amount_of_work_is_another_run(path: Path) -> None:
    history.keep(RUN, path)
    history.keep(replace(RUN, scale="quick"), path)
    history.keep(replace(RUN, machine="8 cores"), path)
    assert len(history.read(path)) == 3


def test_the_oldest_are_dropped(path: Path) -> None:
    for number in range(history.MOST + 3):
        history.keep(replace(RUN, commit=f"{number:040}"), path)
    runs = history.read(path)
    assert len(runs) == history.MOST
    assert runs[0].commit == f"{3:040}"


def test_a_commit_is_found_by_the_beginning_of_its_hash() -> None:
    changed = replace(RUN, commit="b" * 40 + "+")
    runs = [RUN, changed]
    assert history.find(runs, "aaaa") is RUN
    assert history.find(runs, "bbbb") is changed
    assert history.find(runs, "b" * 40 + "+") is changed
    with pytest.raises(NotKept, match="kept are: aaaaaaaaaaaa"):
        history.find(runs, "cccc")


def test_the_last_two_are_of_the_same_machine_and_amount_of_work() -> None:
    quick, newest = replace(RUN, scale="quick"), replace(RUN, commit="b" * 40)
    assert history.last_two([RUN, quick, newest]) == (RUN, newest)
    with pytest.raises(NotKept):
        history.last_two([quick, newest])
    with pytest.raises(NotKept):
        history.last_two([])


def test_values_are_kept_in_the_order_of_rounds_with_four_digits() -> None:
    measured = {"reset": {"fencepost": {1: 3.14159265, 0: 1_234_567.0}}}
    assert history.rounded(measured) == {"reset": {"fencepost": [1_235_000.0, 3.142]}}


def test_what_git_does_not_know_stays_as_it_was_given() -> None:
    assert history.resolved("no-such-revision") == "no-such-revision"


def test_what_is_kept_in_this_repository_can_be_read() -> None:
    for run in history.read():
        assert run.values
        assert set(run.commit.removesuffix(history.CHANGED)) <= set("0123456789abcdef")
