"""Conditional publishes lie where they were expected, or nowhere (KIP-27).

- A batch that was appended and stated an offset has got that very one.
- Of a request that was refused for its expected offsets nothing is in the log. That can be told
  only of a topic whose whole life is in the trace: the same batch may have been sent again.

What an idempotent producer sends again is answered with its first offset whatever it states. Where
keys are compared (``check.expected.offsets.scope=key``) there is no one right offset.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.broker.core.events import Kind
from fencepost.pipeline.audit.batch_arrays import (
    UNKNOWN,
    Batches,
    BoolArray,
    Int64Array,
    TracedBatches,
    traced_batches_of,
)
from fencepost.pipeline.audit.partition_logs import ReplicaLog, logs_of_incarnation
from fencepost.pipeline.audit.rule import PartitionEvidence, Rule, Severity, Violation
from fencepost.pipeline.audit.timeline import TopicIncarnation
from fencepost.pipeline.audit.trace_scan.scan import Stretch
from fencepost.pipeline.datasource.schemas import Place
from fencepost.protocol.errors import ErrorCode

NAME: Final = "expected-offsets"
_ERROR_CODE: Final = "check.expected.offsets.error.code"
_APPENDED: Final = (
    ErrorCode.NONE,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
)
"""What is answered for a batch that was, or may have been, appended."""


def check(evidence: PartitionEvidence) -> Iterator[Violation]:
    """Batches that lie elsewhere, and batches that should not be there at all."""
    for incarnation in evidence.incarnations:
        yield from _misplaced(incarnation)
    last = evidence.last_incarnation
    if last is not None and _is_whole(last):
        yield from _left_behind(last, logs_of_incarnation(evidence, last.topic_id).logs)


# -- what was appended --------------------------------------------------------------------------


def _misplaced(incarnation: TopicIncarnation) -> Iterator[Violation]:
    rows = incarnation.exchanges("Produce")
    batches = traced_batches_of(rows)
    wrong, offset = _is_misplaced(batches, rows)
    for index in np.flatnonzero(wrong).tolist():
        row = rows.slice(int(batches.row[index]), 1).to_pylist()[0]
        at, expected = int(offset[index]), int(batches.expected[index])
        yield Violation(
            rule=NAME,
            topic=incarnation.topic,
            partition=incarnation.partition,
            message=f"broker {row['broker']} appended at offset {at} a batch that was expected at "
            f"{expected}",
            broker=row["broker"],
            offset=at,
            end_offset=at + int(batches.count[index]),
            epoch=int(batches.epoch[index]) if batches.epoch[index] >= 0 else None,
            number=row["number"],
            time_ms=row["time_ms"],
        )


def _is_misplaced(batches: TracedBatches, rows: pa.Table) -> tuple[BoolArray, Int64Array]:
    """Of each batch whether it was appended elsewhere than it was expected; and where it was."""
    error = pc.cast(rows["error"], pa.int64())
    appended = pc.or_(pc.is_null(error), pc.is_in(error, pa.array(_APPENDED, pa.int64())))
    offset = np.where(appended.to_numpy()[batches.row], _offsets(batches, rows), UNKNOWN)
    return (batches.expected >= 0) & (offset >= 0) & (offset != batches.expected), offset


def _offsets(batches: TracedBatches, rows: pa.Table) -> Int64Array:
    """Where each was appended by its request; `UNKNOWN` where that is not known.

    Without a producer id nothing is a repetition, and the answer tells of what was converted.
    """
    succeeded = pc.fill_null(pc.equal(rows["error"], ErrorCode.NONE), fill_value=False)
    is_acknowledged = (
        batches.is_first & succeeded.to_numpy()[batches.row] & (batches.producer_id < 0)
    )
    converted = np.where(is_acknowledged, batches.answered, UNKNOWN)
    found: Int64Array = np.where(batches.is_appended_as_sent, batches.base, converted)
    return found


# -- what was refused ---------------------------------------------------------------------------


def _is_whole(incarnation: TopicIncarnation) -> bool:
    """Whether the trace has everything that was ever produced, and no server was killed since."""
    ended = bool(incarnation.events) and incarnation.events[-1].kind == Kind.TRACE_ENDED
    created = (each.line for each in incarnation.events if each.kind == Kind.TOPIC_CREATED)
    first = next(created, 0)
    return incarnation.from_start and ended and all(g < first for g in incarnation.gaps)


def _left_behind(incarnation: TopicIncarnation, logs: Iterable[ReplicaLog]) -> Iterator[Violation]:
    rows = incarnation.exchanges("Produce")
    refusals = pc.fill_null(is_refused(incarnation, rows), fill_value=False)
    refused = traced_batches_of(rows.filter(refusals))
    if not len(refused):
        return
    sent = traced_batches_of(rows.filter(pc.invert(refusals)))
    stamped = sent.select(sent.epoch >= 0)
    claimed = set(zip(stamped.base.tolist(), stamped.crc.tolist(), strict=True))
    for log in logs:
        present = log.batches.select(np.isin(log.batches.crc, refused.crc))
        pairs = zip(present.base.tolist(), present.crc.tolist(), strict=True)
        for index, pair in enumerate(pairs):
            if pair not in claimed:
                yield _found(incarnation, log, present, index)


def _found(
    incarnation: TopicIncarnation, log: ReplicaLog, present: Batches, index: int
) -> Violation:
    base = int(present.base[index])
    return Violation(
        rule=NAME,
        topic=incarnation.topic,
        partition=incarnation.partition,
        message=f"broker {log.broker} holds at offset {base} a batch whose producer was told "
        "that it was refused for its expected offset",
        broker=log.broker,
        place=Place.LOG,
        segment=int(present.segment[index]),
        position=int(present.position[index]),
        offset=base,
        end_offset=int(present.last[index]) + 1,
        epoch=int(present.epoch[index]),
    )


def is_refused(incarnation: TopicIncarnation, rows: pa.Table) -> pa.ChunkedArray:
    """Of each Produce whether it was, or may have been, refused for its expected offsets."""
    configured = {int(text) for text in incarnation.configs.values(_ERROR_CODE)}
    codes = pa.array([ErrorCode.EXPECTED_OFFSET_MISMATCH, *sorted(configured)], pa.int64())
    return pc.is_in(pc.cast(rows["error"], pa.int64()), codes)


class ExpectedScan:
    """Leaves what lies elsewhere, what was refused, and what was sent with the same checksum.

    What failed comes first, so that these checksums are known by then.
    """

    def __init__(self) -> None:
        self._refused: frozenset[int] = frozenset()

    def next(self, stretch: Stretch) -> None:
        """Go on."""
        incarnation = stretch.incarnation
        at = np.flatnonzero(pc.equal(incarnation.rows["api"], "Produce").to_numpy())
        if not len(at):
            return
        rows = incarnation.rows.take(at)
        batches = traced_batches_of(rows)
        refused = pc.fill_null(is_refused(incarnation, rows), fill_value=False).to_numpy()
        self._refused |= frozenset(batches.crc[refused[batches.row]].tolist())
        left, _ = _is_misplaced(batches, rows)
        failed = pc.fill_null(pc.not_equal(rows["error"], ErrorCode.NONE), fill_value=False)
        left |= failed.to_numpy()[batches.row] & (batches.epoch >= 0)
        if self._refused:
            left |= np.isin(batches.crc, list(self._refused))
        kept = np.zeros(incarnation.rows.num_rows, bool)
        kept[at[batches.row[left]]] = True
        kept[at[refused]] = True
        stretch.kept.keep(kept)


RULE: Final = Rule(
    name=NAME,
    about="A conditional publish lies at its expected offset, or nowhere.",
    source="KIP-27",
    needs_trace=True,
    order=4,
    severity=Severity.ANSWER,
    remedy="compare the records at the offset with what their producer was to write",
    check=check,
    scan=ExpectedScan,
)
