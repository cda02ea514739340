"""``fencepost audit``: one job over a data directory, its output, and its exit code."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from fencepost.cli.audit import MAX_PARTED, exit_code, lineage_blocks
from fencepost.cli.commands import run
from fencepost.cli.output import plain_lines
from fencepost.pipeline.audit.job import ALL_RULES, AuditOptions, AuditResult, audit
from fencepost.pipeline.audit.lineage.data_frame import lineage_frame
from fencepost.pipeline.audit.lineage.table import LINEAGE_SCHEMA
from fencepost.pipeline.audit.partition_summary import RuleFailure
from fencepost.pipeline.audit.rule import VIOLATION_SCHEMA
from fencepost.pipeline.audit.rules import RULES
from fencepost.pipeline.datasource.schemas import Level
from fencepost.protocol.byte_utils import crc32c
from tests.harness.recorded_cluster import Recorded, recorded
from tests.pipeline.audit import damage
from tests.pipeline.audit.summaries import findings, result, summary, violation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CRC = "crc-and-structure"
META = "meta-properties"
KEY = ("topic", "partition")


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """Two minutes of a cluster in which much happened, and nothing wrong."""
    return recorded(tmp_path_factory.mktemp("clean"), seed=3, minutes=2)


@pytest.fixture(scope="module")
def damaged(clean: Recorded, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """The same, and then a bit is flipped in the records of a replica."""
    folder = tmp_path_factory.mktemp("damaged") / "there"
    shutil.copytree(clean.data.parent, folder)
    there = replace(
        clean, data=folder / "data", tier=(folder / "tier").as_uri(), trace=folder / "trace"
    )
    damage.flip_in(segment(there), 0)
    return there


def segment(there: Recorded) -> Path:
    """The first with something in it, of the first broker that has any: replicas move."""
    logs = sorted(there.data.glob("broker-*/t-*/*.log"))
    return next(path for path in logs if path.stat().st_size)


def garble(path: Path) -> None:
    """Let the first record of a segment have another length, under a checksum that is right."""
    data = bytearray(path.read_bytes())
    position, header = damage.batches(path)[0]
    data[position + 61] ^= 2
    checksum = crc32c(bytes(data[position + 21 : position + header.size]))
    data[position + 17 : position + 21] = checksum.to_bytes(4)
    path.write_bytes(data)


def case(there: Recorded, **more: object) -> AuditOptions:
    made = AuditOptions(directory=str(there.data), trace=str(there.trace), remote=there.tier)
    return replace(made, **more)  # type: ignore[arg-type]  # fields, as the tests say


def rows(found: AuditResult) -> list[dict[str, object]]:
    """What was found, in an order of its own."""
    return sorted(found.violations.to_pylist(), key=str)


def test_the_job_finds_what_is_found_without_it(spark: SparkSession, damaged: Recorded) -> None:
    found = audit(spark, case(damaged, with_histories=True))
    there = result(damaged)
    assert found.summaries == there.summaries
    assert rows(found) == rows(there)
    assert found.violations.schema == VIOLATION_SCHEMA
    assert {each["rule"] for each in rows(found)} >= {CRC}
    assert found.violation_count > 0
    assert found.failures == ()


def test_without_a_trace_the_logs_alone_are_looked_at(
    spark: SparkSession, damaged: Recorded
) -> None:
    found = audit(spark, case(damaged, trace=None, level=Level.BATCHES))
    of_logs = [name for name, rule in RULES.items() if not rule.needs_trace]
    for each in found.summaries:
        assert [count.rule for count in each.rule_counts] == of_logs
        assert (each.trace_rows, each.history) == (0, None)
    assert CRC in {row["rule"] for row in rows(found)}


def test_some_rules_and_topics(spark: SparkSession, damaged: Recorded) -> None:
    found = audit(spark, case(damaged, rules=("torn-tail", CRC), topics=("t",)))
    assert {each.topic for each in found.summaries} == {"t"}
    assert {count.rule for each in found.summaries for count in each.rule_counts} == {
        "torn-tail",
        CRC,
    }
    assert {row["rule"] for row in rows(found)} == {CRC}


def test_a_partition_without_a_batch_is_looked_at(
    spark: SparkSession, clean: Recorded, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    shutil.copytree(clean.data, data)
    for path in data.glob("broker-*/__consumer_offsets-0/0*"):
        path.write_bytes(b"")
    found = audit(spark, AuditOptions(directory=str(data), remote=clean.tier, rules=("torn-tail",)))
    (empty,) = (each for each in found.summaries if each.key == ("__consumer_offsets", 0))
    assert empty.replicas == ()
    assert [each.rule for each in empty.rule_counts] == ["torn-tail"]
    # Its checkpoints know that there was more.
    assert {row["topic"] for row in rows(found)} == {"__consumer_offsets"}


def test_the_lineage_of_every_partition_is_a_table_and_a_data_frame(
    spark: SparkSession, clean: Recorded, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    shutil.copytree(clean.data, data)
    for path in data.glob("broker-*/__consumer_offsets-0/0*"):
        path.write_bytes(b"")
    for trace in (None, str(clean.trace)):
        options = AuditOptions(directory=str(data), remote=clean.tier, trace=trace)
        table = audit(spark, options).lineage
        assert table.schema == LINEAGE_SCHEMA
        partitions = set(zip(*(table[name].to_pylist() for name in KEY), strict=True))
        assert partitions >= {("__consumer_offsets", 0), ("t", 0)}
        frame = lineage_frame(spark, options)
        assert frame.columns == LINEAGE_SCHEMA.names
        assert sorted(frame.toArrow().to_pylist(), key=str) == sorted(table.to_pylist(), key=str)
        acknowledged = frame.where("acknowledged IS NOT NULL").count()
        assert (acknowledged > 0) == (trace is not None)


# -- the command ------------------------------------------------------------------------------


class Told:
    """The command, typed in this process."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture
        self.out = self.error = ""

    def __call__(self, *arguments: object) -> int:
        self._capture.readouterr()
        code = run(["audit", *map(str, arguments)])
        self.out, self.error = self._capture.readouterr()
        return code


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Told:
    return Told(capsys)


def test_nothing_found_is_0(
    spark: SparkSession, command: Told, clean: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCEPOST_TRACE", str(clean.trace))
    monkeypatch.setenv("FENCEPOST_REMOTE", clean.tier)
    assert command(clean.data) == 0
    assert command.out.endswith("\nnothing found\n")
    assert " rows of trace; every record\ncluster metadata: " in command.out
    assert f"cluster metadata: {clean.data}/registry.log, all of it up to version " in command.out
    for name in ALL_RULES:
        assert f"{name} " in command.out
    assert "needs --trace" not in command.out
    assert command.error == ""
    assert "lineage  t-0" not in command.out
    assert command(clean.data, "--rule", CRC, "--lineage") == 0
    told = command.out.partition("lineage  t-0\n")[2].partition("\n\n")[0].splitlines()
    assert re.match(r"  broker \d: epoch \d+ from \d+ to \d+", told[0])
    assert sum(line.count("; leads") for line in told) == 1
    assert any(line.startswith("  the tier: ") for line in told)


def test_something_found_is_1_and_told_everywhere(
    spark: SparkSession, command: Told, damaged: Recorded, tmp_path: Path
) -> None:
    report, out = tmp_path / "report.html", tmp_path / "a" / "b"
    written = ("--report", report, "--out", out)
    rule = ("--rule", CRC, "--rule", "latest-never-back")
    assert command(damaged.data, *rule, *written) == 1
    told = next(line for line in command.out.splitlines() if line.startswith("violation"))
    assert CRC in told
    assert command.out.endswith("violation\n") or command.out.endswith("violations\n")
    assert "needs --trace" in command.out
    found = pq.read_table(out / "violations.parquet")
    assert found.schema == VIOLATION_SCHEMA
    (row,) = found.to_pylist()
    flipped = segment(damaged)
    broker = int(flipped.parts[-3].removeprefix("broker-"))
    assert (row["rule"], row["broker"], row["explanation"]) == (CRC, broker, None)
    assert row["segment"] == int(flipped.stem)
    assert f"{row['topic']}-{row['partition']}" in told
    assert row["message"] in told
    assert "1 violation." in report.read_text()
    lineage = pq.read_table(out / "lineage.parquet")
    assert lineage.schema == LINEAGE_SCHEMA
    assert (row["topic"], row["partition"]) in zip(
        *(lineage[name].to_pylist() for name in KEY), strict=True
    )
    assert command.out.count("written: ") == 4
    # What was found once is not there for ever.
    assert command(damaged.data, "--rule", "latest-never-back", "--out", out) == 0
    assert pq.read_table(out / "violations.parquet").num_rows == 0


def test_what_is_wrong_with_a_directory_is_1_and_told_everywhere(
    spark: SparkSession, command: Told, clean: Recorded, tmp_path: Path
) -> None:
    data, report, out = tmp_path / "data", tmp_path / "report.html", tmp_path / "out"
    shutil.copytree(clean.data, data)
    one, two = sorted(data.glob("broker-*/meta.properties"))[:2]
    two.write_bytes(one.read_bytes())
    where = two.parent.name.replace("-", " ")
    assert command(data, "--rule", META, "--report", report, "--out", out) == 1
    assert "directories\n" in command.out
    told = [line for line in command.out.splitlines() if line.startswith("violation ")]
    assert len(told) == 2
    assert all(line.startswith(f"violation  {META}  {where}: {two.parent}: ") for line in told)
    found = pq.read_table(out / "violations.parquet")
    assert found.schema == VIOLATION_SCHEMA
    assert {(row["rule"], row["topic"], row["partition"]) for row in found.to_pylist()} == {
        (META, None, None)
    }
    text = " ".join(report.read_text().split())
    assert f'<td class="w">{META}</td><td>{where}</td>' in text
    assert "directories</td>" in text
    assert "None-None" not in text
    assert command(data, "--rule", META, "--topic", "t") == 0
    assert command(data, "--rule", CRC) == 0
    assert META not in command.out


def test_a_bit_of_a_batch_that_only_its_records_tell(
    spark: SparkSession, command: Told, clean: Recorded, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    shutil.copytree(clean.data, data)
    garble(segment(replace(clean, data=data)))
    assert command(data, "--rule", CRC, "--level", "batches") == 0
    assert command(data, "--rule", CRC) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (lambda at: [at / "nowhere"], "nowhere is not a directory"),
        (lambda at: [at], "no log director"),
        (lambda at: [at, "--rule", "torn-tale"], "did you mean torn-tail?"),
        (lambda at: [at, "--level", "bytes"], "--level"),
        (lambda _: [], "DIR is missing"),
    ],
)
def test_what_cannot_be_run_is_2(
    spark: SparkSession,
    command: Told,
    tmp_path: Path,
    arguments: Callable[[Path], list[object]],
    said: str,
) -> None:
    assert command(*arguments(tmp_path)) == 2
    assert said in command.error
    assert (command.out, command.error.count("\n")) == ("", 1)


def test_a_list_in_the_environment_is_split(
    command: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCEPOST_RULE", "torn-tail  crc")
    assert command(tmp_path) == 2
    assert "there is no rule crc" in command.error


def test_what_is_missing_beside_the_logs_is_2(
    spark: SparkSession, command: Told, clean: Recorded, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    for arguments, said in (
        (["--trace", tmp_path], "there is no trace in"),
        (["--trace", blocked / "x"], "can't read a trace in"),
        (["--remote", "memory:"], "in memory"),
        (["--remote", (tmp_path / "nowhere").as_uri()], "there is no tier in"),
        (["--topic", "absent"], "there is no log of absent in"),
        (["--report", tmp_path / "nowhere" / "a.html"], "can't write to"),
        (["--out", blocked / "x"], "can't write to"),
    ):
        assert command(clean.data, *arguments) == 2
        assert said in command.error
        assert (command.out, command.error.count("\n")) == ("", 1)


def test_the_trace_of_another_cluster_is_refused(
    spark: SparkSession, command: Told, clean: Recorded, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    shutil.copytree(clean.trace, trace)
    (path,) = trace.glob("*.jsonl")
    first, rest = path.read_bytes().split(b"\n", 1)
    line = json.loads(first)
    known = line["event"]["details"]["cluster_id"]
    line["event"]["details"]["cluster_id"] = "another"
    path.write_bytes(json.dumps(line).encode() + b"\n" + rest)
    assert command(clean.data, "--trace", trace) == 2
    assert command.error == (
        f"fencepost: {path} is the trace of another cluster (another)"
        f" than the logs in {clean.data} ({known})\n"
    )


def test_what_the_job_cannot_read_is_2(
    spark: SparkSession, command: Told, clean: Recorded, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    shutil.copytree(clean.trace, trace)
    (path,) = trace.glob("*.jsonl")
    path.write_bytes(b"{}\n" + path.read_bytes())
    assert command(clean.data, "--trace", trace) == 2
    what = f"{path}, line 1 is none of serve --trace"
    assert command.error.startswith(f"fencepost: the job failed: {what}")
    assert (command.out, command.error.count("\n")) == ("", 1)


def test_the_lineage_is_printed_where_replicas_part_or_where_it_is_asked_for() -> None:
    parted = findings([summary(number) for number in range(MAX_PARTED + 2)])

    def printed(found: AuditResult, *, everywhere: bool) -> list[str]:
        blocks = lineage_blocks(found, everywhere=everywhere)
        return [text for block in blocks for text in plain_lines(block)]

    some = printed(parted, everywhere=False)
    assert sum(line.startswith("parted  orders-") for line in some) == MAX_PARTED
    assert "2 more partitions part; --lineage tells them" in some
    everything = printed(parted, everywhere=True)
    assert sum(line.startswith("parted  orders-") for line in everything) == MAX_PARTED + 2
    assert not any("more partitions" in line for line in everything)
    agreed = [replace(each, lineages=()) for each in parted.summaries]
    assert printed(findings(agreed), everywhere=False) == []


def test_a_rule_that_failed_is_2_unless_something_was_found() -> None:
    failure = RuleFailure(rule="torn-tail", topic="orders", partition=0, reason="why")
    assert exit_code(findings([summary(0)])) == 0
    assert exit_code(findings([summary(0, found=1, explained=1)], [violation()])) == 0
    assert exit_code(findings([summary(0), summary(1, failures=[failure])])) == 2
    assert exit_code(findings([summary(0, found=1), summary(1, failures=[failure])])) == 1
