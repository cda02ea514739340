"""The Spark session that every job runs in, on this machine or on a cluster.

It has the data sources of this package, the jars of the Kafka connector unless other jars are
configured, and this package as a zip file for executors that have another version of it, or none.
No module of Spark is imported before a session is opened, so that the command line starts quickly
and reports in one line what is missing.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import socket
import sys
import tempfile
import uuid
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import fencepost
from fencepost.pipeline import requirements as kafka_connector
from fencepost.pipeline.requirements import (
    CannotRunError,
    is_local,
    require_java,
    require_master,
    require_packages,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_JARS_PREFIX: Final = "spark.jars"
"""All of its settings begin so: the jars themselves, and packages of Maven's to be fetched."""
_CONF_DIR_VARIABLE: Final = "SPARK_CONF_DIR"
_SUBMIT_ARGS_VARIABLE: Final = "PYSPARK_SUBMIT_ARGS"
_IN_FILE: Final = re.compile(r"^\s*spark\.jars\b", re.MULTILINE)
_IN_ARGUMENTS: Final = re.compile(r"--(jars|packages)\b|\bspark\.jars\b")


def jars_are_configured(configs: Mapping[str, str]) -> bool:
    """Whether jars are named by a session's own configuration, or by Spark's own configuration."""
    if any(name.startswith(_JARS_PREFIX) for name in configs):
        return True
    if _IN_ARGUMENTS.search(os.environ.get(_SUBMIT_ARGS_VARIABLE, "")):
        return True
    try:
        content = (_conf_dir() / "spark-defaults.conf").read_text(errors="replace")
    except OSError:
        return False
    return _IN_FILE.search(content) is not None


def _conf_dir() -> Path:
    chosen = os.environ.get(_CONF_DIR_VARIABLE)
    if chosen:
        return Path(chosen)
    from pyspark.find_spark_home import _find_spark_home

    return Path(_find_spark_home()) / "conf"


SUBMIT_MAIN: Final = """# What spark-submit runs: the command line of fencepost.
import sys

from fencepost.cli import main

sys.exit(main())
"""
_ROOT: Final = Path(fencepost.__file__).parent
_ZIP_TIMESTAMP: Final = (1980, 1, 1, 0, 0, 0)


def write_package(target: Path) -> Path:
    """Write this package, as it runs here, into a zip file; the same bytes every time.

    :param target: The file. Its name has to end in ``.zip``: a wheel that is called so does no good
        on executors.
    """
    with zipfile.ZipFile(target, "w") as made:
        for path in sorted(_ROOT.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                name = zipfile.ZipInfo(path.relative_to(_ROOT.parent).as_posix(), _ZIP_TIMESTAMP)
                made.writestr(name, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return target


LOCAL: Final = "local[*,4]"
"""The master where none is named: all processors of this machine, and four tries for each task, as
on a cluster (``local[*]`` has one)."""
SOURCES: Final = (("fencepost.pipeline.datasource.source", "FencepostDataSource"),)
"""The data sources that a session knows by name: their modules and classes."""
_NO_CONFIGS: Final[Mapping[str, str]] = MappingProxyType({})
_MOST_OF_A_SOCKET: Final = 103
"""Bytes of the path of a Unix domain socket, by the smallest limit of any system (macOS)."""
_LOG4J2: Final = Path(__file__).with_name("log4j2.properties")


@contextmanager
def session(
    app: str,
    *,
    master: str | None = None,
    connector: bool = False,
    configs: Mapping[str, str] = _NO_CONFIGS,
) -> Iterator[SparkSession]:
    """`open_session`, stopped at the end unless it was there before."""
    require_packages()
    there = _active_session()
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
    configs: Mapping[str, str] = _NO_CONFIGS,
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
    require_packages()
    opened = _active_session() or _open(app, master, connector, configs)
    _register(opened)
    return opened


def _active_session() -> SparkSession | None:
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
    settings: dict[str, str] = dict(_COMMON_CONFIGS)
    if not submitted:
        master = master or LOCAL
        require_master(master)
        require_java()
        # Planning a Python source starts a worker on the driver, of the same name as elsewhere.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        settings |= _jvm_settings(connector, configs)
        if is_local(master):
            settings |= _LOCAL_CONFIGS | _socket_configs()
    builder = SparkSession.builder.appName(app)
    if master is not None:
        builder = builder.master(master)
    for key, value in {**settings, **configs}.items():
        builder = builder.config(key, value)
    try:
        opened = builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        raise CannotRunError(f"Spark does not start: {_error_line(error)}") from error
    except ConnectionError as error:  # it was asked once more when it was gone
        raise CannotRunError("Spark does not start: its Java process ended") from error
    # spark-submit has shipped the package, and this process runs from that copy.
    if not submitted and not is_local(opened.sparkContext.master or ""):
        _ship(opened)
    return opened


def _ship(opened: SparkSession) -> None:
    """Let executors run this package, as it is here."""
    opened.sparkContext.addPyFile(str(write_package(_temporary_folder() / "fencepost.zip")))


def _temporary_folder() -> Path:
    """A folder for this user alone, until the process ends: executors may come late."""
    folder = Path(tempfile.mkdtemp(prefix="fencepost-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _error_line(error: Exception) -> str:
    """The line of an error that says something: what Java threw, without what called it."""
    lines = str(error).splitlines()
    return next((line.removeprefix(": ") for line in lines if line.startswith(": ")), lines[0])


def _jvm_settings(connector: bool, configs: Mapping[str, str]) -> Mapping[str, str]:
    """What only a JVM that is yet to start takes."""
    settings = {
        "spark.driver.defaultJavaOptions": f"-Dlog4j2.configurationFile={_LOG4J2.as_uri()}",
    }
    jars = _jars(connector, configs)
    if jars:
        settings["spark.jars"] = ",".join(map(str, jars))
    return settings


def _socket_configs() -> Mapping[str, str]:
    """Unix domain sockets between the JVM and its Python workers, where the system has them.

    Over TCP each task of Python takes 40 ms more, as one end waits for the acknowledgement that the
    other one delays.
    """
    if not hasattr(socket, "AF_UNIX"):
        return {}
    folder = _temporary_folder()
    if len(os.fsencode(folder / f".{uuid.UUID(int=0)}.sock")) > _MOST_OF_A_SOCKET:
        return {}
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": str(folder),
    }


def _jars(connector: bool, configs: Mapping[str, str]) -> list[Path]:
    """What the JVM is started with, which will not take more jars for a later session.

    Who does not need the connector also does without: where it was never fetched, and where other
    jars are configured, which these would be instead of.
    """
    if connector or (kafka_connector.is_connector_installed() and not jars_are_configured(configs)):
        return kafka_connector.connector_jars()
    return []


def _register(opened: SparkSession) -> None:
    for module, name in SOURCES:
        opened.dataSource.register(getattr(import_module(module), name))


_COMMON_CONFIGS: Final = MappingProxyType(
    {
        # Times are milliseconds since the epoch everywhere else; no time zone applies.
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.ui.showConsoleProgress": "false",
    }
)
_LOCAL_CONFIGS: Final = MappingProxyType(
    {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        # Spark's own 200 is for a cluster.
        "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
    }
)
