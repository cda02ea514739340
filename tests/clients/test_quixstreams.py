"""quixstreams counts words exactly once while the application and its cluster fail.

``FENCEPOST_STREAMS_SEEDS=20`` is the whole proof.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

import pytest

from docs.generate import ROOT
from tests.clients.failing_cluster import SEEDS, FailingCluster
from tests.clients.word_count import LINES, Application, check
from tests.harness.cache import made_once
from tests.harness.run import run
from tests.harness.served_cluster import unique


@cache
def packages() -> Path:
    """The folder of quixstreams and what it needs: older versions than the tests have."""
    requirements = ROOT / "requirements" / "quixstreams.txt"

    def install(folder: Path) -> None:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"]
        options = ["--require-hashes", "--target", str(folder), "-r", str(requirements)]
        run([*command, "--disable-pip-version-check", *options], timeout_s=280)

    version = ".".join(map(str, sys.version_info[:2]))
    return made_once(f"quixstreams-{version}", [requirements], install)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("seed", SEEDS)
def test_each_word_counts_once(failing: FailingCluster, seed: int, tmp_path: Path) -> None:
    source, target = failing.create_topics()
    failing.send(source, [*map(str.encode, LINES)])
    name = unique("counter")
    program = str(Path(__file__).with_name("quixstreams_counter.py"))

    def command(index: int) -> list[str]:
        state = str(tmp_path / f"state-{index}")
        return [sys.executable, program, failing.cluster.bootstrap, source, target, name, state]

    env = {**os.environ, "PYTHONPATH": str(packages())}
    with Application(command, tmp_path, env=env) as application:
        kills = 1 if len(SEEDS) == 1 else 5
        check(failing, application, (source, target, name), seed, kills=kills)
