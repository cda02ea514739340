"""The state of the producers that wrote to a log (KIP-98, KIP-360, KIP-890).

Per producer id: its epoch, its last five batches, and its transaction. The batches tell a retried
batch (answered as it was the first time) from a gap (refused). A producer that is not known may
begin with any sequence: its state may have expired, or its records been deleted.
"""

import sys
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import (
    CONTROL_FLAG,
    MAX_SEQUENCE,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    decrement_sequence,
    increment_sequence,
)
from fencepost.protocol.transaction_markers import (
    FIRST_WITH_EPOCH_BUMP,
    EndTransactionMarker,
    decode_marker,
)
from fencepost.storage.log.transactions import AbortedTransaction, Transactions
from fencepost.storage.log.verification import VerificationGuard, Verifications

BATCHES_KEPT: Final = 5
NO_COORDINATOR_EPOCH: Final = -1
_new_tuple: Final = tuple.__new__


class BatchMetadata(NamedTuple):
    """One batch of a producer, as far as duplicates ask; sequences and offsets inclusive."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        """Sequence number of the first record."""
        return decrement_sequence(self.last_sequence, self.offset_delta)

    @property
    def first_offset(self) -> int:
        """Offset of the first record."""
        return self.last_offset - self.offset_delta


class ProducerStateEntry(Struct, frozen=True, kw_only=True):
    """One producer's state, for DescribeProducers and for snapshots.

    :ivar coordinator_epoch: Of the coordinator that wrote its last marker; -1 without one.
    :ivar batches: Up to five, oldest first, all of `producer_epoch`.
    :ivar txn_first_offset: Where its open transaction began, None without one.
    """

    producer_id: int
    producer_epoch: int
    last_timestamp: int
    coordinator_epoch: int
    txn_first_offset: int | None
    batches: tuple[BatchMetadata, ...]

    @property
    def last_sequence(self) -> int:
        """Sequence number of its last record, -1 where none is known."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


class LastRecord(NamedTuple):
    """What compaction keeps of a producer: the batch with its last record, or its last marker.

    :ivar offset: None where all that is known of the producer is from a marker.
    """

    offset: int | None
    producer_epoch: int


class _Producer:
    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_timestamp")

    def __init__(self) -> None:
        self.epoch = NO_PRODUCER_EPOCH
        self.batches: deque[BatchMetadata] = deque(maxlen=BATCHES_KEPT)
        self.last_timestamp = NO_TIMESTAMP
        self.coordinator_epoch = NO_COORDINATOR_EPOCH


class ProducerStateManager:
    """The producers of one log, and their transactions."""

    __slots__ = ("_end", "_producers", "_transactions", "_verifications")

    def __init__(self) -> None:
        self._producers: dict[int, _Producer] = {}
        self._transactions = Transactions()
        self._verifications = Verifications()
        self._end = 0
        """Offset after the last record that changed anything here."""

    def __len__(self) -> int:
        return len(self._producers)

    def duplicate_of(self, header: BatchHeader) -> BatchMetadata | None:
        """The batch among the producer's last five that has the same epoch and sequences."""
        producer = self._producers.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            return None
        delta = header.last_offset_delta
        last_sequence = increment_sequence(header.base_sequence, delta)
        for batch in producer.batches:
            if batch.last_sequence == last_sequence and batch.offset_delta == delta:
                return batch
        return None

    def refusal(
        self, header: BatchHeader, *, check_sequence: bool, after: BatchHeader | None = None
    ) -> ErrorCode | None:
        """Why the batch, which is no duplicate and no marker, may not be appended next.

        :param check_sequence: Whether its sequence must follow on the last one. Coordinators
            number nothing; of theirs only the epoch is checked.
        :param after: A batch of the same producer that was not refused and comes before it.
        :returns: None where it may be appended.
        """
        if after is not None:
            return _refusal_after(after, header)
        producer = self._producers.get(header.producer_id)
        if producer is not None and header.producer_epoch < producer.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if check_sequence:
            if self._verifications.pending and not self._may_begin(producer, header):
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            if producer is not None and not _follows(producer, header):
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        is_open = header.producer_id in self._transactions.open
        if is_open and not header.attributes & TRANSACTIONAL_FLAG:
            return ErrorCode.INVALID_TXN_STATE
        return None

    def _may_begin(self, producer: _Producer | None, header: BatchHeader) -> bool:
        """Whether a batch may be the first after its producer's verification (KIP-890)."""
        verification = self._verifications.pending.get(header.producer_id)
        if verification is None:
            return True
        first = header.base_sequence
        is_new = producer is None or not producer.batches
        if verification.supports_epoch_bump and first and is_new:
            return False
        return first <= verification.lowest_sequence

    def verification_refusal(
        self, header: BatchHeader, guard: VerificationGuard | None
    ) -> ErrorCode | None:
        """Why a transactional batch may not be appended with this guard; None where it may."""
        producer = self._producers.get(header.producer_id)
        if self.has_ongoing_transaction(header.producer_id, header.producer_epoch):
            return None
        if producer is not None and header.producer_epoch < producer.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        verification = self._verifications.pending.get(header.producer_id)
        if verification is None or verification.guard is not guard:
            return ErrorCode.INVALID_TXN_STATE
        return None

    def marker_refusal(
        self, batch: Buffer, header: BatchHeader, transaction_version: int
    ) -> ErrorCode | None:
        """Why a marker may not be appended; None where it may.

        With transaction version 2 its epoch is larger than that of the records (KIP-890), unless it
        repeats the marker that ended the transaction (KAFKA-19999).

        :param transaction_version: By which the marker's epoch is judged.
        """
        marker = decode_marker(batch)
        producer = self._producers.get(header.producer_id)
        if marker is None or producer is None:
            return None
        epoch = header.producer_epoch
        is_repeated = header.producer_id not in self._transactions.open
        must_exceed = transaction_version >= FIRST_WITH_EPOCH_BUMP and not is_repeated
        if epoch < producer.epoch or (must_exceed and epoch == producer.epoch):
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if marker.coordinator_epoch < producer.coordinator_epoch:
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        return None

    def has_ongoing_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether a producer has an open transaction in this epoch.

        With a newer epoch the transaction of the older one may have ended.
        """
        is_open = producer_id in self._transactions.open
        return is_open and self._producers[producer_id].epoch == producer_epoch

    def maybe_start_verification(
        self, producer_id: int, sequence: int, epoch: int, *, supports_epoch_bump: bool
    ) -> VerificationGuard | ErrorCode | None:
        """See `Log.maybe_start_verification`."""
        producer = self._producers.get(producer_id)
        if producer is not None and epoch < producer.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if self.has_ongoing_transaction(producer_id, epoch):
            return None
        return self._verifications.start(
            producer_id, sequence, epoch, supports_epoch_bump=supports_epoch_bump
        )

    def update(self, header: BatchHeader) -> None:
        """Record a batch of data that has been appended, with its final offsets and timestamps."""
        producer_id = header.producer_id
        producer = self._producers.get(producer_id)
        if producer is None:
            producer = self._producers[producer_id] = _Producer()
        if producer.epoch != header.producer_epoch:
            producer.batches.clear()
            producer.epoch = header.producer_epoch
        delta, max_timestamp = header.last_offset_delta, header.max_timestamp
        last_offset = header.base_offset + delta
        producer.last_timestamp = max_timestamp
        producer.batches.append(
            _new_tuple(BatchMetadata, (header.last_sequence, last_offset, delta, max_timestamp))
        )
        self._end = last_offset + 1
        if header.attributes & TRANSACTIONAL_FLAG:
            self._transactions.begin(producer_id, header.base_offset)
            self._verifications.clear(producer_id)

    def end_transaction(
        self, header: BatchHeader, marker: EndTransactionMarker
    ) -> AbortedTransaction | None:
        """Record a marker that has been appended; the transaction that it aborts, if it does."""
        producer_id, offset = header.producer_id, header.base_offset
        producer = self._producers.get(producer_id)
        if producer is None:
            producer = self._producers[producer_id] = _Producer()
        if producer.epoch != header.producer_epoch:
            producer.batches.clear()
            producer.epoch = header.producer_epoch
        producer.last_timestamp = header.max_timestamp
        producer.coordinator_epoch = marker.coordinator_epoch
        self._end = offset + 1
        self._verifications.clear(producer_id)
        completed = self._transactions.complete(producer_id, offset)
        if completed is None or marker.committed:
            return None
        first_open = self._transactions.first_open_offset()
        return AbortedTransaction(
            producer_id,
            completed.first_offset,
            offset,
            offset + 1 if first_open is None else first_open,
        )

    def apply(self, batch: Buffer, at: int, header: BatchHeader) -> AbortedTransaction | None:
        """Record a producer's batch, data or marker; the transaction that it aborts, if it does.

        :param batch: Holds the batch from position `at` on.
        """
        if not header.attributes & CONTROL_FLAG:
            self.update(header)
            return None
        marker = decode_marker(batch, at)
        return None if marker is None else self.end_transaction(header, marker)

    def replay(self, batches: Iterable[tuple[Buffer, BatchHeader]]) -> list[AbortedTransaction]:
        """Update from batches of the log, in order; those without a producer are skipped.

        :returns: The transactions that were aborted.
        """
        aborted: list[AbortedTransaction] = []
        for batch, header in batches:
            if header.producer_id > NO_PRODUCER_ID:
                found = self.apply(batch, 0, header)
                if found is not None:
                    aborted.append(found)
        return aborted

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget those whose last record's timestamp is `expiration_ms` old; returns how many.

        It is the record's timestamp that counts, as in Kafka, and not when it arrived. One with
        an open transaction stays.
        """
        self._verifications.expire(now_ms, expiration_ms)
        expired = [
            producer_id
            for producer_id, producer in self._producers.items()
            if now_ms - producer.last_timestamp >= expiration_ms
            and producer_id not in self._transactions.open
        ]
        for producer_id in expired:
            del self._producers[producer_id]
        return len(expired)

    @property
    def has_completed_transactions(self) -> bool:
        """Whether there is one that `first_unstable_offset` has not forgotten."""
        return bool(self._transactions.completed)

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """See `Transactions.first_unstable_offset`."""
        return self._transactions.first_unstable_offset(high_watermark)

    def wrote_at_or_after(self, offset: int) -> bool:
        """Whether any producer's state may stem from a record or a marker at or after `offset`."""
        return self._end > offset

    def last_records(self) -> dict[int, LastRecord]:
        """Per producer id what compaction keeps of it."""
        return {
            producer_id: LastRecord(
                producer.batches[-1].last_offset if producer.batches else None, producer.epoch
            )
            for producer_id, producer in self._producers.items()
        }

    def snapshot(self) -> tuple[ProducerStateEntry, ...]:
        """All producers in order of their ids."""
        return tuple(
            ProducerStateEntry(
                producer_id=producer_id,
                producer_epoch=producer.epoch,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                txn_first_offset=self._transactions.open.get(producer_id),
                batches=tuple(producer.batches),
            )
            for producer_id, producer in sorted(self._producers.items())
        )

    def restore(self, entries: Sequence[ProducerStateEntry], *, keep_below: int = 0) -> None:
        """Forget everything and know what the snapshot knew.

        :param keep_below: Completed transactions whose markers lie before this offset stay known.
        """
        self._producers.clear()
        self._end = 0
        for entry in entries:
            producer = self._producers[entry.producer_id] = _Producer()
            producer.epoch = entry.producer_epoch
            producer.last_timestamp = entry.last_timestamp
            producer.coordinator_epoch = entry.coordinator_epoch
            producer.batches.extend(entry.batches)
            if not entry.batches or entry.coordinator_epoch != NO_COORDINATOR_EPOCH:
                self._end = sys.maxsize  # no snapshot says where a marker was
            else:
                self._end = max(self._end, entry.batches[-1].last_offset + 1)
        self._transactions.restore(
            (
                (entry.producer_id, entry.txn_first_offset)
                for entry in entries
                if entry.txn_first_offset is not None
            ),
            keep_below=keep_below,
        )

    def clear(self) -> None:
        """Forget everything."""
        self.restore(())
        self._verifications = Verifications()


def _follows(producer: _Producer, header: BatchHeader) -> bool:
    first = header.base_sequence
    if producer.epoch == NO_PRODUCER_EPOCH:
        return True
    if header.producer_epoch != producer.epoch:
        return first == 0
    last = producer.batches[-1].last_sequence if producer.batches else NO_SEQUENCE
    return first == last + 1 or (first == 0 and last == MAX_SEQUENCE)


def _refusal_after(before: BatchHeader, header: BatchHeader) -> ErrorCode | None:
    if header.producer_epoch < before.producer_epoch:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    is_same = header.producer_epoch == before.producer_epoch
    follows = increment_sequence(before.last_sequence, 1) if is_same else 0
    if header.base_sequence != follows:
        return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    if before.is_transactional and not header.is_transactional:
        return ErrorCode.INVALID_TXN_STATE
    return None
