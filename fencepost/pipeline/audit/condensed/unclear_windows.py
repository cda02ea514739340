"""Which windows of partitions don't tell what rules ask, and have to be read once more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit.acknowledged_batches import acknowledged_batches
from fencepost.pipeline.audit.batch_arrays import (
    Batches,
    BoolArray,
    Int64Array,
    TracedBatches,
    batches_of,
    is_trusted,
    traced_batches_of,
)
from fencepost.pipeline.audit.condensed.compacted_copies import agree_across_gaps
from fencepost.pipeline.audit.condensed.window_rows import DIGEST_MASK, batch_hashes
from fencepost.pipeline.audit.rule import PartitionEvidence, PartitionMetadata
from fencepost.pipeline.audit.rules.expected_offsets import is_refused
from fencepost.pipeline.datasource.schemas import TRACES

MAX_OFFSET: Final = np.iinfo(np.int64).max
NO_BATCHES: Final = traced_batches_of(pa.Table.from_batches([], TRACES))
_COLUMNS: Final = ("broker", "segment_id", "problem", "batches", *Batches.columns().values())


def asked_offsets(metadata: PartitionMetadata) -> Iterator[int]:
    """Offsets that rules compare with those of batches."""
    for replica in metadata.replicas:
        yield from replica.segments
        yield from (start for _, start in replica.epochs or ())
        known = (replica.high_watermark, replica.recovery_point, replica.log_start)
        yield from (each for each in known if each is not None)
        yield from (offset for span in replica.replaced for offset in span)
    for segment in metadata.tier:
        yield from (segment.start_offset, segment.end_offset + 1)
        yield from (start for _, start in segment.epochs)
    yield from (each.end for each in metadata.absent if each.end is not None)


def unclear_windows(found: Sequence[PartitionEvidence]) -> list[list[int]]:
    """Of each partition the numbers of the windows that don't tell enough."""
    if not found:
        return []
    rows = pa.concat_tables([each.batches.select(_COLUMNS) for each in found]).combine_chunks()
    lengths = [each.batches.num_rows for each in found]
    trusted = is_trusted(rows)
    numbers = np.flatnonzero(trusted.to_numpy())
    partition = np.repeat(np.arange(len(found)), lengths)[numbers]
    which = numbers[_unclear_rows(rows.filter(trusted), partition, found)]
    which.sort()
    edges = np.searchsorted(which, np.cumsum([0, *lengths])).tolist()
    firsts = np.cumsum([0, *lengths]).tolist()
    return [
        (which[start:end] - first).tolist()
        for first, (start, end) in zip(firsts[:-1], pairwise(edges), strict=True)
    ]


def _unclear_rows(
    rows: pa.Table, partition: Int64Array, found: Sequence[PartitionEvidence]
) -> Int64Array:
    """The numbers of the windows that don't tell enough.

    :param rows: Batches and windows.
    :param partition: Of each row the number.
    """
    batches, copy = batches_of(rows), copy_numbers(rows, partition)
    order = np.lexsort((copy, batches.base, partition))
    batches, copy, partition = batches.select(order), copy[order], partition[order]
    is_window = batches.batches > 1
    asked, of_asked = _numbered(asked_offsets(each.metadata) for each in found)
    acknowledged = _acknowledged(found)
    place = _Places(batches.base, batches.last, asked, acknowledged.base)
    base, last = place(partition, batches.base), place(partition, batches.last)
    wanted = np.sort(place(of_asked, asked))
    # Whether one of them lies behind the first offset of a window, and not behind its last one.
    # Where a copy begins or ends within a window, its batches share offsets with it.
    asks = np.searchsorted(wanted, base, side="right") < np.searchsorted(wanted, last, side="right")
    begins = place(acknowledged.partition, acknowledged.base)
    behind = np.searchsorted(begins, last, side="right")
    asks |= acknowledged.is_partly(batches, np.searchsorted(begins, base), behind)
    asks |= acknowledged.unknown[partition]
    holed = batches.has_holes
    for number in np.unique(partition[holed]).tolist():
        if not agree_across_gaps(found[number]):
            asks |= holed & (partition == number)
    # Those that share offsets, whichever copy they are of, are a group.
    reached = np.maximum.accumulate(last)
    group = np.cumsum(np.append(False, base[1:] > reached[:-1])[: len(base)])
    unclear = np.union1d(group[is_window & asks], group[_differs_in_group(batches, copy, group)])
    return order[is_window & np.isin(group, unclear)]


class _Places:
    """Numbers for offsets of partitions, in the order of both.

    :param offsets: All that are asked for.
    """

    def __init__(self, *offsets: Int64Array) -> None:
        self._offsets = np.unique(np.concatenate(offsets))

    def __call__(self, partition: Int64Array, offset: Int64Array) -> Int64Array:
        """The number of each."""
        found: Int64Array = partition * len(self._offsets) + np.searchsorted(self._offsets, offset)
        return found


def _numbered(offsets: Iterable[Iterable[int]]) -> tuple[Int64Array, Int64Array]:
    """Offsets of partitions in one array, and of each the number of its partition.

    Where no array holds one, no batch has it.
    """
    found = [
        (offset, number)
        for number, own in enumerate(offsets)
        for offset in own
        if abs(offset) <= MAX_OFFSET
    ]
    columns = np.array(found, np.int64).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Acknowledged:
    """The batches of partitions that were acknowledged."""

    partition: Int64Array
    """Of each batch the number; they are in order of it, and then of their offsets."""
    base: Int64Array
    hashes: npt.NDArray[np.uint64]
    unknown: BoolArray
    """Of each partition whether each batch is to be looked at."""

    def is_partly(self, batches: Batches, first: Int64Array, behind: Int64Array) -> BoolArray:
        """Of each window whether it has acknowledged batches, and others beside them.

        Of any other, all of its batches were acknowledged or none.

        :param first: Of each the number of the first acknowledged batch that may be in it.
        :param behind: Of each the number of the first one behind it.
        """
        # Sums of what wraps are differences of sums that wrap.
        sums = np.append(np.zeros(1, np.uint64), np.cumsum(self.hashes, dtype=np.uint64))
        digests = (sums[behind] - sums[first]) & DIGEST_MASK
        partly: BoolArray = (behind > first) & (digests.astype(np.int64) != batches.crc)
        return partly


def _acknowledged(found: Sequence[PartitionEvidence]) -> _Acknowledged:
    known = [
        (number, acknowledged_in_place(evidence))
        for number, evidence in enumerate(found)
        if evidence.traces is not None
    ]
    unknown = np.zeros(len(found), bool)
    for number, _ in known:
        unknown[number] = len(refused_batches(found[number])) > 0
    none = np.zeros(0, np.int64)
    base, last, epoch, crc = (
        np.concatenate([none, *(getattr(traced, name) for _, traced in known)])
        for name in ("base", "last", "epoch", "crc")
    )
    sizes = [len(traced) for _, traced in known]
    return _Acknowledged(
        partition=np.repeat(np.array([number for number, _ in known], np.int64), sizes),
        base=base,
        hashes=batch_hashes(base, last, epoch, crc),
        unknown=unknown,
    )


def acknowledged_in_place(evidence: PartitionEvidence) -> TracedBatches:
    """The batches of the logs' topic that were acknowledged to acks=all, each once, by offset.

    Those are left out of which the trace does not tell where they were appended.
    """
    incarnation = evidence.last_incarnation
    if incarnation is None:
        return NO_BATCHES
    traced = acknowledged_batches(incarnation).batches
    traced = traced.select(traced.is_appended_as_sent)
    columns = np.stack((traced.base, traced.last, traced.epoch, traced.crc), axis=1)
    _, firsts = np.unique(columns, axis=0, return_index=True)
    return traced.select(firsts)


def refused_batches(evidence: PartitionEvidence) -> TracedBatches:
    """Batches that may have been refused for the offsets that they expected (KIP-27).

    They are looked for by their checksums, wherever they may be.
    """
    incarnation = evidence.last_incarnation
    if incarnation is None:
        return NO_BATCHES
    rows = incarnation.exchanges("Produce")
    refused = pc.fill_null(is_refused(incarnation, rows), fill_value=False)
    return traced_batches_of(rows.filter(refused))


def copy_numbers(rows: pa.Table, partition: Int64Array) -> Int64Array:
    """A number of each batch for the log or the segment of the tier that it is in."""
    ids = rows["segment_id"].combine_chunks().dictionary_encode().indices
    in_tier = pc.fill_null(ids.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
    brokers = pc.fill_null(rows["broker"].cast(pa.int64()), -1).to_numpy()
    order = np.lexsort((in_tier, brokers, partition))
    changes = np.zeros(len(order), bool)
    for column in (partition[order], brokers[order], in_tier[order]):
        changes[1:] |= column[1:] != column[:-1]
    copies = np.empty(len(order), np.int64)
    copies[order] = np.cumsum(changes)
    return copies


def _differs_in_group(batches: Batches, copy: Int64Array, group: Int64Array) -> BoolArray:
    """Of each batch whether it is not the one before it in its group, in another copy.

    :param batches: By their partitions, first offsets and copies.
    """
    columns = (batches.base, batches.last, batches.epoch, batches.crc, batches.batches)
    differs = np.zeros(len(batches), bool)
    for column in columns:
        differs[1:] |= column[1:] != column[:-1]
    differs[1:] |= copy[1:] == copy[:-1]
    differs[1:] &= group[1:] == group[:-1]
    return differs
