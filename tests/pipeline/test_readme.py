"""The lines of README.md about Spark do what it says, in a project beside the checkout."""

from __future__ import annotations

import os
from pathlib import Path

from docs.generate import ROOT
from fencepost.pipeline.requirements import JARS_VARIABLE
from tests.harness.confluent import delivered, send
from tests.harness.run import run
from tests.harness.served_cluster import serve
from tests.harness.spark import jars, need_spark
from tests.harness.virtual_environment import bare_python
from tests.test_readme import commands


def test_an_audit_in_a_project_of_its_own(tmp_path: Path) -> None:
    need_spark()
    (tmp_path / "fencepost").symlink_to(ROOT)
    project = tmp_path / "project"
    project.mkdir()
    files = ("--data-dir", str(project / "kafka"), "--trace", str(project / "trace"))
    served = serve(tmp_path / "log", *files, "--topic", "orders:1:3")
    delivered(send(served, "orders", [b"two fence posts"] * 5))
    served.stop()

    programs = bare_python(project / ".venv", with_pip=True).parent
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, JARS_VARIABLE: str(jars())}
    setup, audit = (command for command, _ in commands("spark"))
    run(["bash", "-c", setup], cwd=project, env=environment, timeout_s=120)
    done = run(["bash", "-c", audit], cwd=project, env=environment, timeout_s=120)
    assert "nothing found" in done.out
    assert (project / "report.html").exists()
