"""The Spark session that every job runs in, on this machine or on a cluster.

Nothing of Spark is imported before a session is asked for, so that the command line stays quick
and says in one line what is missing.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from fencepost.pipeline import connector as kafka_connector
from fencepost.pipeline.masters import is_local, need_master
from fencepost.pipeline.needs import CannotRunError, need_java, need_packages
from fencepost.pipeline.own_configuration import names_jars
from fencepost.pipeline.shipping import write_package

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL: Final = "local[*,4]"
"""The master where none is named: all processors of this machine, and four tries for each task, as
on a cluster (``local[*]`` has one)."""
SOURCES: Final = (("fencepost.pipeline.reading.source", "FencepostDataSource"),)
"""The data sources that a session knows by name: their modules and classes."""
_NONE: Final[Mapping[str, str]] = MappingProxyType({})
_LOG4J2: Final = Path(__file__).with_name("log4j2.properties")


@contextmanager
def session(
    app: str,
    *,
    master: str | None = None,
    connector: bool = False,
    configs: Mapping[str, str] = _NONE,
) -> Iterator[SparkSession]:
    """`open_session`, stopped at the end unless it was there before."""
    need_packages()
    there = _there()
    opened = open_session(app, master=master, connector=connector, configs=configs)
    try:
        yield opened
    finally:
        if there is None:
            opened.stop()


def open_session(
    app: str,
    *,
    master: str | None = None,
    connector: bool = False,
    configs: Mapping[str, str] = _NONE,
) -> SparkSession:
    """A session that knows the format ``fencepost``, on executors too.

    A session that is there in this process already is used as it is, whatever is asked for; so is
    the JVM of ``spark-submit``, whose own options then stand. The JVM that is started here goes on
    for the later sessions of this process.

    :param app: The name that Spark shows.
    :param master: As Spark's ``--master``; None for what ``spark-submit`` says, or `LOCAL`.
    :param connector: Whether the job needs the Kafka connector. Without it the session has it
        too where it can, for those that come after.
    :param configs: Spark's configuration, before all that is set here.
    :raises CannotRunError: When a package, Java or the connector is missing, or the master cannot
        be reached.
    """
    need_packages()
    opened = _there() or _open(app, master, connector, configs)
    _register(opened)
    return opened


def _there() -> SparkSession | None:
    """The session of this process, whichever thread opened it."""
    from pyspark import SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    # A session whose context was stopped is `active` still, and only this tells that it is dead.
    if SparkContext._active_spark_context is None:  # noqa: SLF001  # nothing public says so
        return None
    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


def _open(
    app: str, master: str | None, connector: bool, configs: Mapping[str, str]
) -> SparkSession:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    settings: dict[str, str] = dict(_EVERYWHERE)
    if not submitted:
        master = master or LOCAL
        need_master(master)
        need_java()
        # Planning a Python source starts a worker on the driver, of the same name as elsewhere.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        settings |= _at_start(connector, configs)
        if is_local(master):
            settings |= _LOCALLY
    builder = SparkSession.builder.appName(app)
    if master is not None:
        builder = builder.master(master)
    for key, value in {**settings, **configs}.items():
        builder = builder.config(key, value)
    try:
        opened = builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        raise CannotRunError(f"Spark does not start: {_told(error)}") from error
    except ConnectionError as error:  # it was asked once more when it was gone
        raise CannotRunError("Spark does not start: its Java process ended") from error
    # What is submitted was shipped by whoever did that, and runs from there itself.
    if not submitted and not is_local(opened.sparkContext.master or ""):
        _ship(opened)
    return opened


def _ship(opened: SparkSession) -> None:
    """Let executors run this package, as it is here."""
    folder = Path(tempfile.mkdtemp(prefix="fencepost-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # executors may come late
    opened.sparkContext.addPyFile(str(write_package(folder / "fencepost.zip")))


def _told(error: Exception) -> str:
    """The line of an error that says something: what Java threw, without what called it."""
    lines = str(error).splitlines()
    return next((line.removeprefix(": ") for line in lines if line.startswith(": ")), lines[0])


def _at_start(connector: bool, configs: Mapping[str, str]) -> Mapping[str, str]:
    """What only a JVM that is yet to start takes."""
    settings = {
        "spark.driver.defaultJavaOptions": f"-Dlog4j2.configurationFile={_LOG4J2.as_uri()}",
    }
    jars = _jars(connector, configs)
    if jars:
        settings["spark.jars"] = ",".join(map(str, jars))
    return settings


def _jars(connector: bool, configs: Mapping[str, str]) -> list[Path]:
    """What the JVM is started with, which will not take more jars for a later session.

    Who does not need the connector also does without: where it was never fetched, and where other
    jars are configured, which these would be instead of.
    """
    if connector or (kafka_connector.is_there() and not names_jars(configs)):
        return kafka_connector.jars()
    return []


def _register(opened: SparkSession) -> None:
    for module, name in SOURCES:
        opened.dataSource.register(getattr(import_module(module), name))


_EVERYWHERE: Final = MappingProxyType(
    {
        # Times are milliseconds since the epoch everywhere else; their zone is nobody's.
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.ui.showConsoleProgress": "false",
    }
)
_LOCALLY: Final = MappingProxyType(
    {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        # Spark's own 200 is for a cluster.
        "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
    }
)
