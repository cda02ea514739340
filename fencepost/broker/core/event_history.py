"""The events that are kept, from the start of the process on, for readers who come later.

Each kind has a bounded queue of its own, so that a frequent one, such as the hits of a fault, does
not push out elections and verbs. Of all together the memory is bounded too: the longest queue makes
room. A reader gets what is kept in the order in which it happened, and how many are not kept any
more.
"""

from collections import deque
from itertools import takewhile
from operator import attrgetter
from typing import Final, Generic, Protocol, TypeVar

MAX_OF_KIND: Final = 2048
"""How many events of one kind are kept."""
MAX_KINDS: Final = 3
"""How many kinds may have as many: three times `MAX_OF_KIND` are kept of all together."""


class _Numbered(Protocol):
    """An event: numbers rise by one, from 1."""

    @property
    def kind(self) -> str: ...

    @property
    def number(self) -> int: ...


E = TypeVar("E", bound=_Numbered)


class EventHistory(Generic[E]):
    """The last events of each kind, which a reset does not clear."""

    def __init__(self, max_of_kind: int) -> None:
        self._max_of_kind = max_of_kind
        self._max = MAX_KINDS * max_of_kind
        self._count = 0
        self._kept: dict[str, deque[E]] = {}
        self._dropped: dict[str, int] = {}
        """The number of the newest event of a kind that is not kept any more."""
        self.newest = 0
        """The number of the last event."""

    def add(self, event: E) -> None:
        """Keep an event, whose number is the next one."""
        self.newest = event.number
        kept = self._kept.get(event.kind)
        if kept is None:
            kept = self._kept[event.kind] = deque()
        if len(kept) == self._max_of_kind:
            self._drop_oldest(kept)
        elif self._count == self._max:
            self._drop_oldest(max(self._kept.values(), key=len))
        kept.append(event)
        self._count += 1

    def _drop_oldest(self, of_kind: deque[E]) -> None:
        event = of_kind.popleft()
        self._dropped[event.kind] = event.number
        self._count -= 1

    def since(self, number: int) -> list[E]:
        """The events of a higher number that are kept, the oldest first."""
        found = [
            event
            for kept in self._kept.values()
            for event in takewhile(lambda event: event.number > number, reversed(kept))
        ]
        found.sort(key=attrgetter("number"))
        return found

    def dropped_since(self, number: int) -> list[str]:
        """The kinds of which some events of a higher number are not kept any more, by name."""
        return sorted(kind for kind, last in self._dropped.items() if last > number)
