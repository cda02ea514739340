"""The interface of a log to its replica, and the values that it returns.

A protocol error of an append is a value (`AppendRejected`); `OffsetOutOfRange` is an exception
because a read has no other error.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, Self

from msgspec import Struct

from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.record_reader import ReadBudget
from fencepost.storage.log.append_result import AppendOrigin, AppendRejected, AppendResult
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.leader_epoch_cache import EpochEndOffset, EpochEntry
from fencepost.storage.log.producer_state import ProducerStateEntry
from fencepost.storage.log.segments import LogSegment, SegmentInfo
from fencepost.storage.log.staging import StagedRecords, Staging
from fencepost.storage.log.timestamp_lookup import TimestampAndOffset
from fencepost.storage.log.transactions import AbortedTransaction
from fencepost.storage.log.verification import VerificationGuard


class ReadResult(NamedTuple):
    """Whole batches and perhaps the first bytes of one more, as the buffers that hold them.

    :ivar first_offset: Base offset of the first batch, which may lie before the offset asked for.
        The offset asked for where there is none.
    """

    buffers: tuple[Buffer, ...]
    size: int
    first_offset: int


class SegmentCopy(Struct, frozen=True, kw_only=True):
    """A closed segment, with all that goes to the remote tier with it (KIP-405).

    :ivar end_offset: Inclusive: the one before the next segment's base offset.
    :ivar records: Its bytes, batch after batch, read as they are taken; the segment may be gone
        from the log by then, and another thread may take them.
    :ivar epochs: The leader epochs of the log up to its end, oldest first.
    :ivar producers: The log's producers after its last record.
    :ivar aborted: The aborted transactions whose markers it holds.
    """

    base_offset: int
    end_offset: int
    size_bytes: int
    max_timestamp: int
    records: Iterable[Buffer]
    epochs: tuple[EpochEntry, ...]
    producers: tuple[ProducerStateEntry, ...]
    aborted: tuple[AbortedTransaction, ...] = ()

    @classmethod
    def of(cls, segment: LogSegment, following: LogSegment, epochs: Iterable[EpochEntry]) -> Self:
        """A copy of a closed segment.

        :param following: The segment after it.
        :param epochs: All of the log.
        """
        end = following.base_offset
        return cls(
            base_offset=segment.base_offset,
            end_offset=end - 1,
            size_bytes=segment.size,
            max_timestamp=segment.max_timestamp,
            records=segment.copy(),
            epochs=tuple(entry for entry in epochs if entry.start_offset < end),
            producers=following.producer_snapshot,
            aborted=tuple(segment.aborted),
        )


class OffsetOutOfRange(ValueError):
    """An offset before the log's start or behind its end."""


class OffsetMovedToTier(OffsetOutOfRange):
    """An offset from the log start on, but before the local log start (KIP-405)."""


class UnexpectedAppendOffset(ValueError):
    """A leader sent records from before the follower's log end."""


class Log(Protocol):
    """One replica's log.

    Offsets are absolute; every range is from inclusive to exclusive. An appended buffer is kept
    without a copy, and reads return it: the caller of an append must not write to it again.
    """

    config: LogConfig

    @property
    def name(self) -> str:
        """Topic and partition as Kafka's messages print them: ``topic-0``."""

    @property
    def log_start_offset(self) -> int:
        """The first offset that may be read."""

    @property
    def local_log_start_offset(self) -> int:
        """The first offset held here: the log start offset, unless the log is tiered."""

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""

    @property
    def batches_end_offset(self) -> int:
        """The offset behind the last batch held.

        Below the log end where a truncation took a batch whole that lay across its offset.
        """

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments."""

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
        """Check one batch, give it offsets and the leader's epoch, and keep it.

        :param records: One batch in a writable buffer, which is stamped in place and kept. A
            read-only one is copied first.
        :param allow_zstd: Whether the request's version may carry zstd (Produce v7+).
        :param budget: What the request may still unpack to; None where it has nothing else.
        :param guard: What `maybe_start_verification` gave before the producer was verified; the
            first record of a transaction is INVALID_TXN_STATE without it, unless
            ``transaction.partition.verification.enable`` is false.
        :param transaction_version: By which the epoch of a transaction marker is judged.
        """

    def maybe_start_verification(
        self, producer_id: int, sequence: int, epoch: int, *, supports_epoch_bump: bool
    ) -> VerificationGuard | ErrorCode | None:
        """Begin to verify that the coordinator knows this partition, before an append (KIP-890).

        The guard is good for the first transactional append of the producer after this, and only
        until a marker of it is appended.

        :param supports_epoch_bump: Whether the producer gets a new epoch with each transaction
            (``transaction.version`` 2).
        :returns: None where the transaction is open here already, which needs no verification;
            INVALID_PRODUCER_EPOCH where a newer epoch has written.
        """

    def stage(self, *, now_ms: int) -> Staging:
        """Begin to check what a client's request has for this log (KIP-27).

        It is of use until anything else is appended or truncated.
        """

    def append_staged(
        self, staged: StagedRecords, *, leader_epoch: int, now_ms: int
    ) -> AppendResult:
        """Append as leader what `stage` has checked, in the order in which it was taken."""

    def append_as_follower(
        self, records: Sequence[Buffer], *, now_ms: int, high_watermark: int = 0
    ) -> AppendResult:
        """Keep batches as their leader sent them; a partial one at an end is left out.

        :param records: Each buffer begins with a batch.
        :param high_watermark: Of the replica: completed transactions below it are forgotten.
        :raises CorruptBatch: When a batch is broken or fails its checksum; those before it stay.
        :raises UnexpectedAppendOffset: When a batch begins before the log end. (Where the log is
            empty and its start lies within the first batch, that batch is kept: DeleteRecords
            need not stop between batches.)
        """

    def read(
        self, offset: int, *, max_bytes: int, upper_bound: int, min_one_batch: bool
    ) -> ReadResult:
        """The batches from the one that holds `offset` on, to the end of its segment at most.

        :param max_bytes: Where to cut, within a batch if need be.
        :param upper_bound: Only batches that end before this offset (exclusive).
        :param min_one_batch: The first batch comes whole, however large. Without it there is
            nothing where the first does not fit.
        :raises OffsetOutOfRange: When `offset` is before the log start or behind the log end.
        :raises OffsetMovedToTier: When it lies between, but before the local log start.
        """

    def size_between(self, offset: int, upper_bound: int) -> int:
        """Bytes of the batches from the one that holds `offset` to before `upper_bound`."""

    def truncate_to(self, offset: int) -> bool:
        """Drop everything from `offset` on, and of the batch that holds it all.

        :returns: Whether any record went.
        """

    def truncate_fully_and_start_at(
        self, offset: int, *, now_ms: int, log_start_offset: int | None = None
    ) -> None:
        """Drop everything, epochs and producers too; the next record gets `offset`.

        :param log_start_offset: None is `offset` as well.
        """

    def assign_epoch_start(self, epoch: int, offset: int) -> None:
        """Note a new leader epoch, at the election and not at its first append.

        In the old message format no epoch is known, and what was known is forgotten.
        """

    def end_offset_for_epoch(self, epoch: int) -> EpochEndOffset:
        """What OffsetForLeaderEpoch answers: see `LeaderEpochCache.end_offset_for`."""

    @property
    def latest_epoch(self) -> int | None:
        """The newest leader epoch known."""

    def epoch_for_offset(self, offset: int) -> int | None:
        """The leader epoch that `offset` was, or will be, written in."""

    def epoch_entries(self) -> tuple[EpochEntry, ...]:
        """The leader-epoch cache, oldest first."""

    def offset_for_timestamp(self, timestamp: int) -> TimestampAndOffset | None:
        """The first record from the log start on whose timestamp is at least `timestamp`."""

    def offset_of_max_timestamp(self) -> TimestampAndOffset | None:
        """The first record with the highest timestamp held.

        As in Kafka it may lie before the log start: within the segment that DeleteRecords went
        to, nothing is forgotten.
        """

    def advance_log_start(self, offset: int) -> bool:
        """Move the log start forward, and drop the segments that lie before it.

        :returns: Whether it moved; an offset at or before the log start changes nothing.
        :raises OffsetOutOfRange: When `offset` lies behind the log end.
        """

    def roll(self, now_ms: int) -> None:
        """Begin a new segment, unless the active one is empty."""

    def delete_expired(self, now_ms: int, high_watermark: int) -> int:
        """Drop the oldest segments by retention.ms and retention.bytes.

        Segments at or beyond the high watermark stay. Where all go, the active one is rolled.
        Those that lie before the log start go whatever ``cleanup.policy`` says, and of a tiered
        log only those: retention deletes in the tier, and `delete_local` here.

        :returns: How many were dropped.
        """

    def segment_to_upload(self, offset: int, upper_bound: int) -> SegmentCopy | None:
        """The closed segment that holds `offset`, to be copied to the tier (KIP-405).

        :param upper_bound: Only one that ends at or before this offset (exclusive): the last
            stable offset.
        :returns: None where there is none, or none any more.
        """

    def delete_local(self, tiered_until: int, *, now_ms: int | None) -> int:
        """Drop segments of which the tier has everything; the log start stays.

        :param tiered_until: Exclusive end of what the tier has.
        :param now_ms: Only those that local.retention.ms and local.retention.bytes let go now;
            None drops them all.
        :returns: How many were dropped.
        """

    def start_from_tier(
        self,
        offset: int,
        *,
        log_start_offset: int,
        epochs: Sequence[EpochEntry],
        producers: Sequence[ProducerStateEntry],
        now_ms: int,
    ) -> None:
        """Drop everything and go on at `offset`; what lies before is in the tier (KIP-405).

        :param epochs: Of the records from `log_start_offset` on to `offset`, from the tier.
        :param producers: As they were before `offset`, from the tier.
        """

    def compact(self, now_ms: int, high_watermark: int, *, at_once: bool = False) -> int:
        """Clean the closed segments below the high watermark, if they are dirty enough.

        :param at_once: Whether anything dirty is dirty enough.
        :returns: How many records were dropped.
        """

    def segments(self) -> tuple[SegmentInfo, ...]:
        """All segments, oldest first; the last is the active one.

        Their numbers are read on access: in files some may have to be read from disk.
        """

    def producers(self) -> tuple[ProducerStateEntry, ...]:
        """The producers known, in order of their ids (DescribeProducers)."""

    def expire_producers(self, now_ms: int) -> int:
        """Forget the producers that have been silent for producer.id.expiration.ms.

        :returns: How many.
        """

    def last_stable_offset(self, high_watermark: int) -> int:
        """Exclusive end of what a read_committed consumer may read (KIP-98).

        It is the first record of the transactions that are open, or whose marker is not below the
        high watermark; at most the high watermark.

        :param high_watermark: Of the replica. What it has passed is forgotten here.
        """

    def aborted_transactions(self, start: int, end: int) -> tuple[AbortedTransaction, ...]:
        """The aborted transactions of which records may lie between two offsets.

        Those that began before `end`, and whose marker is at or after `start`, in order of the
        markers.

        :param start: Inclusive, from the local log start on.
        :param end: Exclusive.
        """

    def has_ongoing_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether a producer has an open transaction, and has written last in this epoch."""

    def dismantle(self) -> Iterator[None]:
        """Free the memory, a little before each step; the log must not be used any more.

        Freeing gigabytes takes a good part of a second: an event loop takes the steps when it is
        idle.
        """
