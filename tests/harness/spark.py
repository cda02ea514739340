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

HERE: Final = Path(__file__).parent
MASTER: Final = "local[2,4]"
"""Two tasks at a time; a task may fail three times (``local[2]`` does not let one fail)."""
# A short life: little time to compile for, little memory to collect.
_QUICK: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_SMALL: Final = {
    "spark.driver.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    # Clients that are kept for the next batch outlive their clusters, and go on asking for them.
    "spark.kafka.producer.cache.timeout": "30s",
    "spark.kafka.consumer.cache.timeout": "30s",
}


@cache
def quick_jvm() -> str:
    """Options of a JVM that runs Spark for a short time."""
    # Spark's launcher, which has other jars, prints what to run to standard output.
    silent = ("-Xlog:disable", "-Xlog:all=error:stderr")
    return " ".join((*_QUICK, f"-XX:SharedArchiveFile={class_archive()}", "-Xshare:auto", *silent))


@cache
def class_archive() -> Path:
    """Spark's classes, loaded and checked, as the JVM maps them: a job starts in half the time.

    Made once (about 20 s) in the environment that has Spark, as it is of these very jars. A JVM
    that is not the one that made it goes without, and so does one with other jars.
    """
    import pyspark

    program = Path(tool("java")).resolve()
    installed = (Path(pyspark.__file__).parent / "jars").stat()
    digest = hashlib.sha256(f"{program} {installed.st_mtime_ns}".encode()).hexdigest()[:8]
    job = HERE / "archived_spark_classes.py"

    def archive(folder: Path) -> None:
        options = " ".join((*_QUICK, f"-XX:ArchiveClassesAtExit={folder / 'classes.jsa'}"))
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("PYSPARK_")}
        run([sys.executable, str(job), options, str(folder)], env=inherited, timeout_s=250)
        shutil.rmtree(folder / "written")

    made = made_once(f"spark-{digest}", [job], archive, within=Path(sys.prefix) / "fencepost-tests")
    return made / "classes.jsa"


@cache
def jars() -> Path:
    """The folder of the connector's jars; fetched once (about 10 s, 10 MB)."""
    tool("mvn")

    def fetch(folder: Path) -> None:
        with _home(folder / "jars"):
            requirements.fetch_connector()

    return made_once("spark", [requirements.CONNECTOR_POM], fetch) / "jars"


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
