"""Within a log every offset follows on the one before it, from its first batch to its last.

Compaction leaves gaps, and it alone. Nothing leaves an offset twice, or a batch in the wrong
segment.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit.batch_arrays import (
    UNTRUSTED_PROBLEMS,
    Batches,
    BoolArray,
    batches_of,
    gaps,
)
from fencepost.pipeline.audit.partition_logs import (
    MisplacedBatch,
    by_segment_id,
    may_be_compacted,
    replica_logs,
)
from fencepost.pipeline.audit.rule import Missing, PartitionEvidence, Rule, Severity, Violation
from fencepost.pipeline.datasource.schemas import Place

NAME: Final = "contiguous-offsets"


def check(evidence: PartitionEvidence) -> Iterator[Violation]:
    """Gaps, repetitions, and batches that lie in a segment that begins behind them."""
    compacted = may_be_compacted(evidence)
    for log in replica_logs(evidence):
        damaged = _damaged(log.rows)
        for batch in log.misplaced:
            yield _misplaced(evidence, log.broker, batch)
            damaged.append((batch.segment, batch.position))
        yield from _in_order(evidence, log.broker, log.batches, damaged, compacted=compacted)
    for rows in by_segment_id(evidence.select(Place.TIER)).values():
        yield from _in_order(evidence, None, batches_of(rows), _damaged(rows), compacted=compacted)


def _misplaced(evidence: PartitionEvidence, broker: int, batch: MisplacedBatch) -> Violation:
    return Violation(
        rule=NAME,
        topic=evidence.topic,
        partition=evidence.partition,
        message=f"a batch says base offset {batch.base}, and its neighbours leave it "
        f"{batch.start} to {batch.end - 1}",
        broker=broker,
        place=Place.LOG,
        segment=batch.segment,
        position=batch.position,
        offset=batch.start,
        end_offset=batch.end,
        epoch=batch.epoch,
        missing=Missing.FROM_COPY,
    )


def _damaged(rows: pa.Table) -> list[tuple[int, int]]:
    """Segments and positions of what is no batch, or none to be believed: offsets hide there."""
    damaged = rows.filter(
        pc.and_(
            pc.is_in(rows["problem"], pa.array(UNTRUSTED_PROBLEMS)), pc.is_valid(rows["position"])
        )
    )
    return list(zip(damaged["segment"].to_pylist(), damaged["position"].to_pylist(), strict=True))


def _in_order(
    evidence: PartitionEvidence,
    broker: int | None,
    batches: Batches,
    damaged: list[tuple[int, int]],
    *,
    compacted: bool,
) -> Iterator[Violation]:
    if not len(batches):
        return
    # What a batch is to begin with: where the one before it ended, or its segment begins.
    begins = np.append(True, batches.segment[1:] != batches.segment[:-1])
    ended = np.append(batches.segment[0], batches.last[:-1] + 1)
    expected = np.maximum(ended, batches.segment)
    back = batches.base < expected
    missing = (batches.base > ended) & ~_behind(batches, damaged) & (not compacted)
    # Where batches are out of order, what seems to be missing may be elsewhere in the log.
    held = batches.by_offset().spans if missing.any() else []
    for number in np.flatnonzero(back | missing).tolist():
        base, end = int(batches.base[number]), int(ended[number])
        segment = int(batches.segment[number])
        spans, at = [(min(base, end), max(base, end))], number
        if begins[number] and base < segment:
            message = f"a batch from offset {base} on lies in the segment from {segment} on"
        elif base > end:
            spans, message = gaps(held, end, base), "offsets {} to {} are missing"
        elif begins[number]:
            at = _first_beyond(batches, number)
            message = (
                f"the segment from offset {batches.segment[at]} on has offsets {base} to "
                f"{end - 1}, and the next one begins at {segment}"
            )
        else:
            message = f"a batch from offset {base} on follows one that ends at {end - 1}"
        for start, behind in spans:
            yield Violation(
                rule=NAME,
                topic=evidence.topic,
                partition=evidence.partition,
                message=message.format(start, behind - 1),
                broker=broker,
                place=Place.TIER if broker is None else Place.LOG,
                segment=int(batches.segment[at]),
                position=int(batches.position[at]),
                offset=start,
                end_offset=behind,
                epoch=int(batches.epoch[at]),
                missing=Missing.FROM_COPY if base > end else None,
            )


def _first_beyond(batches: Batches, number: int) -> int:
    """The first batch of the segment before that has offsets of a batch, which begins a segment."""
    own = batches.segment[:number] == batches.segment[number - 1]
    return int(np.flatnonzero(own & (batches.last[:number] >= batches.base[number]))[0])


def _behind(batches: Batches, damaged: list[tuple[int, int]]) -> BoolArray:
    """Of each batch whether something damaged lies between it and the one before it."""
    found = np.zeros(len(batches), bool)
    for segment, position in damaged:
        later = (batches.segment > segment) | (
            (batches.segment == segment) & (batches.position > position)
        )
        if later.any():
            found[int(np.argmax(later))] = True
    return found


RULE: Final = Rule(
    name=NAME,
    about="Each offset of a log follows on the one before, but where compaction was.",
    source="Kafka's design: logs and their segments",
    needs_trace=False,
    order=3,
    severity=Severity.DAMAGE,
    remedy=(
        "delete the directory of the partition while the broker is stopped, where another copy "
        "has its records"
    ),
    check=check,
    screen=lambda bucket: bucket.is_plain,
)
