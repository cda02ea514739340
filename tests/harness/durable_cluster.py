"""A served cluster with a data directory: its process ends and starts again on the same ports."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.harness.process import Process, free_ports, start
from tests.harness.served_cluster import Cluster
from tests.harness.wait import wait_until

READY_S: Final = 60.0


@dataclass(slots=True)
class DurableCluster:
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
        self._port = free_ports(self.brokers)[0]

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
        self._taken().kill()

    def stop(self) -> None:
        """End the process in order."""
        self._taken().stop()

    def close(self) -> None:
        """End the process that runs, if one does."""
        if self.process is not None:
            self.kill()

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

    def _taken(self) -> Process:
        assert self.process is not None
        process, self.process = self.process, None
        return process

    def _log_of(self, number: int) -> Path:
        return self.log.with_name(f"{self.log.name}-{number}")
