"""Conditional publish as the contract tells it, without a thought of speed.

A partition is a list of batches. A request is carried out on a copy of everything; where an
expectation is not met, the copy is thrown away.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

MISMATCH: Final = 2701
INVALID_RECORD: Final = 87
OUT_OF_ORDER: Final = 45
KEPT: Final = 5
"""Batches of a producer that are known when they come again."""


@dataclass(frozen=True)
class Batch:
    """A batch as it is sent: a record for each key, "." for none."""

    keys: str
    base: int
    deltas: tuple[int, ...]
    stated: tuple[int | None, ...]
    """Offsets in the headers: -1 for no header, None for one that states no offset."""
    producer: int | None = None
    sequence: int = 0

    @property
    def count(self) -> int:
        return len(self.keys)

    @property
    def has_gap(self) -> bool:
        return self.deltas[-1] != self.count - 1


@dataclass(frozen=True)
class Settings:
    """A topic's configs."""

    on: bool = True
    by_header: bool = False
    by_key: bool = False


@dataclass(frozen=True)
class Answer:
    """Of one partition; errors as (index, expected, upcoming, last of the key or None)."""

    code: int = 0
    base: int = -1
    errors: tuple[tuple[int, int, int, int | None], ...] = ()
    was_there: bool = False
    """The log had all of it before the request."""


@dataclass
class Partition:
    """What is in a log: batches with the offset of their first record."""

    start: int = 0
    batches: list[tuple[int, Batch]] = field(default_factory=list)

    @property
    def end(self) -> int:
        return self.batches[-1][0] + self.batches[-1][1].count if self.batches else 0

    def append(self, batch: Batch) -> None:
        self.batches.append((self.end, batch))

    def last_of_key(self, key: str) -> int | None:
        """Offset of the last record with that key that can still be read."""
        found = [
            first + at
            for first, batch in self.batches
            for at, each in enumerate(batch.keys)
            if each == key and first + at >= self.start
        ]
        return found[-1] if found else None

    def duplicate_of(self, batch: Batch) -> int | None:
        """Where the batch is already, if it is among its producer's last five."""
        if batch.producer is None:
            return None
        last = [each for each in self.batches if each[1].producer == batch.producer][-KEPT:]
        for first, each in last:
            if (each.sequence, each.deltas[-1]) == (batch.sequence, batch.deltas[-1]):
                return first
        return None

    def is_out_of_order(self, batch: Batch) -> bool:
        last = [each for _, each in self.batches if each.producer == batch.producer]
        if batch.producer is None or not last:
            return False
        return batch.sequence != last[-1].sequence + last[-1].deltas[-1] + 1


@dataclass
class Cluster:
    """The partitions by name, such as ``t-0``, and the configs of their topics."""

    settings: dict[str, Settings]
    partitions: dict[str, Partition]

    def produce(self, request: Sequence[tuple[str, Sequence[Batch]]]) -> list[Answer]:
        """The answers in the order of the request."""
        before = copy.deepcopy(self.partitions)
        answers = [self._append(name, batches, before[name]) for name, batches in request]
        if not any(answer.errors for answer in answers):
            return answers
        self.partitions = before
        return [
            Answer(code=MISMATCH) if answer.code == 0 and not answer.was_there else answer
            for answer in answers
        ]

    def _append(self, name: str, batches: Sequence[Batch], at_first: Partition) -> Answer:
        settings = self.settings[name.partition("-")[0]]
        before = self.partitions[name]
        after = self.partitions[name] = copy.deepcopy(before)
        answer = _append(settings, after, batches)
        was_there = all(at_first.duplicate_of(batch) is not None for batch in batches)
        answer = replace(answer, was_there=was_there)
        if answer.code != 0 and not answer.errors:
            self.partitions[name] = before
        return answer


def _append(settings: Settings, log: Partition, batches: Sequence[Batch]) -> Answer:
    if len(batches) > 1 and not settings.on:
        return Answer(code=INVALID_RECORD)
    errors: list[tuple[int, int, int, int | None]] = []
    firsts: list[int] = []
    own = 0
    index = 0
    states_none = False
    for batch in batches:
        first = log.duplicate_of(batch)
        if own == 0 and batch.has_gap:
            own = INVALID_RECORD
        if first is None:
            if settings.on:
                errors += _mismatches(settings, log, batch, index)
                states_none = states_none or (settings.by_header and None in batch.stated)
            if own == 0 and log.is_out_of_order(batch):
                own = OUT_OF_ORDER
            first = log.end
            log.append(batch)
        firsts.append(first)
        index += batch.count
    if errors:
        return Answer(code=MISMATCH, errors=tuple(errors))
    if states_none:
        return Answer(code=INVALID_RECORD)
    return Answer(code=own) if own else Answer(base=firsts[0])


def _mismatches(
    settings: Settings, log: Partition, batch: Batch, index: int
) -> list[tuple[int, int, int, int | None]]:
    """Each record against what the log would be by then."""
    found = []
    for at in range(batch.count):
        if settings.by_header:
            expected = batch.stated[at]
        else:
            expected = -1 if batch.base == -1 else batch.base + batch.deltas[at]
        if expected is None or expected == -1:
            continue
        upcoming, last = log.end + at, None
        if settings.by_key:
            key = batch.keys[at]
            last = log.last_of_key(key)
            if key in batch.keys[:at]:
                last = log.end + batch.keys[:at].rindex(key)
            is_met = key == "." or last is None or expected > last
        else:
            is_met = expected == upcoming
        if not is_met:
            found.append((index + at, expected, upcoming, last))
    if not (settings.by_header or settings.by_key or batch.has_gap):
        return found[:1]  # the base offset is one statement
    return found
