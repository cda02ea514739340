"""The summary of a partition: what was read, how many violations each rule found, and its history.

An executor makes it and sends it as JSON to the driver. It stays small however large the partition
is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit import transaction_fold
from fencepost.pipeline.audit.batch_arrays import counted_batches, trusted_rows
from fencepost.pipeline.audit.condensed.segment_folds import SegmentFolds
from fencepost.pipeline.audit.incidents import Incident
from fencepost.pipeline.audit.lineage.model import PartitionLineage
from fencepost.pipeline.audit.producer_batches import stretch_of
from fencepost.pipeline.audit.rule import SegmentKey, place_text
from fencepost.pipeline.audit.transaction_fold import TransactionSummary

MAX_POINTS: Final = 400
"""Of a series, at most."""
MAX_MARKS: Final = 200
"""Elections, or segments of a replica, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentSpan:
    """Segments that follow each other, mostly one."""

    start: int
    """The first offset, by the name of the file."""
    end: int
    """Behind the last record (exclusive)."""
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionTotals:
    """The transactions of a replica, or of the tier."""

    committed: int = 0
    aborted: int = 0
    aborted_records: int = 0
    """Which read_committed consumers never see, and which are counted among the records."""
    open: int = 0
    markers_without_batch: int = 0
    """Of transactions that wrote nothing here, or whose records are gone; and repeated ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaInventory:
    """What a replica, or the tier, holds of a partition."""

    place: str
    """``log`` or ``tier``."""
    broker: int | None
    batches: int
    records: int
    """By the headers of the batches."""
    bytes: int
    problems: int
    """Batches and files that are not sound."""
    start: int | None
    """The first offset; None where there is no record."""
    end: int | None
    """Behind the last record (exclusive)."""
    segments: int
    largest: int
    """Bytes of the largest segment."""
    spans: tuple[SegmentSpan, ...]
    """At most `MAX_MARKS`: where there are more segments, neighbours are one entry."""
    transactions: TransactionTotals = TransactionTotals()


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSeries:
    """Values over time, in order."""

    times: tuple[int, ...] = ()
    """Milliseconds since the epoch."""
    values: tuple[int, ...] = ()
    total: int = 0
    """How many there were before the series was thinned out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """A leader begins an epoch."""

    time_ms: int
    leader: int | None
    """None: there is no leader, or it is unknown."""
    epoch: int
    unclean: bool = False
    """Whether the leader was not in the ISR, so that records may be lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowerLag:
    """How many records a follower was behind the log end when it fetched."""

    broker: int
    records: TimeSeries


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionHistory:
    """A partition over time."""

    from_trace: bool
    """Whether it was seen in a trace; else it is taken from the timestamps of the batches."""
    log_end: TimeSeries
    """The leader's (exclusive)."""
    high_watermark: TimeSeries
    latest: TimeSeries
    """What ListOffsets answered to clients that asked for the latest offset."""
    gated: TimeSeries
    """When it answered OFFSET_NOT_AVAILABLE instead (KIP-207); the values say nothing."""
    lag: tuple[FollowerLag, ...]
    elections: tuple[Election, ...]
    """At most `MAX_MARKS`."""
    elections_total: int
    """How many there were."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCount:
    """What a rule found in a partition."""

    rule: str
    found: int
    """Violations, what is explained, and what is accepted."""
    explained: int
    listed: int
    """How many of them are listed."""
    suppressed: int = 0
    """How many are accepted, by the file of suppressions."""

    @property
    def violations(self) -> int:
        """Findings that nothing explains, and that are not accepted."""
        return self.found - self.explained - self.suppressed


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFailure:
    """A rule that could not be followed to its end."""

    rule: str
    topic: str | None
    """None where it is about log directories."""
    partition: int | None
    reason: str
    """The traceback."""

    @property
    def where(self) -> str:
        """The partition, or that it is none."""
        return place_text(self.topic, self.partition, None)

    @property
    def last_line(self) -> str:
        """The last line of the reason."""
        return self.reason.strip().rpartition("\n")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSummary:
    """What there is to tell of a partition."""

    topic: str
    partition: int
    replicas: tuple[ReplicaInventory, ...]
    """By place and broker."""
    trace_rows: int
    """Rows of the trace that are of this partition."""
    rule_counts: tuple[RuleCount, ...]
    """One a rule that was followed, in the order of the rules."""
    failures: tuple[RuleFailure, ...] = ()
    incidents: tuple[Incident, ...] = ()
    """By their numbers."""
    history: PartitionHistory | None = None
    lineages: tuple[PartitionLineage, ...] = ()
    """Of each incarnation that a log is of."""

    @property
    def key(self) -> tuple[str, int]:
        """Which partition it is."""
        return self.topic, self.partition

    @property
    def violations(self) -> int:
        """Findings that nothing explains, and that are not accepted."""
        return sum(each.violations for each in self.rule_counts)


def to_json(summary: PartitionSummary) -> bytes:
    """A summary as JSON."""
    return msgspec.json.encode(summary)


def from_json(data: bytes) -> PartitionSummary:
    """What `to_json` made."""
    return msgspec.json.decode(data, type=PartitionSummary)


_KEY: Final = ("place", "broker", "segment", "segment_id")
_TIER: Final = -1
"""The broker of what lies in the tier."""


def replica_inventories(
    batches: pa.Table, folds: Mapping[SegmentKey, SegmentFolds]
) -> Iterator[ReplicaInventory]:
    """One for each replica and one for the tier, in the order of the rows.

    :param batches: `BATCHES` of one partition by place, broker, segment and position.
    :param folds: Those of its segments that were made when they were read.
    """
    for rows in split_by_replica(batches.filter(pc.is_null(batches["file"]))):
        yield _inventory(rows, folds)


def split_by_replica(batches: pa.Table) -> Iterator[pa.Table]:
    """The rows of each replica and of the tier, which follow each other."""
    if not batches.num_rows:
        return
    brokers = pc.fill_null(batches["broker"], _TIER).to_numpy()
    places = pc.equal(batches["place"], batches["place"][0]).to_numpy()
    changes = np.flatnonzero((np.diff(brokers) != 0) | (np.diff(places) != 0)) + 1
    edges = [0, *changes.tolist(), batches.num_rows]
    for start, end in pairwise(edges):
        yield batches.slice(start, end - start)


def _inventory(rows: pa.Table, folds: Mapping[SegmentKey, SegmentFolds]) -> ReplicaInventory:
    sound = trusted_rows(rows)
    spans = _spans(sound)
    first = rows.slice(0, 1).to_pylist()[0]
    return ReplicaInventory(
        place=first["place"],
        broker=first["broker"],
        batches=pc.sum(counted_batches(sound)).as_py() or 0,
        records=pc.sum(sound["count"]).as_py() or 0,
        bytes=pc.sum(sound["size"]).as_py() or 0,
        problems=rows.num_rows - rows["problem"].null_count,
        start=pc.min(sound["base_offset"]).as_py(),
        end=max((each.end for each in spans), default=None),
        segments=len(spans),
        largest=max((each.bytes for each in spans), default=0),
        transactions=_transactions(rows, folds),
        spans=merge_neighbours(spans),
    )


def _transactions(rows: pa.Table, folds: Mapping[SegmentKey, SegmentFolds]) -> TransactionTotals:
    known = [each for each in _transactions_of_segments(rows, folds) if each is not None]
    if not known:
        return TransactionTotals()
    summary = reduce(transaction_fold.merge, known)
    ended = transaction_fold.total(summary)
    return TransactionTotals(
        committed=ended.committed,
        aborted=ended.aborted,
        aborted_records=ended.aborted_records,
        open=sum(each.open is not None for each in summary.producers.values()),
        markers_without_batch=ended.markers_without_batch,
    )


def _transactions_of_segments(
    rows: pa.Table, folds: Mapping[SegmentKey, SegmentFolds]
) -> Iterator[TransactionSummary | None]:
    ids = rows["segment_id"].combine_chunks().dictionary_encode().indices
    numbers = pc.fill_null(ids.cast(pa.int64()), _TIER).to_numpy(zero_copy_only=False)
    segments = pc.fill_null(rows["segment"], _TIER).to_numpy()
    changes = np.flatnonzero((np.diff(segments) != 0) | (np.diff(numbers) != 0)) + 1
    for start, end in pairwise([0, *changes.tolist(), rows.num_rows]):
        own = rows.slice(start, end - start)
        first = {name: own[name][0].as_py() for name in _KEY}
        folded = folds.get((first["place"], first["broker"], first["segment"], first["segment_id"]))
        if folded is not None:
            yield folded.transactions
            continue
        stretch = stretch_of(own)
        yield None if stretch is None else transaction_fold.summarize(stretch)


def _spans(sound: pa.Table) -> list[SegmentSpan]:
    """One for each segment with a batch in it, by base offset."""
    found = sound.group_by(["segment", "segment_id"], use_threads=False).aggregate(
        [("last_offset", "max"), ("size", "sum")]
    )
    return [
        SegmentSpan(start=row["segment"], end=row["last_offset_max"] + 1, bytes=row["size_sum"])
        for row in found.sort_by(
            [("segment", "ascending"), ("last_offset_max", "ascending")]
        ).to_pylist()
    ]


def merge_neighbours(spans: list[SegmentSpan]) -> tuple[SegmentSpan, ...]:
    """At most `MAX_MARKS`: neighbours are one entry where there are more."""
    together = -(-len(spans) // MAX_MARKS) or 1
    if together == 1:
        return tuple(spans)
    return tuple(
        SegmentSpan(
            start=group[0].start,
            end=max(each.end for each in group),
            bytes=sum(each.bytes for each in group),
        )
        for group in (spans[at : at + together] for at in range(0, len(spans), together))
    )
