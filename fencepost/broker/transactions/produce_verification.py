"""Before a Produce of a transaction is appended: its partitions are verified, or added (KIP-890).

A leader verifies a partition whose log has no open transaction of the producer; the others need no
question. A producer of ``transaction.version`` 2 adds no partitions: its leader has them added, and
while the transaction before is not complete yet, the leader asks again for a moment
(``add.partitions.to.txn.retry.backoff.ms``), because the producer would wait longer.

The requests of one producer on one connection are verified one after the other: batches that wait
keep their order, as they do at a real broker, which handles one request of a connection at a time.
A producer that gives up waiting, and connects again, is verified at once: the coordinator that was
asked first may have been replaced without knowing it, and then answers nothing.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from msgspec import Struct, field

from fencepost.broker.configs.effective_configs import BrokerConfigs
from fencepost.broker.core.scheduler import Scheduler
from fencepost.broker.core.waits import Wait
from fencepost.broker.replication.node import ReplicaHolder
from fencepost.broker.replication.partition_checks import find_leader
from fencepost.broker.replication.replica import Replica
from fencepost.broker.transactions.transaction_metadata import TopicPartition
from fencepost.broker.transactions.verification import (
    Refused,
    TransactionSupport,
    VerifyingNode,
    add_or_verify,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import NO_PRODUCER_ID, TRANSACTIONAL_FLAG, BatchHeader
from fencepost.storage.log.verification import VerificationGuard

_RETRIABLE: Final = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Errors that older producers would not retry: they get NOT_ENOUGH_REPLICAS."""
_ADD: Final = TransactionSupport.ADD
_new_tuple: Final = tuple.__new__


class VerificationNode(VerifyingNode, ReplicaHolder, Protocol):
    """What the verification needs of the leader's broker."""

    configs: BrokerConfigs
    scheduler: Scheduler


class ProducerOfBatch(NamedTuple):
    """Who has sent a batch."""

    producer_id: int
    epoch: int


class _Sequence(NamedTuple):
    """The requests of a producer on a connection."""

    connection_id: str
    producer: ProducerOfBatch


class TransactionalBatches(Struct, frozen=True, kw_only=True):
    """The batches of a Produce that belong to a transaction."""

    producers: frozenset[ProducerOfBatch]
    """A Produce has those of one producer, or is refused."""
    sequences: Mapping[TopicPartition, int]
    """The base sequence of the first batch of each partition."""


class Refusal(NamedTuple):
    """Why a partition is not appended to."""

    code: ErrorCode
    message: str | None


class Verified(Struct, frozen=True, kw_only=True):
    """The partitions of a Produce after their verification."""

    guards: Mapping[TopicPartition, VerificationGuard] = field(default_factory=dict)
    """What the append of each partition that was verified shows to its log."""
    refusals: Mapping[TopicPartition, Refusal] = field(default_factory=dict)


_NONE_REFUSED: Final[Mapping[TopicPartition, Refusal]] = MappingProxyType({})
NOTHING_TO_VERIFY: Final = Verified()


def transactional_batches(
    partitions: Iterable[tuple[TopicPartition, Sequence[BatchHeader]]],
) -> TransactionalBatches:
    """The batches of a transaction among those of some partitions.

    :param partitions: Each with the headers of its batches.
    """
    producers: set[ProducerOfBatch] = set()
    sequences: dict[TopicPartition, int] = {}
    for partition, headers in partitions:
        for header in headers:
            if header.attributes & TRANSACTIONAL_FLAG and header.producer_id != NO_PRODUCER_ID:
                of_batch = header.producer_id, header.producer_epoch
                producers.add(_new_tuple(ProducerOfBatch, of_batch))
                sequences.setdefault(partition, headers[0].base_sequence)
    return TransactionalBatches(producers=frozenset(producers), sequences=sequences)


class ProduceVerification:
    """The verification of the requests that one broker is sent as a leader."""

    def __init__(self, node: VerificationNode) -> None:
        self._node = node
        self._queues: dict[_Sequence, deque[Callable[[], None]]] = {}
        """The requests that wait for the one before them, where one is under way."""

    def verify(
        self,
        transactional_id: str,
        batches: TransactionalBatches,
        support: TransactionSupport,
        connection_id: str,
    ) -> Verified | Wait[Verified]:
        """Verify the partitions of a request, or have them added; at once where none needs it.

        :param batches: Of one producer.
        """
        (producer,) = batches.producers
        sequence = _new_tuple(_Sequence, (connection_id, producer))
        waiting = self._queues.get(sequence)
        if waiting is None and not self._needs_verification(support):
            return NOTHING_TO_VERIFY
        attempt = _Attempt(
            self._node,
            transactional_id,
            producer,
            batches.sequences,
            support,
            partial(self._next, sequence),
        )
        if waiting is not None:
            waiting.append(attempt.run)
            return attempt.verified
        self._queues[sequence] = deque()
        attempt.run()
        result = attempt.verified.result
        return attempt.verified if result is None else result

    def on_broker_stop(self) -> None:
        """No answer to a request of this life will arrive."""
        self._queues.clear()

    def _needs_verification(self, support: TransactionSupport) -> bool:
        is_enabled = self._node.configs.transaction_partition_verification_enable
        return support is _ADD or is_enabled

    def _next(self, sequence: _Sequence) -> None:
        """One is verified and appended: the next of the same sequence may begin."""
        waiting = self._queues.get(sequence)
        if waiting:
            waiting.popleft()()
        else:
            self._queues.pop(sequence, None)


class _Attempt:
    """The verification of one request.

    :param done: Called after the batches are appended.
    """

    __slots__ = (
        "_asks_until_ms",
        "_done",
        "_node",
        "_producer",
        "_sequences",
        "_support",
        "_transactional_id",
        "verified",
    )

    def __init__(
        self,
        node: VerificationNode,
        transactional_id: str,
        producer: ProducerOfBatch,
        sequences: Mapping[TopicPartition, int],
        support: TransactionSupport,
        done: Callable[[], None],
    ) -> None:
        self.verified: Wait[Verified] = Wait()
        self._node = node
        self._transactional_id = transactional_id
        self._producer = producer
        self._sequences = sequences
        self._support = support
        self._done = done
        self._asks_until_ms = 0
        """Until when it is asked again, where partitions are added."""

    def run(self) -> None:
        """Verify."""
        if self._support is _ADD:
            pause_ms = self._node.configs.add_partitions_to_txn_retry_backoff_max_ms
            self._asks_until_ms = self._node.scheduler.now_ms() + pause_ms
        self._ask()

    def _ask(self) -> None:
        guards: dict[TopicPartition, VerificationGuard] = {}
        codes: dict[TopicPartition, ErrorCode] = {}
        for partition, sequence in self._sequences.items():
            replica = find_leader(self._node, *partition)
            if isinstance(replica, Replica):  # else the append says why it is not here
                found = self._begin(replica, sequence)
                if isinstance(found, ErrorCode):
                    codes[partition] = found
                elif found is not None:
                    guards[partition] = found
        if not guards:
            self._complete(guards, codes)
            return
        add_or_verify(
            self._node,
            self._transactional_id,
            *self._producer,
            tuple(guards),
            self._support,
            partial(self._answered, guards, codes),
        )

    def _begin(self, replica: Replica, sequence: int) -> VerificationGuard | ErrorCode | None:
        return replica.log.maybe_start_verification(
            self._producer.producer_id,
            sequence,
            self._producer.epoch,
            supports_epoch_bump=self._support is _ADD,
        )

    def _answered(
        self,
        guards: Mapping[TopicPartition, VerificationGuard],
        codes: Refused,
        refused: Refused,
    ) -> None:
        adds = self._support is _ADD
        if adds and ErrorCode.CONCURRENT_TRANSACTIONS in refused.values():
            scheduler = self._node.scheduler
            if scheduler.now_ms() < self._asks_until_ms:
                pause_ms = self._node.configs.add_partitions_to_txn_retry_backoff_ms
                scheduler.at(scheduler.now_ms() + pause_ms, self._ask)
                return
        self._complete(guards, {**codes, **refused} if refused else codes)

    def _complete(self, guards: Mapping[TopicPartition, VerificationGuard], codes: Refused) -> None:
        refusals = (
            {each: _refusal(code, self._support) for each, code in codes.items()}
            if codes
            else _NONE_REFUSED
        )
        self.verified.complete(Verified(guards=guards, refusals=refusals))
        self._done()


def _refusal(code: ErrorCode, support: TransactionSupport) -> Refusal:
    """What a producer gets for an error of the coordinator, in Kafka's words."""
    if code is ErrorCode.INVALID_TXN_STATE:
        return Refusal(code, "Partition was not added to the transaction")
    is_busy = code is ErrorCode.CONCURRENT_TRANSACTIONS and support is not _ADD
    if code in _RETRIABLE or is_busy:
        return Refusal(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            "Unable to verify the partition has been added to the transaction. Underlying error: "
            f"{code.name}",
        )
    return Refusal(code, None)
