"""The log itself: segments, leader epochs and producers, kept in step.

It is the same wherever the bytes lie; whoever makes one says where its segments live. The
contract of each method stands in `fencepost.storage.log.Log`.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Self

from fencepost.protocol.buffers import Buffer
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import (
    NO_LEADER_EPOCH,
    NO_TIMESTAMP,
    BatchHeader,
    CorruptBatch,
    crc_ok,
    iter_headers,
    stamp,
)
from fencepost.storage import compaction, lookups, retention
from fencepost.storage.config import LogConfig
from fencepost.storage.epochs import EpochEndOffset, EpochEntry, LeaderEpochCache
from fencepost.storage.leading import prepare
from fencepost.storage.log import (
    AppendOrigin,
    AppendRejected,
    AppendResult,
    OffsetMovedToTier,
    OffsetOutOfRange,
    ReadResult,
    SegmentCopy,
    TimestampAndOffset,
    UnexpectedAppendOffset,
)
from fencepost.storage.producers import BatchMetadata, ProducerStates, ProducerView
from fencepost.storage.segment import LogSegment, SegmentView, found_at_once, should_roll
from fencepost.storage.segments import Segments, SegmentStore

_BASE_OFFSET: Final = struct.Struct(">q")


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


class SegmentedLog:
    """A `Log` made of segments, of which only the last, the active one, is appended to.

    :param store: Where its segments live, and new ones come from.
    """

    __slots__ = (
        "_cleaned_until",
        "_end",
        "_epochs",
        "_name",
        "_producers",
        "_segments",
        "_start",
        "_store",
        "config",
    )

    def __init__(
        self, name: str, config: LogConfig, store: SegmentStore, contents: LogContents
    ) -> None:
        self.config = config
        self._name = name
        self._store = store
        self._epochs = contents.epochs
        self._producers = contents.producers
        self._start = contents.log_start_offset
        self._end = contents.log_end_offset
        self._cleaned_until = contents.cleaned_until
        self._segments = Segments(store, contents.segments)

    @property
    def name(self) -> str:
        """Topic and partition: ``topic-0``."""
        return self._name

    @property
    def log_start_offset(self) -> int:
        """The first offset that may be read."""
        return self._start

    @property
    def local_log_start_offset(self) -> int:
        """The first offset held here."""
        return max(self._start, self._segments.first_offset)

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""
        return self._end

    @property
    def batches_end_offset(self) -> int:
        """The offset behind the last batch held."""
        return self._segments.active.next_offset

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments."""
        return self._segments.size_bytes

    # Appending.

    def append_as_leader(
        self,
        records: Buffer,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        allow_zstd: bool = True,
    ) -> AppendResult | AppendRejected:
        """Check one batch, give it offsets and the leader's epoch, and keep it."""
        ready = prepare(
            records,
            self.config,
            name=self._name,
            now_ms=now_ms,
            origin=origin,
            allow_zstd=allow_zstd,
            log_start_offset=self._start,
        )
        if isinstance(ready, AppendRejected):
            return ready
        batch, header = ready
        if header.has_producer_id:
            found = self._check_producer(header, origin)
            if isinstance(found, ErrorCode):
                return AppendRejected(error=found, log_start_offset=self._start)
            if found is not None:
                return self._duplicate(found)
        first = self._end
        if not self.config.keeps_leader_epochs:
            leader_epoch = NO_LEADER_EPOCH
        stamp(batch, 0, header, base_offset=first, leader_epoch=leader_epoch)
        header = header.stamped(first, leader_epoch)
        self._append(batch, header, now_ms)
        return AppendResult(
            first,
            self._end - 1,
            now_ms if header.is_log_append_time else NO_TIMESTAMP,
            self._start,
            False,
            header.record_count,
            header.max_timestamp,
        )

    def _check_producer(
        self, header: BatchHeader, origin: AppendOrigin
    ) -> BatchMetadata | ErrorCode | None:
        is_client = origin is AppendOrigin.CLIENT
        if is_client and (duplicate := self._producers.duplicate_of(header)) is not None:
            return duplicate
        return self._producers.refusal(header, check_sequence=is_client)

    def find_duplicate(self, header: BatchHeader) -> BatchMetadata | None:
        """The batch in the log that a client's batch repeats, None where it repeats none.

        Conditional publish asks before it compares offsets (KIP-27).
        """
        return self._producers.duplicate_of(header) if header.has_producer_id else None

    def _duplicate(self, batch: BatchMetadata) -> AppendResult:
        return AppendResult(
            batch.first_offset,
            batch.last_offset,
            batch.timestamp,
            self._start,
            True,
            batch.offset_delta + 1,
            batch.timestamp,
        )

    def _append(self, buffer: Buffer, header: BatchHeader, now_ms: int) -> None:
        """Keep a batch whose header says everything as it shall be."""
        self._index(header, now_ms).keep(buffer)

    def _index(self, header: BatchHeader, now_ms: int) -> LogSegment:
        """Take note of a batch everywhere but in the bytes; returns the segment it goes to."""
        epoch = header.partition_leader_epoch
        if epoch != self._epochs.latest:
            self._note_epoch(epoch, header.base_offset)
        config = self.config
        segment = self._segments.active
        if should_roll(
            segment,
            size=header.size,
            last_offset=header.base_offset + header.last_offset_delta,
            max_timestamp=header.max_timestamp,
            now_ms=now_ms,
            segment_bytes=config.segment_bytes,
            segment_ms=config.max_segment_ms,
        ):
            # A follower's next batch may lie behind a gap that compaction left.
            segment = self._roll(now_ms, header.base_offset)
        segment.index(header, now_ms)
        if header.has_producer_id:
            self._producers.update(header)
        self._end = header.base_offset + header.last_offset_delta + 1
        return segment

    def _note_epoch(self, epoch: int, offset: int) -> None:
        """A batch without an epoch, of the old format, ends all that is known of epochs."""
        if epoch == NO_LEADER_EPOCH:
            self._epochs.clear()
        else:
            self._epochs.assign(epoch, offset)

    def append_as_follower(self, records: Sequence[Buffer], *, now_ms: int) -> AppendResult:
        """Keep batches as their leader sent them; a partial one at an end is left out."""
        first_offset = self._end
        max_timestamp = NO_TIMESTAMP
        count = 0
        for buffer in records:
            for header in self._append_replicated(buffer, now_ms):
                count += header.record_count
                max_timestamp = max(max_timestamp, header.max_timestamp)
        return AppendResult(
            first_offset, self._end - 1, NO_TIMESTAMP, self._start, False, count, max_timestamp
        )

    def _append_replicated(self, buffer: Buffer, now_ms: int) -> list[BatchHeader]:
        """Keep one buffer whole where its batches go to one segment, and cut it where not."""
        kept: list[BatchHeader] = []
        start = end = 0
        segment: LogSegment | None = None
        try:
            for position, header in iter_headers(buffer):
                self._check_replicated(buffer, position, header, now_ms)
                target = self._index(header, now_ms)
                if segment is not None and target is not segment:
                    segment.keep(_part(buffer, start, end))
                    start = position
                segment = target
                end = position + header.size
                kept.append(header)
        finally:
            # Also when a later batch is broken: what has been indexed must have its bytes.
            if segment is not None:
                segment.keep(_part(buffer, start, end))
        return kept

    def _check_replicated(
        self, buffer: Buffer, position: int, header: BatchHeader, now_ms: int
    ) -> None:
        if not crc_ok(buffer, position, header):
            raise CorruptBatch(f"record batch at offset {header.base_offset} fails its checksum")
        base = header.base_offset
        if base >= self._end:
            return
        if self._start == self._end <= header.last_offset:
            # The leader's log start lies within this batch: it comes whole.
            self.truncate_fully_and_start_at(base, now_ms=now_ms, log_start_offset=self._start)
            return
        raise UnexpectedAppendOffset(
            f"record batch from offset {base} where {self._name} goes on at {self._end}"
        )

    # Reading.

    def read(
        self, offset: int, *, max_bytes: int, upper_bound: int, min_one_batch: bool
    ) -> ReadResult:
        """The batches from the one that holds `offset` on, to the end of its segment at most."""
        if not self._start <= offset <= self._end:
            raise OffsetOutOfRange(
                f"offset {offset} of {self._name}, which holds {self._start} to {self._end}"
            )
        if offset < self._segments.first_offset:
            raise OffsetMovedToTier(
                f"offset {offset} of {self._name}, of which {self._segments.first_offset} is the "
                "first that is here"
            )
        if offset < upper_bound:
            for segment in self._segments.all[self._segments.index_of(offset) :]:
                buffers = segment.read(
                    offset,
                    max_bytes=max_bytes,
                    upper_bound=upper_bound,
                    min_one_batch=min_one_batch,
                )
                if buffers:
                    (first_offset,) = _BASE_OFFSET.unpack_from(buffers[0])
                    return ReadResult(tuple(buffers), sum(map(len, buffers)), first_offset)
                if segment.next_offset > offset:
                    break
        return ReadResult((), 0, offset)

    def size_between(self, offset: int, upper_bound: int) -> int:
        """Bytes of the batches from the one that holds `offset` to before `upper_bound`."""
        segments = self._segments.all[self._segments.index_of(offset) :]
        return sum(segment.size_between(offset, upper_bound) for segment in segments)

    # Truncating.

    def truncate_to(self, offset: int) -> bool:
        """Drop everything from `offset` on, and of the batch that holds it all."""
        self._epochs.truncate_from_end(offset)
        if offset >= self._end:
            return False
        if offset < self._segments.first_offset:
            self.truncate_fully_and_start_at(offset, now_ms=self._segments.active.created_ms)
            return True
        self._segments.truncate(offset)
        self._end = offset
        self._start = min(self._start, offset)
        self._cleaned_until = min(self._cleaned_until, self._segments.active.base_offset)
        if len(self._producers) and self._producers.wrote_at_or_after(offset):
            self._rebuild_producers()
        return True

    def _rebuild_producers(self) -> None:
        """Know the producers again as of the log end, from the last segment's snapshot on."""
        last = self._segments.active
        self._producers.restore(last.producer_snapshot)
        for _, header in last.scan():
            if header.has_producer_id:
                self._producers.update(header)

    def truncate_fully_and_start_at(
        self, offset: int, *, now_ms: int, log_start_offset: int | None = None
    ) -> None:
        """Drop everything, epochs and producers too; the next record gets `offset`."""
        self._start_over(offset, offset if log_start_offset is None else log_start_offset, now_ms)

    def _start_over(
        self,
        offset: int,
        log_start_offset: int,
        now_ms: int,
        producers: tuple[ProducerView, ...] | None = None,
    ) -> None:
        self._segments.reset(offset, now_ms, producers)
        self._end = offset
        self._start = log_start_offset
        self._cleaned_until = offset
        self._epochs.clear()
        self._producers.restore(producers or ())

    def dismantle(self) -> Iterator[None]:
        """Free what is held, a little before each step; nobody may use the log any more."""
        for segment in self._segments:
            while segment.shed():
                yield

    # Leader epochs.

    def assign_epoch_start(self, epoch: int, offset: int) -> None:
        """Note a new leader epoch, at the election and not at its first append."""
        self._note_epoch(epoch if self.config.keeps_leader_epochs else NO_LEADER_EPOCH, offset)

    def end_offset_for_epoch(self, epoch: int) -> EpochEndOffset:
        """What OffsetForLeaderEpoch answers."""
        return self._epochs.end_offset_for(epoch, self._end)

    @property
    def latest_epoch(self) -> int | None:
        """The newest leader epoch known."""
        return self._epochs.latest

    def epoch_for_offset(self, offset: int) -> int | None:
        """The leader epoch that `offset` was, or will be, written in."""
        return self._epochs.epoch_for_offset(offset)

    def epoch_entries(self) -> tuple[EpochEntry, ...]:
        """The leader-epoch cache, oldest first."""
        return self._epochs.entries()

    # Times.

    def offset_for_timestamp(self, timestamp: int) -> TimestampAndOffset | None:
        """The first record from the log start on whose timestamp is at least `timestamp`."""
        return lookups.first_at_or_after(self._segments.all, timestamp, self._start)

    def offset_of_max_timestamp(self) -> TimestampAndOffset | None:
        """The first record with the highest timestamp held, before the log start too."""
        return lookups.of_max_timestamp(self._segments.all)

    # Segments.

    def advance_log_start(self, offset: int) -> bool:
        """Move the log start forward, and drop the segments that lie before it."""
        if offset > self._end:
            raise OffsetOutOfRange(f"log start {offset} of {self._name}, which ends at {self._end}")
        if offset <= self._start:
            return False
        self._start = offset
        self._epochs.truncate_from_start(offset)
        self._segments.drop_before(offset)
        return True

    def roll(self, now_ms: int) -> None:
        """Begin a new segment, unless the active one is empty."""
        if not self._segments.active.is_empty:
            self._roll(now_ms, self._end)

    def _roll(self, now_ms: int, base_offset: int) -> LogSegment:
        return self._segments.roll(base_offset, now_ms, self._producers.snapshot())

    def delete_expired(self, now_ms: int, high_watermark: int) -> int:
        """Drop the oldest segments by retention.ms and retention.bytes."""
        dropped = self._segments.drop_before(self._start)
        if self.config.is_copied or not self.config.is_deleted:
            return dropped
        count = retention.expired_segments(
            self._segments.all,
            self.config,
            now_ms=now_ms,
            high_watermark=high_watermark,
            log_end_offset=self._end,
        )
        if count:
            if count == len(self._segments):
                self._roll(now_ms, self._end)
            self.advance_log_start(self._segments.all[count].base_offset)
            # The log start may have been there before, at the end of what was the active one.
            self._segments.drop_before(self._start)
        return dropped + count

    # The tier.

    def segment_to_upload(self, offset: int, upper_bound: int) -> SegmentCopy | None:
        """The closed segment that holds `offset`, to be copied to the tier."""
        segments, index = self._segments.all, self._segments.index_of(offset)
        if offset < self._segments.first_offset or index + 1 >= len(segments):
            return None
        segment, following = segments[index], segments[index + 1]
        end = following.base_offset
        if end > upper_bound:
            return None
        return SegmentCopy(
            base_offset=segment.base_offset,
            end_offset=end - 1,
            size_bytes=segment.size,
            max_timestamp=segment.max_timestamp,
            records=segment.copy(),
            epochs=tuple(e for e in self._epochs.entries() if e.start_offset < end),
            producers=following.producer_snapshot,
        )

    def delete_local(self, tiered_until: int, *, now_ms: int | None) -> int:
        """Drop segments of which the tier has everything; the log start stays."""
        segments = self._segments.all
        count = retention.tiered_segments(segments, tiered_until)
        if now_ms is not None:
            count = retention.locally_expired_segments(segments, self.config, now_ms, count)
        return self._segments.drop_before(segments[count].base_offset)

    def start_from_tier(
        self,
        offset: int,
        *,
        log_start_offset: int,
        epochs: Sequence[EpochEntry],
        producers: Sequence[ProducerView],
        now_ms: int,
    ) -> None:
        """Drop everything and go on at `offset`; what lies before is in the tier."""
        self._start_over(offset, log_start_offset, now_ms, tuple(producers))
        for entry in epochs:
            self._epochs.assign(entry.epoch, entry.start_offset)

    def compact(self, now_ms: int, high_watermark: int, *, at_once: bool = False) -> int:
        """Clean the closed segments below the high watermark, if they are dirty enough."""
        if not self.config.is_compacted:
            return 0
        unstable = self._producers.first_unstable_offset
        cleanable = compaction.find_cleanable(
            self._segments.all,
            self.config,
            now_ms=now_ms,
            cleaned_until=self._cleaned_until,
            upper_bound=high_watermark if unstable is None else min(high_watermark, unstable),
            at_once=at_once,
        )
        if cleanable is None:
            return 0
        before = sum(segment.records for segment in cleanable.segments)
        cleaned = compaction.clean(
            cleanable,
            self.config,
            now_ms=now_ms,
            producer_offsets=self._producers.last_offsets(),
            create=self._store.create_cleaned,
        )
        self._segments.swap(cleaned, len(cleanable.segments))
        self._cleaned_until = cleanable.end
        return before - sum(segment.records for segment in cleaned)

    def segments(self) -> tuple[SegmentView, ...]:
        """All segments, oldest first; the last is the active one."""
        return tuple(SegmentView(segment, found_at_once) for segment in self._segments)

    # Producers.

    def producers(self) -> tuple[ProducerView, ...]:
        """The producers known, in order of their ids."""
        return self._producers.snapshot()

    def expire_producers(self, now_ms: int) -> int:
        """Forget the producers that have been silent for producer.id.expiration.ms."""
        return self._producers.expire(now_ms, self.config.producer_id_expiration_ms)

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest open transaction begins; None without one."""
        return self._producers.first_unstable_offset


def _part(buffer: Buffer, start: int, end: int) -> Buffer:
    """The bytes from `start` to `end`: the buffer itself where that is all of it."""
    if start == 0 and end == len(buffer):
        return buffer
    return memoryview(buffer)[start:end]
