"""Two logs compared batch by batch: where they part, and what each has that the other has not."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fencepost.pipeline.audit.batch_arrays import (
    NOT_FOUND,
    BatchDifference,
    Batches,
    BoolArray,
    Int64Array,
    batch_differences,
)
from fencepost.pipeline.audit.lineage.epoch_runs import (
    EpochRuns,
    deleted_runs,
    epoch_runs,
    first_conflict,
    known_epochs,
)
from fencepost.pipeline.audit.lineage.model import Ancestor, Parting, Relation
from fencepost.pipeline.audit.partition_logs import ReplicaLog
from fencepost.storage.log.leader_epoch_cache import EpochEntry, LeaderEpochCache

RELATIONS: Final = tuple(Relation)
"""By their numbers in arrays."""
SAME: Final = -1
"""The number of a batch that both sides have."""
BEFORE_START, DIVERGING, GAP, BEYOND_END = range(len(RELATIONS))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogSide:
    """A log, prepared to be compared."""

    broker: int
    high_watermark: int | None
    batches: Batches
    """By offset."""
    runs: EpochRuns
    """In the order of the log."""
    epochs: tuple[EpochEntry, ...]
    """All that it knows."""
    end: int
    """The log end (exclusive)."""

    @classmethod
    def of(cls, log: ReplicaLog) -> "LogSide":
        """One replica's."""
        runs = epoch_runs(log.batches)
        return cls(
            broker=log.broker,
            high_watermark=log.metadata.high_watermark,
            batches=log.batches.by_offset(),
            runs=runs,
            epochs=known_epochs(runs, log.epochs, log.end),
            end=log.end,
        )

    @property
    def start(self) -> int:
        """The first offset that it holds; its end where it holds none."""
        return int(self.batches.base[0]) if len(self.batches) else self.end

    @property
    def newest_epoch(self) -> int | None:
        """The newest leader epoch that it knows."""
        return self.epochs[-1].epoch if self.epochs else None

    @property
    def claims(self) -> EpochRuns:
        """What it says of all offsets: of those that it holds, and of those before."""
        return deleted_runs(self.epochs, self.start) + self.runs

    def epochs_against(self, newest: int | None) -> tuple[EpochEntry, ...]:
        """The epochs by which the records of another log are judged.

        The newest may have been begun at the log end and have written nothing. It says that older
        records there are to be truncated, unless the other log knows a newer epoch still.

        :param newest: Of the other log.
        """
        is_empty = bool(self.epochs) and self.epochs[-1].start_offset >= self.end
        if is_empty and newest is not None and newest >= self.epochs[-1].epoch:
            return self.epochs[:-1]
        return self.epochs

    def epoch_at(self, offset: int) -> int | None:
        """The leader epoch that an offset has, or would have; None where it knows none."""
        (number,) = self.batches.index_of(np.array([offset]))
        if number != NOT_FOUND:
            return int(self.batches.epoch[number])
        return LeaderEpochCache(self.epochs).epoch_for_offset(offset)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """What one side is, seen from another."""

    parting: Parting | None
    ancestor: Ancestor | None
    batches: Batches
    """Of the one side."""
    relations: Int64Array
    """Of each of them the number of its relation in `RELATIONS`, or `SAME`."""


def compare_logs(one: LogSide, other: LogSide, *, compacted: bool) -> tuple[Comparison, Comparison]:
    """What each of two logs is, seen from the other.

    :param compacted: Whether cleaners may have been over either: then a gap says nothing.
    """
    end = max(one.end, other.end)
    there = batch_differences(one.batches, other.batches, 0, end, compacted=compacted)
    back = there and batch_differences(other.batches, one.batches, 0, end, compacted=compacted)
    conflicts = (
        first_conflict(one.claims, other.epochs_against(one.newest_epoch)),
        first_conflict(other.claims, one.epochs_against(other.newest_epoch)),
        *(found[0].start for found in (there, back) if found),
    )
    offset = min((each for each in conflicts if each is not None), default=None)
    parting = opposite = None
    if offset is not None:
        parting = Parting(
            offset=offset,
            epoch=one.epoch_at(offset),
            other_epoch=other.epoch_at(offset),
            converges_at=convergence(there) if there else None,
        )
        opposite = parting.reversed()
    return (
        _comparison(one, other, there, parting, compacted=compacted),
        _comparison(other, one, back, opposite, compacted=compacted),
    )


def _comparison(
    one: LogSide,
    other: LogSide,
    differences: Sequence[BatchDifference],
    parting: Parting | None,
    *,
    compacted: bool,
) -> Comparison:
    batches = one.batches
    relations = relate(batches, other.batches, differences, parting, compacted=compacted)
    common = relations == SAME
    if parting is not None:
        common &= batches.base < parting.offset
    return Comparison(
        parting=parting,
        ancestor=last_batch(batches, common),
        batches=batches,
        relations=relations,
    )


def last_batch(batches: Batches, which: BoolArray) -> Ancestor | None:
    """The last one of some batches, as a common ancestor; None without one."""
    numbers = np.flatnonzero(which)
    if not len(numbers):
        return None
    last = int(numbers[-1])
    return Ancestor(epoch=int(batches.epoch[last]), end=int(batches.last[last]) + 1)


def convergence(differences: Sequence[BatchDifference]) -> int | None:
    """Where two logs agree again behind their last difference."""
    return differences[-1].converges_at


def relate(
    one: Batches,
    other: Batches,
    differences: Sequence[BatchDifference],
    parting: Parting | None,
    *,
    compacted: bool,
) -> Int64Array:
    """Of each batch of the first log the number of its relation in `RELATIONS`, or `SAME`.

    :param one: By offset, as the other.
    :param differences: Of the first from the second.
    """
    shared = _shared(one, other)
    differs = _is_within(one.base, differences)
    start, end = (int(other.base[0]), int(other.last.max())) if len(other) else (0, -1)
    relations = np.full(len(one), GAP)
    relations[one.last < start] = BEFORE_START
    relations[one.base > end] = BEYOND_END
    if compacted:
        relations[relations == GAP] = SAME
    if parting is not None:
        behind = one.base >= parting.offset
        if parting.converges_at is not None:
            behind &= one.base < parting.converges_at
        relations[behind] = DIVERGING
    relations[shared & ~differs] = SAME
    return relations


def _shared(one: Batches, other: Batches) -> BoolArray:
    """Of each batch of the first whether the other has offsets of it, in the same leader epoch."""
    if not len(other):
        return np.zeros(len(one), bool)
    numbers = np.searchsorted(np.maximum.accumulate(other.last), one.base)
    found: BoolArray = numbers < len(other)
    numbers = np.minimum(numbers, len(other) - 1)
    found &= (other.base[numbers] <= one.last) & (other.epoch[numbers] == one.epoch)
    return found


def _is_within(offsets: Int64Array, differences: Sequence[BatchDifference]) -> BoolArray:
    """Of each offset whether it lies in a difference."""
    if not differences:
        return np.zeros(len(offsets), bool)
    starts = np.array([each.start for each in differences])
    ends = np.array([each.end for each in differences])
    numbers = np.searchsorted(starts, offsets, side="right") - 1
    within: BoolArray = (numbers >= 0) & (offsets < ends[numbers])
    return within
