"""One Spark session for all the tests of a process: small, quiet, and with the Kafka connector."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from fencepost.pipeline import requirements
from fencepost.pipeline.requirements import CannotRunError, require_java, require_packages
from fencepost.pipeline.session import open_session
from tests.harness.cache import made_once
from tests.harness.require import tool, unavailable
from tests.harness.run import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER: Final = "local[2,4]"
"""Two tasks at a time; a task may fail three times (``local[2]`` does not let one fail)."""
_QUICK: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_CLASSES: Final = Path(__file__).with_name("spark_classes.py")
# The launcher has another class path, and its output is read by a program.
_SILENT: Final = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"
_SMALL: Final = {
    "spark.driver.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    # Clients that are kept for the next batch outlive their clusters, and go on asking for them.
    "spark.kafka.producer.cache.timeout": "30s",
    "spark.kafka.consumer.cache.timeout": "30s",
}


@cache
def jars() -> Path:
    """The folder of the connector's jars; fetched once (about 10 s, 10 MB)."""
    tool("mvn")

    def fetch(folder: Path) -> None:
        with _home(folder / "jars"):
            requirements.fetch_connector()

    return made_once("spark", [requirements.CONNECTOR_POM], fetch) / "jars"


@cache
def quick_jvm() -> str:
    """The options of a JVM that is to start quickly, with the classes that most jobs load.

    Their archive is made once (about 20 s, 150 MB). A JVM that cannot use it goes without.
    """
    need_spark()
    import pyspark

    program = require_java()
    (core,) = (Path(pyspark.__file__).parent / "jars").glob("spark-core_*.jar")
    # An archive is of jars as they are at one place, and of one JVM.
    about = f"{run([program, '-version']).err} {core} {core.stat().st_mtime_ns}"
    digest = hashlib.sha256(about.encode()).hexdigest()[:8]

    def archive(folder: Path) -> None:
        made = f"-XX:ArchiveClassesAtExit={folder / 'classes.jsa'}"
        # The JVM may not start where a session of this process has left its own address.
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("PYSPARK_")}
        env = {**inherited, "JDK_JAVA_OPTIONS": f"{_QUICK} {_SILENT} {made}"}
        place = folder / "written"
        run([sys.executable, str(_CLASSES), str(place)], env=env, timeout_s=240)
        assert (folder / "classes.jsa").is_file()
        shutil.rmtree(place)

    found = made_once(f"spark-classes-{digest}", [_CLASSES], archive) / "classes.jsa"
    return f"{_QUICK} {_SILENT} -XX:SharedArchiveFile={found}"


@contextmanager
def _home(folder: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(requirements.JARS_VARIABLE, str(folder))
        yield


def need_spark() -> None:
    """Skip where Spark or Java is missing."""
    try:
        require_packages()
        require_java()
    except CannotRunError as error:
        unavailable(str(error))


@contextmanager
def spark_session(folder: Path) -> Iterator[SparkSession]:
    """A session of this process, its tables and checkpoints in ``folder``.

    Has the Kafka connector where there is Maven to fetch it.
    """
    need_spark()
    with_kafka = shutil.which("mvn") is not None
    configs = {
        **_SMALL,
        "spark.driver.extraJavaOptions": quick_jvm(),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        with _home(jars() if with_kafka else folder):
            spark = open_session("tests", master=MASTER, connector=with_kafka, configs=configs)
        try:
            yield spark
        finally:
            spark.stop()
