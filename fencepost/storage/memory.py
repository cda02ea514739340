"""Logs whose bytes lie in memory."""

from collections.abc import Sequence
from typing import final

from fencepost.storage.config import LogConfig
from fencepost.storage.contents import LogContents
from fencepost.storage.memory_segment import MemorySegment
from fencepost.storage.producers import ProducerView
from fencepost.storage.segment import LogSegment
from fencepost.storage.segmented import SegmentedLog


class MemorySegments:
    """A `SegmentStore` that keeps nothing: what the log lets go of is gone."""

    __slots__ = ()

    def create(
        self, base_offset: int, *, now_ms: int, producers: tuple[ProducerView, ...] | None = None
    ) -> MemorySegment:
        """A new, empty segment."""
        return MemorySegment(base_offset, created_ms=now_ms, producer_snapshot=producers or ())

    def create_cleaned(self, first: LogSegment) -> MemorySegment:
        """A new, empty segment in place of `first`."""
        return MemorySegment(
            first.base_offset,
            created_ms=first.created_ms,
            producer_snapshot=first.producer_snapshot,
        )

    def swap(self, cleaned: Sequence[LogSegment], replaced: Sequence[LogSegment]) -> None:
        """Nothing: segments have no places to take."""

    def discard(self, segments: Sequence[LogSegment]) -> None:
        """Nothing: they go with the last reference."""


@final
class MemoryLog(SegmentedLog):
    """A log in memory.

    :param name: Topic and partition as Kafka's messages print them: ``topic-0``.
    :param now_ms: When it is made; segment.ms may count from it.
    :param start_offset: Its log start and log end.
    """

    __slots__ = ()

    def __init__(
        self, name: str, config: LogConfig, *, now_ms: int = 0, start_offset: int = 0
    ) -> None:
        first = _STORE.create(start_offset, now_ms=now_ms)
        super().__init__(name, config, _STORE, LogContents.empty(first))


_STORE = MemorySegments()
