"""Where queries are run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pipeline.stream.ground import Ground, ground

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def field(spark_with_kafka: SparkSession, tmp_path: Path) -> Iterator[Ground]:
    """A cluster as Kafka is since KIP-207."""
    with ground(spark_with_kafka, tmp_path) as made:
        yield made


@pytest.fixture
def ungated(spark_with_kafka: SparkSession, tmp_path: Path) -> Iterator[Ground]:
    """A cluster as Kafka was before: right after an election it tells offsets that go back."""
    with ground(spark_with_kafka, tmp_path, list_offsets_gate="off") as made:
        yield made
