"""The batches of many exchanges as arrays: one number of each in every array."""

from dataclasses import dataclass, fields
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit.logs import Flags, Longs

NONE: Final = -1
"""Where there is no such number."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TracedBatches:
    """Batches of Produce, with the answers that they got."""

    row: Longs
    """Which exchange brought it, of those that they were made of."""
    is_first: Flags
    """Whether it is the first that its request has for the partition."""
    base: Longs
    """As it was given, where it was appended as it came; else as it was sent."""
    last: Longs
    """Inclusive."""
    count: Longs
    epoch: Longs
    crc: Longs
    producer_id: Longs
    expected: Longs
    """What its first record expected, `NONE` where it said nothing."""
    answered: Longs
    """The base offset of the answer; `NONE` without one."""

    def __len__(self) -> int:
        return len(self.base)

    def pick(self, which: Longs | Flags) -> "TracedBatches":
        """Some of them, by number or by a flag for each."""
        return TracedBatches(
            **{each.name: getattr(self, each.name)[which] for each in fields(self)}
        )

    @property
    def is_stamped(self) -> Flags:
        """Whether it was appended as it came: the leader wrote its offset and epoch into it.

        What is converted is a copy, and what was there already is not appended again.
        """
        follows = np.where(self.is_first, self.base == self.answered, self.base > self.answered)
        unanswered = self.answered == NONE
        stamped: Flags = (self.epoch >= 0) & (follows | unanswered)
        return stamped


def batches_of(rows: pa.Table) -> TracedBatches:
    """All batches of some Produce exchanges, in their order."""
    lists = rows["batches"].combine_chunks()
    row = pc.list_parent_indices(lists).to_numpy()
    batches = lists.flatten()

    def field(name: str) -> Longs:
        numbers: Longs = pc.fill_null(batches.field(name).cast(pa.int64()), NONE).to_numpy()
        return numbers

    answered = pc.fill_null(rows["offset"], NONE).to_numpy()
    return TracedBatches(
        row=row,
        is_first=np.diff(row, prepend=NONE) != 0,
        base=field("base_offset"),
        last=field("last_offset"),
        count=field("count"),
        epoch=field("epoch"),
        crc=field("crc"),
        producer_id=field("producer_id"),
        expected=field("expected_offset"),
        answered=answered[row],
    )
