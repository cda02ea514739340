"""What Tab offers: commands, options, names, and what the running cluster has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from fencepost.cli.typer_options import scenarios
from tests.cli.shell import Shell
from tests.harness.require import tool

OFFERED: Final = {
    "fencepost el": ["elect"],
    "fencepost broker s": ["stop", "start"],
    "fencepost elect t 0 --l": ["--leader"],
    "fencepost elect ": ["t"],
    "fencepost elect x": [],
    "fencepost elect t ": ["0"],
    "fencepost elect t 0 --leader ": ["1", "2", "3"],
    "fencepost broker stop ": ["1", "2", "3"],
    "fencepost broker isolate 1 --from ": ["controller", "1", "2", "3"],
    "fencepost broker kill 1 --fence ": ["now", "timeout", "never"],
    "fencepost fault add List": [
        "ListOffsets",
        "ListGroups",
        "ListPartitionReassignments",
        "ListTransactions",
        "ListConfigResources",
    ],
    "fencepost fault add Fetch --topic ": ["t"],
    "fencepost fault add Fetch --disconnect ": ["before", "after"],
    "fencepost fault add Fetch --count ": ["always"],
    "fencepost fault add Produce --error NOT_E": [
        "NOT_ENOUGH_REPLICAS",
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    ],
    "fencepost topic create u --config cleanup": ["cleanup.policy="],
    "fencepost watch --topic ": ["t"],
    "fencepost serve --like": ["--like-kafka"],
}


@pytest.fixture(autouse=True)
def loaded(control: str, shell: Shell) -> None:
    """The control API is slow for the first request, and completion has a short timeout."""
    shell.text("topics")


def offered(line: str, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What bash is given for the last word of a line, which may be empty."""
    words = line.split(" ")
    with monkeypatch.context() as patch:
        patch.setenv("_FENCEPOST_COMPLETE", "complete_bash")
        patch.setenv("COMP_WORDS", line)
        patch.setenv("COMP_CWORD", str(len(words) - 1))
        return shell.text("").split()


def test_what_is_offered(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {line: offered(line, shell, monkeypatch) for line in OFFERED}
    assert found == OFFERED


def test_faults_are_offered_by_their_ids(
    control: str, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = shell.json("fault add Fetch --drop --topic none")["id"]
    assert offered("fencepost fault remove ", shell, monkeypatch) == [str(added)]


def test_the_cluster_of_the_line_is_asked(
    control: str, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCEPOST_CONTROL", "http://127.0.0.1:1")
    assert offered("fencepost roll ", shell, monkeypatch) == []
    assert offered(f"fencepost roll --control {control} ", shell, monkeypatch) == ["t"]


def test_scenarios_are_known_by_their_files() -> None:
    assert scenarios() == sorted(scenarios())


def test_bash_completes(control: str) -> None:
    """With the script that --show-completion prints."""
    tool("bash")
    code = (
        'eval "$(fencepost --show-completion bash)"\n'
        'COMP_WORDS=(fencepost partition ""); COMP_CWORD=2\n'
        "_fencepost_completion fencepost\n"
        'echo "${COMPREPLY[@]}"'
    )
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(
        ["bash", "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.split() == ["t"]
