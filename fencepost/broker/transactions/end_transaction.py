"""Decisions of EndTxn, and of the aborts that the coordinator decides by itself.

In the flow before ``transaction.version`` 2 the epoch stays, so that a repeated EndTxn is told by
the state alone. In the flow of version 2 each end bumps the epoch (KIP-890), so that a late write
of an ended transaction is fenced; a repeated EndTxn has the epoch before the present one. A
producer of that flow may abort without having added a partition, because it cannot know whether the
leader has added one; it may not commit nothing.

An epoch may also be the one before the present one because a successor came, and not because an end
bumped it. If the successor follows the flow before version 2 and has ended its transaction, a
zombie of version 2 that asks for the same end is told that it is done, and gets the epoch of its
successor: Kafka 4.3.1 does so too (``retryOnEpochBump`` does not look at the flow of the last end;
tests/broker/transactions has its answers). Nothing of the zombie's is committed by that, but both
may write then. Where all producers of an id follow version 2 this can't happen, as each of a
successor's ends bumps the epoch further.

An abort by the coordinator, of a transaction that takes too long or whose producer has a successor,
bumps the epoch in both flows, so that its producer is fenced.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from fencepost.broker.transactions.producer_epochs import GenerateProducerId
from fencepost.broker.transactions.transaction_metadata import (
    EPOCH_BUMP_VERSION,
    LAST_CLIENT_EPOCH,
    NO_PRODUCER_ID,
    ProducerIdAndEpoch,
    TransactionMetadata,
)
from fencepost.broker.transactions.transaction_state import TransactionState
from fencepost.protocol.errors import ErrorCode


class TransactionEnd(Struct, frozen=True, kw_only=True):
    """A producer's EndTxn."""

    producer: ProducerIdAndEpoch
    commit: bool
    client_version: int
    """The ``transaction.version`` of the flow that the producer follows, by its request's
    version."""

    @property
    def bumps_epoch(self) -> bool:
        """Whether the producer follows the flow in which each end bumps the epoch."""
        return self.client_version >= EPOCH_BUMP_VERSION

    @property
    def state(self) -> TransactionState:
        """What it makes of an open transaction."""
        return TransactionState.PREPARE_COMMIT if self.commit else TransactionState.PREPARE_ABORT


_S: Final = TransactionState
_DONE: Final = ErrorCode.NONE
_BUSY: Final = ErrorCode.CONCURRENT_TRANSACTIONS
_WRONG: Final = ErrorCode.INVALID_TXN_STATE
_FENCED: Final = ErrorCode.PRODUCER_FENCED
_Outcomes = Mapping[tuple[TransactionState, bool], ErrorCode | None]

_OUTCOMES_BEFORE_BUMPS: Final[_Outcomes] = MappingProxyType(
    {
        (_S.EMPTY, False): _WRONG,
        (_S.EMPTY, True): _WRONG,
        (_S.ONGOING, False): None,
        (_S.ONGOING, True): None,
        (_S.PREPARE_ABORT, False): _BUSY,
        (_S.PREPARE_ABORT, True): _BUSY,
        (_S.PREPARE_COMMIT, False): _BUSY,
        (_S.PREPARE_COMMIT, True): _BUSY,
        (_S.COMPLETE_ABORT, False): _DONE,
        (_S.COMPLETE_ABORT, True): _WRONG,
        (_S.COMPLETE_COMMIT, False): _WRONG,
        (_S.COMPLETE_COMMIT, True): _DONE,
    }
)
"""Before version 2, by state and whether to commit; None: the transaction is ended."""
_OUTCOMES: Final[_Outcomes] = MappingProxyType(
    {
        (_S.EMPTY, False): None,
        (_S.EMPTY, True): _WRONG,
        (_S.ONGOING, False): None,
        (_S.ONGOING, True): None,
        (_S.PREPARE_ABORT, False): _BUSY,
        (_S.PREPARE_ABORT, True): _BUSY,
        (_S.PREPARE_COMMIT, False): _BUSY,
        (_S.PREPARE_COMMIT, True): _BUSY,
        (_S.COMPLETE_ABORT, False): None,
        (_S.COMPLETE_ABORT, True): _WRONG,
        (_S.COMPLETE_COMMIT, False): None,
        (_S.COMPLETE_COMMIT, True): _WRONG,
    }
)
"""In version 2, from a producer with the present epoch."""
_OUTCOMES_OF_REPETITION: Final[_Outcomes] = MappingProxyType(
    {
        **_OUTCOMES_BEFORE_BUMPS,
        (_S.EMPTY, False): _FENCED,
        (_S.EMPTY, True): _FENCED,
        (_S.ONGOING, False): _FENCED,
        (_S.ONGOING, True): _FENCED,
    }
)
"""In version 2, from a producer with the epoch before the present one."""


def decide_end(
    current: TransactionMetadata,
    end: TransactionEnd,
    *,
    now_ms: int,
    generate_producer_id: GenerateProducerId,
) -> TransactionMetadata | ErrorCode:
    """The metadata of the ended transaction, or an error; NONE where it has been ended before.

    While the markers of an earlier end are being written its producer has to wait for them,
    whatever it wants: Kafka's pending transition says so from before the answer to that end on.
    """
    decide = _outcome if end.bumps_epoch else _outcome_before_bumps
    outcome = decide(current, end)
    if not end.bumps_epoch:
        return current.prepared(end.state, now_ms) if outcome is None else outcome
    if outcome is not None:
        return outcome
    return _end_with_bump(current, end.state, end.client_version, now_ms, generate_producer_id)


def decide_abort(
    current: TransactionMetadata,
    *,
    server_version: int,
    now_ms: int,
    generate_producer_id: GenerateProducerId,
) -> TransactionMetadata | ErrorCode:
    """The metadata after the coordinator has aborted an ongoing transaction, or an error.

    :param server_version: The ``transaction.version`` of the cluster.
    """
    if server_version < EPOCH_BUMP_VERSION:
        return current.fenced(now_ms)
    state = TransactionState.PREPARE_ABORT
    return _end_with_bump(current, state, server_version, now_ms, generate_producer_id)


def _outcome_before_bumps(current: TransactionMetadata, end: TransactionEnd) -> ErrorCode | None:
    if current.producer_id != end.producer.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if current.producer_epoch != end.producer.epoch:
        return ErrorCode.PRODUCER_FENCED
    return _OUTCOMES_BEFORE_BUMPS[current.state, end.commit]


def _outcome(current: TransactionMetadata, end: TransactionEnd) -> ErrorCode | None:
    rotated = _is_repeated_after_rotation(current, end.producer)
    if current.producer_id != end.producer.producer_id and not rotated:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if rotated or current.producer_epoch == end.producer.epoch + 1:
        return _OUTCOMES_OF_REPETITION[current.state, end.commit]
    if current.producer_epoch == end.producer.epoch:
        return _OUTCOMES[current.state, end.commit]
    return ErrorCode.PRODUCER_FENCED


def _is_repeated_after_rotation(current: TransactionMetadata, producer: ProducerIdAndEpoch) -> bool:
    """Whether the producer had the last epoch of the producer id before this one."""
    return (
        producer.producer_id == current.previous_producer_id
        and producer.epoch == LAST_CLIENT_EPOCH
        and current.producer_epoch == 0
    )


def _end_with_bump(
    current: TransactionMetadata,
    state: TransactionState,
    version: int,
    now_ms: int,
    generate_producer_id: GenerateProducerId,
) -> TransactionMetadata | ErrorCode:
    next_producer_id = generate_producer_id() if current.is_epoch_exhausted else NO_PRODUCER_ID
    if next_producer_id is None:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return current.prepared_with_bump(state, next_producer_id, version, now_ms)
