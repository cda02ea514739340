"""One Spark session for all the tests of a process: small, quiet, and with the Kafka connector."""

from __future__ import annotations

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

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER: Final = "local[2,4]"
"""Two tasks at a time; a task may fail three times (``local[2]`` does not let one fail)."""
QUICK_JVM: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_SMALL: Final = {
    "spark.driver.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": QUICK_JVM,
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
