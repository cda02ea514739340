"""The state of the producers that wrote to a log (KIP-98, KIP-360).

Per producer id: its epoch and its last five batches. They tell a retried batch (answered as it
was the first time) from a gap (refused). A producer that is not known may begin with any
sequence: its state may have expired, or its records been deleted.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import (
    MAX_SEQUENCE,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    BatchHeader,
    decrement_sequence,
    increment_sequence,
)

BATCHES_KEPT: Final = 5


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerStateEntry:
    """One producer's state, for DescribeProducers and for snapshots.

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


class _Producer:
    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_timestamp", "txn_first_offset")

    def __init__(self) -> None:
        self.epoch = NO_PRODUCER_EPOCH
        self.batches: deque[BatchMetadata] = deque(maxlen=BATCHES_KEPT)
        self.last_timestamp = NO_TIMESTAMP
        self.coordinator_epoch = -1
        self.txn_first_offset: int | None = None


class ProducerStateManager:
    """The producers of one log."""

    __slots__ = ("_producers",)

    def __init__(self) -> None:
        self._producers: dict[int, _Producer] = {}

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
        """Why the batch, which is no duplicate, may not be appended next; None where it may.

        :param check_sequence: Whether its sequence must follow on the last one. Coordinators
            number nothing; of theirs only the epoch is checked.
        :param after: A batch of the same producer that was not refused and comes before it.
        """
        if after is not None:
            return _refusal_after(after, header)
        producer = self._producers.get(header.producer_id)
        if producer is None:
            return None
        if header.producer_epoch < producer.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if check_sequence and not _follows(producer, header):
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        open_transaction = producer.txn_first_offset is not None
        if open_transaction and not (header.is_transactional or header.is_control):
            return ErrorCode.INVALID_TXN_STATE
        return None

    def update(self, header: BatchHeader) -> None:
        """Take note of a batch that has been appended, with its final offsets and timestamps."""
        producer = self._producers.get(header.producer_id)
        if producer is None:
            producer = self._producers[header.producer_id] = _Producer()
        if producer.epoch != header.producer_epoch:
            producer.batches.clear()
            producer.epoch = header.producer_epoch
        producer.last_timestamp = header.max_timestamp
        if header.is_control:
            # A marker ends the transaction.
            producer.txn_first_offset = None
            return
        delta = header.last_offset_delta
        producer.batches.append(
            BatchMetadata(
                header.last_sequence, header.base_offset + delta, delta, header.max_timestamp
            )
        )
        if header.is_transactional and producer.txn_first_offset is None:
            producer.txn_first_offset = header.base_offset

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest open transaction begins; None without one."""
        if not self._producers:
            return None
        return min(
            (
                producer.txn_first_offset
                for producer in self._producers.values()
                if producer.txn_first_offset is not None
            ),
            default=None,
        )

    def wrote_at_or_after(self, offset: int) -> bool:
        """Whether any producer's state stems from a record at or after `offset`.

        A producer whose epoch came from a marker alone has no batch to tell; it counts as one.
        """
        return any(
            not producer.batches or producer.batches[-1].last_offset >= offset
            for producer in self._producers.values()
        )

    def last_offsets(self) -> dict[int, int]:
        """Per producer id the offset of its last record; compaction keeps that batch."""
        return {
            producer_id: producer.batches[-1].last_offset
            for producer_id, producer in self._producers.items()
            if producer.batches
        }

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget those whose last record's timestamp is `expiration_ms` old; returns how many.

        It is the record's timestamp that counts, as in Kafka, and not when it arrived. One with
        an open transaction stays.
        """
        expired = [
            producer_id
            for producer_id, producer in self._producers.items()
            if producer.txn_first_offset is None
            and now_ms - producer.last_timestamp >= expiration_ms
        ]
        for producer_id in expired:
            del self._producers[producer_id]
        return len(expired)

    def snapshot(self) -> tuple[ProducerStateEntry, ...]:
        """All producers in order of their ids."""
        return tuple(
            ProducerStateEntry(
                producer_id=producer_id,
                producer_epoch=producer.epoch,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                txn_first_offset=producer.txn_first_offset,
                batches=tuple(producer.batches),
            )
            for producer_id, producer in sorted(self._producers.items())
        )

    def restore(self, views: Iterable[ProducerStateEntry]) -> None:
        """Forget everything and know what the snapshot knew."""
        self._producers.clear()
        for view in views:
            producer = self._producers[view.producer_id] = _Producer()
            producer.epoch = view.producer_epoch
            producer.last_timestamp = view.last_timestamp
            producer.coordinator_epoch = view.coordinator_epoch
            producer.txn_first_offset = view.txn_first_offset
            producer.batches.extend(view.batches)

    def replay(self, headers: Iterable[BatchHeader]) -> None:
        """Update from batches of the log, in their order; those without a producer are skipped."""
        for header in headers:
            if header.has_producer_id:
                self.update(header)

    def clear(self) -> None:
        """Forget everything."""
        self._producers.clear()


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
    return None if header.base_sequence == follows else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
