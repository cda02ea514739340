"""What the commands that run on Spark say before there is a Spark."""

from __future__ import annotations

import errno
import inspect
import os
import shlex
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import NoReturn

import pytest

from fencepost.cli import load as command
from fencepost.cli import main
from fencepost.cli.audit import AuditLevel
from fencepost.pipeline import requirements, session
from fencepost.pipeline.audit import job
from fencepost.pipeline.datasource.schemas import Level
from fencepost.pipeline.load.batch_encoding import BatchLimits
from fencepost.pipeline.load.options import DEFAULT_PATIENCE_S, FORMATS
from fencepost.protocol.compression import CODECS_BY_NAME
from tests.cli.shell import Shell


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell) -> Path:
    """A connector of one empty jar."""
    home = tmp_path / "jars"
    home.mkdir()
    (home / "spark-sql-kafka-0-10_2.13-4.2.0.jar").touch()
    monkeypatch.setenv(requirements.JARS_VARIABLE, str(home))
    return home


def fails_with(error: OSError) -> Callable[..., NoReturn]:
    def fail(*_: object) -> NoReturn:
        raise error

    return fail


def test_a_bundle_that_cannot_be_written_is_one_line(shell: Shell, jars: Path) -> None:
    blocked = jars / "file"
    blocked.touch()
    assert shell.refusal(f"spark bundle {blocked}") == f"fencepost: {blocked}: file exists"


def test_a_bundle_in_a_folder_with_a_space_is_quoted(
    jars: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = jars / "to submit"
    assert main(["spark", "bundle", str(folder)]) == 0
    program, _, package, _, jar, script, *_ = shlex.split(capsys.readouterr().out)
    assert program == "spark-submit"
    assert all(Path(each).parent == folder for each in (package, jar, script))


@pytest.mark.parametrize("hidden", ["_delta_log", ".cache"])
def test_the_format_is_not_told_by_files_that_spark_passes_over(
    shell: Shell, tmp_path: Path, hidden: str
) -> None:
    source = tmp_path / "orders"
    (source / hidden).mkdir(parents=True)
    (source / hidden / "0.json").touch()
    refused = shell.refusal(f"load {source} --topic orders")
    assert refused.endswith("by their names the files are nothing that is known")
    for part in ("_day=1", "day=2"):
        (source / part).mkdir()
    (source / "_day=1" / "0.csv").touch()
    (source / "day=2" / "0.parquet").touch()
    refused = shell.refusal(f"load {source} --topic orders")
    assert refused.endswith("by their names the files are csv and parquet")


def test_a_pair_that_is_none_is_shown_whole(shell: Shell) -> None:
    refused = shell.refusal("load a.csv --topic orders --read =;")
    assert refused == "fencepost load: --read: '=;' is not NAME=VALUE"


def test_nothing_is_late_for_no_window(shell: Shell) -> None:
    counts = "stream to-topic orders counts --bootstrap 127.0.0.1:1 --checkpoint kept"
    refused = shell.refusal(f"{counts} --late 10")
    assert refused.endswith("--late: there is no --window that a record could be late for")


def test_an_audit_whose_findings_cannot_be_kept_is_not_begun(shell: Shell, tmp_path: Path) -> None:
    blocked = tmp_path / "violations.parquet"
    blocked.mkdir()
    refused = shell.refusal(f"audit {tmp_path} --out {tmp_path}")
    assert refused == f"fencepost: can't write to {blocked}"


def test_a_file_that_cannot_be_read_is_not_said_to_be_written(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "trace-0.jsonl")
    monkeypatch.setattr(session, "session", lambda *_, **__: nullcontext())
    monkeypatch.setattr(job, "audit", fails_with(gone))
    refused = shell.refusal(f"audit {tmp_path} --out {tmp_path}")
    assert refused == "fencepost: trace-0.jsonl: no such file or directory"


def test_what_a_load_may_be_given_is_what_there_is() -> None:
    assert set(command._FORMATS) == set(FORMATS.values())
    assert {CODECS_BY_NAME[name] for name in command._CODECS} == set(CODECS_BY_NAME.values())
    limits = BatchLimits()
    given = inspect.signature(command.load).parameters
    assert given["batch_bytes"].default == limits.batch_bytes
    assert given["chunk_bytes"].default == limits.chunk_bytes
    assert CODECS_BY_NAME[given["compression"].default] == limits.codec
    assert given["patience"].default == DEFAULT_PATIENCE_S


def test_segments_are_read_as_closely_as_an_audit_may_ask() -> None:
    assert {Level(each.value) for each in AuditLevel} == set(Level) - {Level.TRACES}
