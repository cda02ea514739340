"""``fencepost audit --state`` of a partition that grew by 1 %, beside an audit of all of it.

A served fencepost writes the partition of `pipeline_large_partition`, and once it was audited a
hundredth of that more. Two cores follow all rules on every record, and nothing may be found. What
each takes is what Spark's tasks ran for in all, which includes what reads the state and writes it,
and the bytes of logs, indexes and the state that they read.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench import pipeline_large_partition, process, servers, wire
from bench import spark as sessions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SHARE: Final = 100
"""One part of so many is new."""
_MASTER: Final = "local[2]"
TURNS: Final = 3
"""Of each; the shortest counts."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What an audit took."""

    task_ms: float
    bytes: float


def measure(kind: servers.Kind, mebibytes: int) -> Mapping[str, float]:
    """Percents of the bytes and of the task time of a full audit.

    :param mebibytes: Of records, before the last hundredth.
    :raises bench.tools.Missing: Without Spark.
    """
    assert isinstance(kind, servers.Fencepost), "it has no peers"
    kind = pipeline_large_partition.of_segments(kind, mebibytes)
    with servers.launching() as launch, sessions.session(_MASTER) as spark:
        kind.prepare(launch)
        folder, state = launch.directory / "data", launch.directory / "state"
        with servers.started(kind, launch) as server:
            process.wait_until_idle(server.pid)
            pipeline_large_partition.write(server, mebibytes)
        for _ in range(TURNS):  # the first ones warm up
            _audit(spark, folder, state, full=True)
        with servers.started(kind, launch) as server:
            process.wait_until_idle(server.pid)
            pipeline_large_partition.append(server, max(mebibytes // _SHARE, 1))
        new, whole = [], []
        for turn in range(TURNS):
            again = launch.directory / f"state-{turn}"
            shutil.copytree(state, again)
            new.append(_audit(spark, folder, again))
            whole.append(_audit(spark, folder, again, full=True))
    return {
        "pipeline_incremental_bytes": 100 * _least(new, "bytes") / _least(whole, "bytes"),
        "pipeline_incremental_time": 100 * _least(new, "task_ms") / _least(whole, "task_ms"),
    }


def _least(costs: Sequence[Cost], name: str) -> float:
    return min(float(getattr(each, name)) for each in costs)


def _audit(spark: SparkSession, folder: Path, state: Path, *, full: bool = False) -> Cost:
    """:raises bench.wire.BadAnswer: When it finds something."""
    from fencepost.pipeline.audit.job import AuditOptions, audit

    stages, read, kept = _stages(spark), _bytes_read(), _kept_bytes(state)
    options = AuditOptions(directory=str(folder), state=str(state), full=full)
    findings = audit(spark, options)
    if findings.violation_count or findings.failures:
        raise wire.BadAnswer(
            f"the audit found {findings.violation_count} violations where there are none"
        )
    # What was kept is read to find out what there is, and to take it over; and then what is judged.
    of_state = (0 if full else 2 * kept) + _kept_bytes(state)
    return Cost(
        task_ms=sum(ms for stage, ms in _stages(spark).items() if stage not in stages),
        bytes=of_state + sum(size - read.get(pid, 0) for pid, size in _bytes_read().items()),
    )


def _stages(spark: SparkSession) -> dict[int, float]:
    """What the tasks of each stage have run for, in milliseconds; the last thousand stages."""
    context = spark.sparkContext._jsc.sc()  # noqa: SLF001  # nothing public tells
    gateway = spark.sparkContext._gateway  # noqa: SLF001
    assert gateway is not None, "the session runs"
    context.listenerBus().waitUntilEmpty()
    no_quantiles = gateway.new_array(gateway.jvm.double, 0)
    stages = context.statusStore().stageList(
        None, False, False, no_quantiles, gateway.jvm.java.util.ArrayList()
    )
    found = (stages.apply(number) for number in range(stages.length()))
    return {each.stageId(): float(each.executorRunTime()) for each in found}


def _bytes_read() -> dict[int, int]:
    """What each Python worker has read from files so far."""
    found = {}
    for pid in process.descendants("pyspark.daemon"):
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
        found[pid] = int(dict(line.split(": ") for line in lines)["rchar"])
    return found


def _kept_bytes(state: Path) -> int:
    return sum(path.stat().st_size for path in state.glob("kept/*/*.parquet"))
