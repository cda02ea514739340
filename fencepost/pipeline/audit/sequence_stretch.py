"""Summarizes the sequence numbers and epochs of producers in a stretch of a log (KIP-98, KIP-360).

A summary has two ends for each producer, and the findings. `sequence_fold` has what is right and
what is wrong, and merges summaries.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

import numpy as np

from fencepost.pipeline.audit.batch_arrays import BoolArray, Int64Array
from fencepost.pipeline.audit.producer_batches import (
    ProducerBatches,
    Stretch,
    last_before,
    starts_of,
)
from fencepost.protocol.records import MAX_SEQUENCE, NO_SEQUENCE

EXPIRATION_MS: Final = 24 * 60 * 60 * 1000
"""The default of ``producer.id.expiration.ms``: after that long a broker knows nothing of a
producer, and accepts all that it sends."""
FRESH: Final = -1
"""Nothing of its epoch is in the log yet: the next sequence number is 0."""
UNSEEN: Final = -2
"""The stretch has markers of one epoch alone: what was before them counts."""
UNNUMBERED: Final = -3
"""Any sequence number may be next: the last batch has none, or the epoch is one that went back."""


class Fault(Enum):
    """What is wrong with a batch."""

    GAP = auto()
    REPEATED = auto()
    NEW_EPOCH = auto()
    """The first batch of an epoch does not begin with 0."""
    EPOCH = auto()
    """Its epoch is an older one than its producer had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceFinding:
    """A batch that does not follow on the one before it of its producer."""

    fault: Fault
    producer: int
    epoch: int
    epoch_before: int
    """Of `Fault.EPOCH`; else its own."""
    first: int
    """Its first sequence number; -1 of a marker."""
    last: int
    expected: int
    """The sequence number that follows on those before it."""
    segment: int
    position: int
    offset: int
    end_offset: int
    """Exclusive."""
    offset_before: int
    """The last one of the batch that it should follow on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A batch at one end of a stretch."""

    offset: int
    """Its last one."""
    time: int
    whole: bool
    """Whether there is no hole between it and that end of the stretch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """A batch that something before the stretch decides about."""

    point: Point
    epoch: int
    first: int
    last: int
    segment: int
    position: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSequences:
    """Both ends of what a producer has in a stretch."""

    begin: Beginning
    """Its first batch or marker."""
    data: Beginning | None
    """Its first batch, where only markers of the same epoch come before; None where there is none,
    or another epoch comes before it."""
    end: Point
    """Its last batch or marker."""
    epoch: int
    """At the end."""
    sequence: int
    """The last number of the epoch; or `FRESH`, `UNSEEN`, `UNNUMBERED`."""
    reference: Point
    """The batch that `sequence` is known from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceSummary:
    """What a stretch says of its producers' sequence numbers."""

    start: int
    end: int
    """Exclusive."""
    holes: int
    producers: Mapping[int, ProducerSequences]
    findings: tuple[SequenceFinding, ...]
    """By offset."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Runs:
    """Of each batch: the runs of one epoch that it and those before it are in."""

    new: BoolArray
    """Whether it is its producer's first."""
    run_start: Int64Array
    """The first of its run."""
    in_first_run: BoolArray
    """Whether its run is its producer's first."""
    data_before: Int64Array
    """The last data before it in its run; -1 without one."""

    @classmethod
    def of(cls, batches: ProducerBatches) -> "_Runs":
        producer, epoch = batches.producer, batches.epoch
        new = np.append(True, producer[1:] != producer[:-1])
        changes = new | np.append(True, epoch[1:] != epoch[:-1])
        run_start = starts_of(changes)
        data_before = last_before(batches.is_data)
        return cls(
            new=new,
            run_start=run_start,
            in_first_run=run_start == starts_of(new),
            data_before=np.where(data_before >= run_start, data_before, -1),
        )


def summarize(stretch: Stretch) -> SequenceSummary:
    """The summary of one stretch."""
    batches = stretch.batches
    producers: dict[int, ProducerSequences] = {}
    findings: list[SequenceFinding] = []
    if len(batches):
        runs = _Runs.of(batches)
        findings = _findings(batches, runs)
        firsts = _first_data(batches, runs)
        producers = {
            producer: _producer(stretch, runs, begin, end - 1, firsts.get(producer))
            for producer, begin, end in stretch.producers()
        }
    return SequenceSummary(
        start=stretch.start,
        end=stretch.end,
        holes=stretch.holes,
        producers=producers,
        findings=tuple(sorted(findings, key=by_offset)),
    )


def _findings(batches: ProducerBatches, runs: _Runs) -> list[SequenceFinding]:
    epoch, sequence = batches.epoch, batches.sequence
    number = np.arange(len(batches))
    before = np.maximum(number - 1, 0)
    falls = ~runs.new & (runs.run_start == number) & (epoch < epoch[before])
    in_run = runs.data_before >= 0
    # Of the first data of an epoch what it follows on is the last batch of the epoch before.
    reference = np.where(in_run, runs.data_before, np.maximum(runs.run_start - 1, 0))
    expected = np.where(in_run, (batches.last_sequence[reference] + 1) & MAX_SEQUENCE, 0)
    rises = ~runs.in_first_run & (epoch > epoch[reference])
    judged = batches.is_data & (sequence != NO_SEQUENCE)
    judged &= np.where(in_run, sequence[reference] != NO_SEQUENCE, rises)
    wrong = judged & (sequence != expected) & _comparable(batches, number, reference)
    falls &= _in_time(batches, number, before)
    found = [
        _finding_in(batches, at, int(before[at]), 0, Fault.EPOCH)
        for at in np.flatnonzero(falls).tolist()
    ]
    for at in np.flatnonzero(wrong).tolist():
        fault = (
            sequence_fault(int(sequence[at]), int(expected[at])) if in_run[at] else Fault.NEW_EPOCH
        )
        found.append(_finding_in(batches, at, int(reference[at]), int(expected[at]), fault))
    return found


def _comparable(batches: ProducerBatches, one: Int64Array, other: Int64Array) -> BoolArray:
    no_hole: BoolArray = batches.holes[one] == batches.holes[other]
    return no_hole & _in_time(batches, one, other)


def _in_time(batches: ProducerBatches, one: Int64Array, other: Int64Array) -> BoolArray:
    known: BoolArray = batches.time[one] - batches.time[other] < EXPIRATION_MS
    return known


def sequence_fault(sequence: int, expected: int) -> Fault:
    """Whether numbers are left out or come again."""
    # Numbers wrap: what is nearer in front is a gap, what is nearer behind was there before.
    ahead = (sequence - expected) & MAX_SEQUENCE
    return Fault.GAP if ahead <= MAX_SEQUENCE // 2 else Fault.REPEATED


def _finding_in(
    batches: ProducerBatches, at: int, reference: int, expected: int, fault: Fault
) -> SequenceFinding:
    return finding_of(
        _beginning(batches, at, whole=True),
        int(batches.producer[at]),
        fault,
        expected=expected,
        epoch_before=int(batches.epoch[reference if fault is Fault.EPOCH else at]),
        offset_before=int(batches.last[reference]),
    )


def finding_of(
    batch: Beginning,
    producer: int,
    fault: Fault,
    *,
    expected: int,
    epoch_before: int,
    offset_before: int,
) -> SequenceFinding:
    """What is wrong with a batch."""
    return SequenceFinding(
        fault=fault,
        producer=producer,
        epoch=batch.epoch,
        epoch_before=epoch_before,
        first=batch.first,
        last=batch.last,
        expected=expected,
        segment=batch.segment,
        position=batch.position,
        offset=batch.offset,
        end_offset=batch.point.offset + 1,
        offset_before=offset_before,
    )


def by_offset(finding: SequenceFinding) -> tuple[int, int]:
    """The order of findings."""
    return finding.offset, finding.fault.value


def _first_data(batches: ProducerBatches, runs: _Runs) -> dict[int, int]:
    """By producer the number of the first data in its first run."""
    first = batches.is_data & runs.in_first_run & (runs.data_before < 0)
    numbers = np.flatnonzero(first)
    return dict(zip(batches.producer[numbers].tolist(), numbers.tolist(), strict=True))


def _producer(
    stretch: Stretch, runs: _Runs, begin: int, end: int, data: int | None
) -> ProducerSequences:
    batches = stretch.batches
    last_data = end if batches.is_data[end] else int(runs.data_before[end])
    if last_data >= 0:
        is_numbered = batches.sequence[last_data] != NO_SEQUENCE
        sequence = int(batches.last_sequence[last_data]) if is_numbered else UNNUMBERED
        reference = last_data
    elif runs.in_first_run[end]:
        sequence, reference = UNSEEN, end
    else:
        reference = int(runs.run_start[end]) - 1
        sequence = behind_marker(int(batches.epoch[end]), int(batches.epoch[reference]))
    return ProducerSequences(
        begin=_beginning(batches, begin, whole=not batches.holes[begin]),
        data=None if data is None else _beginning(batches, data, whole=not batches.holes[data]),
        end=_point(batches, end, whole=batches.holes[end] == stretch.holes),
        epoch=int(batches.epoch[end]),
        sequence=sequence,
        reference=_point(batches, reference, whole=batches.holes[reference] == stretch.holes),
    )


def behind_marker(epoch: int, epoch_before: int) -> int:
    """The state of an epoch that a marker has begun."""
    return FRESH if epoch > epoch_before else UNNUMBERED


def _point(batches: ProducerBatches, at: int, *, whole: bool) -> Point:
    return Point(offset=int(batches.last[at]), time=int(batches.time[at]), whole=bool(whole))


def _beginning(batches: ProducerBatches, at: int, *, whole: bool) -> Beginning:
    is_numbered = batches.sequence[at] != NO_SEQUENCE
    return Beginning(
        point=_point(batches, at, whole=whole),
        epoch=int(batches.epoch[at]),
        first=int(batches.sequence[at]),
        last=int(batches.last_sequence[at]) if is_numbered else NO_SEQUENCE,
        segment=int(batches.segment[at]),
        position=int(batches.position[at]),
        offset=int(batches.base[at]),
    )
