"""Acknowledged batches are the same with a row for each exchange, and with one for a stretch."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit.acknowledged_batches import (
    AcknowledgedBatches,
    acknowledged_batches,
)
from fencepost.pipeline.audit.rule import PartitionEvidence
from fencepost.pipeline.audit.timeline import incarnations
from fencepost.pipeline.audit.trace_rows import ACKNOWLEDGED
from fencepost.pipeline.audit.trace_scan.passes import trace_row_count
from tests.pipeline.audit.trace_rows import Row, created, evidence
from tests.pipeline.audit.trace_scan.passed import passed

MANY: Final = 300
CHUNK: Final = 100


def produced(base: int, answered: int, *, acks: int = -1) -> Row:
    batch = {"base_offset": base, "last_offset": base, "count": 1, "epoch": 0, "crc": base + 7}
    more = {"producer_id": -1, "expected_offset": None}
    return {"api": "Produce", "acks": acks, "offset": answered, "batches": [{**batch, **more}]}


def traced(*rows: Row) -> pa.Table:
    found: PartitionEvidence = evidence(created("a"), *rows)
    assert found.traces is not None
    return found.traces


def listed(traces: pa.Table) -> dict[str, Any]:
    found: AcknowledgedBatches = acknowledged_batches(incarnations(traces, "t", 0)[-1])
    names = [each.name for each in fields(AcknowledgedBatches) if each.name != "batches"]
    columns = {name: getattr(found, name).tolist() for name in names}
    of_batches = ("row", "base", "last", "count", "epoch", "crc", "producer_id")
    columns |= {name: getattr(found.batches, name).tolist() for name in of_batches}
    return columns | {"appended": found.batches.is_appended_as_sent.tolist()}


def test_a_row_stands_for_a_stretch_of_exchanges() -> None:
    whole = traced(*[produced(base, base) for base in range(MANY)])
    left = passed(whole, [CHUNK])
    assert pc.sum(pc.equal(left["kind"], ACKNOWLEDGED)).as_py() == 4, "the event is in a chunk too"
    assert left.num_rows < MANY // 10
    assert trace_row_count(left) == whole.num_rows
    assert listed(left) == listed(whole)
    assert len(listed(left)["line"]) == MANY


def test_what_lies_elsewhere_has_a_row_of_its_own() -> None:
    again, converted = produced(5, 2), {**produced(6, 6)}
    converted["batches"] = [{**converted["batches"][0], "epoch": -1}]
    whole = traced(produced(4, 4), again, produced(5, 5, acks=1), converted, produced(7, 7))
    left = passed(whole, [10])
    kept = left.filter(pc.equal(left["kind"], "exchange"))
    assert {2, 6} <= set(kept["offset"].to_pylist())
    assert listed(left) == listed(whole)
    assert listed(left)["appended"] == [True, False, False, True]


def test_nothing_was_acknowledged() -> None:
    whole = traced(produced(0, 0, acks=1))
    assert listed(passed(whole)) == listed(whole)
    assert listed(whole)["base"] == []
