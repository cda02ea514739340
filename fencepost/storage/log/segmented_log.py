"""The log itself: segments, leader epochs and producers, kept in step.

It is the same in memory and in files: a `SegmentStore` makes the segments. The contract of each
method stands in `fencepost.storage.log.interface.Log`.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Final, final

from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.record_reader import ReadBudget
from fencepost.protocol.records import (
    CONTROL_FLAG,
    NO_LEADER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    CorruptBatch,
    crc_ok,
    stamp,
)
from fencepost.storage.log import cleanup, timestamp_lookup
from fencepost.storage.log.append import append_replicated, prepare_batch
from fencepost.storage.log.append_result import (
    AppendOrigin,
    AppendRejected,
    AppendResult,
    combined_result,
    duplicate_result,
    no_room,
)
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.interface import (
    OffsetMovedToTier,
    OffsetOutOfRange,
    ReadResult,
    SegmentCopy,
    UnexpectedAppendOffset,
)
from fencepost.storage.log.key_offsets import KeyOffsetsTracker, LatestKeyOffsets
from fencepost.storage.log.leader_epoch_cache import EpochEndOffset, EpochEntry
from fencepost.storage.log.producer_state import ProducerStateEntry
from fencepost.storage.log.segments import (
    InitialLogState,
    LogSegment,
    LogSegments,
    SegmentInfo,
    SegmentStore,
    call_directly,
    should_roll,
)
from fencepost.storage.log.staging import StagedRecords, Staging
from fencepost.storage.log.timestamp_lookup import TimestampAndOffset
from fencepost.storage.log.transactions import AbortedTransaction
from fencepost.storage.log.verification import VerificationGuard

_BASE_OFFSET: Final = struct.Struct(">q")
_IN_TRANSACTION: Final = TRANSACTIONAL_FLAG | CONTROL_FLAG


@final
class SegmentedLog:
    """A `Log` made of segments; records are appended to the last one, the active segment.

    :param store: Makes the segments, and keeps the offsets of keys.
    :ivar on_truncated: Called after a truncation, before anything is appended again.
    """

    __slots__ = (
        "_cleaned_until",
        "_end",
        "_epochs",
        "_keys",
        "_name",
        "_producers",
        "_segments",
        "_start",
        "_store",
        "config",
        "on_truncated",
    )

    def __init__(
        self, name: str, config: LogConfig, store: SegmentStore, contents: InitialLogState
    ) -> None:
        self.config = config
        self._name = name
        self._store = store
        self._epochs = contents.epochs
        self._producers = contents.producers
        self._start = contents.log_start_offset
        self._end = contents.log_end_offset
        self._cleaned_until = contents.cleaned_until
        self._segments = LogSegments(store, contents.segments)
        self._keys = KeyOffsetsTracker(store.keys)
        self.on_truncated: Callable[[], None] = _ignore_truncation

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
    def cleaned_until(self) -> int:
        """Compaction has cleaned everything before this offset."""
        return self._cleaned_until

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments."""
        return self._segments.size_bytes

    @property
    def local_segments(self) -> LogSegments:
        """The segments themselves; `segments` describes them."""
        return self._segments

    # Appending.

    def append_as_leader(
        self,
        records: Buffer,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        allow_zstd: bool = True,
        budget: ReadBudget | None = None,
        guard: VerificationGuard | None = None,
        transaction_version: int = 0,
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
            budget=budget,
        )
        if isinstance(ready, AppendRejected):
            return ready
        batch, header = ready
        is_client = origin is AppendOrigin.CLIENT
        if header.producer_id > NO_PRODUCER_ID:
            if is_client and (duplicate := self._producers.duplicate_of(header)) is not None:
                return duplicate_result(duplicate, self._start)
            error = None
            if header.attributes & _IN_TRANSACTION:
                error = self._transaction_refusal(batch, header, guard, transaction_version)
            if error is None and not header.attributes & CONTROL_FLAG:
                error = self._producers.refusal(header, check_sequence=is_client)
            if error is not None:
                return AppendRejected(error=error, log_start_offset=self._start)
        refusal = self._store.refusal(len(batch), is_client=is_client)
        if refusal is not None:
            return no_room(refusal, self._start)
        return self._append_as_leader(batch, header, leader_epoch, now_ms)

    def _transaction_refusal(
        self,
        batch: Buffer,
        header: BatchHeader,
        guard: VerificationGuard | None,
        transaction_version: int,
    ) -> ErrorCode | None:
        """Why a marker, or a batch that was not verified, may not be appended."""
        if header.attributes & CONTROL_FLAG:
            return self._producers.marker_refusal(batch, header, transaction_version)
        if self.config.transaction_partition_verification_enable:
            return self._producers.verification_refusal(header, guard)
        return None

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
        self._index(header, now_ms, batch, 0).append_bytes(batch)
        return AppendResult(
            first,
            self._end - 1,
            now_ms if header.is_log_append_time else NO_TIMESTAMP,
            self._start,
            False,
            header.record_count,
            header.max_timestamp,
        )

    def stage(
        self, *, now_ms: int, key_offsets: Callable[[], LatestKeyOffsets] | None = None
    ) -> Staging:
        """Begin to check the batches that a client's request has for this log (KIP-27).

        :param key_offsets: Replaces `key_offsets` of this log, where a failed read must be noted.
        """
        current = key_offsets or self.key_offsets
        return Staging(
            self._name,
            self.config,
            now_ms=now_ms,
            log_start_offset=self._start,
            log_end_offset=self._end,
            producers=self._producers,
            last_of_key=lambda key: current().last_offset(key),
            refusal=self._store.refusal,
        )

    def maybe_start_verification(
        self, producer_id: int, sequence: int, epoch: int, *, supports_epoch_bump: bool
    ) -> VerificationGuard | ErrorCode | None:
        """Begin to verify a transactional producer before its first record is appended."""
        return self._producers.maybe_start_verification(
            producer_id, sequence, epoch, supports_epoch_bump=supports_epoch_bump
        )

    def append_staged(
        self, staged: StagedRecords, *, leader_epoch: int, now_ms: int
    ) -> AppendResult:
        """Append as leader what `stage` has checked, in the order in which it was taken."""
        first = self._end
        results = [
            self._append_as_leader(batch, header, leader_epoch, now_ms)
            if duplicate is None
            else duplicate_result(duplicate, self._start)
            for batch, header, duplicate in staged.batches
        ]
        self._keys.add_appended(staged.keys, first, self._end)
        return results[0] if len(results) == 1 else combined_result(results)

    def key_offsets(self) -> LatestKeyOffsets:
        """The last offset of each key in the log, as of now: an append makes it outdated."""
        return self._keys.up_to(self._end, self._start, self._segments.scan)

    def checkpoint_keys(self, *, sync: bool) -> None:
        """Write the offsets of keys to the store, as far as they are loaded."""
        self._keys.checkpoint(self._start, self._epochs, sync=sync)

    def _index(self, header: BatchHeader, now_ms: int, batch: Buffer, position: int) -> LogSegment:
        """Record a batch's header everywhere; the caller appends the bytes to the segment.

        :param batch: Holds the batch from `position` on.
        """
        epoch = header.partition_leader_epoch
        if epoch != self._epochs.latest:
            self._epochs.assign_or_clear(epoch, header.base_offset)
        config = self.config
        segment = self._segments.active
        segment_ms = config.max_segment_ms
        if config.segment_jitter_ms:
            segment_ms -= config.jitter_ms(self.name, segment.base_offset)
        if should_roll(
            segment,
            size=header.size,
            last_offset=header.base_offset + header.last_offset_delta,
            max_timestamp=header.max_timestamp,
            now_ms=now_ms,
            segment_bytes=config.segment_bytes,
            segment_ms=segment_ms,
        ):
            # A follower's next batch may lie behind a gap that compaction left.
            segment = self._roll(now_ms, header.base_offset)
        segment.add_header(header, now_ms)
        if header.producer_id > NO_PRODUCER_ID:
            if header.attributes & CONTROL_FLAG:
                aborted = self._producers.apply(batch, position, header)
                if aborted is not None:
                    self._segments.add_aborted(segment, aborted)
            else:
                self._producers.update(header)
        self._end = header.base_offset + header.last_offset_delta + 1
        return segment

    def append_as_follower(
        self, records: Sequence[Buffer], *, now_ms: int, high_watermark: int = 0
    ) -> AppendResult:
        """Keep batches as their leader sent them; a partial one at an end is left out."""
        first_offset = self._end

        def add(buffer: Buffer, position: int, header: BatchHeader) -> LogSegment:
            self._check_replicated(buffer, position, header, now_ms)
            return self._index(header, now_ms, buffer, position)

        count, max_timestamp = append_replicated(records, add)
        if self._producers.has_completed_transactions:
            self._producers.first_unstable_offset(high_watermark)
        return AppendResult(
            first_offset, self._end - 1, NO_TIMESTAMP, self._start, False, count, max_timestamp
        )

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

    # Truncation.

    def truncate_to(self, offset: int) -> bool:
        """Drop everything from `offset` on, and of the batch that holds it all."""
        self._epochs.truncate_from_end(offset)
        if offset >= self._end:
            return False
        self._keys.before_truncation(offset)
        if offset < self._segments.first_offset:
            self.truncate_fully_and_start_at(offset, now_ms=self._segments.active.created_ms)
            return True
        self._segments.truncate(offset)
        self._end = offset
        self._start = min(self._start, offset)
        self._cleaned_until = min(self._cleaned_until, self._segments.active.base_offset)
        if len(self._producers) and self._producers.wrote_at_or_after(offset):
            active = self._segments.active
            self._producers.restore(active.producer_snapshot, keep_below=active.base_offset)
            self._producers.replay(active.scan())
        self.on_truncated()
        return True

    def truncate_fully_and_start_at(
        self, offset: int, *, now_ms: int, log_start_offset: int | None = None
    ) -> None:
        """Drop everything, epochs and producers too; the next record gets `offset`."""
        self._start_over(offset, offset if log_start_offset is None else log_start_offset, now_ms)
        self.on_truncated()

    def _start_over(
        self,
        offset: int,
        log_start_offset: int,
        now_ms: int,
        producers: tuple[ProducerStateEntry, ...] | None = None,
    ) -> None:
        self._keys.before_truncation(-1)
        self._segments.reset(offset, now_ms, producers)
        self._end = offset
        self._start = log_start_offset
        self._cleaned_until = offset
        self._epochs.clear()
        self._producers.restore(producers or ())

    # Segments.

    def roll(self, now_ms: int) -> None:
        """Begin a new segment, unless the active one is empty."""
        if not self._segments.active.is_empty:
            self._roll(now_ms, self._end)

    def segments(
        self, ask: Callable[[Callable[[], int]], int] = call_directly
    ) -> tuple[SegmentInfo, ...]:
        """All segments, oldest first; the last is the active one.

        :param ask: As for `SegmentInfo`.
        """
        return tuple(SegmentInfo(segment, ask) for segment in self._segments)

    def _roll(self, now_ms: int, base_offset: int) -> LogSegment:
        self._keys.drop_unless(used=self.config.checks_keys)
        segment = self._segments.roll(base_offset, now_ms, self._producers.snapshot())
        self._keys.checkpoint_if_grown(self._start, self._epochs)
        return segment

    # Retention.

    def advance_log_start(self, offset: int) -> bool:
        """Move the log start forward, and drop the segments that lie before it."""
        if offset > self._end:
            raise OffsetOutOfRange(f"log start {offset} of {self._name}, which ends at {self._end}")
        if offset <= self._start:
            return False
        self._start = offset
        self._epochs.truncate_from_start(offset)
        self._segments.drop_before(offset)
        self._keys.drop_before(offset)
        return True

    def delete_expired(self, now_ms: int, high_watermark: int) -> int:
        """Drop the oldest segments by retention.ms and retention.bytes."""
        self._keys.drop_unless(used=self.config.checks_keys)
        self._producers.first_unstable_offset(high_watermark)
        dropped = self._segments.drop_before(self._start)
        count = cleanup.expired_segments(
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

    # Compaction.

    def compact(self, now_ms: int, high_watermark: int, *, at_once: bool = False) -> int:
        """Clean the closed segments below the high watermark, if they are dirty enough."""
        if not self.config.is_compacted:
            return 0
        cleaned = cleanup.compact(
            self._segments,
            self.config,
            now_ms=now_ms,
            cleaned_until=self._cleaned_until,
            last_stable_offset=self.last_stable_offset(high_watermark),
            at_once=at_once,
            last_records=self._producers.last_records(),
            create=self._store.create_cleaned,
        )
        if cleaned is None:
            return 0
        self._keys.before_swap(cleaned.expired)
        self._segments.swap(cleaned.segments, cleaned.replaced)
        self._cleaned_until = cleaned.end
        return cleaned.removed_records

    # The tier.

    def segment_to_upload(self, offset: int, upper_bound: int) -> SegmentCopy | None:
        """The closed segment that holds `offset`, to be copied to the tier."""
        segments, index = self._segments.all, self._segments.index_of(offset)
        if offset < self._segments.first_offset or index + 1 >= len(segments):
            return None
        segment, following = segments[index], segments[index + 1]
        if following.base_offset > upper_bound:
            return None
        return SegmentCopy.of(segment, following, self._epochs.entries())

    def delete_local(self, tiered_until: int, *, now_ms: int | None) -> int:
        """Drop segments of which the tier has everything; the log start stays."""
        segments = self._segments.all
        count = cleanup.local_expired_segments(segments, self.config, tiered_until, now_ms)
        return self._segments.drop_before(segments[count].base_offset)

    def start_from_tier(
        self,
        offset: int,
        *,
        log_start_offset: int,
        epochs: Sequence[EpochEntry],
        producers: Sequence[ProducerStateEntry],
        now_ms: int,
    ) -> None:
        """Drop everything and go on at `offset`; what lies before is in the tier."""
        self._start_over(offset, log_start_offset, now_ms, tuple(producers))
        for entry in epochs:
            self._epochs.assign(entry.epoch, entry.start_offset)
        self.on_truncated()

    # Leader epochs.

    def assign_epoch_start(self, epoch: int, offset: int) -> None:
        """Note a new leader epoch, at the election and not at its first append."""
        known = epoch if self.config.keeps_leader_epochs else NO_LEADER_EPOCH
        self._epochs.assign_or_clear(known, offset)

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

    # Producers.

    def producers(self) -> tuple[ProducerStateEntry, ...]:
        """The producers known, in order of their ids."""
        return self._producers.snapshot()

    def expire_producers(self, now_ms: int) -> int:
        """Forget the producers that have been silent for producer.id.expiration.ms."""
        return self._producers.expire(now_ms, self.config.producer_id_expiration_ms)

    # Transactions.

    def last_stable_offset(self, high_watermark: int) -> int:
        """Exclusive end of what a read_committed consumer may read."""
        unstable = self._producers.first_unstable_offset(high_watermark)
        return high_watermark if unstable is None else self._stable_before(unstable, high_watermark)

    def _stable_before(self, unstable: int, high_watermark: int) -> int:
        # Retention and DeleteRecords may have taken the first records of an open transaction.
        return min(max(unstable, self._start), high_watermark)

    def aborted_transactions(self, start: int, end: int) -> tuple[AbortedTransaction, ...]:
        """The aborted transactions of which records may lie between two offsets."""
        return self._segments.aborted_transactions(start, end)

    def has_ongoing_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether a producer has an open transaction in this epoch."""
        return self._producers.has_ongoing_transaction(producer_id, producer_epoch)

    def dismantle(self) -> Iterator[None]:
        """Free the memory, a little before each step; the log must not be used any more."""
        for segment in self._segments:
            while segment.free_some():
                yield


def _ignore_truncation() -> None:
    """The default: a log in memory has no recovery point to lower."""
