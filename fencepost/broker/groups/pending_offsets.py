"""The offsets that open transactions have committed, until a marker makes them a group's own.

Kafka's ``pendingTransactionalOffsets`` and ``openTransactions``. A partition of a group can have
pending offsets of several producers; of each the last one counts.
"""

from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

from msgspec import Struct, field

OffsetT = TypeVar("OffsetT")


class OffsetKey(NamedTuple):
    """What an offset is committed for."""

    group_id: str
    topic: str
    partition: int


class PendingOffsets(Struct, Generic[OffsetT]):
    """The pending offsets of one state. Only the replay of records changes them."""

    by_producer: dict[int, dict[OffsetKey, OffsetT]] = field(default_factory=dict)
    """By producer id; producers without any are left out."""
    _producers: dict[str, dict[OffsetKey, set[int]]] = field(default_factory=dict)
    """The producer ids of each partition, by group; what has none is left out."""

    def add(self, producer_id: int, key: OffsetKey, offset: OffsetT) -> None:
        """A transaction has committed an offset."""
        self.by_producer.setdefault(producer_id, {})[key] = offset
        self._producers.setdefault(key.group_id, {}).setdefault(key, set()).add(producer_id)

    def discard(self, key: OffsetKey) -> None:
        """Drop what all transactions have committed for a partition: a tombstone came."""
        for producer_id in self._producers.get(key.group_id, {}).get(key, set()).copy():
            self._remove(producer_id, key)

    def end(self, producer_id: int) -> dict[OffsetKey, OffsetT]:
        """End a producer's transaction: what it has committed, which is not pending any more."""
        offsets = self.by_producer.get(producer_id, {}).copy()
        for key in offsets:
            self._remove(producer_id, key)
        return offsets

    def has(self, key: OffsetKey) -> bool:
        """Whether some open transaction has committed an offset for a partition."""
        return key in self._producers.get(key.group_id, ())

    def of_group(self, group_id: str) -> Iterator[OffsetKey]:
        """The partitions of a group that have pending offsets, each once."""
        yield from self._producers.get(group_id, ())

    def producers_of(self, group_id: str) -> frozenset[int]:
        """The producers whose open transactions have committed offsets of a group."""
        return frozenset().union(*self._producers.get(group_id, {}).values())

    def _remove(self, producer_id: int, key: OffsetKey) -> None:
        offsets = self.by_producer[producer_id]
        del offsets[key]
        if not offsets:
            del self.by_producer[producer_id]
        of_group = self._producers[key.group_id]
        of_group[key].remove(producer_id)
        if not of_group[key]:
            del of_group[key]
        if not of_group:
            del self._producers[key.group_id]
