"""``fencepost scenario``, as it is typed."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any
from unittest.mock import create_autospec
from xml.etree import ElementTree as ET

import pytest

from docs.generate import ROOT
from fencepost.scenario.model import Listener, ScenarioOutcome
from fencepost.verbs.serving import ClusterBody, Serving, start
from tests.harness.run import Finished, run

PASSES = """\
    summary: It passes.
    teaches: |
      That all is well
      here.
    cluster: {brokers: 2, configs: {min.insync.replicas: 2}}
    topics: [{name: orders, assignments: [[1, 2]]}]
    steps:
      - say: One record.
        produce: {topic: orders, records: [a]}
        expect: {base_offset: 0}
    """
FAILS = PASSES.replace("It passes", "It fails").replace("base_offset: 0", "base_offset: 1")
WRONG = PASSES.replace("base_offset", "bas_offset")


def scenario(*arguments: str | Path, code: int = 0) -> Finished:
    words = [sys.executable, "-m", "fencepost", "scenario", *map(str, arguments)]
    return run(words, code=code)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    found = {}
    for name, text in (("passes", PASSES), ("fails", FAILS), ("wrong", WRONG)):
        found[name] = tmp_path / f"{name}.yaml"
        found[name].write_text(dedent(text))
    return found


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    wanted = ClusterBody(brokers=2, configs={"min.insync.replicas": "2"})
    with start(wanted, tmp_path_factory.mktemp("served") / "log") as started:
        yield started


def code_of_the_page(before: str, language: str) -> str:
    """The first block of code behind a line of docs/scenarios.md."""
    page = (ROOT / "docs" / "scenarios.md").read_text()
    found = re.search(rf"^{before}\n+```{language}\n(.*?)```", page, re.DOTALL | re.MULTILINE)
    assert found
    return found[1]


def test_the_one_of_the_docs_passes(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(code_of_the_page("<!-- run: scenario -->", "yaml"))
    assert scenario("run", path).lines[-2].startswith("passed: mine in ")


def test_the_python_of_the_docs_runs_a_scenario(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files["passes"].rename(tmp_path / "mine.yaml")
    monkeypatch.chdir(tmp_path)
    listener = create_autospec(Listener, instance=True)
    names: dict[str, Any] = {"listener": listener}
    exec(code_of_the_page("## From Python", "python"), names)  # the page's own
    outcome = names["outcome"]
    assert isinstance(outcome, ScenarioOutcome)
    assert outcome.passed
    listener.ended.assert_called_once_with(outcome)


def test_the_shipped_ones_are_listed() -> None:
    found = json.loads(scenario("list", "--json").out)
    names = [each["name"] for each in found]
    assert "kip-207-gate" in names
    assert names == sorted(names)
    assert all(each["summary"] and set(each) == {"name", "summary"} for each in found)
    lines = scenario("list").lines
    assert [line.split()[0] for line in lines[1:]] == names


def test_one_is_shown_as_its_file_says() -> None:
    shown = scenario("show", "kip-207-gate").out
    assert shown.startswith("summary: ")
    assert scenario("show", "kip-207-gat", code=2).err.startswith(
        "fencepost: there is no scenario 'kip-207-gat'; did you mean kip-207-gate?"
    )


def test_the_schema_is_printed_for_an_editor() -> None:
    assert json.loads(scenario("schema").out)["properties"]["steps"]["type"] == "array"


def test_on_a_cluster_of_its_own(files: dict[str, Path]) -> None:
    lines = scenario("run", files["passes"]).lines
    assert lines[:6] == ["passes", "It passes.", "", "That all is well here.", "", "One record."]
    assert lines[6].startswith("  1/1 ok     produce orders-0 records=[a]  ")
    assert lines[7].startswith("passed: passes in ")


def test_one_that_fails_says_where(files: dict[str, Path], tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    finished = scenario("run", files["passes"], files["fails"], "--junit", report, code=1)
    assert f"{files['fails']}:8:5: step 1 of 1: produce orders-0" in finished.out
    assert "  base_offset: expected 1, came 0 (line 10)" in finished.lines
    assert finished.lines[-1] == "1 passed, 1 failed: fails"
    (suite,) = ET.fromstring(report.read_bytes())
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")


def test_json_and_nothing_else(files: dict[str, Path]) -> None:
    finished = scenario("run", files["fails"], "--json", code=1)
    (outcome,) = json.loads(finished.out)
    assert (outcome["name"], outcome["passed"]) == ("fails", False)
    assert outcome["steps"][0]["answer"]["base_offset"] == 0


def test_a_wrong_file_is_told_before_anything_is_done(files: dict[str, Path]) -> None:
    finished = scenario("run", files["passes"], files["wrong"], code=2)
    assert finished.out == ""
    assert finished.err.startswith(
        f"fencepost: {files['wrong']}:10:14: the answer has no field 'bas_offset';"
        " did you mean base_offset?"
    )
    assert len(finished.err.splitlines()) == 1


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "gone.yaml"
    assert scenario("run", path, code=2).err == f"fencepost: there is no file {path}\n"
    odd = tmp_path / "odd.yaml"
    odd.write_bytes(b"summary: \xff")
    assert scenario("run", odd, code=2).err.startswith(f"fencepost: {odd} cannot be read: ")


def test_against_a_cluster_that_is_there(files: dict[str, Path], serving: Serving) -> None:
    against = ("--against", serving.control)
    scenario("run", files["passes"], *against)
    finished = scenario("run", files["passes"], *against, code=2)
    assert finished.err == (
        f"fencepost: the cluster at {serving.control} does not fit: it has the topic orders, "
        "which the scenario creates (--reset forgets it first)\n"
    )
    scenario("run", files["passes"], *against, "--reset")


def test_against_one_that_does_not_fit(files: dict[str, Path], serving: Serving) -> None:
    other = files["passes"].with_name("other.yaml")
    other.write_text(dedent(PASSES).replace("brokers: 2", "brokers: 3"))
    finished = scenario("run", other, "--against", serving.control, code=2)
    # Another test may have left a topic there, which does not fit either.
    assert finished.err.startswith(
        f"fencepost: the cluster at {serving.control} does not fit: it has 2 brokers,"
        " and 3 are wanted"
    )


def test_against_one_with_another_seed(files: dict[str, Path], serving: Serving) -> None:
    other = str(serving.seed + 1)
    against = ("--against", serving.control, "--reset")
    finished = scenario("run", files["passes"], *against, "--seed", other, code=2)
    assert f"its seed is {serving.seed}, and {other} is wanted" in finished.err


def test_the_seed_is_printed_with_a_failure(files: dict[str, Path]) -> None:
    finished = scenario("run", files["fails"], "--seed", "random", code=1)
    (line,) = (line for line in finished.lines if line.startswith("The seed of its"))
    assert re.fullmatch(r"The seed of its random choices: (\d+) \(--seed \1\)", line)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--seed", "-1"], "--seed '-1' is no whole number from 0 on, and not random"),
        (["--reset"], "--reset is for the cluster of --against; others are new"),
    ],
)
def test_what_makes_no_sense_is_refused(
    options: list[str], told: str, files: dict[str, Path]
) -> None:
    assert told in scenario("run", files["passes"], *options, code=2).err


def test_a_process_is_started_only_where_it_may_be(files: dict[str, Path]) -> None:
    runs = files["passes"].with_name("runs.yaml")
    runs.write_text("summary: It runs.\nsteps: [{run: [echo, started]}]\n")
    finished = scenario("run", files["passes"], runs, code=2)
    assert finished.out == ""
    assert finished.err == (
        f"fencepost: {runs}:2:9: this step starts a process on this machine, "
        "which --allow-run allows\n"
    )
    assert "ok     run command=[echo, started]" in scenario("run", runs, "--allow-run").out


def test_against_nobody(files: dict[str, Path]) -> None:
    finished = scenario("run", files["passes"], "--against", "http://127.0.0.1:1", code=1)
    assert finished.err.startswith("fencepost: no control API answers at http://127.0.0.1:1")


def test_a_cluster_that_cannot_be_served(files: dict[str, Path]) -> None:
    odd = files["passes"].with_name("odd.yaml")
    odd.write_text(dedent(PASSES).replace("min.insync.replicas: 2", "min.insync.replica: 2"))
    finished = scenario("run", odd, code=1)
    assert "did you mean min.insync.replicas?" in finished.out
