"""What a log is made of when it is opened."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from fencepost.storage.epochs import LeaderEpochCache
from fencepost.storage.producers import ProducerStates
from fencepost.storage.segment import LogSegment


@dataclass(slots=True, kw_only=True)
class LogContents:
    """What there is in a log when it is opened. Offsets are as in `Log`."""

    segments: Sequence[LogSegment]
    """One at least."""
    epochs: LeaderEpochCache
    producers: ProducerStates
    log_start_offset: int
    log_end_offset: int
    cleaned_until: int
    """Compaction has been over everything before this offset."""

    @classmethod
    def empty(cls, segment: LogSegment) -> Self:
        """Those of a log that begins with this empty segment."""
        offset = segment.base_offset
        return cls(
            segments=[segment],
            epochs=LeaderEpochCache(),
            producers=ProducerStates(),
            log_start_offset=offset,
            log_end_offset=offset,
            cleaned_until=offset,
        )
