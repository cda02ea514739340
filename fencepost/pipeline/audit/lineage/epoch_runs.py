"""The leader epochs of a log as runs of batches, and as the leader-epoch cache knows them.

Runs are a fold: the runs of two neighbouring parts of a log merge into those of both. A segment can
so be looked at by itself, and any split gives the runs of the whole.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from fencepost.pipeline.audit.batch_arrays import Batches
from fencepost.storage.log.leader_epoch_cache import EpochEntry, LeaderEpochCache


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochRun:
    """Batches of one leader epoch that follow each other in a log."""

    epoch: int
    """-1 of messages of old formats, which have none."""
    start: int
    """The first offset."""
    end: int
    """Behind the last one (exclusive). Offsets may be missing within, as after compaction."""
    batches: int
    records: int
    """By the headers of the batches."""


EpochRuns: TypeAlias = tuple[EpochRun, ...]
"""In the order of the log; two that follow each other have different epochs."""


def epoch_runs(batches: Batches) -> EpochRuns:
    """The runs of some batches.

    :param batches: In the order of the log, of one segment or of many.
    """
    if not len(batches):
        return ()
    firsts = np.flatnonzero(np.diff(batches.epoch, prepend=batches.epoch[0] - 1))
    columns = zip(
        batches.epoch[firsts].tolist(),
        np.minimum.reduceat(batches.base, firsts).tolist(),
        np.maximum.reduceat(batches.last, firsts).tolist(),
        np.add.reduceat(batches.batches, firsts).tolist(),
        np.add.reduceat(batches.count, firsts).tolist(),
        strict=True,
    )
    return tuple(
        EpochRun(epoch=epoch, start=start, end=last + 1, batches=number, records=records)
        for epoch, start, last, number, records in columns
    )


def merge_runs(first: EpochRuns, second: EpochRuns) -> EpochRuns:
    """The runs of two neighbouring parts of a log, the second behind the first."""
    if not first or not second or first[-1].epoch != second[0].epoch:
        return first + second
    before, behind = first[-1], second[0]
    joint = EpochRun(
        epoch=before.epoch,
        start=min(before.start, behind.start),
        end=max(before.end, behind.end),
        batches=before.batches + behind.batches,
        records=before.records + behind.records,
    )
    return (*first[:-1], joint, *second[1:])


def known_epochs(
    runs: EpochRuns, checkpoint: Iterable[tuple[int, int]], end: int
) -> tuple[EpochEntry, ...]:
    """The leader epochs that a log knows, as a broker would that is started on it.

    Each epoch of a batch counts. An entry of the checkpoint counts where no batch contradicts it:
    behind all that is of older epochs, and not behind what is of its own or a newer one. So it may
    name epochs whose records are in the tier or that wrote nothing.

    :param checkpoint: Epochs and start offsets of ``leader-epoch-checkpoint``, in any order.
    :param end: The log end (exclusive).
    :returns: Both numbers strictly rising.
    """
    sound = sorted(
        (run for run in runs if run.epoch >= 0 and run.start >= 0), key=lambda run: run.epoch
    )
    epochs = np.array([run.epoch for run in sound], np.int64)
    ends = np.maximum.accumulate(np.array([0, *(run.end for run in sound)], np.int64))
    starts = np.array([*(run.start for run in sound), end], np.int64)
    starts = np.minimum.accumulate(starts[::-1])[::-1]
    found = dict(zip(reversed(epochs.tolist()), (r.start for r in reversed(sound)), strict=True))
    for epoch, start in checkpoint:
        number = int(np.searchsorted(epochs, epoch))
        if epoch >= 0 and ends[number] <= start <= starts[number]:
            found[epoch] = start
    cache = LeaderEpochCache()
    for epoch in sorted(found):
        cache.assign(epoch, found[epoch])
    return cache.entries()


def deleted_runs(entries: Sequence[EpochEntry], start: int) -> EpochRuns:
    """What a log knows of the offsets before its first batch, which it does not hold any more.

    :param entries: The leader epochs that it knows.
    :param start: The first offset that it holds.
    """
    behind = [*(entry.start_offset for entry in entries[1:]), start]
    return tuple(
        EpochRun(
            epoch=entry.epoch, start=entry.start_offset, end=min(end, start), batches=0, records=0
        )
        for entry, end in zip(entries, behind, strict=False)
        if entry.start_offset < min(end, start)
    )


def first_conflict(runs: EpochRuns, entries: Sequence[EpochEntry]) -> int | None:
    """The first offset of a log that is no part of a lineage which knows newer epochs (KIP-101).

    A record conflicts if the lineage has a newer epoch that begins at its offset or before. Epochs
    newer than all that the lineage knows don't: it may be behind.

    :param runs: Of the log.
    :param entries: The leader epochs of the lineage.
    :returns: Where the newer epoch begins, which may be before the log does; None where all of the
        log may be part of the lineage.
    """
    cache = LeaderEpochCache(entries)
    latest = cache.latest
    if latest is None:
        return None
    for run in runs:
        if 0 <= run.epoch < latest:
            # The end is the start of the next newer epoch, whatever the log end.
            end = cache.end_offset_for(run.epoch, run.end).end_offset
            if end < run.end:
                return end
    return None
