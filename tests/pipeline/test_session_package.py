"""The package as executors get it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fencepost.cli import main
from fencepost.pipeline import requirements
from fencepost.pipeline.session import write_package
from tests.harness.run import run


def test_the_package_runs_from_its_zip_file(tmp_path: Path) -> None:
    package = write_package(tmp_path / "fencepost.zip")
    code = (
        f"import sys; sys.path.insert(0, {str(package)!r})\n"
        "import fencepost.protocol.records as there; print(there.__file__)"
    )
    printed = run([sys.executable, "-I", "-c", code], cwd=tmp_path).out
    assert printed.strip() == f"{package}/fencepost/protocol/records.py"


def test_it_is_the_same_every_time(tmp_path: Path) -> None:
    first, second = (write_package(tmp_path / f"{name}.zip") for name in "ab")
    assert first.read_bytes() == second.read_bytes()


def test_a_bundle_is_what_spark_submit_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "jars"
    home.mkdir()
    monkeypatch.setenv(requirements.JARS_VARIABLE, str(home))
    folder = tmp_path / "to" / "bundle"
    assert main(["spark", "bundle", str(folder)]) == 2
    assert "no Kafka connector" in capsys.readouterr().err
    assert not folder.exists()

    for name in ("other.jar", "spark-sql-kafka-0-10_2.13-4.2.0.jar"):
        (home / name).touch()
    assert main(["spark", "bundle", str(folder)]) == 0
    told = capsys.readouterr().out
    names = ["fencepost.zip", "main.py", "other.jar", "spark-sql-kafka-0-10_2.13-4.2.0.jar"]
    assert sorted(each.name for each in folder.iterdir()) == names
    assert told.split() == [
        "spark-submit",
        "--py-files",
        f"{folder}/fencepost.zip",
        "--jars",
        f"{folder}/other.jar,{folder}/spark-sql-kafka-0-10_2.13-4.2.0.jar",
        f"{folder}/main.py",
        "audit",
        "--help",
    ]
    assert (
        "Usage: fencepost audit"
        in run([sys.executable, str(folder / "main.py"), "audit", "-h"]).out
    )
