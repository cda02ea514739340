"""A rule of an audit, and the violations that it yields: rows of one shape, whatever the rule."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import pyarrow as pa

from fencepost.pipeline.audit.partition_evidence import PartitionEvidence

VIOLATION_SCHEMA: Final = pa.schema(
    (
        ("rule", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("message", pa.string()),
        ("explanation", pa.string()),
        ("broker", pa.int32()),
        ("place", pa.string()),
        ("segment", pa.int64()),
        ("position", pa.int64()),
        ("offset", pa.int64()),
        ("end_offset", pa.int64()),
        ("epoch", pa.int32()),
        ("number", pa.int64()),
        ("time_ms", pa.int64()),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One finding."""

    rule: str
    topic: str
    partition: int
    message: str
    """A sentence: what is so, and what should be."""
    explanation: str | None = None
    """Why it is legitimate, such as an unclean election; None where it is a violation."""
    broker: int | None = None
    place: str | None = None
    """``log`` or ``tier``."""
    segment: int | None = None
    """Base offset of the segment."""
    position: int | None = None
    """Byte in the segment."""
    offset: int | None = None
    """The first offset concerned."""
    end_offset: int | None = None
    """Behind the last one (exclusive)."""
    epoch: int | None = None
    number: int | None = None
    """Of the exchange in the trace."""
    time_ms: int | None = None


def row_violation(
    rule: str,
    evidence: PartitionEvidence,
    row: Mapping[str, Any],
    *,
    message: str,
    explanation: str | None,
    offset: int | None = None,
    end_offset: int | None = None,
    epoch: int | None = None,
) -> Violation:
    """A violation at the segment and position of a row of `BATCHES`."""
    return Violation(
        rule=rule,
        topic=evidence.topic,
        partition=evidence.partition,
        message=message,
        explanation=explanation,
        broker=row["broker"],
        place=row["place"],
        segment=row["segment"],
        position=row["position"],
        offset=offset,
        end_offset=end_offset,
        epoch=epoch,
    )


def violation_table(found: list[Violation]) -> pa.Table:
    """Findings as Arrow."""
    return pa.Table.from_pylist([asdict(each) for each in found], schema=VIOLATION_SCHEMA)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What must be so."""

    name: str
    """In kebab-case, as ``--rule`` and the column ``rule`` say it."""
    about: str
    """One sentence for people."""
    source: str
    """Where it is written: a KIP, or a part of Kafka's documentation."""
    needs_trace: bool
    order: int
    """Where it stands in a report, among the rules about logs or among those about traces: what
    others build on comes first. Rules of the same number go by their names."""
    check: Callable[[PartitionEvidence], Iterator[Violation]]
