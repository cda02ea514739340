"""A write-ahead log as the store needs one: read it, and append where one believes that it ends."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from examples.kvstore.records import Entry


class NotConfirmed(Exception):
    """The entries are not known to be in the log: it ends elsewhere, or no answer came.

    Some may be there, the first ones, or get there yet if the log ends where it was expected to.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Some entries of a log that follow each other."""

    entries: tuple[Entry, ...]
    next_offset: int
    """Where to read on."""
    end: int
    """Where the log ended (exclusive), as far as it is safe from being lost."""


class Wal(Protocol):
    """The log of one shard."""

    async def read(self, offset: int, wait_ms: int) -> Stretch:
        """What is in the log from an offset on; it does not return before it could be read.

        :param wait_ms: How long to wait for an entry where the log ends.
        """
        ...

    async def append(self, expected: int, entries: Sequence[Entry]) -> None:
        """Append entries, all of them one behind the other, if the log ends where it is expected.

        It returns when they are safe.

        :raises NotConfirmed: When it ends elsewhere, or no answer came.
        """
        ...
