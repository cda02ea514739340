"""No record that was acknowledged to acks=all is missing.

Each is looked for where the last leader has it, by its offset and its checksum; below that log in
the tier. Records before a log start that any answer had were deleted. Of a compacted
topic only the end is looked at. What a producer sent again, or what was converted, has another
checksum: it is enough that there is something at its offset.

acks=1 and acks=0 promise nothing of the kind.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow.compute as pc

from fencepost.pipeline.audit.acknowledged_batches import (
    AcknowledgedBatches,
    acknowledged_batches,
)
from fencepost.pipeline.audit.batch_arrays import (
    NOT_FOUND,
    UNKNOWN,
    Batches,
    BoolArray,
    TracedBatches,
)
from fencepost.pipeline.audit.explanations import left_over, unclean_shutdown
from fencepost.pipeline.audit.partition_logs import (
    IncarnationLogs,
    ReplicaLog,
    logs_of_incarnation,
    tier_copies,
)
from fencepost.pipeline.audit.rule import Missing, PartitionEvidence, Rule, Severity, Violation
from fencepost.pipeline.audit.timeline import TopicIncarnation
from fencepost.pipeline.datasource.schemas import Place

NAME: Final = "acknowledged-present"


def check(evidence: PartitionEvidence) -> Iterator[Violation]:
    """What was acknowledged and is gone, neighbours together."""
    incarnation = evidence.last_incarnation
    if incarnation is None:
        return
    topic_logs = logs_of_incarnation(evidence, incarnation.topic_id)
    if not topic_logs.logs:
        return
    acknowledged = acknowledged_batches(incarnation)
    batches = _placed(acknowledged.batches)
    if not len(batches):
        return
    log = _of_leader(incarnation, topic_logs)
    present = log.batches.by_offset()
    search = _Search(
        evidence=evidence,
        incarnation=incarnation,
        topic_logs=topic_logs,
        log=log,
        present=present,
        acknowledged=acknowledged,
    )
    yield from search.report(batches)


def _of_leader(incarnation: TopicIncarnation, topic_logs: IncarnationLogs) -> ReplicaLog:
    """The log of the last leader; where it is not there, of who knows the newest epoch."""
    leader = incarnation.leader_terms[-1].leader if incarnation.leader_terms else UNKNOWN
    known = [log for log in topic_logs.logs if log.broker == leader]
    return (
        known[0] if known else max(topic_logs.logs, key=lambda log: (_newest_epoch(log), log.end))
    )


def _newest_epoch(log: ReplicaLog) -> int:
    return max((epoch for epoch, _ in log.epochs), default=log.last_epoch_before(log.end))


def _placed(batches: TracedBatches) -> TracedBatches:
    """Those that are known to lie somewhere, in the order of their offsets, each once."""
    stamped = batches.is_appended_as_sent
    known = stamped | (batches.is_first & (batches.answered >= 0))
    placed = batches.select(known)
    kept = stamped[known]
    base = np.where(kept, placed.base, placed.answered)
    placed = TracedBatches(
        row=placed.row,
        is_first=placed.is_first,
        base=base,
        last=np.where(kept, placed.last, base + placed.count - 1),
        count=placed.count,
        epoch=np.where(kept, placed.epoch, UNKNOWN),
        crc=np.where(kept, placed.crc, UNKNOWN),
        producer_id=placed.producer_id,
        expected=placed.expected,
        answered=placed.answered,
    )
    return placed.select(np.lexsort((placed.row, placed.base)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """Looks for acknowledged batches."""

    evidence: PartitionEvidence
    incarnation: TopicIncarnation
    topic_logs: IncarnationLogs
    log: ReplicaLog
    """Where they must be."""
    present: Batches
    """The batches of that log, by offset."""
    acknowledged: AcknowledgedBatches

    def report(self, batches: TracedBatches) -> Iterator[Violation]:
        """Violations for what is missing, neighbours of one epoch together.

        :param batches: Of those that were acknowledged, by offset.
        """
        missing = self._is_missing(batches)
        changes = (np.diff(missing) != 0) | (np.diff(batches.epoch) != 0)
        edges = [0, *(np.flatnonzero(changes) + 1).tolist(), len(batches)]
        for start, end in pairwise(edges):
            if missing[start]:
                yield self._violation(batches.select(np.arange(start, end)))

    def _is_missing(self, batches: TracedBatches) -> BoolArray:
        log_start = self._log_start()
        if self.evidence.metadata.compacted or self._was_compacted():
            gone: BoolArray = (batches.last >= self.log.end) & (batches.base >= log_start)
            return gone
        missing: BoolArray = (batches.base >= log_start) & ~_is_in(self.present, batches)
        below = np.flatnonzero(missing & (batches.base < self._local_start))
        missing[below] = self._is_missing_in_tier(batches.select(below))
        return missing

    @property
    def _local_start(self) -> int:
        return int(self.present.base[0]) if len(self.present) else self.log.active

    def _log_start(self) -> int:
        """The higher of the log's own, and of any answer in the trace.

        Those of other replicas excuse nothing: what their leader has deleted it knows itself.
        """
        answered: int | None = pc.max(self.incarnation.rows["log_start_offset"]).as_py()
        return max(self.log.log_start, answered or 0)

    def _was_compacted(self) -> bool:
        values = {
            value
            for name in ("cleanup.policy", "log.cleanup.policy")
            for value in self.incarnation.configs.values(name)
        }
        return any("compact" in value for value in values)

    def _is_missing_in_tier(self, batches: TracedBatches) -> BoolArray:
        """Of each whether the tier says that it has its offsets, and has it in none of its copies.

        :param batches: By offset.
        """
        in_metadata, found = np.zeros((2, len(batches)), bool)
        if not self.evidence.metadata.with_objects:
            return found
        for copy in tier_copies(self.evidence, self.topic_logs.tier):
            start, end = copy.segment.start_offset, copy.segment.end_offset + 1
            numbers = np.arange(*np.searchsorted(batches.base, (start, end)))
            numbers = numbers[batches.last[numbers] < end]
            in_metadata[numbers] = True
            found[numbers] |= _is_in(copy.batches, batches.select(numbers))
        missing: BoolArray = in_metadata & ~found
        return missing

    def _violation(self, gone: TracedBatches) -> Violation:
        start, end, epoch = int(gone.base[0]), int(gone.last.max()) + 1, int(gone.epoch[0])
        first = int(gone.row[0])
        number = int(self.acknowledged.number[first])
        count = f"{len(gone)} batches, of offsets" if len(gone) > 1 else "a batch, of offsets"
        return Violation(
            rule=NAME,
            topic=self.evidence.topic,
            partition=self.evidence.partition,
            message=f"{count} {start} to {end - 1}, acknowledged to acks=all by broker "
            f"{self.acknowledged.broker[first]}: {self._instead(start)}",
            explanation=self._explanation(gone, number),
            broker=self.log.broker,
            place=Place.LOG,
            offset=start,
            end_offset=end,
            missing=Missing.OF_EPOCH,
            epoch=epoch if epoch >= 0 else None,
            number=number,
            time_ms=int(self.acknowledged.answered_ms[first]),
        )

    def _instead(self, offset: int) -> str:
        where = f"the log of broker {self.log.broker}, which led last,"
        if offset >= self.log.end:
            return f"{where} ends at {self.log.end}"
        if offset < self._local_start:
            return "the tier, which should have it, does not"
        (number,) = self.present.index_of(np.array([offset]))
        if number == NOT_FOUND:
            return f"{where} has nothing there"
        return f"{where} has other records there, of epoch {self.present.epoch[number]}"

    def _explanation(self, gone: TracedBatches, number: int) -> str | None:
        epoch = int(gone.epoch[0])
        known = epoch if epoch >= 0 else None
        until = max(_newest_epoch(log) for log in self.topic_logs.logs)
        loss = self.incarnation.explain_loss(epoch=known, number=number, until=until)
        if loss is not None:
            return loss
        others = (log for log in self.topic_logs.logs if log is not self.log)
        if any(_is_in(log.batches.by_offset(), gone).all() for log in others):
            return unclean_shutdown(self.log, int(gone.base[0]))
        return left_over(self.evidence, self.log)


def _is_in(present: Batches, batches: TracedBatches) -> BoolArray:
    """Of each whether it is there: the very same, or anything where its checksum is not known."""
    numbers = present.index_of(batches.base)
    found: BoolArray = numbers != NOT_FOUND
    if not len(present):
        return found
    same = (
        (present.base[numbers] == batches.base)
        & (present.last[numbers] == batches.last)
        & (present.crc[numbers] == batches.crc)
    )
    # A window that has any of the batches which the trace tells of has no others (`refinement`).
    same |= present.batches[numbers] > 1
    behind = present.index_of(batches.last) != NOT_FOUND
    found &= np.where(batches.crc == UNKNOWN, behind, same)
    return found


RULE: Final = Rule(
    name=NAME,
    about="No record is missing that was acknowledged to acks=all.",
    source="Kafka's producer: acks, and its design of replication; KIP-966",
    needs_trace=True,
    order=1,
    severity=Severity.LOSS,
    remedy="produce the records again; they are not in any log",
    check=check,
)
