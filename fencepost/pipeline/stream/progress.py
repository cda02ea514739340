"""What a query says of its batches."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

MAX_SHOWN: Final = 8
"""Partitions that a line tells of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The offsets of a partition that a batch goes over."""

    topic: str
    partition: int
    start: int | None
    """Inclusive; None where the partition is new to the query."""
    end: int
    """Exclusive."""

    @property
    def gone_back(self) -> bool:
        """Whether the log ended before what had been read: by KIP-207 it never does."""
        return self.start is not None and self.end < self.start

    def __str__(self) -> str:
        name = f"{self.topic}-{self.partition}"
        if self.gone_back:
            return f"{name} went back from {self.start} to {self.end}"
        return f"{name} to {self.end}" if self.start is None else f"{name} {self.start}..{self.end}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A batch that is done."""

    number: int
    records: int
    ranges: tuple[Range, ...]
    """Those with offsets to go over, by topic and partition."""

    @property
    def gone_back(self) -> tuple[Range, ...]:
        """Where the end of the log was before what had been read."""
        return tuple(each for each in self.ranges if each.gone_back)

    @property
    def offsets(self) -> int:
        """How many there were to go over, as far as it is known where the partitions began.

        There are fewer records where some were deleted, compacted away, or never read.
        """
        return sum(max(0, each.end - each.start) for each in self.ranges if each.start is not None)

    def __str__(self) -> str:
        shown = sorted(self.ranges, key=lambda each: not each.gone_back)[:MAX_SHOWN]
        more = len(self.ranges) - len(shown)
        told = ", ".join(map(str, shown)) + (f" and {more} more" if more else "")
        noun = "record" if self.records == 1 else "records"
        of = f" at {self.offsets} offsets" if self.offsets > self.records else ""
        return f"batch {self.number}: {self.records} {noun}{of}, {told}"

    def as_data(self) -> dict[str, object]:
        """For JSON."""
        partitions = [
            {"topic": each.topic, "partition": each.partition, "from": each.start, "to": each.end}
            for each in self.ranges
        ]
        return {"batch": self.number, "records": self.records, "partitions": partitions}


def read_batch(progress: Mapping[str, Any]) -> Batch:
    """What Spark's progress of a batch says, of its one source.

    It has no ranges where nothing was to be read, which Spark tells now and then.
    """
    (source,) = progress["sources"]
    before, after = _offsets(source["startOffset"]), _offsets(source["endOffset"])
    ranges = (
        Range(topic=topic, partition=partition, start=before.get((topic, partition)), end=end)
        for (topic, partition), end in sorted(after.items())
    )
    return Batch(
        number=int(progress["batchId"]),
        records=int(progress["numInputRows"]),
        ranges=tuple(each for each in ranges if each.end != (each.start or 0)),
    )


def new_batches(seen: Sequence[Mapping[str, Any]], after: int) -> list[Batch]:
    """The batches with anything to read whose number is greater than ``after``."""
    batches = (read_batch(each) for each in seen)
    return [each for each in batches if each.number > after and each.ranges]


def _offsets(text: str | None) -> dict[tuple[str, int], int]:
    """By topic and partition; from ``{"orders": {"0": 10}}``, or nothing at all."""
    found = json.loads(text) if text else None
    return {
        (topic, int(partition)): int(offset)
        for topic, partitions in (found or {}).items()
        for partition, offset in partitions.items()
    }
