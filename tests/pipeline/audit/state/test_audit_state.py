"""Audits that keep a state: they read what is new, and find what a full audit finds."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fencepost.cli.commands import run
from fencepost.pipeline.audit.directory_rule import read_listings
from fencepost.pipeline.audit.directory_task import check_directories
from fencepost.pipeline.audit.job import AuditOptions, AuditResult, audit
from fencepost.pipeline.audit.lineage.table import LINEAGE_SCHEMA
from fencepost.pipeline.audit.partition_metadata import read_partition_metadata
from fencepost.pipeline.audit.rule import VIOLATION_SCHEMA, violation_table
from fencepost.pipeline.audit.spark_task import check_partitions
from fencepost.pipeline.audit.state import audit_state, run_tables
from fencepost.pipeline.audit.state.kept_segments import ScanExtent
from fencepost.pipeline.audit.suppressions import Suppression
from fencepost.pipeline.datasource.schemas import Level
from fencepost.pipeline.datasource.segment_scan import Checks, scan_folder
from fencepost.pipeline.requirements import CannotRunError
from tests.pipeline.audit import damage
from tests.pipeline.audit.log_histories import fill
from tests.pipeline.audit.rigs import SMALL, TIERED, Left, rig

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPICS = ("plain", "other")
CRC = "crc-and-structure"
TABLES = ("kept", "findings", "lineage", "runs")
NOW_MS = 1_900_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Grown:
    """What a cluster left when it was stopped, and when it had gone on for a while."""

    before: Left
    after: Left


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grown]:
    with rig(tmp_path_factory.mktemp("grown")) as made:
        for topic in TOPICS:
            made.create(topic, **SMALL)
            fill(made, topic, 3)
        made.create("tiered", **TIERED)
        fill(made, "tiered", 2)
        made.about("tiered", "tier", action="upload")
        made.stop()
        before = made.left("before")
        made.start()
        for topic in (*TOPICS, "tiered"):
            fill(made, topic, 1)
            made.produce(topic, 6)
        made.about("tiered", "tier", action="upload")
        made.stop()
        yield Grown(before=before, after=made.left("after"))


@pytest.fixture(scope="module")
def audited(spark: SparkSession, grown: Grown, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state that an audit of it leaves in the end."""
    state = tmp_path_factory.mktemp("audited") / "state"
    audit(spark, options(grown.after, str(state)))
    return state


@pytest.fixture
def state(audited: Path, tmp_path: Path) -> str:
    """The same, to go on with."""
    shutil.copytree(audited, tmp_path / "state")
    return str(tmp_path / "state")


def options(left: Left, state: str | None = None, **more: object) -> AuditOptions:
    made = AuditOptions(
        directory=str(left.place / "data"),
        remote=(left.place / "tier").as_uri(),
        state=state,
        now_ms=NOW_MS,
    )
    return replace(made, **more)  # type: ignore[arg-type]  # fields, as the tests say


def extent(found: AuditResult) -> ScanExtent:
    assert found.extent is not None
    return found.extent


def segments(left: Left) -> int:
    """How many there are, in logs and in the tier."""
    logs = (left.place / "data").glob("broker-*/*/*.log")
    return len([*logs, *(left.place / "tier").glob("*/*/*.log")])


def told(found: AuditResult) -> tuple[object, ...]:
    """All that it says of the logs."""
    return found.summaries, sorted(map(str, found.violations.to_pylist()))


def whole(left: Left) -> tuple[object, ...]:
    """What an audit of every batch tells, without Spark."""
    data, remote = left.place / "data", (left.place / "tier").as_uri()
    metadata = read_partition_metadata(data, remote=remote, with_coordinators=True)
    rows = scan_folder(data, remote=remote, checks=Checks.RECORDS)
    found = list(check_partitions(rows, None, metadata, now_ms=NOW_MS))
    directories = check_directories(read_listings(data))
    violations = [*directories.violations, *(row for each in found for row in each.violations)]
    summaries = tuple(each.summary for each in found)
    told = violation_table(violations).select(VIOLATION_SCHEMA.names)
    return summaries, sorted(map(str, told.to_pylist()))


def rules(found: AuditResult) -> set[object]:
    return {*found.violations["rule"].to_pylist()}


def test_the_next_audit_reads_what_is_new_and_tells_what_a_full_one_tells(
    spark: SparkSession, grown: Grown, tmp_path: Path
) -> None:
    state = str(tmp_path)
    first = audit(spark, options(grown.before, state))
    assert told(first) == whole(grown.before)
    assert (extent(first).trusted, extent(first).read) == (0, segments(grown.before))
    second = audit(spark, options(grown.after, state))
    assert told(second) == whole(grown.after)
    assert second.violation_count == 0
    # Of each log the last segment of before, the new one, and the one that is not closed.
    assert extent(second).trusted + extent(second).read == segments(grown.after)
    assert extent(second).trusted >= 3 * 3 * 2 + 2
    third = audit(spark, options(grown.after, state))
    assert told(third) == told(second)
    assert extent(third).read < extent(second).read
    assert extent(third).read_bytes < extent(second).read_bytes


def test_findings_lineage_and_runs_are_tables_that_grow(
    spark: SparkSession, grown: Grown, state: str, tmp_path: Path
) -> None:
    left = grown.after.copy(tmp_path / "copy")
    damage.flip_in(left.segments(1, "plain")[0], 0)
    known = Suppression(rule=CRC, topic="pl*", reason="OPS-1")
    found = audit(spark, options(left, state, suppressions=(known,)))
    assert CRC in rules(found)
    assert (found.violation_count, found.suppressed_count) == (0, 1)
    findings = spark.read.parquet(f"{state}/findings")
    assert {*VIOLATION_SCHEMA.names, "suppression", "run"} == {*findings.columns}
    by_run = {row["run"]: row["count"] for row in findings.groupBy("run").count().collect()}
    runs = spark.read.parquet(f"{state}/runs").orderBy("run").toArrow().to_pylist()
    assert [each["run"].partition("-")[0] for each in runs] == ["00000001", "00000002"]
    assert by_run == {runs[1]["run"]: found.violations.num_rows}
    (row,) = findings.where(f"rule = '{CRC}'").collect()
    assert (row.severity, row.suppression) == ("damage", "OPS-1")
    assert runs[1]["segments_read"] == extent(found).read
    assert runs[1]["bytes_read"] == extent(found).read_bytes > 0
    assert (runs[1]["violations"], runs[1]["suppressed"]) == (0, 1)
    assert runs[1]["format"] == run_tables.FORMAT
    lineage = spark.read.parquet(f"{state}/lineage")
    assert {*LINEAGE_SCHEMA.names, "run"} == {*lineage.columns}
    assert lineage.select("run").distinct().count() == 2
    # The rows of the last run alone are kept.
    assert [path.name for path in Path(state, "kept").iterdir()] == [f"run={runs[1]['run']}"]


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


DAMAGES: dict[str, Callable[[Left], object]] = {
    "flipped": lambda left: damage.flip_in(left.segments(1, "plain")[0], 1),
    "other value": lambda left: damage.falsify(left.segments(2, "plain")[1], 1),
    "cut": lambda left: _cut(left.segments(3, "plain")[0]),
    "epoch": lambda left: damage.give_epoch(left.segments(1, "other")[0], 2, 7),
    "gone": lambda left: left.segments(2, "other")[1].unlink(),
    "index gone": lambda left: left.segments(3, "other", ".index")[0].unlink(),
    "index": lambda left: damage.flip(left.segments(3, "other", ".timeindex")[1], 3),
    "snapshot": lambda left: damage.flip(left.segments(1, "other", ".snapshot")[0], 8),
    "in the tier": lambda left: damage.flip_in(left.objects("tiered")[0], 0),
}


def test_what_was_damaged_since_is_found(
    spark: SparkSession, grown: Grown, state: str, tmp_path: Path
) -> None:
    left = grown.after.copy(tmp_path / "copy")
    for do in DAMAGES.values():
        do(left)
    found = audit(spark, options(left, state))
    assert told(found) == whole(left)
    assert found.violation_count > len(DAMAGES)
    assert extent(found).trusted > len(DAMAGES)
    # And it is still found when nothing is read.
    assert told(audit(spark, options(left, state))) == told(found)


def test_what_does_not_show_from_outside_is_found_in_its_turn(
    spark: SparkSession, grown: Grown, state: str, tmp_path: Path
) -> None:
    left = grown.after.copy(tmp_path / "copy")
    path = left.segments(1, "plain")[0]
    before = path.stat()
    damage.flip_in(path, 0)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert rules(audit(spark, options(left, state))) == set()
    turns = [audit(spark, options(left, state, reread=0.5)) for _ in range(2)]
    assert [extent(each).reread > 0 for each in turns] == [True, True]
    assert (
        sum(extent(each).reread for each in turns)
        == extent(turns[0]).trusted + extent(turns[0]).reread
    )
    assert CRC in rules(turns[0]) | rules(turns[1])
    assert CRC in rules(turns[1])
    full = audit(spark, options(left, state, full=True))
    assert told(full) == whole(left)
    assert (extent(full).trusted, extent(full).read) == (0, segments(left))


def test_an_audit_that_ends_in_between_leaves_the_state_as_it_was(
    spark: SparkSession, grown: Grown, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(audit_state, "run_table", gone)
        with pytest.raises(KeyboardInterrupt):
            audit(spark, options(grown.after, state))
    assert len(list(Path(state, "kept").iterdir())) == 2
    found = audit(spark, options(grown.after, state))
    assert extent(found).trusted > extent(found).read
    # What the one that did not end has left goes with the next one that can't be beside it.
    audit(spark, options(grown.after, state, topics=("plain",), rules=(CRC,)))
    lengths = {table: len(list(Path(state, table).iterdir())) for table in TABLES}
    assert lengths == {"kept": 1, "findings": 3, "lineage": 3, "runs": 3}


def test_what_is_not_looked_at_stays(spark: SparkSession, grown: Grown, state: str) -> None:
    one = audit(spark, options(grown.after, state, topics=("plain",), remote=None))
    assert {each.topic for each in one.summaries} == {"plain"}
    assert extent(one).trusted > 0
    found = audit(spark, options(grown.after, state))
    assert told(found) == whole(grown.after)
    logs = {path.parent for path in (grown.after.place / "data").glob("broker-*/*-*/*.log")}
    assert extent(found).read == len(logs)


def test_headers_that_were_looked_at_say_nothing_of_records(
    spark: SparkSession, grown: Grown, state: str
) -> None:
    assert extent(audit(spark, options(grown.after, state, level=Level.BATCHES))).trusted == 0


def test_a_state_that_is_none_or_of_another_format_or_cluster_is_refused(
    spark: SparkSession,
    grown: Grown,
    state: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(CannotRunError, match="has data in it, and no state"):
        audit(spark, options(grown.before, str(grown.before.place)))
    with pytest.raises(CannotRunError, match="which Spark takes for many"):
        audit(spark, options(grown.before, f"{state}*"))
    with pytest.raises(CannotRunError, match="can't use the state nowhere://x: No FileSystem for"):
        audit(spark, options(grown.before, "nowhere://x"))
    copy = grown.before.copy(tmp_path / "copy")
    for path in (copy.place / "data").glob("**/meta.properties"):
        lines = path.read_text().splitlines()
        changed = ["cluster.id=another" if "cluster.id" in line else line for line in lines]
        path.write_text("\n".join(changed) + "\n")
    with pytest.raises(CannotRunError, match=r"is of another cluster \(.*\) than the logs \(anot"):
        audit(spark, options(copy, state))
    written, now = run_tables.FORMAT, run_tables.FORMAT + 1
    monkeypatch.setattr(run_tables, "FORMAT", now)
    told = rf"is of format {written}, .* has format {now}: name another"
    with pytest.raises(CannotRunError, match=told):
        audit(spark, options(grown.before, state))


def test_the_command_tells_what_it_read(
    spark: SparkSession, grown: Grown, state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["audit", str(grown.after.place / "data"), "--state", state]
    assert run([*arguments, "--reread", "1"]) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("state: "))
    assert line.endswith(" of them again), 0 trusted (0 B)")
    for wrong, said in (
        (["--reread", "2"], "--reread"),
        (["--full", "--reread", "0.1"], "--full reads all"),
    ):
        assert run([*arguments, *wrong]) == 2
        assert said in capsys.readouterr().err
    assert run([*arguments[:2], "--full"]) == 2
    assert "--full is of no use without --state" in capsys.readouterr().err
