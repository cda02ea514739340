"""What a log is made of: segments, leader epochs, producers and offsets, kept in step.

The modules beside it, one for each thing that is done to a log, work on this. `SegmentedLog` puts
them together.
"""

from collections.abc import Callable
from typing import final

from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.records import CONTROL_FLAG, NO_PRODUCER_ID, BatchHeader
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.key_offsets import KeyOffsetsTracker
from fencepost.storage.log.producer_state import ProducerStateEntry
from fencepost.storage.log.segments import (
    InitialLogState,
    LogSegment,
    LogSegments,
    SegmentStore,
    should_roll,
)


@final
class LogState:
    """The state of one log.

    :param name: Topic and partition: ``topic-0``.
    :param store: Makes the segments, and keeps the offsets of keys.
    :ivar start: The first offset that may be read.
    :ivar end: The offset that the next record gets.
    :ivar cleaned_until: Compaction has cleaned everything before this offset.
    :ivar on_truncated: Called after a truncation, before anything is appended again.
    """

    __slots__ = (
        "cleaned_until",
        "config",
        "end",
        "epochs",
        "keys",
        "name",
        "on_truncated",
        "producers",
        "segments",
        "start",
        "store",
    )

    def __init__(
        self, name: str, config: LogConfig, store: SegmentStore, contents: InitialLogState
    ) -> None:
        self.name = name
        self.config = config
        self.store = store
        self.epochs = contents.epochs
        self.producers = contents.producers
        self.start = contents.log_start_offset
        self.end = contents.log_end_offset
        self.cleaned_until = contents.cleaned_until
        self.segments = LogSegments(store, contents.segments)
        self.keys = KeyOffsetsTracker(store.keys)
        self.on_truncated: Callable[[], None] = _ignore_truncation

    def add_header(
        self, header: BatchHeader, now_ms: int, batch: Buffer, position: int
    ) -> LogSegment:
        """Record a batch's header everywhere; the caller appends the bytes to the segment.

        :param batch: Holds the batch from `position` on.
        """
        epoch = header.partition_leader_epoch
        if epoch != self.epochs.latest:
            self.epochs.assign_or_clear(epoch, header.base_offset)
        config = self.config
        segment = self.segments.active
        segment_ms = config.max_segment_ms
        if config.segment_jitter_ms:
            segment_ms -= config.jitter_ms(self.name, segment.base_offset)
        last_offset = header.base_offset + header.last_offset_delta
        if should_roll(segment, header, last_offset, now_ms, config.segment_bytes, segment_ms):
            # A follower's next batch may lie behind a gap that compaction left.
            segment = self.roll(now_ms, header.base_offset)
        segment.add_header(header, now_ms)
        if header.producer_id > NO_PRODUCER_ID:
            if header.attributes & CONTROL_FLAG:
                aborted = self.producers.apply(batch, position, header)
                if aborted is not None:
                    self.segments.add_aborted(segment, aborted)
            else:
                self.producers.update(header)
        self.end = last_offset + 1
        return segment

    def roll(self, now_ms: int, base_offset: int) -> LogSegment:
        """Begin a new segment, which is the active one from now on."""
        self.keys.drop_unless(used=self.config.checks_keys)
        segment = self.segments.roll(base_offset, now_ms, self.producers.snapshot())
        self.keys.checkpoint_if_grown(self.start, self.epochs)
        return segment

    def start_over(
        self,
        offset: int,
        log_start_offset: int,
        now_ms: int,
        producers: tuple[ProducerStateEntry, ...] | None = None,
    ) -> None:
        """Drop everything; the next record gets `offset`."""
        self.keys.before_truncation(-1)
        self.segments.reset(offset, now_ms, producers)
        self.end = offset
        self.start = log_start_offset
        self.cleaned_until = offset
        self.epochs.clear()
        self.producers.restore(producers or ())

    def last_stable_offset(self, high_watermark: int) -> int:
        """Exclusive end of what a read_committed consumer may read."""
        unstable = self.producers.first_unstable_offset(high_watermark)
        if unstable is None:
            return high_watermark
        # Retention and DeleteRecords may have taken the first records of an open transaction.
        return min(max(unstable, self.start), high_watermark)


def _ignore_truncation() -> None:
    """The default: a log in memory has no recovery point to lower."""
