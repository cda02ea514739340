"""Folds the transactions of a log, stretch by stretch (KIP-98, KIP-890).

A transaction of a producer begins with its first transactional batch behind a marker, and ends with
the next marker. A marker without a batch is no damage: a transaction has markers in each of its
partitions, and may have written nothing to one; a coordinator may send a marker again. It is
counted, as committed, aborted and open transactions are, and the records of those aborted.

What of a summary has to wait for an earlier stretch is what stands before a producer's first
marker. So it has as many entries as there are producers, and the findings.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

import numpy as np

from fencepost.pipeline.audit.batch_arrays import Int64Array
from fencepost.pipeline.audit.producer_batches import (
    COMMIT,
    ProducerBatches,
    Stretch,
    last_before,
    starts_of,
)

_NONE: Final = -1


class TransactionFault(Enum):
    """What is wrong with a batch."""

    PLAIN = auto()
    """It is outside of a transaction, and its producer has one open."""
    COORDINATOR_EPOCH = auto()
    """The marker is of an older coordinator than the one before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionBatch:
    """Where a batch or a marker is."""

    segment: int
    position: int
    offset: int
    end_offset: int
    """Exclusive."""
    epoch: int
    """Of the producer."""
    time: int
    whole: bool
    """Whether no offset is missing between it and that end of the stretch that it is nearer to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionFinding:
    """A batch that may not be where it is."""

    fault: TransactionFault
    producer: int
    batch: TransactionBatch
    number: int
    """The coordinator epoch of a marker; of data the first offset of the batch before it."""
    number_before: int
    """The coordinator epoch of the marker before it; of data the last offset before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerSeen:
    """A marker."""

    batch: TransactionBatch
    committed: bool
    coordinator_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionPart:
    """Transactional batches without a marker between them."""

    begin: TransactionBatch
    end_time: int
    """The last timestamp (ms)."""
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionCounts:
    """Transactions that have ended in a stretch, and their records."""

    committed: int = 0
    aborted: int = 0
    aborted_records: int = 0
    markers_without_batch: int = 0

    def __add__(self, other: "TransactionCounts") -> "TransactionCounts":
        return TransactionCounts(
            committed=self.committed + other.committed,
            aborted=self.aborted + other.aborted,
            aborted_records=self.aborted_records + other.aborted_records,
            markers_without_batch=self.markers_without_batch + other.markers_without_batch,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerTransactions:
    """Both ends of what a producer has in a stretch."""

    begin: TransactionBatch
    begins_plain: bool
    """Whether that is a batch outside of a transaction."""
    end: TransactionBatch
    ends_open: bool
    """Whether its last batch is transactional, and no marker."""
    head: TransactionPart | None
    """Before its first marker, or all where there is none."""
    first: MarkerSeen | None
    last: MarkerSeen | None
    tail: TransactionPart | None
    """Behind its last marker; None without a marker."""

    @property
    def open(self) -> TransactionPart | None:
        """What is open at the end of the stretch, where nothing was before it."""
        return self.head if self.first is None else self.tail


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSummary:
    """What a stretch says of transactions."""

    start: int
    end: int
    """Exclusive."""
    holes: int
    producers: Mapping[int, ProducerTransactions]
    counts: TransactionCounts
    """Of all but the first marker of each producer."""
    findings: tuple[TransactionFinding, ...]
    """By offset."""


def summarize(stretch: Stretch) -> TransactionSummary:
    """The summary of one stretch."""
    batches = stretch.batches
    producers: dict[int, ProducerTransactions] = {}
    counts, findings = TransactionCounts(), list[TransactionFinding]()
    if len(batches):
        columns = _Columns.of(batches)
        counts = columns.counts(batches)
        findings = _findings(stretch, columns)
        producers = {
            producer: _producer(stretch, columns, begin, end)
            for producer, begin, end in stretch.producers()
        }
    return TransactionSummary(
        start=stretch.start,
        end=stretch.end,
        holes=stretch.holes,
        producers=producers,
        counts=counts,
        findings=tuple(sorted(findings, key=_order)),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Columns:
    """Of each batch, and of the transactional data up to it."""

    begins: Int64Array
    """The first of its producer."""
    marker_before: Int64Array
    """The marker of its producer before it; -1 without one."""
    transactional: Int64Array
    """Numbers of the transactional data."""
    transactional_before: Int64Array
    """How many of these there are before it."""
    records_before: Int64Array
    """And how many records in them."""

    @classmethod
    def of(cls, batches: ProducerBatches) -> "_Columns":
        new = np.append(True, batches.producer[1:] != batches.producer[:-1])
        begins = starts_of(new)
        markers = last_before(~batches.is_data)
        data = batches.is_data & batches.transactional
        records = np.where(data, batches.count, 0)
        return cls(
            begins=begins,
            marker_before=np.where(markers >= begins, markers, _NONE),
            transactional=np.flatnonzero(data),
            transactional_before=np.append(0, np.cumsum(data)),
            records_before=np.append(0, np.cumsum(records)),
        )

    def counts(self, batches: ProducerBatches) -> TransactionCounts:
        """What ended with markers that are not the first of their producers."""
        markers = np.flatnonzero(~batches.is_data & (self.marker_before >= 0))
        before = self.marker_before[markers]
        found = self.transactional_before[markers] > self.transactional_before[before]
        records = self.records_before[markers] - self.records_before[before]
        committed = batches.marker[markers] == COMMIT
        return TransactionCounts(
            committed=int(np.count_nonzero(found & committed)),
            aborted=int(np.count_nonzero(found & ~committed)),
            aborted_records=int(records[~committed].sum()),
            markers_without_batch=int(np.count_nonzero(~found)),
        )


def _findings(stretch: Stretch, columns: _Columns) -> list[TransactionFinding]:
    batches = stretch.batches
    data, producer = batches.is_data, batches.producer
    open_before = data[:-1] & batches.transactional[:-1] & (producer[1:] == producer[:-1])
    plain = data[1:] & ~batches.transactional[1:]
    no_hole = batches.holes[1:] == batches.holes[:-1]
    found = [
        _plain(
            int(producer[at]),
            _batch(batches, at, whole=False),
            _batch(batches, at - 1, whole=False),
        )
        for at in (np.flatnonzero(open_before & plain & no_hole) + 1).tolist()
    ]
    before = columns.marker_before
    falls = ~data & (before >= 0)
    falls &= batches.coordinator_epoch < batches.coordinator_epoch[np.maximum(before, 0)]
    for at in np.flatnonzero(falls).tolist():
        older = _marker(batches, int(before[at]), whole=False)
        found.append(_older(int(producer[at]), _marker(batches, at, whole=False), older))
    return found


def _plain(producer: int, batch: TransactionBatch, before: TransactionBatch) -> TransactionFinding:
    return TransactionFinding(
        fault=TransactionFault.PLAIN,
        producer=producer,
        batch=replace(batch, whole=False),
        number=before.offset,
        number_before=before.end_offset - 1,
    )


def _older(producer: int, marker: MarkerSeen, before: MarkerSeen) -> TransactionFinding:
    return TransactionFinding(
        fault=TransactionFault.COORDINATOR_EPOCH,
        producer=producer,
        batch=replace(marker.batch, whole=False),
        number=marker.coordinator_epoch,
        number_before=before.coordinator_epoch,
    )


def _order(finding: TransactionFinding) -> tuple[int, int]:
    return finding.batch.offset, finding.fault.value


def _batch(batches: ProducerBatches, at: int, *, whole: bool) -> TransactionBatch:
    return TransactionBatch(
        segment=int(batches.segment[at]),
        position=int(batches.position[at]),
        offset=int(batches.base[at]),
        end_offset=int(batches.last[at]) + 1,
        epoch=int(batches.epoch[at]),
        time=int(batches.time[at]),
        whole=bool(whole),
    )


def _marker(batches: ProducerBatches, at: int, *, whole: bool) -> MarkerSeen:
    return MarkerSeen(
        batch=_batch(batches, at, whole=whole),
        committed=bool(batches.marker[at] == COMMIT),
        coordinator_epoch=int(batches.coordinator_epoch[at]),
    )


def _producer(stretch: Stretch, columns: _Columns, begin: int, end: int) -> ProducerTransactions:
    """Of a producer whose batches are from `begin` to `end` (exclusive)."""
    batches, last = stretch.batches, end - 1
    markers = np.flatnonzero(~batches.is_data[begin:end]) + begin
    first_marker, last_marker = (int(markers[0]), int(markers[-1])) if len(markers) else (end, end)
    return ProducerTransactions(
        begin=_batch(batches, begin, whole=not batches.holes[begin]),
        begins_plain=bool(batches.is_data[begin] and not batches.transactional[begin]),
        end=_batch(batches, last, whole=batches.holes[last] == stretch.holes),
        ends_open=bool(batches.is_data[last] and batches.transactional[last]),
        head=_part(batches, columns, begin, first_marker),
        first=_marker(batches, first_marker, whole=False) if len(markers) else None,
        last=_marker(batches, last_marker, whole=False) if len(markers) else None,
        tail=_part(batches, columns, last_marker + 1, end) if len(markers) else None,
    )


def _part(
    batches: ProducerBatches, columns: _Columns, start: int, stop: int
) -> TransactionPart | None:
    """The transactional data from number `start` to `stop` (exclusive) of one producer."""
    first, behind = np.searchsorted(columns.transactional, (start, stop)).tolist()
    if first >= behind:
        return None
    return TransactionPart(
        begin=_batch(batches, int(columns.transactional[first]), whole=False),
        end_time=int(batches.time[columns.transactional[behind - 1]]),
        records=int(columns.records_before[stop] - columns.records_before[start]),
    )


def merge(earlier: TransactionSummary, later: TransactionSummary) -> TransactionSummary:
    """The summary of two stretches, of which one follows on the other."""
    joint = earlier.end == later.start
    counts = earlier.counts + later.counts
    findings = [*earlier.findings, *later.findings]
    producers: dict[int, ProducerTransactions] = {}
    for producer, one in earlier.producers.items():
        whole = one.end.whole and joint and not later.holes
        producers[producer] = replace(one, end=replace(one.end, whole=whole))
    for producer, other in later.producers.items():
        known = earlier.producers.get(producer)
        if known is None:
            whole = other.begin.whole and joint and not earlier.holes
            producers[producer] = replace(other, begin=replace(other.begin, whole=whole))
            continue
        no_hole = joint and known.end.whole and other.begin.whole
        if known.ends_open and other.begins_plain and no_hole:
            findings.append(_plain(producer, other.begin, known.end))
        if known.last is not None and other.first is not None:
            counts += ended(other.first, _together(known.tail, other.head))
            if other.first.coordinator_epoch < known.last.coordinator_epoch:
                findings.append(_older(producer, other.first, known.last))
        producers[producer] = _joined(known, other)
    return TransactionSummary(
        start=earlier.start,
        end=later.end,
        holes=earlier.holes + later.holes + (not joint),
        producers=producers,
        counts=counts,
        findings=tuple(sorted(findings, key=_order)),
    )


def _joined(one: ProducerTransactions, other: ProducerTransactions) -> ProducerTransactions:
    return ProducerTransactions(
        begin=one.begin,
        begins_plain=one.begins_plain,
        end=other.end,
        ends_open=other.ends_open,
        head=one.head if one.first is not None else _together(one.head, other.head),
        first=one.first or other.first,
        last=other.last or one.last,
        tail=other.tail
        if other.first is not None or one.first is None
        else _together(one.tail, other.head),
    )


def _together(one: TransactionPart | None, other: TransactionPart | None) -> TransactionPart | None:
    if one is None or other is None:
        return one or other
    return TransactionPart(
        begin=one.begin, end_time=other.end_time, records=one.records + other.records
    )


def ended(marker: MarkerSeen, part: TransactionPart | None) -> TransactionCounts:
    """What a marker has ended."""
    return TransactionCounts(
        committed=int(part is not None and marker.committed),
        aborted=int(part is not None and not marker.committed),
        aborted_records=0 if part is None or marker.committed else part.records,
        markers_without_batch=int(part is None),
    )


def total(summary: TransactionSummary) -> TransactionCounts:
    """All that has ended in the log whose summary it is."""
    counts = summary.counts
    for each in summary.producers.values():
        if each.first is not None:
            counts += ended(each.first, each.head)
    return counts
