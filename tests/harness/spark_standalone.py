"""A standalone Spark cluster on this machine, started from the Python package."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
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
class Standalone:
    """A master and its workers, each of which runs one executor of one processor."""

    master: str
    """As ``--master`` wants it."""
    log: Path
    """The master's, which tells what was launched where."""
    environment: Mapping[str, str]
    """What a driver needs to be set."""

    def executors(self) -> set[str]:
        """The ids of the workers that ran executors of the last application."""
        text = self.log.read_text()
        found = re.findall(r"Registered app .* with ID (\S+)", text)
        assert found, "no application ever came to the master"
        return set(re.findall(rf"Launching executor {found[-1]}/\d+ on worker (\S+)", text))


@contextmanager
def standalone(folder: Path, *, workers: int = 2) -> Iterator[Standalone]:
    """A cluster on free ports of the loopback interface, its files in ``folder``.

    The Python of its executors has every package that this one has, but not fencepost itself.
    """
    need_spark()
    with ExitStack() as running:
        master = _daemon(running, folder / "master", MASTER, "--port", "0", "--webui-port", "0")
        url = wait_until("the master starts", lambda: _said(master, r"master at (\S+)"), _STARTED_S)
        for number in range(workers):
            work = folder / f"worker-{number}"
            options = ["--webui-port", "0", "--cores", "1", "--memory", "1g"]
            _daemon(running, work, WORKER, *options, "--work-dir", str(work), url)
        wait_until(
            "the workers register",
            lambda: len(re.findall("Registering worker", master.log_since(0))) == workers,
            _STARTED_S,
        )
        settings = folder / "conf" / "spark-defaults.conf"
        settings.parent.mkdir()
        quick = {f"spark.{each}.extraJavaOptions": quick_jvm() for each in ("driver", "executor")}
        configs = {**_APPLICATION, **quick}
        settings.write_text("".join(f"{key} {value}\n" for key, value in configs.items()))
        environment = {
            **_HERE,
            "SPARK_CONF_DIR": str(settings.parent),
            "PYSPARK_PYTHON": str(bare_python(folder / "python")),
        }
        yield Standalone(master=url, log=master.log, environment=environment)


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
