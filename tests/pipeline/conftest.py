"""The Spark session that all tests of the pipeline share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.harness.require import tool
from tests.harness.spark import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """``local[2,4]``, with the formats ``fencepost`` and ``kafka``; no test may stop it."""
    with spark_session(tmp_path_factory.mktemp("spark")) as opened:
        yield opened


@pytest.fixture
def spark_with_kafka(spark: SparkSession) -> SparkSession:
    """``spark`` where the Kafka connector could be fetched."""
    tool("mvn")
    return spark
