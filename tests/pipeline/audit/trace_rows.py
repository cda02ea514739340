"""Rows of a trace, for tests of the rules."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from fencepost.pipeline.audit.rule import PartitionEvidence, PartitionMetadata
from fencepost.pipeline.audit.rules import RULES
from fencepost.pipeline.datasource.schemas import BATCHES, TRACES
from tests.pipeline.audit.log_rows import Row as LogRow
from tests.pipeline.audit.summaries import NOW_MS
from tests.pipeline.audit.trace_scan.passed import passed

Row = dict[str, Any]


def evidence(
    *rows: Row, metadata: PartitionMetadata | None = None, batches: Sequence[LogRow] = ()
) -> PartitionEvidence:
    """Rows that come one after the other where they do not say otherwise.

    :param batches: Rows of the logs and of the tier.
    """
    told = []
    for line, row in enumerate(rows, start=1):
        own = {
            "line": line,
            "number": line if "kind" not in row else 0,
            "newest": line,
            "time_ms": line,
            "answered_ms": line,
            "kind": "exchange",
            "broker": 1,
            "replica_id": -1,
            "version": 8,
            "topic": "t",
            "partition": 0,
            "error": 0,
        }
        told.append({**own, **row})
    return PartitionEvidence(
        now_ms=NOW_MS,
        topic="t",
        partition=0,
        metadata=metadata or PartitionMetadata(),
        batches=pa.Table.from_pylist(list(batches), schema=BATCHES),
        traces=pa.Table.from_pylist(told, schema=TRACES),
    )


def event(kind: str, *, partition: int | None = 0, **row: Any) -> Row:  # noqa: ANN401  # columns
    details = json.dumps(row.pop("details", {}))
    return {"kind": kind, "partition": partition, "details": details, **row}


def created(topic_id: str) -> Row:
    details = {"leaders": [[1, 0]], "configs": {}}
    return event("topic_created", partition=None, topic_id=topic_id, details=details)


def away(broker: int, state: str) -> Row:
    details = {"state": state, "from_controller": True}
    return event("broker_changed", partition=None, topic=None, broker=broker, details=details)


def latest(offset: int, **row: int) -> Row:
    own = {"timestamp": -1, "offset": offset, "epoch": 0, "isolation_level": 0}
    return {"api": "ListOffsets", **own, **row}


def found(rule: str, given: PartitionEvidence) -> list[tuple[int | None, bool]]:
    """Offsets, and whether each is explained: of the whole, and of what Spark leaves of it."""
    whole = list(RULES[rule].check(given))
    if given.traces is not None:
        left = replace(given, traces=passed(given.traces).sort_by("line"))
        assert list(RULES[rule].check(left)) == whole
    return [(v.offset, v.explanation is not None) for v in whole]


def commit(offset: int | None, **row: Any) -> Row:  # noqa: ANN401  # columns
    return {"api": "OffsetCommit", "group": "g", "offset": offset, "epoch": 0, **row}


def fetch(offset: int, **row: Any) -> Row:  # noqa: ANN401  # columns
    return {"api": "OffsetFetch", "group": "g", "offset": offset, "epoch": 0, **row}
