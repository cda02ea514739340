"""Servers as child processes: started, waited for, stopped by their pid, with their logs."""

from __future__ import annotations

import os
import random
import select
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.harness import forkserver
from tests.harness.wait import wait_until

LIVE: Final[list[Process]] = []
"""The servers that run now, for the report of a failing test."""

_STOP_S: Final = 60.0
_GONE_S: Final = 30.0
_FIRST_PORT: Final = 21_000
_LAST_PORT: Final = 29_000


class NotReadyError(Exception):
    """A server ended, or said nothing, before it was ready."""


@dataclass(eq=False, slots=True)
class Process:
    """A running server and the file that its standard error goes to."""

    name: str
    child: subprocess.Popen[bytes] | forkserver.Child
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

    def kill(self) -> None:
        """SIGKILL, which lets it write and say nothing more, then wait for the end."""
        self.child.kill()
        self.stop(expect=-signal.SIGKILL)

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
    environment = {**os.environ, **(env or {})}
    with log.open("wb") as stderr:
        child = _start(command, stderr.fileno(), environment)
    process = Process(name, child, log)
    LIVE.append(process)
    return process


def _start(
    command: Sequence[str], stderr: int, env: dict[str, str]
) -> subprocess.Popen[bytes] | forkserver.Child:
    """With pipes for standard input, which ends with this process, and output."""
    if forkserver.can_fork(command, env):
        (read_in, write_in), (read_out, write_out) = os.pipe(), os.pipe()
        child = forkserver.fork(command, (read_in, write_out, stderr), env)
        os.close(read_in)
        os.close(write_out)
        child.stdin, child.stdout = os.fdopen(write_in, "wb"), os.fdopen(read_out, "rb")
        return child
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env=env,
        start_new_session=True,
    )


def is_running(pid: int) -> bool:
    """Whether a process runs: one that has ended and that its parent has not reaped does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def wait_until_gone(pids: Sequence[int]) -> None:
    """Wait until none of these processes runs."""
    wait_until(f"{pids} have ended", lambda: not any(map(is_running, pids)), _GONE_S)


def free_ports(count: int) -> list[int]:
    """Ports that no process listens on, one after the other, below those that clients are given.

    Their numbers are drawn: other runs of the tests look for ports at the same time.
    """
    drawn = random.SystemRandom()
    for _ in range(100):
        first = drawn.randrange(_FIRST_PORT, _LAST_PORT)
        ports = list(range(first, first + count))
        if all(map(_is_free, ports)):
            return ports
    raise AssertionError("no free ports")


def _is_free(port: int) -> bool:
    with closing(socket.socket()) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
