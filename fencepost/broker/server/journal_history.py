"""What the journal no longer has: counts of the exchanges that fell out, and the names of topics.

The journal is bounded, and a test that verifies how often something was requested must not count
too few. So the exchanges that fell out are counted by all that is known without decoding them.
Requests name topics by ids, which the metadata image forgets with the topic.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from fencepost.broker.core.events import Event, Kind

MAX_KINDS: Final = 4096
"""Kinds of exchanges that are told apart; others are counted together."""
MAX_CLIENT_ID: Final = 256
"""Characters of a client id by which exchanges are told apart."""
MAX_DELETED: Final = 10_000
"""Topics that are gone and still known by their ids."""
_TOPIC_DELETED: Final = Kind.TOPIC_DELETED


class DroppedKind(NamedTuple):
    """All of an exchange that it has without being decoded."""

    of_brokers: bool
    """Whether one broker asked another."""
    broker_id: int
    """The broker that received the request."""
    api_key: int
    version: int
    client_id: str | None


KindFields: TypeAlias = tuple[bool, int, int, int, str | None]
"""Those of a `DroppedKind`: a plain tuple is made in a third of the time, for each request."""


class DroppedExchanges:
    """Counts of exchanges that fell out of the journal."""

    __slots__ = ("_counts", "last", "uncounted")

    def __init__(self) -> None:
        self._counts: dict[KindFields, int] = {}
        self.uncounted = 0
        """Those of further kinds, of which nothing is known."""
        self.last = 0
        """The number of the last one."""

    def count(self, kind: KindFields, number: int) -> None:
        """Count one that falls out."""
        self.last = max(self.last, number)  # clients' and brokers' fall out independently
        counts = self._counts
        if kind in counts:
            counts[kind] += 1
        elif len(counts) < MAX_KINDS and len(kind[-1] or "") <= MAX_CLIENT_ID:
            counts[kind] = 1
        else:
            self.uncounted += 1

    def counts(self) -> Iterator[tuple[DroppedKind, int]]:
        """How many of each kind."""
        for kind, count in self._counts.items():
            yield DroppedKind._make(kind), count

    def clear(self) -> None:
        """Begin at zero."""
        self._counts.clear()
        self.uncounted = self.last = 0


class DeletedTopics:
    """The names of topics that are gone, by id; of very many only the last."""

    __slots__ = ("names",)

    def __init__(self) -> None:
        self.names: dict[UUID, str] = {}

    def record(self, event: Event) -> None:
        """Keep the name of a topic that is deleted."""
        if event.kind is _TOPIC_DELETED and event.topic is not None:
            self.names[UUID(str(event.details["topic_id"]))] = event.topic
            if len(self.names) > MAX_DELETED:
                del self.names[next(iter(self.names))]

    def clear(self) -> None:
        """Forget all of them."""
        self.names.clear()
