"""What the coordinator remembers of a transactional id, and each change of it.

The methods make the metadata after a change, and change nothing; they check the transition. Kafka's
``TransactionMetadata`` and ``TxnTransitMetadata`` are one here.
"""

from collections.abc import Collection
from typing import Final, TypeAlias, TypedDict

from msgspec import Struct
from msgspec.structs import astuple, replace

from fencepost.broker.transactions.transaction_state import (
    IDLE,
    TRANSITIONS,
    TransactionState,
)

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
MAX_EPOCH: Final = 2**15 - 1
"""The largest epoch; no producer gets it, so that the coordinator can always fence one."""
LAST_CLIENT_EPOCH: Final = MAX_EPOCH - 1
"""The last epoch that a producer may have: after it comes another producer id."""
NO_TIME: Final = -1
EPOCH_BUMP_VERSION: Final = 2
"""The ``transaction.version`` from which on each end of a transaction bumps the epoch."""
TopicPartition: TypeAlias = tuple[str, int]
"""A topic's name and a partition's index."""


class ProducerIdAndEpoch(Struct, frozen=True, kw_only=True):
    """A producer id with its epoch."""

    producer_id: int
    epoch: int


NO_PRODUCER: Final = ProducerIdAndEpoch(producer_id=NO_PRODUCER_ID, epoch=NO_PRODUCER_EPOCH)


class _Transition(TypedDict):
    state: TransactionState
    previous_producer_id: int


class TransactionMetadata(Struct, frozen=True, kw_only=True):
    """A transactional id at one moment. Times are milliseconds since 1970-01-01 UTC."""

    producer_id: int
    previous_producer_id: int = NO_PRODUCER_ID
    """The producer id before the last transition: another one only where that rotated the ids."""
    next_producer_id: int = NO_PRODUCER_ID
    """While it is PREPARE_*: the id that the producer has when the transaction is complete, if its
    epochs are used up."""
    next_producer_epoch: int = NO_PRODUCER_EPOCH
    """Of a two-phase commit (KIP-939); Kafka 4.3 reads and does not write it."""
    producer_epoch: int
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    """The epoch that the producer had before its last InitProducerId or EndTxn. Kafka does not
    write it: after an election it is -1, and a repeated InitProducerId is fenced."""
    timeout_ms: int
    state: TransactionState
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIME
    last_update_ms: int
    client_version: int = 0
    """The ``transaction.version`` of the flow that the producer follows."""

    def __eq__(self, other: object) -> bool:
        """Whether the log has the same of both; `last_producer_epoch` does not count."""
        return isinstance(other, TransactionMetadata) and _logged(self) == _logged(other)

    def __hash__(self) -> int:
        return hash(_logged(self))

    @property
    def producer(self) -> ProducerIdAndEpoch:
        """The producer that may write."""
        return ProducerIdAndEpoch(producer_id=self.producer_id, epoch=self.producer_epoch)

    @property
    def is_epoch_exhausted(self) -> bool:
        """Whether the producer id has no epoch left that a producer may have."""
        return self.producer_epoch >= LAST_CLIENT_EPOCH

    @property
    def bumps_epoch(self) -> bool:
        """Whether the producer follows the flow in which each end bumps the epoch."""
        return self.client_version >= EPOCH_BUMP_VERSION

    def with_epoch(
        self, epoch: int, last_epoch: int, timeout_ms: int, now_ms: int
    ) -> "TransactionMetadata":
        """After InitProducerId: the producer id stays."""
        return self._initialized(self.producer_id, epoch, last_epoch, timeout_ms, now_ms)

    def with_producer_id(
        self, producer_id: int, last_epoch: int, timeout_ms: int, now_ms: int
    ) -> "TransactionMetadata":
        """After InitProducerId: another producer id, as the epochs of the last are used up."""
        return self._initialized(producer_id, 0, last_epoch, timeout_ms, now_ms)

    def with_partitions(
        self, added: Collection[TopicPartition], client_version: int, now_ms: int
    ) -> "TransactionMetadata":
        """After AddPartitionsToTxn."""
        return replace(
            self,
            **self._next(TransactionState.ONGOING),
            partitions=self.partitions | frozenset(added),
            start_ms=now_ms if self.state in IDLE else self.start_ms,
            client_version=client_version,
            last_update_ms=now_ms,
        )

    def fenced(self, now_ms: int) -> "TransactionMetadata":
        """After an abort by the coordinator, before version 2: with the next epoch."""
        return replace(
            self,
            **self._next(TransactionState.PREPARE_ABORT),
            producer_epoch=min(self.producer_epoch + 1, MAX_EPOCH),
            last_producer_epoch=NO_PRODUCER_EPOCH,
            next_producer_id=NO_PRODUCER_ID,
            client_version=0,
            last_update_ms=now_ms,
        )

    def prepared(self, state: TransactionState, now_ms: int) -> "TransactionMetadata":
        """After EndTxn before version 2: the epoch stays."""
        return replace(
            self,
            **self._next(state),
            next_producer_id=NO_PRODUCER_ID,
            client_version=0,
            last_update_ms=now_ms,
        )

    def prepared_with_bump(
        self, state: TransactionState, next_producer_id: int, client_version: int, now_ms: int
    ) -> "TransactionMetadata":
        """After EndTxn of version 2, and after an abort by the coordinator: with the next epoch.

        :param next_producer_id: Another id where the epochs of this one are used up; else -1.
        """
        return replace(
            self,
            **self._next(state),
            producer_epoch=min(self.producer_epoch + 1, MAX_EPOCH),
            last_producer_epoch=self.producer_epoch,
            next_producer_id=next_producer_id,
            # An abort of nothing has no start, and needs one.
            start_ms=now_ms if self.state in IDLE else self.start_ms,
            client_version=client_version,
            last_update_ms=now_ms,
        )

    def completed(self, now_ms: int) -> "TransactionMetadata":
        """After all markers are written."""
        is_commit = self.state is TransactionState.PREPARE_COMMIT
        rotates = self.bumps_epoch and self.next_producer_id != NO_PRODUCER_ID
        return replace(
            self,
            **self._next(
                TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT
            ),
            producer_id=self.next_producer_id if rotates else self.producer_id,
            producer_epoch=0 if rotates else self.producer_epoch,
            next_producer_id=NO_PRODUCER_ID,
            partitions=frozenset(),
            last_update_ms=now_ms,
        )

    def _initialized(
        self, producer_id: int, epoch: int, last_epoch: int, timeout_ms: int, now_ms: int
    ) -> "TransactionMetadata":
        return replace(
            self,
            **self._next(TransactionState.EMPTY),
            producer_id=producer_id,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            start_ms=NO_TIME,
            last_update_ms=now_ms,
        )

    def _next(self, state: TransactionState) -> _Transition:
        """What every transition changes.

        :raises ValueError: When it does not follow this one: the decision is wrong.
        """
        if state not in TRANSITIONS[self.state]:
            raise ValueError(f"a transaction does not go from {self.state} to {state}")
        return {"state": state, "previous_producer_id": self.producer_id}


def new_metadata(producer_id: int, timeout_ms: int, now_ms: int) -> TransactionMetadata:
    """A transactional id that is new: its first epoch is still to be given out."""
    return TransactionMetadata(
        producer_id=producer_id,
        producer_epoch=NO_PRODUCER_EPOCH,
        timeout_ms=timeout_ms,
        state=TransactionState.EMPTY,
        last_update_ms=now_ms,
    )


def _logged(metadata: TransactionMetadata) -> tuple[object, ...]:
    return astuple(replace(metadata, last_producer_epoch=NO_PRODUCER_EPOCH))
