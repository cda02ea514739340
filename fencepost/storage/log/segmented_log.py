"""The log itself, made of segments.

It is the same in memory and in files: a `SegmentStore` makes the segments. The contract of each
method stands in `fencepost.storage.log.interface.Log`, and what it does in the module of its
subject.
"""

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import final

from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.record_reader import ReadBudget
from fencepost.protocol.records import NO_LEADER_EPOCH
from fencepost.storage.log import (
    follower_append,
    leader_append,
    read,
    retention,
    timestamp_lookup,
    truncation,
)
from fencepost.storage.log.append_result import AppendOrigin, AppendRejected, AppendResult
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.interface import ReadResult, SegmentCopy
from fencepost.storage.log.key_offsets import LatestKeyOffsets
from fencepost.storage.log.leader_epoch_cache import EpochEndOffset, EpochEntry
from fencepost.storage.log.log_state import LogState
from fencepost.storage.log.producer_state import ProducerStateEntry
from fencepost.storage.log.segments import (
    InitialLogState,
    LogSegments,
    SegmentInfo,
    SegmentStore,
    call_directly,
)
from fencepost.storage.log.staging import StagedRecords, Staging
from fencepost.storage.log.timestamp_lookup import TimestampAndOffset
from fencepost.storage.log.transactions import AbortedTransaction
from fencepost.storage.log.verification import VerificationGuard


@final
class SegmentedLog:
    """A `Log` made of segments; records are appended to the last one, the active segment.

    :param store: Makes the segments, and keeps the offsets of keys.
    """

    __slots__ = ("_state",)

    def __init__(
        self, name: str, config: LogConfig, store: SegmentStore, contents: InitialLogState
    ) -> None:
        self._state = LogState(name, config, store, contents)

    @property
    def config(self) -> LogConfig:
        """The topic's effective configs."""
        return self._state.config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._state.config = config

    @property
    def on_truncated(self) -> Callable[[], None]:
        """Called after a truncation, before anything is appended again."""
        return self._state.on_truncated

    @on_truncated.setter
    def on_truncated(self, call: Callable[[], None]) -> None:
        self._state.on_truncated = call

    @property
    def name(self) -> str:
        """Topic and partition: ``topic-0``."""
        return self._state.name

    # Both are asked many times for each request, and a function in Python takes twice as long.
    log_start_offset = property(attrgetter("_state.start"))
    """The first offset that may be read."""
    log_end_offset = property(attrgetter("_state.end"))
    """The offset that the next record gets."""

    @property
    def local_log_start_offset(self) -> int:
        """The first offset held here."""
        state = self._state
        return max(state.start, state.segments.first_offset)

    @property
    def batches_end_offset(self) -> int:
        """The offset behind the last batch held."""
        return self._state.segments.active.next_offset

    @property
    def cleaned_until(self) -> int:
        """Compaction has cleaned everything before this offset."""
        return self._state.cleaned_until

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments."""
        return self._state.segments.size_bytes

    @property
    def local_segments(self) -> LogSegments:
        """The segments themselves; `segments` describes them."""
        return self._state.segments

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
        return leader_append.append_as_leader(
            self._state,
            records,
            leader_epoch=leader_epoch,
            now_ms=now_ms,
            origin=origin,
            allow_zstd=allow_zstd,
            budget=budget,
            guard=guard,
            transaction_version=transaction_version,
        )

    def stage(
        self, *, now_ms: int, key_offsets: Callable[[], LatestKeyOffsets] | None = None
    ) -> Staging:
        """Begin to check the batches that a client's request has for this log (KIP-27).

        :param key_offsets: Replaces `key_offsets` of this log, where a failed read must be noted.
        """
        return leader_append.stage(self._state, now_ms, key_offsets or self.key_offsets)

    def maybe_start_verification(
        self, producer_id: int, sequence: int, epoch: int, *, supports_epoch_bump: bool
    ) -> VerificationGuard | ErrorCode | None:
        """Begin to verify a transactional producer before its first record is appended."""
        return self._state.producers.maybe_start_verification(
            producer_id, sequence, epoch, supports_epoch_bump=supports_epoch_bump
        )

    def append_staged(
        self, staged: StagedRecords, *, leader_epoch: int, now_ms: int
    ) -> AppendResult:
        """Append as leader what `stage` has checked, in the order in which it was taken."""
        return leader_append.append_staged(
            self._state, staged, leader_epoch=leader_epoch, now_ms=now_ms
        )

    def key_offsets(self) -> LatestKeyOffsets:
        """The last offset of each key in the log, as of now: an append makes it outdated."""
        state = self._state
        return state.keys.up_to(state.end, state.start, state.segments.scan)

    def checkpoint_keys(self, *, sync: bool) -> None:
        """Write the offsets of keys to the store, as far as they are loaded."""
        self._state.keys.checkpoint(self._state.start, self._state.epochs, sync=sync)

    def append_as_follower(
        self, records: Sequence[Buffer], *, now_ms: int, high_watermark: int = 0
    ) -> AppendResult:
        """Keep batches as their leader sent them; a partial one at an end is left out."""
        return follower_append.append_as_follower(
            self._state, records, now_ms=now_ms, high_watermark=high_watermark
        )

    # Reading.

    def read(
        self, offset: int, *, max_bytes: int, upper_bound: int, min_one_batch: bool
    ) -> ReadResult:
        """The batches from the one that holds `offset` on, to the end of its segment at most."""
        return read.read(
            self._state,
            offset,
            max_bytes=max_bytes,
            upper_bound=upper_bound,
            min_one_batch=min_one_batch,
        )

    def size_between(self, offset: int, upper_bound: int) -> int:
        """Bytes of the batches from the one that holds `offset` to before `upper_bound`."""
        return read.size_between(self._state, offset, upper_bound)

    # Truncation.

    def truncate_to(self, offset: int) -> bool:
        """Drop everything from `offset` on, and of the batch that holds it all."""
        return truncation.truncate_to(self._state, offset)

    def truncate_fully_and_start_at(
        self, offset: int, *, now_ms: int, log_start_offset: int | None = None
    ) -> None:
        """Drop everything, epochs and producers too; the next record gets `offset`."""
        truncation.truncate_fully_and_start_at(
            self._state, offset, now_ms=now_ms, log_start_offset=log_start_offset
        )

    # Segments.

    def roll(self, now_ms: int) -> None:
        """Begin a new segment, unless the active one is empty."""
        if not self._state.segments.active.is_empty:
            self._state.roll(now_ms, self._state.end)

    def segments(
        self, ask: Callable[[Callable[[], int]], int] = call_directly
    ) -> tuple[SegmentInfo, ...]:
        """All segments, oldest first; the last is the active one.

        :param ask: As for `SegmentInfo`.
        """
        return tuple(SegmentInfo(segment, ask) for segment in self._state.segments)

    # Retention, compaction, the tier.

    def advance_log_start(self, offset: int) -> bool:
        """Move the log start forward, and drop the segments that lie before it."""
        return retention.advance_log_start(self._state, offset)

    def delete_expired(self, now_ms: int, high_watermark: int) -> int:
        """Drop the oldest segments by retention.ms and retention.bytes."""
        return retention.delete_expired(self._state, now_ms, high_watermark)

    def compact(self, now_ms: int, high_watermark: int, *, at_once: bool = False) -> int:
        """Clean the closed segments below the high watermark, if they are dirty enough."""
        return retention.compact(self._state, now_ms, high_watermark, at_once=at_once)

    def segment_to_upload(self, offset: int, upper_bound: int) -> SegmentCopy | None:
        """The closed segment that holds `offset`, to be copied to the tier."""
        return retention.segment_to_upload(self._state, offset, upper_bound)

    def delete_local(self, tiered_until: int, *, now_ms: int | None) -> int:
        """Drop segments of which the tier has everything; the log start stays."""
        return retention.delete_local(self._state, tiered_until, now_ms)

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
        truncation.start_from_tier(
            self._state,
            offset,
            log_start_offset=log_start_offset,
            epochs=epochs,
            producers=producers,
            now_ms=now_ms,
        )

    # Leader epochs.

    def assign_epoch_start(self, epoch: int, offset: int) -> None:
        """Note a new leader epoch, at the election and not at its first append."""
        known = epoch if self._state.config.keeps_leader_epochs else NO_LEADER_EPOCH
        self._state.epochs.assign_or_clear(known, offset)

    def end_offset_for_epoch(self, epoch: int) -> EpochEndOffset:
        """What OffsetForLeaderEpoch answers."""
        return self._state.epochs.end_offset_for(epoch, self._state.end)

    @property
    def latest_epoch(self) -> int | None:
        """The newest leader epoch known."""
        return self._state.epochs.latest

    def epoch_for_offset(self, offset: int) -> int | None:
        """The leader epoch that `offset` was, or will be, written in."""
        return self._state.epochs.epoch_for_offset(offset)

    def epoch_entries(self) -> tuple[EpochEntry, ...]:
        """The leader-epoch cache, oldest first."""
        return self._state.epochs.entries()

    # Times.

    def offset_for_timestamp(self, timestamp: int) -> TimestampAndOffset | None:
        """The first record from the log start on whose timestamp is at least `timestamp`."""
        state = self._state
        return timestamp_lookup.first_at_or_after(state.segments.all, timestamp, state.start)

    def offset_of_max_timestamp(self) -> TimestampAndOffset | None:
        """The first record with the highest timestamp held, before the log start too."""
        return timestamp_lookup.first_of_max_timestamp(self._state.segments.all)

    # Producers and their transactions.

    def producers(self) -> tuple[ProducerStateEntry, ...]:
        """The producers known, in order of their ids."""
        return self._state.producers.snapshot()

    def expire_producers(self, now_ms: int) -> int:
        """Forget the producers that have been silent for producer.id.expiration.ms."""
        return self._state.producers.expire(now_ms, self._state.config.producer_id_expiration_ms)

    def last_stable_offset(self, high_watermark: int) -> int:
        """Exclusive end of what a read_committed consumer may read."""
        return self._state.last_stable_offset(high_watermark)

    def aborted_transactions(self, start: int, end: int) -> tuple[AbortedTransaction, ...]:
        """The aborted transactions of which records may lie between two offsets."""
        return self._state.segments.aborted_transactions(start, end)

    def has_ongoing_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether a producer has an open transaction in this epoch."""
        return self._state.producers.has_ongoing_transaction(producer_id, producer_epoch)

    def dismantle(self) -> Iterator[None]:
        """Free the memory, a little before each step; the log must not be used any more."""
        for segment in self._state.segments:
            while segment.free_some():
                yield
