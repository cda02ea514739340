"""A cluster with a data directory, whose process ends and starts again on the same ports."""

from __future__ import annotations

import json
import random
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.harness.cluster import Cluster, wait_until
from tests.harness.process import LIVE, Process, start

READY_S: Final = 60.0
_FIRST_PORT: Final = 21_000
_LAST_PORT: Final = 29_000


@dataclass(slots=True)
class Served:
    """``fencepost serve --data-dir``, one process after the other."""

    directory: Path
    log: Path
    brokers: int = 3
    options: Sequence[str] = ()
    program: Sequence[str] = ("fencepost",)
    """The module that takes ``serve``, and what stands before it."""
    process: Process | None = None
    starts: int = 0
    ready: dict[str, Any] = field(default_factory=dict)
    _port: int = 0

    def __post_init__(self) -> None:
        self._port = _free_ports(self.brokers)

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{self._port + i}" for i in range(self.brokers))

    @property
    def cluster(self) -> Cluster:
        return Cluster(
            bootstrap=self.bootstrap, control=self.ready["control"], process=self.process
        )

    def start(self) -> None:
        """Start a process, and wait until every port accepts."""
        self.starts += 1
        command = [sys.executable, "-m", *self.program, "serve"]
        command += ["--brokers", str(self.brokers)]
        command += ["--port", str(self._port), "--control-port", "0", "--stop-with-stdin"]
        command += ["--data-dir", str(self.directory), *self.options]
        self.process = start(f"start {self.starts}", command, self._log_of(self.starts))
        self.ready = json.loads(self.process.first_line(READY_S))

    def kill(self) -> None:
        """End the process as ``kill -9`` does."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End the process in order."""
        assert self.process is not None
        process, self.process = self.process, None
        process.stop()

    def close(self) -> None:
        """End whatever runs."""
        if self.process is not None:
            self._end(signal.SIGKILL)

    def found(self) -> dict[str, Any]:
        """What the newest process has found when it started."""
        wait_until("it says what it found", lambda: self.logged("data_dir_opened"))
        (line,) = self.logged("data_dir_opened")
        return line

    def logged(self, event: str) -> list[dict[str, Any]]:
        """The log's lines of an event, of the newest process."""
        lines = self._log_of(self.starts).read_text().splitlines()
        events = [json.loads(line) for line in lines if line.endswith("}")]
        return [each for each in events if each["event"] == event]

    def _log_of(self, number: int) -> Path:
        return self.log.with_name(f"{self.log.name}-{number}")

    def _end(self, number: signal.Signals) -> None:
        assert self.process is not None
        process, self.process = self.process, None
        process.child.send_signal(number)
        process.child.wait()
        for pipe in (process.child.stdin, process.child.stdout):
            if pipe is not None:
                pipe.close()
        if process in LIVE:
            LIVE.remove(process)


def _free_ports(count: int) -> int:
    """The first of `count` ports in a row that no process listens on."""
    drawn = random.SystemRandom()
    for _ in range(100):
        first = drawn.randrange(_FIRST_PORT, _LAST_PORT)
        if all(map(_is_free, range(first, first + count))):
            return first
    raise AssertionError("no free ports")


def _is_free(port: int) -> bool:
    with closing(socket.socket()) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
