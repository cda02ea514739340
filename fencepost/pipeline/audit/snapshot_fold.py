"""Folds the state of producers over a log, and compares it with the snapshots along the way.

A producer snapshot (``.snapshot``) has the state that Kafka's ProducerStateManager had before an
offset. What a stretch of the log does to that state is its summary, and the snapshot at its start
goes with it: where it follows on another stretch, the state that the snapshot of that one and the
batches behind it make must be what this snapshot says. So each snapshot is compared with the one
before it and what was appended in between, and what is wrong in one is told at the next one at
most.

Compaction and damage leave holes, and behind one the snapshot may know more than the log.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from fencepost.pipeline.audit.producer_batches import Stretch
from fencepost.protocol.records import NO_SEQUENCE
from fencepost.storage.log.producer_state import NO_COORDINATOR_EPOCH, ProducerStateEntry

UNSEEN: Final = -2
"""The stretch does not tell: what was before it counts."""
NOTHING: Final = -1
"""There is none: no batch of the epoch, or no open transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerAt:
    """The state of a producer at an offset; of a stretch alone, as far as it tells."""

    epoch: int
    is_epoch_all: bool
    """Whether the stretch has markers of that epoch alone, and no data."""
    last_sequence: int
    """Of the epoch; `NOTHING` or `UNSEEN` without data in it."""
    last_offset: int
    """Likewise."""
    last_timestamp: int
    coordinator_epoch: int
    """`UNSEEN` without a marker."""
    first_offset: int
    """Of the open transaction; `NOTHING` behind a marker, `UNSEEN` where no marker is in the
    stretch, and no transaction."""
    may_have_begun_before: bool
    """Whether a transaction that was open before the stretch would still be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFinding:
    """A snapshot that says something else than the log."""

    offset: int
    """That it was taken before."""
    message: str


Entries: TypeAlias = tuple[ProducerStateEntry, ...]
"""What a snapshot says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A snapshot that can be read."""

    offset: int
    """That it was taken before."""
    entries: Entries


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotSummary:
    """What a stretch does to the state of producers, and the snapshots in it."""

    start: int
    end: int
    """Exclusive."""
    head: Mapping[int, ProducerAt]
    """What the batches before the first snapshot do; all of them where there is none."""
    is_head_whole: bool
    """Whether there is no hole among them."""
    first: Snapshot | None
    tail: Mapping[int, ProducerAt]
    """At the end, by the last snapshot and the batches behind it; empty without a snapshot."""
    is_tail_whole: bool
    findings: tuple[SnapshotFinding, ...]
    """By offset."""


def summarize(stretch: Stretch | None, offset: int, entries: Entries | None) -> SnapshotSummary:
    """The summary of a stretch from an offset on; it may have no batch.

    :param entries: Of the snapshot that was taken before `offset`; None without one.
    """
    changes = {} if stretch is None else _changes(stretch)
    is_whole = stretch is None or not (stretch.holes or stretch.start != offset)
    tail: Mapping[int, ProducerAt] = {}
    if entries is not None:
        tail = _behind({each.producer_id: _restored(each) for each in entries}, changes)
    return SnapshotSummary(
        start=offset,
        end=offset if stretch is None else stretch.end,
        head=changes if entries is None else {},
        is_head_whole=is_whole or entries is not None,
        first=None if entries is None else Snapshot(offset=offset, entries=entries),
        tail=tail,
        is_tail_whole=is_whole or entries is None,
        findings=(),
    )


def _changes(stretch: Stretch) -> dict[int, ProducerAt]:
    batches = stretch.batches
    is_data, last_sequence = batches.is_data, batches.last_sequence
    transactional = is_data & batches.transactional
    found: dict[int, ProducerAt] = {}
    for producer, begin, end in stretch.producers():
        epoch = batches.epoch[begin:end]
        newest = int(epoch[-1])
        older = np.flatnonzero(epoch != newest)
        in_epoch = begin + (int(older[-1]) + 1 if len(older) else 0)
        data = np.flatnonzero(is_data[in_epoch:end])
        last = in_epoch + int(data[-1]) if len(data) else None
        markers = np.flatnonzero(~is_data[begin:end])
        behind_marker = begin + int(markers[-1]) + 1 if len(markers) else begin
        opens = np.flatnonzero(transactional[behind_marker:end])
        none = NOTHING if len(older) else UNSEEN
        numbered = last is not None and batches.sequence[last] != NO_SEQUENCE
        found[producer] = ProducerAt(
            epoch=newest,
            is_epoch_all=not len(older) and last is None,
            last_sequence=int(last_sequence[last])
            if numbered
            else none
            if last is None
            else UNSEEN,
            last_offset=none if last is None else int(batches.last[last]),
            last_timestamp=int(batches.time[end - 1]),
            coordinator_epoch=int(batches.coordinator_epoch[behind_marker - 1])
            if len(markers)
            else UNSEEN,
            first_offset=int(batches.base[behind_marker + int(opens[0])])
            if len(opens)
            else (NOTHING if len(markers) else UNSEEN),
            may_have_begun_before=not len(markers),
        )
    return found


def _restored(entry: ProducerStateEntry) -> ProducerAt:
    last = entry.batches[-1] if entry.batches else None
    begun = entry.txn_first_offset
    return ProducerAt(
        epoch=entry.producer_epoch,
        is_epoch_all=False,
        last_sequence=NOTHING if last is None else last.last_sequence,
        last_offset=NOTHING if last is None else last.last_offset,
        last_timestamp=entry.last_timestamp,
        coordinator_epoch=entry.coordinator_epoch,
        first_offset=NOTHING if begun is None else begun,
        may_have_begun_before=False,
    )


def _after(before: ProducerAt | None, changes: ProducerAt) -> ProducerAt:
    """The state behind a stretch, by the one before it; None: it was not known."""
    if before is None:
        return changes
    sequence, offset = changes.last_sequence, changes.last_offset
    if changes.is_epoch_all and before.epoch == changes.epoch:
        sequence, offset = before.last_sequence, before.last_offset
    elif changes.is_epoch_all:
        sequence = offset = NOTHING
    first = changes.first_offset
    if (changes.may_have_begun_before and before.first_offset >= 0) or first == UNSEEN:
        first = before.first_offset
    return ProducerAt(
        epoch=changes.epoch,
        is_epoch_all=changes.is_epoch_all and before.is_epoch_all and before.epoch == changes.epoch,
        last_sequence=sequence,
        last_offset=offset,
        last_timestamp=changes.last_timestamp,
        coordinator_epoch=before.coordinator_epoch
        if changes.coordinator_epoch == UNSEEN
        else changes.coordinator_epoch,
        first_offset=first,
        may_have_begun_before=changes.may_have_begun_before and before.may_have_begun_before,
    )


def _behind(
    before: Mapping[int, ProducerAt], changes: Mapping[int, ProducerAt]
) -> dict[int, ProducerAt]:
    """The state of all producers behind a stretch."""
    changed = {producer: _after(before.get(producer), after) for producer, after in changes.items()}
    return {**before, **changed}


def merge(earlier: SnapshotSummary, later: SnapshotSummary) -> SnapshotSummary:
    """The summary of two stretches, of which one follows on the other."""
    joint = earlier.end == later.start
    findings = [*earlier.findings, *later.findings]
    head, is_head_whole = earlier.head, earlier.is_head_whole
    tail, is_tail_whole = later.tail, later.is_tail_whole
    if earlier.first is None:
        head = _behind(earlier.head, later.head)
        is_head_whole = earlier.is_head_whole and joint and later.is_head_whole
    else:
        reached = _behind(earlier.tail, later.head)
        is_whole = earlier.is_tail_whole and joint and later.is_head_whole
        if later.first is None:
            tail, is_tail_whole = reached, is_whole
        else:
            findings += _compare(reached, later.first, is_whole=is_whole, is_all=True)
    return SnapshotSummary(
        start=earlier.start,
        end=later.end,
        head=head,
        is_head_whole=is_head_whole,
        first=earlier.first or later.first,
        tail=tail,
        is_tail_whole=is_tail_whole,
        findings=tuple(sorted(findings, key=_order)),
    )


def verdict(summary: SnapshotSummary) -> list[SnapshotFinding]:
    """The findings in a whole log."""
    found = list(summary.findings)
    if summary.first is not None:
        found += _compare(
            summary.head,
            summary.first,
            is_whole=summary.is_head_whole,
            is_all=summary.start == 0,
        )
    return sorted(found, key=_order)


def _order(finding: SnapshotFinding) -> tuple[int, str]:
    return finding.offset, finding.message


def _compare(
    known: Mapping[int, ProducerAt], snapshot: Snapshot, *, is_whole: bool, is_all: bool
) -> list[SnapshotFinding]:
    """What a snapshot says that is not so.

    :param known: The state by the snapshot before it and the log.
    :param is_whole: Whether the log has no hole since then.
    :param is_all: Whether no producer was there before that is not known.
    """
    found = [
        f"producer {entry.producer_id}: {difference}"
        for entry in snapshot.entries
        for difference in _differences(
            known.get(entry.producer_id), entry, is_whole=is_whole, is_all=is_all
        )
    ]
    if is_whole:
        # Any other producer may have expired.
        listed = {entry.producer_id for entry in snapshot.entries}
        found += [
            f"producer {producer}, with a transaction from offset {at.first_offset} on, is missing"
            for producer, at in known.items()
            if producer not in listed and at.first_offset >= 0
        ]
    return [SnapshotFinding(offset=snapshot.offset, message=each) for each in found]


def _differences(
    at: ProducerAt | None, entry: ProducerStateEntry, *, is_whole: bool, is_all: bool
) -> Iterator[str]:
    if at is None:
        if is_whole and is_all:
            yield "nothing of it is in the log before"
        return
    last_offset = entry.batches[-1].last_offset if entry.batches else NOTHING
    if not is_whole:
        if (entry.producer_epoch, last_offset) < (at.epoch, at.last_offset):
            yield (
                f"epoch {entry.producer_epoch} and last offset {last_offset}, "
                f"and the log has epoch {at.epoch} and {at.last_offset}"
            )
        return
    said = {
        "epoch": (entry.producer_epoch, at.epoch),
        "last sequence number": (entry.last_sequence, at.last_sequence),
        "last offset": (last_offset, at.last_offset),
    }
    if entry.coordinator_epoch != NO_COORDINATOR_EPOCH:  # it may have expired in between
        said["coordinator epoch"] = (entry.coordinator_epoch, at.coordinator_epoch)
    for name, (one, other) in said.items():
        if other not in (one, UNSEEN):
            yield f"{name} {one}, and by the log {other}"
    yield from _open_difference(at, entry.txn_first_offset)


def _open_difference(at: ProducerAt, begun: int | None) -> Iterator[str]:
    said = NOTHING if begun is None else begun
    first = at.first_offset
    may_be_earlier = at.may_have_begun_before and NOTHING < said < first
    if first in (said, UNSEEN) or may_be_earlier:
        return
    names = [
        "no transaction is" if each == NOTHING else f"one from offset {each} on is"
        for each in (said, first)
    ]
    yield f"{names[0]} open, and by the log {names[1]}"
