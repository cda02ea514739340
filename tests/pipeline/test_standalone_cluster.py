"""The same jobs, with the same results, on a standalone cluster: a master and two workers.

Each worker has a virtual environment of its own, without fencepost: its executors run what the
driver sends them. ``FENCEPOST_SPARK_CLUSTER=all`` runs every job there; without it only a load,
from its bundle.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fencepost.cli import main
from fencepost.pipeline import requirements
from tests.harness.require import tool
from tests.harness.run import run
from tests.harness.served_cluster import Cluster, serve
from tests.harness.spark import jars
from tests.harness.spark_standalone import Standalone, standalone
from tests.harness.wait import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.harness.run import Finished

ROWS: Final = 6_000
PARTITIONS: Final = 3
SETTINGS: Final = {
    "check.expected.offsets": "true",
    "segment.bytes": "1048576",
    # The rows are older than a week.
    "retention.ms": "-1",
}
_JOB_S: Final = 240.0

# The first of them starts a cluster, and runs two commands.
pytestmark = pytest.mark.timeout(600)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What is the same for both: a served cluster, its files, and rows to load."""

    cluster: Cluster
    folder: Path
    workers: Standalone

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def rows(self) -> Path:
        return self.folder / "rows"

    def topic(self) -> str:
        """A new one."""
        return self.cluster.create_topic("orders", partitions=PARTITIONS, configs=SETTINGS)

    def loading(self, topic: str) -> list[str]:
        """The arguments of a load of all rows."""
        columns = ["--key", "id", "--value", "text", "--timestamp", "at"]
        where = ["--topic", topic, "--bootstrap", self.cluster.bootstrap]
        return ["load", str(self.rows), *where, *columns, "--chunk-bytes", "100000"]

    def stored(self, topic: str) -> list[bytes]:
        """The partitions of a topic, byte by byte."""
        return [self.cluster.stored(topic, partition) for partition in range(PARTITIONS)]

    def on_the_cluster(self, arguments: Sequence[str], *, code: int = 0) -> Finished:
        """Run a command there, as a user does; both workers have to take part."""
        command = [*_program("fencepost"), *arguments, "--master", self.workers.master]
        return self._run(command, code)

    def submitted(self, arguments: Sequence[str]) -> Finished:
        """Run a command there by spark-submit, from a bundle alone."""
        bundle = [*_program("fencepost"), "spark", "bundle", str(self.folder / "bundle")]
        told = run(bundle, env={**os.environ, requirements.JARS_VARIABLE: str(jars())}).out.split()
        assert told[0] == "spark-submit"
        assert told[-2:] == ["audit", "--help"]
        where = [*_program("spark-submit"), "--master", self.workers.master]
        return self._run([*where, *told[1:-2], *arguments], 0)

    def _run(self, command: Sequence[str], code: int) -> Finished:
        environment = {
            **os.environ,
            **self.workers.environment,
            requirements.JARS_VARIABLE: str(jars()),
            # Nothing but what is installed; the tests' own folder would be found as well.
            "PYTHONPATH": "",
        }
        done = run(command, timeout_s=_JOB_S, env=environment, cwd=self.folder, code=code)
        assert len(self.workers.executors()) == 2
        return done


def _program(name: str) -> list[str]:
    """A program that is installed beside this Python."""
    return [str(Path(sys.executable).with_name(name))]


@pytest.fixture(scope="module")
def ground(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    tool("mvn")
    folder = tmp_path_factory.mktemp("cluster")
    write_rows(folder / "rows")
    served = serve(
        folder / "fencepost.log",
        *("--data-dir", str(folder / "data")),
        *("--trace", str(folder / "trace")),
    )
    with ExitStack() as running:
        assert served.process is not None
        running.callback(served.process.stop)
        workers = running.enter_context(standalone(folder / "spark"))
        yield Ground(cluster=served, folder=folder, workers=workers)


@pytest.fixture(scope="module")
def loaded(ground: Ground) -> str:
    """A topic that has the rows, loaded here."""
    topic = ground.topic()
    assert main(ground.loading(topic)) == 0
    return topic


def write_rows(folder: Path) -> None:
    """Four files of rows whose keys come in no order."""
    folder.mkdir()
    keys = [f"{number * 7919 % ROWS}" for number in range(ROWS)]
    table = pa.table(
        {
            "id": keys,
            "text": [f"the text of {key} " * 50 for key in keys],
            "at": [1_700_000_000_000 + number for number in range(ROWS)],
        }
    )
    for number in range(4):
        part = table.slice(number * ROWS // 4, ROWS // 4)
        pq.write_table(part, folder / f"part-{number}.parquet", row_group_size=500)


def check_load(ground: Ground, loaded: str, _spark: SparkSession) -> None:
    """It writes the same bytes."""
    topic = ground.topic()
    ground.submitted(ground.loading(topic))
    assert ground.stored(topic) == ground.stored(loaded)
    ends = [ground.cluster.end_offset(topic, partition) for partition in range(PARTITIONS)]
    assert sum(ends) == ROWS
    assert all(ends)


def check_stream(ground: Ground, loaded: str, spark: SparkSession) -> None:
    """It reads the same records."""

    def streaming(name: str) -> list[str]:
        files = ["--checkpoint", str(ground.folder / f"{name}-checkpoint")]
        where = ["--bootstrap", ground.cluster.bootstrap, "--trigger", "available-now"]
        return ["stream", "to-parquet", loaded, str(ground.folder / name), *where, *files]

    def read(name: str) -> list[tuple[int, int, bytes, bytes]]:
        rows = spark.read.parquet(str(ground.folder / name))
        return sorted(
            (row.partition, row.offset, bytes(row.key), bytes(row.value)) for row in rows.collect()
        )

    assert main(streaming("here")) == 0
    ground.on_the_cluster(streaming("there"))
    assert read("there") == read("here")
    assert len(read("here")) == ROWS


def check_audit(ground: Ground, loaded: str, _spark: SparkSession) -> None:
    """It finds the same."""
    copy = ground.folder / "copy"
    shutil.copytree(ground.data, copy)
    shutil.copytree(ground.folder / "trace", ground.folder / "copied-trace")
    damaged = min(copy.glob(f"broker-2/{loaded}-1/*.log"))
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)

    def auditing(name: str) -> list[str]:
        trace = ["--trace", str(ground.folder / "copied-trace")]
        return ["audit", str(copy), *trace, "--out", str(ground.folder / name)]

    def found(name: str) -> list[str]:
        rows = pq.read_table(ground.folder / name).to_pylist()
        return sorted(repr(row) for row in rows)

    assert main(auditing("found-here")) == 1
    ground.on_the_cluster(auditing("found-there"), code=1)
    assert found("found-there") == found("found-here")
    assert any("crc" in each for each in found("found-here"))


def check_audit_without_a_worker(ground: Ground, loaded: str, _spark: SparkSession) -> None:
    """It finds the same where a worker is lost in the middle and slow tasks are started twice."""
    copy = ground.folder / "large"
    shutil.copytree(ground.data, copy)
    for damaged in sorted(copy.glob(f"broker-*/{loaded}-0/*.log"))[:2]:
        content = bytearray(damaged.read_bytes())
        content[len(content) // 3] ^= 1
        damaged.write_bytes(content)
    arguments = ["audit", str(copy), "--out"]
    assert main([*arguments, str(ground.folder / "whole")]) == 1
    speculating = {"spark.speculation": "true", "spark.speculation.interval": "50ms"}
    with standalone(ground.folder / "lost", configs=speculating) as cluster:
        lost = cluster.workers[1]
        with ThreadPoolExecutor(1) as pool:
            there = replace(ground, workers=cluster)
            job = pool.submit(
                there.on_the_cluster, [*arguments, str(ground.folder / "lost-one")], code=1
            )
            wait_until("it executes Python", lambda: lost.executes_python() or job.done(), _JOB_S)
            assert not job.done()
            lost.kill()
            job.result()
    for name in ("violations", "incidents", "lineage"):
        whole, lost_one = (
            sorted(map(repr, pq.read_table(ground.folder / run / f"{name}.parquet").to_pylist()))
            for run in ("whole", "lost-one")
        )
        assert lost_one == whole
        assert whole


JOBS: Final = {
    "load": check_load,
    "stream": check_stream,
    "audit": check_audit,
    "audit-without-a-worker": check_audit_without_a_worker,
}
EVERY: Final = os.environ.get("FENCEPOST_SPARK_CLUSTER") == "all"


@pytest.mark.parametrize("job", JOBS if EVERY else ["load"])
def test_a_job_does_there_what_it_does_here(
    job: str, ground: Ground, loaded: str, spark: SparkSession
) -> None:
    JOBS[job](ground, loaded, spark)
