"""The logs of a partition as arrays: what the rules about logs look at."""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit.evidence import Evidence, ReplicaGround, TierSegment
from fencepost.pipeline.reading.schemas import Place, Problem

Longs: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Span: TypeAlias = tuple[int, int]
"""Offsets: the first, and behind the last (exclusive)."""

DOUBTFUL: Final = (Problem.CRC, Problem.STRUCTURE)
"""Problems of a batch whose header may be wrong itself."""
NOWHERE: Final = -1
_DELETE_HORIZON: Final = 0x40
"""Attribute of a batch that compaction has been over (KIP-534)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batches:
    """Batches whose headers may be believed, one number of each in every array."""

    segment: Longs
    position: Longs
    size: Longs
    base: Longs
    last: Longs
    """Inclusive."""
    count: Longs
    epoch: Longs
    crc: Longs
    attributes: Longs

    def __len__(self) -> int:
        return len(self.base)

    def pick(self, which: Longs | Flags) -> "Batches":
        """Some of them, by number or by a flag for each."""
        return Batches(**{each.name: getattr(self, each.name)[which] for each in fields(self)})

    def by_offset(self) -> "Batches":
        """All of them, in the order of their first offsets."""
        return self.pick(np.argsort(self.base, kind="stable"))

    def within(self, start: int, end: int) -> "Batches":
        """Those that have no offset before `start`, nor at or behind `end`.

        They must be in the order of their offsets.
        """
        first, behind = np.searchsorted(self.base, (start, end)).tolist()
        numbers = np.arange(first, max(first, behind))
        return self.pick(numbers[self.last[numbers] < end])

    def near(self, other: "Batches") -> "Batches":
        """Those that may share offsets with some of another log's; of both in order."""
        if not len(self) or not len(other):
            return self.pick(np.zeros(0, np.int64))
        first = int(np.searchsorted(self.base, other.base[0], side="right")) - 1
        behind = int(np.searchsorted(self.base, other.last[-1], side="right"))
        return self.pick(np.arange(max(first, 0), max(behind, 0)))

    def holding(self, offsets: Longs) -> Longs:
        """For each offset the number of the batch that holds it, `NOWHERE` without one.

        They must be in the order of their offsets.
        """
        if not len(self):
            return np.full(len(offsets), NOWHERE)
        numbers = np.searchsorted(self.base, offsets, side="right") - 1
        return np.where((numbers >= 0) & (self.last[numbers] >= offsets), numbers, NOWHERE)

    @property
    def is_untouched(self) -> Flags:
        """Of each whether it has all its records and compaction has written nothing into it."""
        whole: Flags = self.count == self.last - self.base + 1
        no_horizon: Flags = (self.attributes & _DELETE_HORIZON) == 0
        return whole & no_horizon

    @property
    def spans(self) -> list[Span]:
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


def trusted(rows: pa.Table) -> pa.Table:
    """The rows that are batches whose headers may be believed."""
    doubtful = pc.is_in(rows["problem"], pa.array(DOUBTFUL))
    return rows.filter(pc.and_not(pc.is_valid(rows["base_offset"]), doubtful))


def batches_of(rows: pa.Table) -> Batches:
    """The batches among rows of `BATCHES`, without those whose headers are doubtful."""
    sound = trusted(rows)
    return Batches(
        **{
            name: pc.fill_null(sound[column].cast(pa.int64()), 0).to_numpy()
            for name, column in _COLUMNS.items()
        }
    )


def may_be_compacted(evidence: Evidence) -> bool:
    """Whether a cleaner may have been over the logs.

    A policy that is another by now leaves what was cleaned: the batches tell.
    """
    return evidence.ground.compacted or not batches_of(evidence.of(Place.LOG)).is_untouched.all()


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
class Log:
    """One broker's log of the partition."""

    ground: ReplicaGround
    rows: pa.Table
    """All of it, problems too, in order."""
    batches: Batches

    @property
    def broker(self) -> int:
        """Whose it is."""
        return self.ground.broker

    @property
    def local_start(self) -> int:
        """The first offset that the log may hold."""
        return self.ground.segments[0] if self.ground.segments else 0

    @property
    def active(self) -> int:
        """The base offset of the segment that is appended to."""
        return self.ground.segments[-1] if self.ground.segments else 0

    @property
    def end(self) -> int:
        """Behind the last batch (exclusive)."""
        return max(self.active, int(self.batches.last.max(initial=NOWHERE)) + 1)

    @property
    def epochs(self) -> tuple[tuple[int, int], ...]:
        """As the checkpoint says; none without one."""
        return self.ground.epochs or ()

    def last_epoch_before(self, offset: int) -> int:
        """The epoch of the last batch that begins before an offset; -1 without one."""
        epochs = self.batches.epoch[self.batches.base < offset]
        return int(epochs[-1]) if len(epochs) else -1


def logs_of(evidence: Evidence) -> tuple[Log, ...]:
    """The log of each broker, also where no batch is in it, by broker."""
    rows = evidence.of(Place.LOG)
    grounds = {each.broker: each for each in evidence.ground.replicas}
    brokers = {*grounds, *pc.unique(rows["broker"]).drop_null().to_pylist()}
    return tuple(
        _log(grounds.get(broker), broker, evidence.of(Place.LOG, broker))
        for broker in sorted(brokers)
    )


def _log(ground: ReplicaGround | None, broker: int, rows: pa.Table) -> Log:
    if ground is None:
        ground = ReplicaGround(broker=broker, clean=False, segments=(), epochs=None)
    # What rolled after the checkpoints were read is known from its batches alone.
    found = pc.unique(rows["segment"]).drop_null().to_pylist()
    segments = tuple(sorted({*ground.segments, *found}))
    return Log(ground=replace(ground, segments=segments), rows=rows, batches=batches_of(rows))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Family:
    """What belongs together: a topic of the same name may have been deleted and made anew."""

    logs: tuple[Log, ...]
    tier: tuple[TierSegment, ...]

    @property
    def log_start(self) -> int:
        """The first offset that nobody has deleted, as far as is known: of that all must agree."""
        return max((_start_of(log.ground) for log in self.logs), default=0)


def families(evidence: Evidence) -> list[Family]:
    """Logs and finished segments of the tier by the topic's id, each log once.

    A log that says none is taken to be of the topic that most are of.
    """
    logs = logs_of(evidence)
    ids = [log.ground.topic_id for log in logs if log.ground.topic_id is not None]
    by_count = sorted(set(ids), key=lambda each: (-ids.count(each), each))
    found = []
    for number, topic_id in enumerate(by_count):
        own = (topic_id, None) if number == 0 else (topic_id,)
        found.append(_family(evidence, [log for log in logs if log.ground.topic_id in own], own))
    return found or [_family(evidence, logs, None)]


def family_of(evidence: Evidence, topic_id: str | None) -> Family:
    """What belongs to a topic; where no log says its id, what most are of."""
    found = families(evidence)
    of_topic = (
        family for family in found if any(log.ground.topic_id == topic_id for log in family.logs)
    )
    return next(of_topic, found[0])


def _family(
    evidence: Evidence, logs: Iterable[Log], topic_ids: tuple[str | None, ...] | None
) -> Family:
    tier = (each for each in evidence.ground.tier if each.finished)
    return Family(
        logs=tuple(logs),
        tier=tuple(each for each in tier if topic_ids is None or each.topic_id in topic_ids),
    )


def _start_of(ground: ReplicaGround) -> int:
    """The checkpoint lags behind; the leader epochs are cut where the log is."""
    first = ground.epochs[0][1] if ground.epochs else 0
    return max(ground.log_start or 0, first)


def gaps(spans: Iterable[Span], start: int, end: int) -> list[Span]:
    """What spans, which may overlap, lack from `start` to `end` (exclusive)."""
    found = []
    for first, behind in sorted(spans):
        if first > start and start < end:
            found.append((start, min(first, end)))
        start = max(start, behind)
    if start < end:
        found.append((start, end))
    return found


def is_held(spans: Iterable[Span], start: int, end: int) -> bool:
    """Whether spans, which may overlap, have every offset from `start` to `end` (exclusive)."""
    return not gaps(spans, start, end)
