"""A log that does what a test says."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from examples.kvstore.records import Entry
from examples.kvstore.state import Kind, Operation
from examples.kvstore.wal import NotConfirmed, Stretch


class Fate(Enum):
    """What becomes of an append that meets a log which ends where it is expected."""

    DONE = auto()
    LOST = auto()
    """Not appended, and not answered."""
    UNANSWERED = auto()
    """Appended, and not answered."""
    CUT = auto()
    """The first entry of it is appended, and it is not answered."""


def put(key: str, value: str) -> Operation:
    return Operation(kind=Kind.PUT, key=key, value=value)


def add(key: str, value: str) -> Operation:
    return Operation(kind=Kind.APPEND, key=key, value=value)


def get(key: str) -> Operation:
    return Operation(kind=Kind.GET, key=key)


@dataclass(slots=True)
class ScriptedLog:
    """A partition; each append meets the next fate, and all are done when there is none left."""

    entries: list[Entry] = field(default_factory=list)
    fates: list[Fate] = field(default_factory=list)
    safe: int | None = None
    """Up to where it can be read (exclusive); None is all of it."""
    appends: list[tuple[int, list[Operation | None]]] = field(default_factory=list)
    """What was tried, in order: the expected offset, and what was to be there."""
    at_once: int = 100
    """Entries that one read has."""
    reads: int = 0
    readable: asyncio.Event = field(default_factory=asyncio.Event)
    """Reads wait for it."""
    open: asyncio.Event = field(default_factory=asyncio.Event)
    """Appends wait for it."""

    def __post_init__(self) -> None:
        self.open.set()
        self.readable.set()

    async def read(self, offset: int, wait_ms: int) -> Stretch:
        self.reads += 1
        await asyncio.sleep(0)
        await self.readable.wait()
        end = len(self.entries) if self.safe is None else self.safe
        found = tuple(self.entries[offset:end][: self.at_once])
        return Stretch(entries=found, next_offset=offset + len(found), end=end)

    async def append(self, expected: int, entries: Sequence[Entry]) -> None:
        self.appends.append((expected, [entry.operation for entry in entries]))
        await self.open.wait()
        if expected != len(self.entries):
            raise NotConfirmed(f"expected {expected}, upcoming {len(self.entries)}")
        match self.fates.pop(0) if self.fates else Fate.DONE:
            case Fate.DONE:
                self.entries += entries
            case Fate.LOST:
                raise NotConfirmed("lost")
            case Fate.UNANSWERED:
                self.entries += entries
                raise NotConfirmed("unanswered")
            case Fate.CUT:
                self.entries.append(entries[0])
                raise NotConfirmed("cut")

    def foreign(self, *operations: Operation) -> None:
        """Another leader appends."""
        at = len(self.entries)
        self.entries += (
            Entry(id=f"other-{at + i}", operation=operation)
            for i, operation in enumerate(operations)
        )

    @property
    def operations(self) -> list[Operation | None]:
        return [entry.operation for entry in self.entries]
