"""The Spark session of the pipeline's benchmarks."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from bench import tools

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextlib.contextmanager
def session(master: str) -> Iterator[SparkSession]:
    """One for all turns, stopped in the end.

    It always has the connector: the JVM of the first one goes on for those of later figures.

    :raises bench.tools.Missing: Without Spark, Java, or the connector.
    """
    from fencepost.pipeline.requirements import CannotRunError
    from fencepost.pipeline.session import session as opened

    configs = {"spark.driver.memory": "2g"}
    with contextlib.ExitStack() as stack:
        try:
            spark = stack.enter_context(
                opened("bench", master=master, connector=True, configs=configs)
            )
        except CannotRunError as error:
            raise tools.Missing(str(error)) from error
        yield spark
