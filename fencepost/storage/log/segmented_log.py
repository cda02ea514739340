"""The log itself: segments, leader epochs and producers, kept in step.

It is the same wherever the bytes lie; whoever makes one says where its segments live. The contract
of each method stands in `fencepost.storage.log.interface.Log`. What takes records away is in
`fencepost.storage.log.bounds`.
"""

import struct
from collections.abc import Sequence
from typing import Final

from fencepost.protocol.byte_utils import Buffer
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
from fencepost.storage.log import timestamp_lookup
from fencepost.storage.log.append_result import (
    AppendOrigin,
    AppendRejected,
    AppendResult,
    combined_result,
)
from fencepost.storage.log.bounds import BoundedLog
from fencepost.storage.log.interface import (
    OffsetMovedToTier,
    OffsetOutOfRange,
    ReadResult,
    TimestampAndOffset,
    UnexpectedAppendOffset,
)
from fencepost.storage.log.leader_append import prepare_batch
from fencepost.storage.log.leader_epoch_cache import EpochEndOffset, EpochEntry
from fencepost.storage.log.producer_state import BatchMetadata, ProducerStateEntry
from fencepost.storage.log.segments import LogSegment, SegmentInfo, call_directly, should_roll
from fencepost.storage.log.staging import StagedRecords, Staging

_BASE_OFFSET: Final = struct.Struct(">q")


class SegmentedLog(BoundedLog):
    """A `Log` made of segments, of which only the last, the active one, is appended to."""

    __slots__ = ()

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
        ready = prepare_batch(
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
        return self._append_as_leader(batch, header, leader_epoch, now_ms)

    def _append_as_leader(
        self,
        batch: bytearray | memoryview,
        header: BatchHeader,
        leader_epoch: int,
        now_ms: int,
    ) -> AppendResult:
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

    def stage(self, *, now_ms: int) -> Staging:
        """Begin to check what a client's request has for this log (KIP-27)."""
        return Staging(
            self._name,
            self.config,
            now_ms=now_ms,
            log_start_offset=self._start,
            log_end_offset=self._end,
            producers=self._producers,
            last_of_key=lambda key: self._last_offsets().last_offset(key),
        )

    def append_staged(
        self, staged: StagedRecords, *, leader_epoch: int, now_ms: int
    ) -> AppendResult:
        """Append as leader what `stage` has checked, in the order in which it was taken."""
        first = self._end
        results = [
            self._append_as_leader(batch, header, leader_epoch, now_ms)
            if duplicate is None
            else self._duplicate(duplicate)
            for batch, header, duplicate in staged.batches
        ]
        if staged.keys:
            self._add_appended_keys(staged.keys, first)
        return results[0] if len(results) == 1 else combined_result(results)

    def _check_producer(
        self, header: BatchHeader, origin: AppendOrigin
    ) -> BatchMetadata | ErrorCode | None:
        is_client = origin is AppendOrigin.CLIENT
        if is_client and (duplicate := self._producers.duplicate_of(header)) is not None:
            return duplicate
        return self._producers.refusal(header, check_sequence=is_client)

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
        self._index(header, now_ms).append_bytes(buffer)

    def _index(self, header: BatchHeader, now_ms: int) -> LogSegment:
        """Take note of a batch everywhere but in the bytes; returns the segment it goes to."""
        epoch = header.partition_leader_epoch
        if epoch != self._epochs.latest:
            self._assign_or_clear_epoch(epoch, header.base_offset)
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
        segment.add_header(header, now_ms)
        if header.has_producer_id:
            self._producers.update(header)
        self._end = header.base_offset + header.last_offset_delta + 1
        return segment

    def _assign_or_clear_epoch(self, epoch: int, offset: int) -> None:
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
                    segment.append_bytes(_part(buffer, start, end))
                    start = position
                segment = target
                end = position + header.size
                kept.append(header)
        finally:
            # Also when a later batch is broken: what has been indexed must have its bytes.
            if segment is not None:
                segment.append_bytes(_part(buffer, start, end))
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

    # Leader epochs.

    def assign_epoch_start(self, epoch: int, offset: int) -> None:
        """Note a new leader epoch, at the election and not at its first append."""
        self._assign_or_clear_epoch(
            epoch if self.config.keeps_leader_epochs else NO_LEADER_EPOCH, offset
        )

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
        return timestamp_lookup.first_at_or_after(self._segments.all, timestamp, self._start)

    def offset_of_max_timestamp(self) -> TimestampAndOffset | None:
        """The first record with the highest timestamp held, before the log start too."""
        return timestamp_lookup.first_of_max_timestamp(self._segments.all)

    def roll(self, now_ms: int) -> None:
        """Begin a new segment, unless the active one is empty."""
        if not self._segments.active.is_empty:
            self._roll(now_ms, self._end)

    def segments(self) -> tuple[SegmentInfo, ...]:
        """All segments, oldest first; the last is the active one."""
        return tuple(SegmentInfo(segment, call_directly) for segment in self._segments)

    # Producers.

    def producers(self) -> tuple[ProducerStateEntry, ...]:
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
