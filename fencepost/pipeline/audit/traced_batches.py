"""The batches of many exchanges as arrays: one number of each in every array."""

from dataclasses import dataclass, fields
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit.partition_logs import BoolArray, Int64Array

UNKNOWN: Final = -1
"""Where there is no such number."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TracedBatches:
    """Batches of Produce, with the answers that they got."""

    row: Int64Array
    """Which exchange brought it, of those that they were made of."""
    is_first: BoolArray
    """Whether it is the first that its request has for the partition."""
    base: Int64Array
    """As it was given, where it was appended as it came; else as it was sent."""
    last: Int64Array
    """Inclusive."""
    count: Int64Array
    epoch: Int64Array
    crc: Int64Array
    producer_id: Int64Array
    expected: Int64Array
    """What its first record expected, `UNKNOWN` where it said nothing."""
    answered: Int64Array
    """The base offset of the answer; `UNKNOWN` without one."""

    def __len__(self) -> int:
        return len(self.base)

    def select(self, which: Int64Array | BoolArray) -> "TracedBatches":
        """Some of them, by number or by a flag for each."""
        return TracedBatches(
            **{each.name: getattr(self, each.name)[which] for each in fields(self)}
        )

    @property
    def is_appended_as_sent(self) -> BoolArray:
        """Whether it was appended as it came: the leader wrote its offset and epoch into it.

        What is converted is a copy, and what was there already is not appended again.
        """
        follows = np.where(self.is_first, self.base == self.answered, self.base > self.answered)
        unanswered = self.answered == UNKNOWN
        stamped: BoolArray = (self.epoch >= 0) & (follows | unanswered)
        return stamped


def traced_batches_of(rows: pa.Table) -> TracedBatches:
    """All batches of some Produce exchanges, in their order."""
    lists = rows["batches"].combine_chunks()
    row = pc.list_parent_indices(lists).to_numpy()
    batches = lists.flatten()

    def field(name: str) -> Int64Array:
        numbers: Int64Array = pc.fill_null(batches.field(name).cast(pa.int64()), UNKNOWN).to_numpy()
        return numbers

    answered = pc.fill_null(rows["offset"], UNKNOWN).to_numpy()
    return TracedBatches(
        row=row,
        is_first=np.diff(row, prepend=UNKNOWN) != 0,
        base=field("base_offset"),
        last=field("last_offset"),
        count=field("count"),
        epoch=field("epoch"),
        crc=field("crc"),
        producer_id=field("producer_id"),
        expected=field("expected_offset"),
        answered=answered[row],
    )
