"""The order of a run, and what is left out when the time is up."""

from __future__ import annotations

import pytest

from bench import catalogue, figures, rounds, rows, servers, wire
from bench.catalogue import Figure
from bench.results import Results
from bench.rounds import Turns

OURS = Turns(kind=servers.Fencepost(), peer=None, most=3)
KFAKE = Turns(kind=servers.Kfake(), peer="kfake", most=2)


class Bench:
    """Figures that take some seconds of a clock of their own."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.done: list[str] = []
        self.results = Results()

    def figure(self, name: str, seconds: float, peers: tuple[str, ...] = ()) -> Figure:
        def measure(kind: servers.Kind, _: figures.Scale) -> figures.Values:
            self.now_s += seconds
            self.done.append(f"{name} {kind.key}")
            return {name: self.now_s}

        return Figure(name=name, measure=measure, rows=(name,), peers=peers)

    def run(self, chosen: list[Figure], *turns: Turns, until: float = 1e9) -> None:
        rounds.run(
            chosen,
            turns,
            figures.QUICK,
            self.results,
            until=until,
            say=lambda _: None,
            now=lambda: self.now_s,
        )


def test_each_round_has_every_figure_and_within_it_the_servers_take_turns() -> None:
    bench = Bench()
    bench.run([bench.figure("a", 1, ("kfake",)), bench.figure("b", 1)], OURS, KFAKE)
    one = ["a fencepost", "a kfake", "b fencepost"]
    assert bench.done == [*one, *one, "a fencepost", "b fencepost"]
    assert bench.results.values["a"] == {
        "fencepost": {0: 1, 1: 4, 2: 7},
        "kfake": {0: 2, 1: 5},
    }


def test_a_later_round_has_what_still_fits() -> None:
    bench = Bench()
    bench.run([bench.figure("long", 10), bench.figure("short", 2)], OURS, until=18)
    assert bench.done == [
        "long fencepost",
        "short fencepost",
        "short fencepost",
        "short fencepost",
    ]
    assert not bench.results.problems


def test_what_had_no_time_at_all_is_named() -> None:
    bench = Bench()
    bench.run([bench.figure("long", 10), bench.figure("short", 2)], OURS, until=5)
    assert bench.done == ["long fencepost"]
    assert bench.results.problems == ["short was not measured: there was no time"]


def test_a_figure_that_fails_costs_its_value_and_not_the_run() -> None:
    def fails(*_: object) -> figures.Values:
        raise wire.BadAnswer("no")

    bench = Bench()
    failing = Figure(name="failing", measure=fails, rows=(), peers=())
    bench.run([failing, bench.figure("a", 1)], OURS)
    assert len(bench.done) == 3
    assert bench.results.failed
    assert bench.results.problems[0] == "fencepost, failing, round 1: BadAnswer"


def test_every_row_is_of_one_figure_and_names_are_unique() -> None:
    names = [figure.name for figure in catalogue.FIGURES]
    assert len(set(names)) == len(names)
    found = [row for figure in catalogue.FIGURES for row in figure.rows]
    assert sorted(found) == sorted(row.key for row in (*rows.ROWS, *rows.VERB_ROWS))


def test_a_figure_is_chosen_by_its_name_or_a_row_of_it() -> None:
    chosen = catalogue.chosen(["rss_consumed", "reset", "pause_fetch"], full=False)
    assert [figure.name for figure in chosen] == ["c-client", "reset", "pauses"]
    with pytest.raises(ValueError, match="no-such"):
        catalogue.chosen(["no-such"], full=True)


def test_only_a_full_run_has_the_long_figures() -> None:
    short, full = (catalogue.chosen([], full=full) for full in (False, True))
    assert list(full) == list(catalogue.FIGURES)
    assert [figure for figure in full if not figure.long] == short
