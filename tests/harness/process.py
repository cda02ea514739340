"""Servers as child processes: watched until ready, stopped by their pid, their log kept."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LIVE: Final[list[Process]] = []
"""The servers that run now, for the report of a failing test."""

_STOP_S: Final = 60.0


class NotReadyError(Exception):
    """A server ended, or said nothing, before it was ready."""


@dataclass(eq=False, slots=True)
class Process:
    """A running server and the file that its standard error goes to."""

    name: str
    child: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        return self.child.pid

    def log_size(self) -> int:
        return self.log.stat().st_size

    def log_since(self, position: int, limit: int = 20_000) -> str:
        """What was logged after byte ``position``; only the end of it, when it is long."""
        with self.log.open("rb") as file:
            file.seek(max(position, self.log_size() - limit))
            return file.read().decode(errors="replace")

    def resident_bytes(self) -> int:
        """Physical memory in use."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def first_line(self, timeout_s: float) -> str:
        """The first line of standard output. :raises NotReadyError: When none comes."""
        assert self.child.stdout is not None
        descriptor, line = self.child.stdout.fileno(), b""
        deadline = time.monotonic() + timeout_s
        while not line.endswith(b"\n"):
            left = deadline - time.monotonic()
            ready = select.select([descriptor], [], [], left)[0] if left > 0 else []
            if not ready:
                raise NotReadyError(
                    f"{self.name} was not ready in {timeout_s} s\n{self.log_since(0)}"
                )
            chunk = os.read(descriptor, 1)
            if not chunk:
                raise NotReadyError(
                    f"{self.name} ended with {self.child.wait()}\n{self.log_since(0)}"
                )
            line += chunk
        return line.decode()

    def stop(self, *, expect: int | None = 0) -> None:
        """SIGTERM, then wait for the end.

        :param expect: The exit code a clean stop must have; None for any.
        :raises AssertionError: When it does not stop in time (it is killed), or with another code.
        """
        if self in LIVE:
            LIVE.remove(self)
        self.child.send_signal(signal.SIGTERM)
        try:
            code = self.child.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
            raise AssertionError(f"{self.name} did not stop\n{self.log_since(0)}") from None
        finally:
            for pipe in (self.child.stdin, self.child.stdout):
                if pipe is not None:
                    pipe.close()
        assert expect is None or code == expect, (
            f"{self.name} ended with {code}\n{self.log_since(0)}"
        )


def start(
    name: str, command: Sequence[str], log: Path, *, env: dict[str, str] | None = None
) -> Process:
    """Start a server; it is the caller's to stop."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as stderr:
        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,  # it ends with this process, and so may the server
            stdout=subprocess.PIPE,
            stderr=stderr,
            env={**os.environ, **(env or {})},
            start_new_session=True,
        )
    process = Process(name, child, log)
    LIVE.append(process)
    return process
