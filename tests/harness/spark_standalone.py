"""A standalone Spark cluster on this machine, started from the Python package."""

from __future__ import annotations

import os
import re
import shlex
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.harness.process import start
from tests.harness.spark import need_spark, quick_jvm
from tests.harness.virtual_environment import bare_python
from tests.harness.wait import wait_until

if TYPE_CHECKING:
    from tests.harness.process import Process

MASTER: Final = "org.apache.spark.deploy.master.Master"
WORKER: Final = "org.apache.spark.deploy.worker.Worker"
_HERE: Final = {"SPARK_LOCAL_IP": "127.0.0.1"}
_SMALL: Final = {"SPARK_DAEMON_MEMORY": "256m"}
_APPLICATION: Final = {
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.enabled": "false",
}
_STARTED_S: Final = 180.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A worker with a virtual environment of its own for the Python of its executors."""

    process: Process
    folder: Path
    """Its executors work below it, as do their Python workers."""

    def executes_python(self) -> bool:
        """Whether an executor has started Python."""
        return any("pyspark.daemon" in text for text in self._running().values())

    def kill(self) -> None:
        """SIGKILL to it and to all that it has started, as where its machine is lost."""
        self.process.kill()
        for pid in self._running():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _running(self) -> dict[int, str]:
        """The processes of its executors, by their working directories: pids and commands."""
        found = {}
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended, or is another user's
                if (place / "cwd").readlink().is_relative_to(self.folder):
                    found[int(place.name)] = (place / "cmdline").read_text()
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Standalone:
    """A master and its workers, each of which runs one executor of one processor."""

    master: str
    """As ``--master`` wants it."""
    log: Path
    """The master's, which tells what was launched where."""
    environment: Mapping[str, str]
    """What a driver needs to be set."""
    workers: tuple[Worker, ...]

    def executors(self) -> set[str]:
        """The ids of the workers that ran executors of the last application."""
        text = self.log.read_text()
        found = re.findall(r"Registered app .* with ID (\S+)", text)
        assert found, "no application ever came to the master"
        return set(re.findall(rf"Launching executor {found[-1]}/\d+ on worker (\S+)", text))


@contextmanager
def standalone(
    folder: Path, *, workers: int = 2, configs: Mapping[str, str] | None = None
) -> Iterator[Standalone]:
    """A cluster on free ports of the loopback interface, its files in ``folder``.

    Each worker has a Python of its own, with every package that this one has, but not fencepost
    itself.

    :param configs: Of applications, besides those that all get.
    """
    need_spark()
    with ExitStack() as running:
        master = _daemon(running, folder / "master", MASTER, "--port", "0", "--webui-port", "0")
        url = wait_until("the master starts", lambda: _said(master, r"master at (\S+)"), _STARTED_S)
        started = []
        for number in range(workers):
            work = folder / f"worker-{number}"
            options = ["--webui-port", "0", "--cores", "1", "--memory", "1g"]
            process = _daemon(running, work, WORKER, *options, "--work-dir", str(work), url)
            started.append(Worker(process=process, folder=work))
        wait_until(
            "the workers register",
            lambda: len(re.findall("Registering worker", master.log_since(0))) == workers,
            _STARTED_S,
        )
        settings = folder / "conf" / "spark-defaults.conf"
        settings.parent.mkdir()
        quick = {f"spark.{each}.extraJavaOptions": quick_jvm() for each in ("driver", "executor")}
        all_configs = {**_APPLICATION, **quick, **(configs or {})}
        settings.write_text("".join(f"{key} {value}\n" for key, value in all_configs.items()))
        environment = {
            **_HERE,
            "SPARK_CONF_DIR": str(settings.parent),
            "PYSPARK_PYTHON": str(_python_of_each(folder, started)),
        }
        yield Standalone(
            master=url, log=master.log, environment=environment, workers=tuple(started)
        )


def _python_of_each(folder: Path, workers: Sequence[Worker]) -> Path:
    """A program that is the Python of the worker in whose folder it is started.

    Executors start the Python that the driver names, as they would on machines of their own.
    """
    driver = bare_python(folder / "python-driver")
    cases = [
        f'{shlex.quote(str(each.folder))}/*) exec {shlex.quote(str(python))} "$@" ;;\n'
        for number, each in enumerate(workers)
        for python in (bare_python(folder / f"python-{number}"),)
    ]
    program = folder / "python"
    lines = ["#!/bin/sh\n", 'case "$PWD" in\n', *cases, "esac\n", f'exec {driver} "$@"\n']
    program.write_text("".join(lines))
    program.chmod(0o755)
    return program


def _daemon(running: ExitStack, folder: Path, name: str, *arguments: str) -> Process:
    """Start the master or a worker, which is stopped when ``running`` ends."""
    import pyspark

    home = Path(pyspark.__file__).parent
    command = [str(home / "bin" / "spark-class"), name, "--host", "127.0.0.1", *arguments]
    options = {"SPARK_DAEMON_JAVA_OPTS": quick_jvm()}
    environment = {**_HERE, **_SMALL, **options, "SPARK_HOME": str(home)}
    process = start(f"spark-{folder.name}", command, folder / "log", env=environment)
    running.callback(process.stop, expect=None)
    return process


def _said(process: Process, pattern: str) -> str:
    """What a server logged, or nothing yet. :raises AssertionError: When it ended."""
    text = process.log_since(0)
    assert process.child.poll() is None, f"{process.name} ended\n{text}"
    found = re.search(pattern, text)
    return found[1] if found else ""
