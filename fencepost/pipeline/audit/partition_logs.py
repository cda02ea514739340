"""The logs of a partition as arrays: what the rules about logs look at.

What lies in the tier of a partition, and how much of it belongs to a log.

Where two logs of one partition, or a log and the tier, hold different batches.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit.partition_evidence import (
    PartitionEvidence,
    ReplicaMetadata,
    TierSegment,
)
from fencepost.pipeline.datasource.schemas import Place, Problem
from fencepost.storage.log.leader_epoch_cache import EpochEntry
from fencepost.storage.tier.lineage import valid_end

Int64Array: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
OffsetSpan: TypeAlias = tuple[int, int]
"""Offsets: the first, and behind the last (exclusive)."""

UNTRUSTED_PROBLEMS: Final = (Problem.CRC, Problem.STRUCTURE)
"""Problems of a batch whose header may be wrong itself."""
NOT_FOUND: Final = -1
_DELETE_HORIZON: Final = 0x40
"""Attribute of a batch that compaction has been over (KIP-534)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batches:
    """Batches whose headers may be believed, one number of each in every array."""

    segment: Int64Array
    position: Int64Array
    size: Int64Array
    base: Int64Array
    last: Int64Array
    """Inclusive."""
    count: Int64Array
    epoch: Int64Array
    crc: Int64Array
    attributes: Int64Array

    def __len__(self) -> int:
        return len(self.base)

    def select(self, which: Int64Array | BoolArray) -> "Batches":
        """Some of them, by number or by a flag for each."""
        return Batches(**{each.name: getattr(self, each.name)[which] for each in fields(self)})

    def by_offset(self) -> "Batches":
        """All of them, in the order of their first offsets."""
        return self.select(np.argsort(self.base, kind="stable"))

    def within(self, start: int, end: int) -> "Batches":
        """Those that have no offset before `start`, nor at or behind `end`.

        They must be in the order of their offsets.
        """
        first, behind = np.searchsorted(self.base, (start, end)).tolist()
        numbers = np.arange(first, max(first, behind))
        return self.select(numbers[self.last[numbers] < end])

    def overlapping(self, other: "Batches") -> "Batches":
        """Those that may share offsets with some of another log's; of both in order."""
        if not len(self) or not len(other):
            return self.select(np.zeros(0, np.int64))
        first = int(np.searchsorted(self.base, other.base[0], side="right")) - 1
        behind = int(np.searchsorted(self.base, other.last[-1], side="right"))
        return self.select(np.arange(max(first, 0), max(behind, 0)))

    def index_of(self, offsets: Int64Array) -> Int64Array:
        """For each offset the number of the batch that holds it, `NOT_FOUND` without one.

        They must be in the order of their offsets.
        """
        if not len(self):
            return np.full(len(offsets), NOT_FOUND)
        numbers = np.searchsorted(self.base, offsets, side="right") - 1
        return np.where((numbers >= 0) & (self.last[numbers] >= offsets), numbers, NOT_FOUND)

    @property
    def is_never_compacted(self) -> BoolArray:
        """Of each whether it has all its records and compaction has written nothing into it."""
        whole: BoolArray = self.count == self.last - self.base + 1
        no_horizon: BoolArray = (self.attributes & _DELETE_HORIZON) == 0
        return whole & no_horizon

    @property
    def spans(self) -> list[OffsetSpan]:
        """What they hold, neighbours together; they must be in the order of their offsets."""
        if not len(self):
            return []
        ends = np.maximum.accumulate(self.last + 1)
        breaks = np.flatnonzero(self.base[1:] > ends[:-1]) + 1
        firsts = np.concatenate(([0], breaks))
        lasts = np.concatenate((breaks - 1, [len(self) - 1]))
        return list(zip(self.base[firsts].tolist(), ends[lasts].tolist(), strict=True))


_COLUMNS: Final = {
    "segment": "segment",
    "position": "position",
    "size": "size",
    "base": "base_offset",
    "last": "last_offset",
    "count": "count",
    "epoch": "epoch",
    "crc": "crc",
    "attributes": "attributes",
}


def trusted_rows(rows: pa.Table) -> pa.Table:
    """The rows that are batches whose headers may be believed."""
    doubtful = pc.is_in(rows["problem"], pa.array(UNTRUSTED_PROBLEMS))
    return rows.filter(pc.and_not(pc.is_valid(rows["base_offset"]), doubtful))


def batches_of(rows: pa.Table) -> Batches:
    """The batches among rows of `BATCHES`, without those whose headers are doubtful."""
    sound = trusted_rows(rows)
    return Batches(
        **{
            name: pc.fill_null(sound[column].cast(pa.int64()), 0).to_numpy()
            for name, column in _COLUMNS.items()
        }
    )


def may_be_compacted(evidence: PartitionEvidence) -> bool:
    """Whether a cleaner may have been over the logs.

    A policy that is another by now leaves what was cleaned: the batches tell.
    """
    return (
        evidence.metadata.compacted
        or not batches_of(evidence.select(Place.LOG)).is_never_compacted.all()
    )


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReplicaLog:
    """One broker's log of the partition."""

    metadata: ReplicaMetadata
    rows: pa.Table
    """All of it, problems too, in order."""
    batches: Batches

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
    def epochs(self) -> tuple[tuple[int, int], ...]:
        """As the checkpoint says; none without one."""
        return self.metadata.epochs or ()

    def last_epoch_before(self, offset: int) -> int:
        """The epoch of the last batch that begins before an offset; -1 without one."""
        epochs = self.batches.epoch[self.batches.base < offset]
        return int(epochs[-1]) if len(epochs) else -1


def replica_logs(evidence: PartitionEvidence) -> tuple[ReplicaLog, ...]:
    """The log of each broker, also where no batch is in it, by broker."""
    rows = evidence.select(Place.LOG)
    grounds = {each.broker: each for each in evidence.metadata.replicas}
    brokers = {*grounds, *pc.unique(rows["broker"]).drop_null().to_pylist()}
    return tuple(
        _replica_log(grounds.get(broker), broker, evidence.select(Place.LOG, broker))
        for broker in sorted(brokers)
    )


def _replica_log(ground: ReplicaMetadata | None, broker: int, rows: pa.Table) -> ReplicaLog:
    if ground is None:
        ground = ReplicaMetadata(broker=broker, clean=False, segments=(), epochs=None)
    # What rolled after the checkpoints were read is known from its batches alone.
    found = pc.unique(rows["segment"]).drop_null().to_pylist()
    segments = tuple(sorted({*ground.segments, *found}))
    return ReplicaLog(
        metadata=replace(ground, segments=segments), rows=rows, batches=batches_of(rows)
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IncarnationLogs:
    """What belongs together: a topic of the same name may have been deleted and made anew."""

    logs: tuple[ReplicaLog, ...]
    tier: tuple[TierSegment, ...]

    @property
    def log_start(self) -> int:
        """The first offset that nobody has deleted, as far as is known: of that all must agree."""
        return max((_log_start(log.metadata) for log in self.logs), default=0)


def logs_by_incarnation(evidence: PartitionEvidence) -> list[IncarnationLogs]:
    """Logs and finished segments of the tier by the topic's id, each log once.

    A log that says none is taken to be of the topic that most are of.
    """
    logs = replica_logs(evidence)
    ids = [log.metadata.topic_id for log in logs if log.metadata.topic_id is not None]
    by_count = sorted(set(ids), key=lambda each: (-ids.count(each), each))
    found = []
    for number, topic_id in enumerate(by_count):
        own = (topic_id, None) if number == 0 else (topic_id,)
        found.append(
            _incarnation_logs(evidence, [log for log in logs if log.metadata.topic_id in own], own)
        )
    return found or [_incarnation_logs(evidence, logs, None)]


def logs_of_incarnation(evidence: PartitionEvidence, topic_id: str | None) -> IncarnationLogs:
    """What belongs to a topic; where no log says its id, what most are of."""
    found = logs_by_incarnation(evidence)
    of_topic = (
        family for family in found if any(log.metadata.topic_id == topic_id for log in family.logs)
    )
    return next(of_topic, found[0])


def _incarnation_logs(
    evidence: PartitionEvidence,
    logs: Iterable[ReplicaLog],
    topic_ids: tuple[str | None, ...] | None,
) -> IncarnationLogs:
    tier = (each for each in evidence.metadata.tier if each.finished)
    return IncarnationLogs(
        logs=tuple(logs),
        tier=tuple(each for each in tier if topic_ids is None or each.topic_id in topic_ids),
    )


def _log_start(ground: ReplicaMetadata) -> int:
    """The checkpoint lags behind; the leader epochs are cut where the log is."""
    first = ground.epochs[0][1] if ground.epochs else 0
    return max(ground.log_start or 0, first)


def gaps(spans: Iterable[OffsetSpan], start: int, end: int) -> list[OffsetSpan]:
    """What spans, which may overlap, lack from `start` to `end` (exclusive)."""
    found = []
    for first, behind in sorted(spans):
        if first > start and start < end:
            found.append((start, min(first, end)))
        start = max(start, behind)
    if start < end:
        found.append((start, end))
    return found


def covers(spans: Iterable[OffsetSpan], start: int, end: int) -> bool:
    """Whether spans, which may overlap, have every offset from `start` to `end` (exclusive)."""
    return not gaps(spans, start, end)


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
    tier = evidence.select(Place.TIER)
    rows = by_segment_id(tier)
    found = []
    for segment in sorted(segments, key=lambda each: (each.start_offset, each.id)):
        own = rows.get(segment.id, tier.slice(0, 0))
        found.append(TierCopy(segment=segment, rows=own, batches=batches_of(own).by_offset()))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchDifference:
    """Offsets at which both have a batch, and not the same one."""

    start: int
    end: int
    """Exclusive."""
    epoch: int
    """In the first of the two, at the start."""
    other_epoch: int
    converges_at: int | None
    """The first offset behind it where they agree; None where they never do."""


def batch_differences(
    first: Batches, second: Batches, start: int, end: int, *, compacted: bool
) -> list[BatchDifference]:
    """The differences from `start` to `end` (exclusive), in order.

    What only one of them has is none: a gap is another matter. Both must be in the order of their
    offsets.

    :param compacted: Whether cleaners may have been over either: then batches are compared that
        both have, and bytes where no cleaner has written any.
    """
    one = first.within(start, end)
    other = second.overlapping(one).within(start, end)
    if not len(one) or not len(other):
        return []
    numbers = other.index_of(one.base)
    differs = _differs(one, other, numbers, compacted=compacted)
    if not compacted:
        # One may have a gap where the other's batch begins that holds its next one.
        back = one.index_of(other.base)
        odd = (back != NOT_FOUND) & (one.base[back] != other.base)
        differs[back[odd]] = True
        numbers[back[odd]] = np.flatnonzero(odd)
    return _runs(one, other, numbers, differs)


def _differs(one: Batches, other: Batches, numbers: Int64Array, *, compacted: bool) -> BoolArray:
    found: BoolArray = numbers != NOT_FOUND
    base, last = other.base[numbers], other.last[numbers]
    epoch, crc = other.epoch[numbers], other.crc[numbers]
    bytes_differ: BoolArray = one.crc != crc
    if compacted:
        found &= one.base == base
        bytes_differ &= one.is_never_compacted & other.is_never_compacted[numbers]
    differs: BoolArray = found & (
        (one.base != base) | (one.last != last) | (one.epoch != epoch) | bytes_differ
    )
    return differs


def _runs(
    one: Batches, other: Batches, numbers: Int64Array, differs: BoolArray
) -> list[BatchDifference]:
    """Neighbours that differ are one difference."""
    common = np.flatnonzero(numbers != NOT_FOUND)
    flags = differs[common]
    begins = np.flatnonzero(flags & ~np.append(False, flags[:-1]))
    found = []
    for begin in begins.tolist():
        rest = np.flatnonzero(~flags[begin:])
        stop = begin + int(rest[0]) if len(rest) else len(flags)
        number = common[begin]
        found.append(
            BatchDifference(
                start=int(one.base[number]),
                end=int(one.last[common[stop - 1]]) + 1,
                epoch=int(one.epoch[number]),
                other_epoch=int(other.epoch[numbers[number]]),
                converges_at=int(one.base[common[stop]]) if stop < len(flags) else None,
            )
        )
    return found
