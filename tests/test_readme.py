"""README.md and docs/ say what is: tables equal the code, examples run, links lead somewhere."""

import os
import re
import sys
from pathlib import Path
from typing import Final

import pytest

from docs.generate import BLOCKS, PAGES, ROOT, render
from tests.harness.require import tool
from tests.harness.run import run
from tests.harness.served_cluster import Cluster, serve

README: Final = (ROOT / "README.md").read_text()
EVERYTHING: Final = "".join(page.read_text() for page in PAGES)


def block(name: str) -> str:
    """The fenced block that follows ``<!-- run: name -->``."""
    found = re.search(rf"<!-- run: {name} -->\n```[a-z]+\n(.*?)```", EVERYTHING, re.DOTALL)
    assert found, f"there is no block {name}"
    return found[1]


def commands(name: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with what it shows them to print."""
    steps = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block(name), re.MULTILINE)
    assert steps, f"the block {name} has no commands"
    return steps


def shell(command: str) -> str:
    """What a command of README.md prints; ``fencepost`` is the one of this environment."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    line = f"set -o pipefail; {command}"
    return run(["bash", "-c", line], env={**os.environ, "PATH": path, "COLUMNS": "160"}).out


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_generated_tables_are_up_to_date(page: Path) -> None:
    text = page.read_text()
    assert render(text) == text, f"{page.name} is not what the code says: run `make docs`"


def test_every_table_is_shown_somewhere() -> None:
    for name in BLOCKS:
        assert EVERYTHING.count(f"<!-- generated: {name} -->") == 1


def test_a_stale_table_is_noticed() -> None:
    stale = README.replace("| 0 | Produce |", "| 0 | Produced |")
    assert stale != README
    assert render(stale) == README


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_within_the_project_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_it_opens_with_the_commands() -> None:
    opening = README.partition("\n## ")[0]
    commands = re.findall(r"^    (make .*)$", opening, re.MULTILINE)
    assert commands == ["make serve", "make check", "make test"]


def test_ci_runs_the_test_command_of_the_readme() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert 'make "${1:-test}"' in script.partition("timeout")[2]


def test_kcat_does_what_the_readme_shows(cluster: Cluster) -> None:
    tool("kcat")
    topic = cluster.create_topic("greetings")
    for command, shown in commands("kcat"):
        printed = shell(
            command.replace("127.0.0.1:9092", cluster.bootstrap).replace("greetings", topic)
        )
        if shown:
            assert printed == shown.replace("greetings", topic)
        else:
            assert " -P " in command or topic in printed


@pytest.mark.parametrize(
    "name",
    [
        *("steer", "control", "records", "groups", "replicas", "brokers", "time", "tier"),
        *("seen", "verify", "faults", "faults-sequence", "faults-connections"),
    ],
)
def test_the_commands_that_steer_work(name: str, tmp_path: Path) -> None:
    tool("curl")
    clock = "manual" if name == "time" else "real"
    tier = ("--remote", "memory:") if name == "tier" else ()
    served = serve(tmp_path / "log", "--topic", "greetings:1:3", "--clock", clock, *tier)
    assert served.control is not None
    for command, _ in commands(name):
        here = command.replace("http://127.0.0.1:9644", served.control)
        assert here != command
        # curl tells of a refusal only when it is asked to.
        printed = shell(here.replace("curl -s", "curl -sS --fail"))
        assert printed or " reset " in command
    served.stop()


def test_the_test_file_of_the_readme_passes(tmp_path: Path) -> None:
    (tmp_path / "test_orders.py").write_text(block("pytest"))
    _passes(tmp_path)


def test_the_test_file_for_containers_passes(tmp_path: Path) -> None:
    served = serve(tmp_path / "log", "--control-token", "first-test")
    assert served.control is not None
    page = block("container").replace("http://127.0.0.1:9644", served.control)
    named = "127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094"
    assert named in page
    (tmp_path / "test_orders.py").write_text(page.replace(named, served.bootstrap))
    _passes(tmp_path)
    served.stop()


def _passes(folder: Path) -> None:
    """The file ``test_orders.py`` of this folder passes, run by pytest."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_orders.py"],
        cwd=folder,
        env={**os.environ, "PATH": path},
    )
    assert "1 passed" in done.out


def test_make_serve_is_three_brokers() -> None:
    tool("make")
    # This may itself run under `make pytest ARGS=...`, whose settings are not meant for this make.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    make = ["make", "--dry-run", "--always-make", "serve", "ARGS="]
    recipe = run(make, cwd=ROOT, env=environment).out
    assert recipe.rstrip().endswith("fencepost serve --brokers 3")
    assert "127.0.0.1" not in recipe, "serve says where it is, once it is there"
