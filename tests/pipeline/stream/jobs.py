"""``fencepost stream`` as a program: watched, stopped, and killed with all its processes."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fencepost.pipeline import requirements
from tests.harness.process import Process, start
from tests.harness.spark import jars, need_spark, quick_jvm

PATIENCE_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class Job:
    """A running ``fencepost stream``, with ``--json``."""

    process: Process

    def batch(self) -> Mapping[str, Any]:
        """What it says of its next batch. :raises NotReadyError: When it ends, or says nothing."""
        said: Mapping[str, Any] = json.loads(self.process.first_line(PATIENCE_S))
        return said

    def batches(self, records: int) -> None:
        """Hear of its next batches until they have so many records together."""
        while records > 0:
            records -= self.batch()["records"]

    def kill(self) -> None:
        """Kill -9, and the JVM with it: it would end in order otherwise."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.stop(expect=-signal.SIGKILL)


@contextmanager
def job(log: Path, *arguments: str, tasks: int = 2) -> Iterator[Job]:
    """Start ``fencepost stream``. What still runs of it in the end is killed.

    :param tasks: How many run at a time.
    """
    need_spark()
    command = [sys.executable, "-m", "fencepost", "stream", *arguments, "--json"]
    environment = {requirements.JARS_VARIABLE: str(jars()), "JDK_JAVA_OPTIONS": quick_jvm()}
    process = start("stream", [*command, "--master", f"local[{tasks}]"], log, env=environment)
    try:
        yield Job(process)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.stop(expect=None)
