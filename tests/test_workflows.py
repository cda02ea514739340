"""The workflow files of CI, and the compose file: what they say of this tree is so."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Final, TypeAlias

import yaml

from fencepost.cli.unknown_variables import unknown_variables
from fencepost.protocol.listener_text import ListenerSpec, parse_listener
from tests.harness.cache import made_once
from tests.harness.require import tool
from tests.harness.run import run

Yaml: TypeAlias = Any
ROOT: Final = Path(__file__).parents[1]
WORKFLOWS: Final = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTIONLINT: Final = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.7"


def read(path: Path) -> Yaml:
    return yaml.safe_load(path.read_text())


def actionlint() -> str:
    """The linter, built once (8 s)."""
    go = tool("go")

    def build(folder: Path) -> None:
        run([go, "install", ACTIONLINT], timeout_s=280, env={**os.environ, "GOBIN": str(folder)})

    return str(made_once("actionlint", [Path(__file__)], build) / "actionlint")


def test_the_workflows_are_correct() -> None:
    assert run([actionlint(), "-shellcheck=", "-pyflakes=", *map(str, WORKFLOWS)]).lines == []


def test_every_target_and_script_that_they_run_is_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    jobs = [job for path in WORKFLOWS for job in read(path)["jobs"].values()]
    steps = [step.get("run", "") for job in jobs for step in job.get("steps", ())]
    given = {job.get("with", {}).get("target", "test") for job in jobs}
    assert {step.removeprefix("make ") for step in steps if step.startswith("make ")} <= targets
    assert given <= targets
    scripts = [step.split()[0] for step in steps if step.startswith(".ci/")]
    assert [script for script in scripts if not (ROOT / script).is_file()] == []


def test_a_tag_publishes_the_package_and_the_image_for_two_architectures_after_the_tests() -> None:
    release = read(ROOT / ".github" / "workflows" / "release.yml")
    assert release[True] == {"push": {"tags": ["v*"]}}, "YAML 1.1 reads on: as true"
    for name in ("package", "image"):
        assert "test" in release["jobs"][name]["needs"]
    build = release["jobs"]["image"]["steps"][-1]["with"]
    assert (build["platforms"], build["push"]) == ("linux/amd64,linux/arm64", True)


def test_the_services_of_ci_jobs_on_the_page_set_options_that_there_are() -> None:
    page = (ROOT / "docs" / "containers.md").read_text()
    for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL):
        job = yaml.safe_load(text)
        assert job.keys() <= {"jobs", "test"}
        names = re.findall(r"\bFENCEPOST_[A-Z_]+", text)
        assert names
        assert list(unknown_variables(names)) == []


def test_compose_publishes_the_ports_that_the_outer_listener_advertises() -> None:
    service = read(ROOT / "docker-compose.yml")["services"]["fencepost"]
    inside, outside = map(parse_listener, service["environment"]["FENCEPOST_LISTENER"].split())
    assert inside == ListenerSpec(
        name="INSIDE", host="0.0.0.0", port=9092, advertised=inside.advertised
    )
    assert inside.advertised is not None
    assert (inside.advertised.host, inside.advertised.port) == ("fencepost", "9092")
    host, outer, inner = service["ports"][0].split(":")
    assert outside.advertised is not None
    assert (outside.advertised.host, f"{outside.advertised.port}-9094") == (host, outer)
    assert inner == f"{outside.port}-{outside.port + 2}", "one for each of three brokers"
    assert service["command"] == ["serve", "--brokers", "3"]
