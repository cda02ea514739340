"""``fencepost load`` beside the Kafka connector's own sink: the same rows, to the same broker.

Records of 1,024 random bytes with a key, in Parquet. Both read the files, put each record into the
partition of its key, and wait until the broker has it (``acks=all``); what the load does besides
is what makes it exact: rows in their order, offsets that are expected. In turns, one Spark session
for all of it, after a load and a sink of a few rows that warm it up.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench import control, process, servers
from bench import spark as sessions
from bench.load import RECORD_BYTES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES: Final = 4
PARTITIONS: Final = 4
TURNS: Final = 3
WARM_UP_ROWS: Final = 20_000
_CONFIGS: Final = {"check.expected.offsets": "true"}
_MASTER: Final = "local[2,4]"


def measure(kind: servers.Kind, rows: int) -> Mapping[str, float]:
    """Megabytes a second of both, and the load's over the sink's.

    :param rows: How many.
    :raises bench.tools.Missing: Without Spark, or the connector.
    """
    with (
        tempfile.TemporaryDirectory(prefix="fencepost-bench-") as folder,
        sessions.session(_MASTER) as spark,
    ):
        few, many = Path(folder) / "few", Path(folder) / "many"
        write(few, WARM_UP_ROWS)
        write(many, rows)
        with servers.running(kind) as server:
            process.wait_until_idle(server.pid)
            _timed(server, "warm", _load, spark, few)
            _timed(server, "warm", _sink, spark, few)
            loads, sinks = [], []
            for turn in range(TURNS):
                loads.append(_timed(server, f"t{turn}", _load, spark, many))
                sinks.append(_timed(server, f"t{turn}", _sink, spark, many))
    megabytes = rows * RECORD_BYTES / 1e6
    return {
        "pipeline_load": megabytes / statistics.median(loads),
        "pipeline_sink": megabytes / statistics.median(sinks),
        "pipeline_load_share": statistics.median(
            sink / load for load, sink in zip(loads, sinks, strict=True)
        ),
    }


def write(folder: Path, rows: int) -> None:
    """Write Parquet files of so many rows altogether."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    each = -(-rows // FILES)
    for file in range(FILES):
        count = min(each, rows - file * each)
        values = pa.Array.from_buffers(
            pa.binary(RECORD_BYTES), count, [None, pa.py_buffer(os.urandom(count * RECORD_BYTES))]
        )
        table = pa.table(
            {
                "key": pa.array(f"key-{file * each + row}" for row in range(count)),
                "value": values.cast(pa.binary()),
            }
        )
        pq.write_table(table, folder / f"part-{file}.parquet", row_group_size=50_000)


Way = Callable[["SparkSession", str, str, Path], None]


def _timed(server: servers.Server, name: str, way: Way, spark: SparkSession, folder: Path) -> float:
    """Seconds of one way, into a topic of its own that is deleted afterwards."""
    topic = f"{name}-{way.__name__.strip('_')}"
    configs = _CONFIGS if way is _load else {}
    made = {"name": topic, "partitions": PARTITIONS, "replication_factor": 1, "configs": configs}
    with control.Control(server) as line:
        line.ask("POST", "/v1/topics", made)
    begin = time.perf_counter()
    way(spark, server.bootstrap, topic, folder)
    took = time.perf_counter() - begin
    with control.Control(server) as line:
        line.ask("DELETE", f"/v1/topics/{topic}")
    return took


def _load(spark: SparkSession, bootstrap: str, topic: str, folder: Path) -> None:
    from fencepost.pipeline.load import Columns, Files, Target, load

    files = Files(paths=(str(folder),), format="parquet")
    load(spark, files, Target(bootstrap=bootstrap, topic=topic), columns=Columns(key="key"))


def _sink(spark: SparkSession, bootstrap: str, topic: str, folder: Path) -> None:
    rows = spark.read.parquet(str(folder))
    writer = rows.write.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    writer.option("topic", topic).save()
