"""``fencepost load`` as a process of its own, with a JVM and Python workers that can be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from tests.harness.spark import quick_jvm

ROOT: Final = Path(__file__).parents[3]
_DAEMON: Final = b"pyspark.daemon"


class Job:
    """A load that runs. Its output goes to files, so that it never waits for who reads it."""

    def __init__(self, *arguments: str) -> None:
        self._out = tempfile.TemporaryFile()  # noqa: SIM115  # open as long as the job is
        self._err = tempfile.TemporaryFile()  # noqa: SIM115  # open as long as the job is
        # Its JVM may not start where a session of this process has left its own address.
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("PYSPARK_")}
        environment = {**inherited, "JDK_JAVA_OPTIONS": quick_jvm()}
        self.child = subprocess.Popen(
            [sys.executable, "-m", "fencepost", "load", *arguments],
            stdout=self._out,
            stderr=self._err,
            cwd=ROOT,
            env=environment,
            start_new_session=True,
        )

    @property
    def has_ended(self) -> bool:
        return self.child.poll() is not None

    def ended(self, timeout_s: float) -> tuple[int, str, str]:
        """Wait for its end: exit code, standard output and standard error."""
        code = self.child.wait(timeout_s)
        return code, _text(self._out), _text(self._err)

    def kill(self) -> None:
        """End all of it at once: the driver, its JVM and the workers."""
        mine = [self.child.pid, *self._descendants()]
        for pid in mine:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.child.wait()

    def workers(self) -> list[int]:
        """The Python workers of its tasks: what the daemon of the JVM has forked."""
        daemons = {pid for pid in self._descendants() if _DAEMON in _file(pid, "cmdline")}
        return [pid for pid in daemons if _parent(pid) in daemons]

    def _descendants(self) -> list[int]:
        children: dict[int, list[int]] = {}
        for each in Path("/proc").iterdir():
            if each.name.isdigit():
                children.setdefault(_parent(int(each.name)), []).append(int(each.name))
        found, left = [], [self.child.pid]
        while left:
            below = children.get(left.pop(), [])
            found += below
            left += below
        return found

    def close(self) -> None:
        self.kill()
        self._out.close()
        self._err.close()


@contextmanager
def job(*arguments: str) -> Iterator[Job]:
    """A load that is gone in the end."""
    made = Job(*arguments)
    try:
        yield made
    finally:
        made.close()


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


def _file(pid: int, name: str) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/{name}").read_bytes()
    return b""


def _parent(pid: int) -> int:
    """Of a process; -1 where it is gone."""
    fields = _file(pid, "stat").rpartition(b")")[2].split()
    return int(fields[1]) if fields else -1
