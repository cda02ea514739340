"""Damages are done to a copy of what was written, and the audit's incidents are compared."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit import partition_metadata
from fencepost.pipeline.audit.condensed.window_rows import plan_windows
from fencepost.pipeline.audit.condensed.window_scan import (
    WindowReader,
    scan_folder_windows,
    scan_windows,
)
from fencepost.pipeline.audit.incidents import Incident
from fencepost.pipeline.audit.spark_task import PartitionResult, check_partitions
from fencepost.pipeline.audit.state.kept_segments import (
    KEPT,
    ScanExtent,
    Trust,
    choose_segments,
    keep_rows,
    kept_segment,
)
from fencepost.pipeline.datasource.segment_scan import Checks
from fencepost.pipeline.datasource.segments import list_segments, with_stamp
from tests.pipeline.damages.catalogue import DAMAGES
from tests.pipeline.damages.model import Damage, Target
from tests.pipeline.damages.written import BROKERS, Topic, Written

HEALTHY: Final = (
    Topic(name="healthy-1", replicas=1),
    Topic(name="healthy-3", replicas=3),
    Topic(name="healthy-transactions", replicas=3, transactional=True),
    Topic(name="healthy-compacted", replicas=3, compacted=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What an audit says of a partition that was damaged, or left as it was."""

    topic: str
    expected: str
    found: tuple[str, ...]
    """Each incident in a line."""
    right: bool


def topics(damages: Sequence[Damage] = DAMAGES) -> list[Topic]:
    """One for each damage and number of replicas, and those that are not damaged."""
    damaged = [
        Topic(
            name=_name(each, count),
            replicas=count,
            transactional=each.transactional,
            compacted=each.compacted,
        )
        for each in damages
        for count in each.replicas
    ]
    return [*damaged, *HEALTHY]


def outcomes(written: Written, to: Path, damages: Sequence[Damage] = DAMAGES) -> list[Outcome]:
    """Damage a copy, and audit it; the healthy partitions come last."""
    copy = written.copy(to)
    for each in damages:
        for count in each.replicas:
            each.do(Target(written=copy, topic=_name(each, count)))
    found = incidents(copy)
    compared = [
        _compare(each, count, found.get(_name(each, count), ()))
        for each in damages
        for count in each.replicas
    ]
    return compared + [_healthy(topic.name, found.get(topic.name, ())) for topic in HEALTHY]


def incidents(written: Written) -> dict[str, tuple[Incident, ...]]:
    """What an audit finds, by topic, where there is anything."""
    rows = scan_folder_windows(written.folder, checks=Checks.RECORDS)
    found = {}
    for result in results(written, rows):
        assert not result.summary.failures, result.summary.failures
        if result.summary.incidents:
            found[result.summary.topic] = result.summary.incidents
    return found


def results(written: Written, rows: pa.Table) -> Iterator[PartitionResult]:
    """What an audit finds in rows of what was written."""
    known = partition_metadata.read_partition_metadata(
        written.folder, with_coordinators=True, with_keys=True
    )
    return check_partitions(
        rows,
        None,
        known,
        now_ms=time.time_ns() // 1_000_000,
        read=WindowReader(None),
    )


def kept_rows(written: Written, before: pa.Table | None = None) -> tuple[pa.Table, ScanExtent]:
    """What an audit keeps, without Spark, and how much it read.

    :param before: `KEPT`: what the one before has kept; None without one.
    """
    segments = [with_stamp(each) for each in list_segments(str(written.folder), None)]
    known = KEPT.empty_table() if before is None else before
    kept = map(kept_segment, known["summary"].drop_null().to_pylist())
    choice = choose_segments(
        list(zip(segments, plan_windows(segments), strict=True)),
        {each.key: each for each in kept},
        Trust(checks=Checks.RECORDS),
    )
    trusted = [key for logs in choice.trusted.values() for key in logs]
    taken = known.filter(pc.is_in(known["segment_key"], pa.array(trusted, pa.string())))
    read = [
        batch
        for files, plan in choice.read
        for batch in keep_rows(
            files, plan, Checks.RECORDS, scan_windows(files, plan, checks=Checks.RECORDS)
        )
    ]
    return pa.concat_tables([taken, pa.Table.from_batches(read, KEPT)]), choice.extent


def table(damages: Sequence[Damage] = DAMAGES) -> Iterator[str]:
    """The catalogue in Markdown: each damage, and what an audit says of it."""
    yield "| damage | found by | one replica | three replicas |"
    yield "| --- | --- | --- | --- |"
    for each in damages:
        alone = str(each.alone) if 1 in each.replicas else ""
        beside = str(each.beside_others) if len(BROKERS) in each.replicas else ""
        words = each.name.replace("-", " ")
        other = each.rule_beside_others
        rules = f"`{each.rule}`" if other is None else f"`{each.rule}`, `{other}`"
        yield f"| {words} | {rules} | {alone} | {beside} |"


def _name(damage: Damage, replicas: int) -> str:
    return f"{damage.name}-{replicas}"


def _compare(damage: Damage, replicas: int, found: Sequence[Incident]) -> Outcome:
    severity = damage.alone if replicas == 1 else damage.beside_others
    rule = damage.rule if replicas == 1 else damage.rule_beside_others or damage.rule
    # What the end of the brokers, one after the other, has left is explained.
    causes = [each for each in found if each.explanation is None]
    right = len(causes) == 1 and (
        causes[0].rule in (rule, damage.rule_after_a_kill)
        and causes[0].severity is severity
        and re.search(damage.cause, causes[0].message) is not None
    )
    return Outcome(
        topic=_name(damage, replicas),
        expected=f"{rule} {severity}: {damage.cause}",
        found=tuple(map(_line, found)),
        right=right,
    )


def _healthy(name: str, found: Sequence[Incident]) -> Outcome:
    return Outcome(
        topic=name,
        expected="nothing but what is explained",
        found=tuple(map(_line, found)),
        right=all(each.explanation is not None for each in found),
    )


def _line(incident: Incident) -> str:
    explained = f" ({incident.explanation})" if incident.explanation is not None else ""
    more = ", ".join(f"{each.rule} {each.findings}" for each in incident.consequences)
    with_it = f"; with it: {more}" if more else ""
    return f"{incident.rule} {incident.severity}: {incident.message}{explained}{with_it}"
