"""Where the state of audits lies: tables, each of which has a folder for each run.

    URL/runs/run=00000002-5b0c4e1f/        what a run looked at; it is written last
    URL/findings/run=00000002-5b0c4e1f/    what it found
    URL/lineage/run=00000002-5b0c4e1f/     which leader epochs there were
    URL/kept/run=00000002-5b0c4e1f/        the rows of segments, for the next run

A run counts once its folder in ``runs`` is complete, so that one which ended in between leaves the
state as it was. All of it is Parquet that Spark reads, so that a URL is what Spark takes for one: a
folder that all executors see, or such as ``hdfs:`` and ``s3a:`` with the jars for it. The rows of
segments are written by tasks. The other tables, which the driver has anyway, it writes itself
through Hadoop's file system: each of them would be a job of 60 ms for a file of some kilobytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyarrow import parquet

from fencepost.pipeline.requirements import CannotRunError
from fencepost.protocol.shown_text import without_user_infos

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUNS: Final = "runs"
FINDINGS: Final = "findings"
LINEAGE: Final = "lineage"
KEPT_ROWS: Final = "kept"
_TABLES: Final = (RUNS, FINDINGS, LINEAGE, KEPT_ROWS)
_PREFIX: Final = "run="
_COMPLETE: Final = "_SUCCESS"
"""It is written behind all else, by Spark too."""
_FILE: Final = "part-00000.parquet"
_UNFINISHED: Final = f"_{_FILE}"
"""Spark reads no file whose name begins so."""
_GLOB: Final = frozenset("*?[]{}\\")
"""What Spark takes for a pattern in a path."""


class StateFolder:
    """The folders of a state.

    :ivar url: As Spark takes it.
    """

    def __init__(self, spark: SparkSession, url: str) -> None:
        """:raises CannotRunError: When there can be no state."""
        self.url = _spark_url(url)
        jvm, context = spark._jvm, spark._jsc  # noqa: SLF001  # nothing public has Hadoop's files
        assert jvm is not None, "the session runs"
        self._path: Any = jvm.org.apache.hadoop.fs.Path
        with self._reachable():
            top = self._path(self.url)
            self._files: Any = top.getFileSystem(context.hadoopConfiguration())
            self._files.mkdirs(top)
            names = {each.getPath().getName() for each in self._files.listStatus(top)}
        others = sorted(each for each in names - {*_TABLES} if not each.startswith("."))
        if others and not names & {*_TABLES}:
            raise CannotRunError(
                f"{self.shown_url} has {others[0]} in it, and no state: name an empty folder"
            )

    @property
    def shown_url(self) -> str:
        """The URL without what may be a secret."""
        return without_user_infos(self.url)

    def path(self, table: str, run: str) -> str:
        """The folder that a run has in a table."""
        return f"{self.url}/{table}/{_PREFIX}{run}"

    def runs(self, table: str) -> list[str]:
        """The runs that have a folder in a table, the last one first."""
        with self._reachable():
            folder = self._path(f"{self.url}/{table}")
            if not self._files.exists(folder):
                return []
            names = [each.getPath().getName() for each in self._files.listStatus(folder)]
        runs = (each.removeprefix(_PREFIX) for each in names if each.startswith(_PREFIX))
        return sorted(runs, reverse=True)

    def last_run(self) -> str | None:
        """The last one that counts."""
        return next(filter(self._is_complete, self.runs(RUNS)), None)

    def write(self, table: str, run: str, rows: pa.Table) -> None:
        """Write the rows of a run: a reader of the table finds all of them or none.

        :raises CannotRunError: When they can't be written.
        """
        written = pa.BufferOutputStream()
        parquet.write_table(rows, written)
        with self._reachable():
            folder = self.path(table, run)
            unfinished = self._path(f"{folder}/{_UNFINISHED}")
            with closing(self._files.create(unfinished, True)) as stream:
                stream.write(written.getvalue().to_pybytes())
            if not self._files.rename(unfinished, self._path(f"{folder}/{_FILE}")):
                raise CannotRunError(
                    f"can't use the state {self.shown_url}: a file of {table} can't be renamed"
                )
            self._files.create(self._path(f"{folder}/{_COMPLETE}"), True).close()

    def read(self, table: str, run: str) -> pa.Table:
        """The rows of a run that is complete, of few rows.

        :raises CannotRunError: When they can't be read.
        """
        folder = self.path(table, run)
        found = []
        with self._reachable():
            for each in self._files.listStatus(self._path(folder)):
                if each.getPath().getName().endswith(".parquet"):
                    with closing(self._files.open(each.getPath())) as stream:
                        found.append(stream.readAllBytes())
        try:
            return pa.concat_tables([parquet.read_table(pa.BufferReader(each)) for each in found])
        except pa.ArrowException as error:
            raise CannotRunError(f"can't read {without_user_infos(folder)}: {error}") from error

    def clean(self, run: str, number: int) -> None:
        """Delete what no later run needs, once a run counts: earlier rows, and what did not count.

        What may be another audit at the same time is left alone: it has no lower number.

        :param number: That of the run, with which its name begins.
        """
        counted = {each for each in self.runs(RUNS) if self._is_complete(each)}
        with self._reachable():
            for table in _TABLES:
                for each in self.runs(table):
                    is_over = table == KEPT_ROWS or each not in counted
                    if each != run and number_of(each) < number and is_over:
                        self._files.delete(self._path(self.path(table, each)), True)

    def _is_complete(self, run: str) -> bool:
        with self._reachable():
            found: bool = self._files.exists(self._path(f"{self.path(RUNS, run)}/{_COMPLETE}"))
        return found

    @contextmanager
    def _reachable(self) -> Iterator[None]:
        """:raises CannotRunError: Instead of what Java throws."""
        from py4j.protocol import Py4JJavaError

        try:
            yield
        except Py4JJavaError as error:
            why = str(error.java_exception.getMessage()).partition("\n")[0]
            raise CannotRunError(f"can't use the state {self.shown_url}: {why}") from error


def number_of(run: str) -> int:
    """The number that the name of a run begins with; 0 where it is none."""
    number = run.partition("-")[0]
    return int(number) if number.isdecimal() else 0


def _spark_url(url: str) -> str:
    """A URL as Spark takes it: the path of a file is not quoted there.

    :raises CannotRunError: When Spark would take it for a pattern.
    """
    parts = urlsplit(url)
    if parts.scheme in ("", "file"):
        path = unquote(parts.path) if parts.scheme else url
        url = f"file://{Path(path).absolute()}"
    odd = sorted(_GLOB & set(url))
    if odd:
        raise CannotRunError(f"the URL of the state has {odd[0]} in it, which Spark takes for many")
    return url.rstrip("/")
