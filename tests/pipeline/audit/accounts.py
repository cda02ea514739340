"""Rows of logs and traces, and accounts, for tests that need no cluster."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa

from fencepost.pipeline.audit import violations
from fencepost.pipeline.audit.account import Account, Count, Failure, Held, History, Series, Span
from fencepost.pipeline.audit.audit import Case, Findings
from fencepost.pipeline.audit.examine import examine
from fencepost.pipeline.audit.ground import gather
from fencepost.pipeline.audit.violations import Violation
from fencepost.pipeline.reading.scan import Checks, scan_folder
from fencepost.pipeline.reading.schemas import BATCHES, TRACES, Level
from fencepost.pipeline.reading.trace_lines import read_directory
from tests.harness.recorded import Recorded

START_MS: Final = 1_700_000_000_000
NOW_MS: Final = START_MS + 3_600_000
"""When audits of rows are begun."""


def batches(*rows: Mapping[str, object]) -> pa.Table:
    """Rows of one batch of ten records each, where they do not say otherwise."""
    made = []
    for row in rows:
        base = row.get("base_offset", 0)
        base = base if isinstance(base, int) else 0
        usual = {
            "topic": "orders",
            "partition": 0,
            "place": "log",
            "broker": 1,
            "segment": 0,
            "position": base * 10,
            "size": 100,
            "base_offset": base,
            "last_offset": base + 9,
            "count": 10,
            "epoch": 0,
            "max_timestamp": START_MS + base,
        }
        made.append({**usual, **row})
    return pa.Table.from_pylist(made, BATCHES)


def traces(*rows: Mapping[str, object]) -> pa.Table:
    """Rows by line, a millisecond each, of exchanges of one partition."""
    made = []
    for line, row in enumerate(rows, 1):
        usual: dict[str, object] = {
            "number": line,
            "line": line,
            "time_ms": START_MS + line,
            "answered_ms": START_MS + line,
            "newest": line,
            "kind": "exchange",
            "replica_id": -1,
            "topic": "orders",
            "partition": 0,
            "error": 0,
        }
        made.append({**usual, **row})
    return pa.Table.from_pylist(made, TRACES)


def event(
    kind: str, *, topic: str | None = None, partition: int | None = None, **details: object
) -> dict[str, object]:
    """A row of a trace that is an event."""
    return {
        "kind": kind,
        "topic": topic,
        "partition": partition,
        "answered_ms": None,
        "replica_id": None,
        "error": None,
        "details": json.dumps(details),
    }


def examined(recorded: Recorded, *, topics: Sequence[str] = ()) -> Findings:
    """An audit without Spark."""
    case = Case(
        directory=str(recorded.data),
        trace=str(recorded.trace),
        remote=recorded.tier,
        topics=tuple(topics),
        level=Level.RECORDS,
        with_histories=True,
    )
    rows = scan_folder(recorded.data, remote=recorded.tier, checks=Checks.RECORDS)
    ground = gather(recorded.data, remote=recorded.tier)
    trace = read_directory(str(recorded.trace))
    found = list(examine(rows, trace, ground, now_ms=case.now_ms, with_history=True))
    return findings(
        [each.account for each in found], [v for each in found for v in each.violations], case=case
    )


def findings(
    accounts: Sequence[Account], found: Sequence[Violation] = (), *, case: Case | None = None
) -> Findings:
    """What an audit may come to."""
    return Findings(
        case=case or Case(directory="/logs", with_histories=True),
        violations=violations.table(list(found)),
        accounts=tuple(accounts),
    )


def account(
    partition: int,
    *,
    found: int = 0,
    explained: int = 0,
    failures: Sequence[Failure] = (),
    segments: int = 3,
    points: int = 50,
) -> Account:
    """A partition with something to draw."""
    spans = tuple(Span(start=at * 10, end=at * 10 + 10, bytes=1000) for at in range(segments))
    steps = Series(
        times=tuple(START_MS + at for at in range(points)), values=tuple(range(points)), of=points
    )
    counts = (Count(rule="torn-tail", found=found, explained=explained, kept=found),)
    return Account(
        topic="orders",
        partition=partition,
        held=(
            Held(
                place="log",
                broker=1,
                batches=segments,
                records=segments * 10,
                bytes=segments * 1000,
                problems=0,
                start=0,
                end=segments * 10,
                segments=segments,
                largest=1000,
                spans=spans,
            ),
        ),
        traced=points,
        counts=counts,
        failures=tuple(failures),
        history=History(
            traced=True,
            log_end=steps,
            high_watermark=steps,
            latest=steps,
            gated=Series(),
            lag=(),
            elections=(),
            elections_of=0,
        ),
    )


def violation(
    partition: int = 0, message: str = "so it is", *, offset: int | None = None
) -> Violation:
    """A finding of the rule that `account` counts."""
    return Violation(
        rule="torn-tail", topic="orders", partition=partition, message=message, offset=offset
    )
