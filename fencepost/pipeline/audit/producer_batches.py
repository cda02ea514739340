"""The batches of producers in a stretch of a log: what the rules about producers fold.

A stretch is some of a log's batches that follow one another: a segment, or a part of one. Each fold
(`sequence_fold` and its neighbours) summarizes a stretch, merges the summaries of neighbours, and
judges the merged one. Where offsets are missing between two batches (compaction was there, or a
batch is damaged), something may have stood between them: such a place is a hole.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit.batch_arrays import BoolArray, Int64Array, trusted_rows
from fencepost.pipeline.datasource.schemas import Marker
from fencepost.protocol.records import (
    CONTROL_FLAG,
    MAX_SEQUENCE,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_FLAG,
)

NO_MARKER: Final = -1
ABORT: Final = 0
COMMIT: Final = 1
_COLUMNS: Final = {
    "segment": "segment",
    "position": "position",
    "base": "base_offset",
    "last": "last_offset",
    "count": "count",
    "producer": "producer_id",
    "epoch": "producer_epoch",
    "sequence": "base_sequence",
    "time": "max_timestamp",
    "coordinator_epoch": "coordinator_epoch",
}
_ABSENT: Final = {"producer": NO_PRODUCER_ID, "sequence": NO_SEQUENCE}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProducerBatches:
    """Batches with a producer id, one number of each in every array."""

    segment: Int64Array
    position: Int64Array
    base: Int64Array
    last: Int64Array
    """Inclusive."""
    count: Int64Array
    producer: Int64Array
    epoch: Int64Array
    sequence: Int64Array
    """Of the first record; -1 where the broker wrote it, which numbers nothing."""
    time: Int64Array
    """The largest timestamp (ms)."""
    coordinator_epoch: Int64Array
    """Of markers; 0 of others."""
    marker: Int64Array
    """`ABORT`, `COMMIT`, or `NO_MARKER` of data."""
    transactional: BoolArray
    holes: Int64Array
    """Holes of the stretch before the batch."""

    def __len__(self) -> int:
        return len(self.base)

    def select(self, which: Int64Array | BoolArray) -> "ProducerBatches":
        """Some of them, by number or by a flag for each."""
        return ProducerBatches(
            **{each.name: getattr(self, each.name)[which] for each in fields(self)}
        )

    @property
    def is_data(self) -> BoolArray:
        """Of each whether it is no marker."""
        data: BoolArray = self.marker == NO_MARKER
        return data

    @property
    def last_sequence(self) -> Int64Array:
        """Of the last record, after 2^31-1 from 0 on; without meaning where there is no first."""
        return (self.sequence + self.last - self.base) & MAX_SEQUENCE


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stretch:
    """A stretch of a log."""

    start: int
    """The first offset of its first batch."""
    end: int
    """Behind its last batch (exclusive)."""
    holes: int
    """Between its batches."""
    batches: ProducerBatches
    """By producer, those of each in the order of the log."""

    def producers(self) -> Iterator[tuple[int, int, int]]:
        """Each producer id, with the number of its first batch and the one behind its last."""
        producer = self.batches.producer
        if not len(producer):
            return
        begins = np.flatnonzero(np.diff(producer, prepend=producer[0] - 1))
        ends = np.append(begins[1:], len(producer))
        yield from zip(producer[begins].tolist(), begins.tolist(), ends.tolist(), strict=True)


def stretch_of(rows: pa.Table) -> Stretch | None:
    """The stretch that rows of `BATCHES` are, in the order of the log; None without a batch.

    A batch whose header may not be believed is a hole, and so is a control batch without its
    record: compaction has removed its whole transaction.
    """
    sound = trusted_rows(rows)
    if not sound.num_rows:
        return None
    columns = {
        name: pc.fill_null(sound[column].cast(pa.int64()), _ABSENT.get(name, 0)).to_numpy()
        for name, column in _COLUMNS.items()
    }
    attributes = pc.fill_null(sound["attributes"].cast(pa.int64()), 0).to_numpy()
    kinds = pc.index_in(sound["marker"], pa.array([Marker.ABORT.value, Marker.COMMIT.value]))
    columns["marker"] = pc.fill_null(kinds.cast(pa.int64()), NO_MARKER).to_numpy()
    columns["transactional"] = (attributes & TRANSACTIONAL_FLAG) != 0
    base, last = columns["base"], columns["last"]
    emptied = ((attributes & CONTROL_FLAG) != 0) & (columns["marker"] == NO_MARKER)
    holes = emptied | np.append(False, base[1:] != last[:-1] + 1)
    batches = ProducerBatches(**columns, holes=np.cumsum(holes))
    known = (batches.producer >= 0) & ~emptied
    order = np.argsort(np.where(known, batches.producer, NO_PRODUCER_ID), kind="stable")
    return Stretch(
        start=int(base[0]),
        end=int(last[-1]) + 1,
        holes=int(batches.holes[-1]),
        batches=batches.select(order[np.count_nonzero(~known) :]),
    )


def starts_of(changes: npt.NDArray[np.bool_]) -> Int64Array:
    """For each batch the number of the last one up to it that has a flag; 0 without one."""
    numbers: Int64Array = np.maximum.accumulate(np.where(changes, np.arange(len(changes)), 0))
    return numbers


def last_before(flags: BoolArray) -> Int64Array:
    """For each batch the number of the last one before it that has a flag; -1 without one."""
    numbers = np.where(flags, np.arange(len(flags)), -1)
    before: Int64Array = np.append(-1, np.maximum.accumulate(numbers)[:-1])[: len(flags)]
    return before
