"""A client program that runs to its end."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from tests.harness import forkserver


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What a program printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def run(
    command: Sequence[str],
    *,
    stdin: str | bytes = b"",
    timeout_s: float = 60,
    code: int | None = 0,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Finished:
    """Run ``command`` to its end.

    :param code: The exit code it must end with; None for any.
    :raises AssertionError: When it ends otherwise, or too late; with what it printed.
    """
    data = stdin.encode() if isinstance(stdin, str) else stdin
    try:
        done = _run(command, data, timeout_s, os.environ if env is None else env, cwd)
    except subprocess.TimeoutExpired as late:
        raise AssertionError(
            f"{_shown(command)} ran over {timeout_s} s\n{_text(late.stdout)}\n{_text(late.stderr)}"
        ) from None
    finished = Finished(code=done.returncode, out=_text(done.stdout), err=_text(done.stderr))
    if code is not None and finished.code != code:
        ending = f"ended with {finished.code}, not {code}"
        raise AssertionError(f"{_shown(command)} {ending}\n{finished.out}\n{finished.err}")
    return finished


def _run(
    command: Sequence[str],
    data: bytes,
    timeout_s: float,
    env: Mapping[str, str],
    cwd: Path | None,
) -> subprocess.CompletedProcess[bytes]:
    if not forkserver.can_fork(command, env):
        return subprocess.run(
            command,
            check=False,
            input=data,
            capture_output=True,
            timeout=timeout_s,
            env=env,
            cwd=cwd,
        )
    with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
        given.write(data)
        given.seek(0)
        child = forkserver.fork(
            command,
            (given.fileno(), out.fileno(), err.fileno()),
            env,
            None if cwd is None else str(cwd),
        )
        try:
            code = child.wait(timeout_s)
        except subprocess.TimeoutExpired as late:
            child.kill()
            child.wait()
            late.stdout, late.stderr = _content(out), _content(err)
            raise
        return subprocess.CompletedProcess(command, code, _content(out), _content(err))


def _content(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def _text(data: bytes | None) -> str:
    return (data or b"").decode(errors="replace")


def _shown(command: Sequence[str]) -> str:
    text = " ".join(command)
    return text if len(text) < 600 else f"{text[:600]}..."
