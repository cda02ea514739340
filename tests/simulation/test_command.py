"""``fencepost simulate``: what it prints, and how it ends."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from docs.generate import ROOT
from fencepost.cli import main, simulate
from fencepost.simulation.report import RunTotals
from fencepost.simulation.runner import replay
from fencepost.simulation.schedule import parse
from fencepost.simulation.setup import Setup
from tests.cli.terminal import terminal
from tests.simulation.mutants import MUTANTS, gate_off

BREAKS_THE_GATE = next(mutant.first_seed for mutant in MUTANTS if mutant.inject is gate_off)
GOOD = f"{Setup()}\nproduce p0 to 1 acks=all x1\nsettle\n"


def test_the_last_line_sums_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--seeds", "3", "--steps", "50", "--jobs", "1"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("3 seeds, 150 steps, ")
    assert "every invariant held (" in last
    assert last.endswith(" steps a second in 1 process)")


def test_seeds_are_shared_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--seeds", "45", "--steps", "5", "--jobs", "2"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("45 seeds, 225 steps, ")
    assert last.endswith("in 2 processes)")


def test_one_seed_prints_its_trace(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--seed", "5", "--steps", "50"]) == 0
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("trace ")
    assert last.startswith("1 seed, 50 steps, ")
    main(["simulate", "--seed", "5", "--steps", "50"])
    assert capsys.readouterr().out.splitlines()[0] == first


def test_seeds_may_begin_anywhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--seed", "5", "--seeds", "2", "--steps", "5", "--jobs", "1"]) == 0
    assert capsys.readouterr().out.startswith("2 seeds, 10 steps, ")


@pytest.mark.unmeasured
def test_a_broken_invariant_is_shown_with_a_schedule_that_breaks_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gate_off(monkeypatch)
    options = ["--seed", str(BREAKS_THE_GATE), "--seeds", "1000", "--jobs", "1"]
    assert main(["simulate", *options]) == 1
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert "(fencepost simulate --seed " in lines[0]
    assert "latest_offsets_never_go_back broke at step " in lines[0]
    assert lines[1].startswith("  must hold: While the gate is on, no client is told a smaller")
    assert lines[2].startswith("  seen:      c")
    assert "latest_offsets_never_go_back broke in " in lines[-1]
    schedule = parse(
        "\n".join(line[4:] for line in lines[:-1] if line.startswith("    ") and line[4] != " ")
    )
    again = replay(schedule)
    assert again.failure is not None
    assert again.failure.invariant == "latest_offsets_never_go_back"


def test_a_schedule_is_played_from_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "schedule.txt"
    path.write_text(GOOD)
    assert main(["simulate", "--schedule", str(path)]) == 0
    first, last = capsys.readouterr().out.splitlines()
    assert first == f"trace {replay(parse(GOOD)).trace:08x}"
    assert last.startswith("1 seed, 2 steps, ")


def test_a_file_that_is_no_schedule_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "schedule.txt"
    path.write_text(f"{Setup()}\nexplode\n")
    assert main(["simulate", "--schedule", str(path)]) == 2
    assert "there is no action 'explode'" in capsys.readouterr().err


OF_SEEDS = "a run of seeds, which heeds --seeds, --seed, --steps, --jobs, --consumers, --no-gate"
OF_TRANSACTIONS = "--transactions, which heeds --seeds, --seed, --steps, --jobs, --no-gate"
RECORDED = "--record, which heeds --seed, --minutes, --as-is"
PLAYED = "--schedule, which heeds no other option"


@pytest.mark.parametrize(
    ("run", "given", "heedless"),
    [
        ("", "--minutes 10", OF_SEEDS),
        ("--seed 5", "--as-is", OF_SEEDS),
        ("--transactions", "--consumers", OF_TRANSACTIONS),
        ("--record run", "--seeds 1", RECORDED),
        ("--record run", "--transactions", RECORDED),
        ("--record run", "--steps 1", RECORDED),
        ("--record run", "--jobs 1", RECORDED),
        ("--record run", "--schedule file", RECORDED),
        ("--schedule file", "--seeds 2", PLAYED),
        ("--schedule file", "--seed 0", PLAYED),
        ("--schedule file", "--steps 0", PLAYED),
        ("--schedule file", "--jobs 1", PLAYED),
        ("--schedule file", "--minutes 1", PLAYED),
        ("--schedule file", "--as-is", PLAYED),
    ],
)
def test_what_would_have_no_effect_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    run: str,
    given: str,
    heedless: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text(GOOD)
    assert main(["simulate", *run.split(), *given.split()]) == 2
    flag = given.split(maxsplit=1)[0]
    told = f"fencepost simulate: {flag} has no effect on {heedless}\n"
    assert capsys.readouterr() == ("", told)
    assert not Path("run").exists()


# -- the gate, progress and Ctrl-C --------------------------------------------------------------


@pytest.mark.unmeasured
def test_the_counterexample_of_the_docs_can_be_made(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "simulation.md").read_text()
    shown = page.partition("    $ fencepost simulate --seed 123 ")[2].partition("\n\n")[0]
    options, _, report = f"--seed 123 {shown}".partition("\n")
    assert main(["simulate", *options.split()]) == 1
    printed = capsys.readouterr().out
    assert textwrap.dedent(report) == printed.partition("\ntrace ")[0]


def test_a_schedule_remembers_that_the_gate_is_off(capsys: pytest.CaptureFixture[str]) -> None:
    setup = Setup(gate=False)
    assert parse(str(setup)).setup == setup
    assert str(setup).endswith(" gate=off")
    assert parse(str(Setup(first_id=0, gate=False))).setup.first_id == 0


def test_an_interrupt_ends_with_what_was_run_so_far(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = simulate._parts

    def interrupted(
        seeds: range, play: Callable[[range], RunTotals], jobs: int
    ) -> Iterator[RunTotals]:
        yield next(parts(seeds, play, jobs))
        raise KeyboardInterrupt

    monkeypatch.setattr(simulate, "_parts", interrupted)
    assert main(["simulate", "--seeds", "45", "--steps", "5", "--jobs", "1"]) == 130
    first, last = capsys.readouterr().out.splitlines()
    assert first == "interrupted: 20 of 45 seeds were run to the end"
    assert last.startswith("20 seeds, 100 steps, ")
    assert "every invariant held" in last


def test_a_terminal_shows_how_far_it_is_until_an_interrupt() -> None:
    with terminal("simulate --seeds 1000000 --steps 50 --jobs 2", columns=100, rows=24) as made:
        made.wait_for("of 1,000,000 seeds, ")
        made.interrupt()
        assert made.finish() == 130
        assert "of 1,000,000 seeds were run to the end" in made.plain
        assert "every invariant held (" in made.plain
        assert "Traceback" not in made.plain
