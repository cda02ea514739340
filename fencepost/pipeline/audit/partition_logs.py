"""The logs of a partition and its segments in the tier: what the rules about logs compare.

Logs and segments of one incarnation of the topic belong together. A segment of the tier belongs to
a log as far as both have one lineage of leader epochs.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit.batch_arrays import (
    NOT_FOUND,
    Batches,
    batches_of,
    misplaced,
    share_a_batch,
)
from fencepost.pipeline.audit.rule import (
    PartitionEvidence,
    ReplicaMetadata,
    TierSegment,
    memoized,
)
from fencepost.pipeline.datasource.schemas import Place, Problem
from fencepost.storage.log.leader_epoch_cache import EpochEntry
from fencepost.storage.tier.lineage import valid_end


@memoized
def may_be_compacted(evidence: PartitionEvidence) -> bool:
    """Whether a cleaner may have been over the logs.

    A policy that is another by now leaves what was cleaned: the sound batches tell.
    """
    if evidence.metadata.compacted:
        return True
    rows = evidence.select(Place.LOG)
    return not batches_of(rows.filter(pc.is_null(rows["problem"]))).is_never_compacted.all()


def by_segment_id(rows: pa.Table) -> dict[str, pa.Table]:
    """The rows of each segment in the tier, in order."""
    codes = rows["segment_id"].combine_chunks().dictionary_encode()
    numbers = codes.indices.to_numpy(zero_copy_only=False)
    order = np.argsort(numbers, kind="stable")
    edges = np.searchsorted(numbers[order], np.arange(len(codes.dictionary) + 1)).tolist()
    return {
        name: rows.take(order[start:end])
        for name, (start, end) in zip(codes.dictionary.to_pylist(), pairwise(edges), strict=True)
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class MisplacedBatch:
    """A batch whose base offset can't be right."""

    segment: int
    position: int
    epoch: int
    base: int
    """What it says."""
    start: int
    """What its neighbours leave it."""
    end: int
    """Exclusive."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReplicaLog:
    """One broker's log of the partition."""

    metadata: ReplicaMetadata
    rows: pa.Table
    """All of it, problems too, in order."""
    batches: Batches
    """Those whose headers may be believed, in the order of their positions."""
    misplaced: tuple[MisplacedBatch, ...] = ()
    """Those whose base offset can't be right."""

    @property
    def broker(self) -> int:
        """Whose it is."""
        return self.metadata.broker

    @property
    def local_start(self) -> int:
        """The first offset that the log may hold."""
        return self.metadata.segments[0] if self.metadata.segments else 0

    @property
    def active(self) -> int:
        """The base offset of the segment that is appended to."""
        return self.metadata.segments[-1] if self.metadata.segments else 0

    @property
    def end(self) -> int:
        """Behind the last batch (exclusive)."""
        return max(self.active, int(self.batches.last.max(initial=NOT_FOUND)) + 1)

    @property
    def checkpointed_end(self) -> int:
        """Where the log ended at the least (exclusive), by its checkpoints."""
        return max(self.metadata.high_watermark or 0, self.metadata.recovery_point or 0)

    @property
    def epochs(self) -> tuple[tuple[int, int], ...]:
        """As the checkpoint says; none without one."""
        return self.metadata.epochs or ()

    @property
    def checkpointed_start(self) -> int:
        """The checkpointed log start; 0 without one, or where it lies beyond the log end."""
        start = self.metadata.log_start or 0
        return start if start <= self.end else 0

    @property
    def log_start(self) -> int:
        """The first offset that is not deleted, by what may be believed; 0 where nothing says it.

        The checkpoint lags behind, and the leader epochs are cut where the log is.
        """
        first_epoch_start = self.epochs[0][1] if self.epochs else 0
        if first_epoch_start > self.end:
            return self.checkpointed_start
        return max(self.checkpointed_start, first_epoch_start)

    def last_epoch_before(self, offset: int) -> int:
        """The epoch of the last batch that begins before an offset; -1 without one."""
        epochs = self.batches.epoch[self.batches.base < offset]
        return int(epochs[-1]) if len(epochs) else -1


@memoized
def replica_logs(evidence: PartitionEvidence) -> tuple[ReplicaLog, ...]:
    """The log of each broker, also where no batch is in it, by broker."""
    rows = evidence.select(Place.LOG)
    metadata_by_broker = {each.broker: each for each in evidence.metadata.replicas}
    brokers = {*metadata_by_broker, *pc.unique(rows["broker"]).drop_null().to_pylist()}
    return tuple(
        _replica_log(metadata_by_broker.get(broker), broker, evidence.select(Place.LOG, broker))
        for broker in sorted(brokers)
    )


def _replica_log(metadata: ReplicaMetadata | None, broker: int, rows: pa.Table) -> ReplicaLog:
    if metadata is None:
        metadata = ReplicaMetadata(broker=broker, clean=False, segments=(), epochs=None)
    # What rolled after the checkpoints were read is known from its batches alone.
    found = pc.unique(rows["segment"]).drop_null().to_pylist()
    segments = tuple(sorted({*metadata.segments, *found}))
    batches = batches_of(rows)
    wrong = misplaced(batches)
    return ReplicaLog(
        metadata=replace(metadata, segments=segments),
        rows=rows,
        batches=batches.select(np.delete(np.arange(len(batches)), list(wrong))),
        misplaced=tuple(_misplaced_batch(batches, *each) for each in wrong.items()),
    )


def _misplaced_batch(batches: Batches, number: int, start: int) -> MisplacedBatch:
    base = int(batches.base[number])
    return MisplacedBatch(
        segment=int(batches.segment[number]),
        position=int(batches.position[number]),
        epoch=int(batches.epoch[number]),
        base=base,
        start=start,
        end=start + int(batches.last[number]) - base + 1,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IncarnationLogs:
    """Logs and segments of one incarnation: the topic may have been deleted and created again."""

    logs: tuple[ReplicaLog, ...]
    """By broker."""
    tier: tuple[TierSegment, ...]

    @property
    def topic_id(self) -> str | None:
        """The one that most logs say, of as many the first in order; None where no log says one."""
        ids = Counter(log.metadata.topic_id for log in self.logs if log.metadata.topic_id)
        return min(ids, key=lambda each: (-ids[each], each), default=None)

    @property
    def log_start(self) -> int:
        """The highest known log start offset: from there on the tier and the logs have all."""
        return max((log.log_start for log in self.logs), default=0)


@memoized
def logs_by_incarnation(evidence: PartitionEvidence) -> list[IncarnationLogs]:
    """Logs and finished segments of the tier by incarnation, the one of most logs first.

    Logs with one topic id are of one incarnation, and so are logs of different ids that have a
    batch in common: then a ``partition.metadata`` is wrong. A log without an id is taken to be of
    the incarnation that most are of.
    """
    logs = replica_logs(evidence)
    ids = [log.metadata.topic_id for log in logs if log.metadata.topic_id is not None]
    by_count = sorted(set(ids), key=lambda each: (-ids.count(each), each))
    groups: list[tuple[list[ReplicaLog], list[str | None]]] = []
    for number, topic_id in enumerate(by_count):
        own: list[str | None] = [topic_id, None] if number == 0 else [topic_id]
        members = [log for log in logs if log.metadata.topic_id in own]
        for others, other_ids in groups:
            if _share_a_batch(members, others):
                others.extend(members)
                other_ids.extend(own)
                break
        else:
            groups.append((members, own))
    if not groups:
        return [_incarnation_logs(evidence, logs, None)]
    return [_incarnation_logs(evidence, members, ids) for members, ids in groups]


def _share_a_batch(some: Iterable[ReplicaLog], others: Iterable[ReplicaLog]) -> bool:
    """Whether two logs have the same batch: at one offset, of one epoch, with one checksum."""
    return any(share_a_batch(one.batches, other.batches) for one in some for other in others)


def logs_of_incarnation(evidence: PartitionEvidence, topic_id: str | None) -> IncarnationLogs:
    """What belongs to a topic; where no log says its id, what most are of."""
    found = logs_by_incarnation(evidence)
    of_topic = (
        topic_logs
        for topic_logs in found
        if any(log.metadata.topic_id == topic_id for log in topic_logs.logs)
    )
    return next(of_topic, found[0])


def _incarnation_logs(
    evidence: PartitionEvidence,
    logs: Iterable[ReplicaLog],
    topic_ids: Collection[str | None] | None,
) -> IncarnationLogs:
    tier = (each for each in evidence.metadata.tier if each.finished)
    return IncarnationLogs(
        logs=tuple(sorted(logs, key=lambda log: log.broker)),
        tier=tuple(each for each in tier if topic_ids is None or each.topic_id in topic_ids),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TierCopy:
    """A finished segment in the tier, and what was found of it."""

    segment: TierSegment
    rows: pa.Table
    batches: Batches
    """In the order of their offsets."""

    @property
    def is_lost(self) -> bool:
        """Whether its records are not there, though it is said to be finished."""
        return not len(self.batches) and self.has_problem(Problem.MISSING)

    def has_problem(self, problem: Problem | None = None) -> bool:
        """Whether it has a problem, or any."""
        problems = self.rows["problem"]
        if problem is None:
            return bool(problems.null_count < len(problems))
        return bool(pc.any(pc.equal(problems, problem)).as_py())

    def lineage_end(self, log: ReplicaLog) -> int:
        """Behind the last offset of it (exclusive) that belongs to a log's lineage.

        Where none does, that is where it starts.
        """
        lineage = [EpochEntry(epoch, start) for epoch, start in log.epochs]
        end = valid_end(self.segment, lineage)
        return self.segment.start_offset if end is None else end + 1


def tier_copies(evidence: PartitionEvidence, segments: tuple[TierSegment, ...]) -> list[TierCopy]:
    """The copies that metadata tell of, by start offset."""
    if not segments:
        return []
    tier = evidence.select(Place.TIER)
    rows = by_segment_id(tier)
    found = []
    for segment in sorted(segments, key=lambda each: (each.start_offset, each.id)):
        own = rows.get(segment.id, tier.slice(0, 0))
        found.append(TierCopy(segment=segment, rows=own, batches=batches_of(own).by_offset()))
    return found
