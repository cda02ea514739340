"""A leader asks the coordinator of a transaction whether partitions are in it, or adds them.

The first batch of a transaction in a partition is appended only when the coordinator knows that the
partition is part of it (KIP-890), so that no late write opens a transaction that is never ended.
The question is an AddPartitionsToTxn of brokers (version 4 and later) over the broker network, to
this broker as well where it is the coordinator.
"""

from collections.abc import Callable, Collection, Mapping
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import Final, Protocol

from fencepost.broker.coordinator import partition_for
from fencepost.broker.metadata.image import TRANSACTION_TOPIC, ClusterImage
from fencepost.broker.network.links import BrokerId, Network
from fencepost.broker.transactions.transaction_metadata import TopicPartition
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

_ADD_PARTITIONS: Final = BY_NAME["add_partitions_to_txn"]
_FIRST_OF_BROKERS: Final = 4
_FIRST_PRODUCE_WITH_ABORTABLE: Final = 11
_FIRST_PRODUCE_THAT_ADDS: Final = 12
_FIRST_TXN_OFFSET_COMMIT_WITH_ABORTABLE: Final = 4
_FIRST_TXN_OFFSET_COMMIT_THAT_ADDS: Final = 5


class TransactionSupport(Enum):
    """What the version of a producer's request says of its flow."""

    VERIFY = "verify"
    """Partitions are added by the producer; it does not know TRANSACTION_ABORTABLE."""
    VERIFY_ABORTABLE = "verify_abortable"
    """The same, and it knows that error."""
    ADD = "add"
    """Partitions are added by their leader (``transaction.version`` 2)."""

    @classmethod
    @cache
    def of_produce(cls, version: int) -> "TransactionSupport":
        """By the version of a Produce."""
        return cls._of(version, _FIRST_PRODUCE_WITH_ABORTABLE, _FIRST_PRODUCE_THAT_ADDS)

    @classmethod
    @cache
    def of_txn_offset_commit(cls, version: int) -> "TransactionSupport":
        """By the version of a TxnOffsetCommit."""
        return cls._of(
            version, _FIRST_TXN_OFFSET_COMMIT_WITH_ABORTABLE, _FIRST_TXN_OFFSET_COMMIT_THAT_ADDS
        )

    @classmethod
    def _of(cls, version: int, first_abortable: int, first_that_adds: int) -> "TransactionSupport":
        if version >= first_that_adds:
            return cls.ADD
        return cls.VERIFY_ABORTABLE if version >= first_abortable else cls.VERIFY


_ADD: Final = TransactionSupport.ADD


class VerifyingNode(Protocol):
    """What a leader's broker needs to ask the coordinator."""

    broker_id: BrokerId
    view: ClusterImage
    network: Network


Refused = Mapping[TopicPartition, ErrorCode]
"""The partitions to which no batch of the producer may be appended, with an error."""
_NONE_REFUSED: Final[Refused] = MappingProxyType({})


def add_or_verify(
    node: VerifyingNode,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    partitions: Collection[TopicPartition],
    support: TransactionSupport,
    answered: Callable[[Refused], None],
) -> None:
    """Ask whether batches of the producer may be appended to partitions.

    The errors are those that producers get: INVALID_PRODUCER_EPOCH for PRODUCER_FENCED, and
    INVALID_TXN_STATE for TRANSACTION_ABORTABLE where they do not know that. COORDINATOR_* and
    NOT_COORDINATOR where no coordinator is found, NETWORK_EXCEPTION where it is not reached,
    CONCURRENT_TRANSACTIONS while the last transaction is not complete.

    :param support: Whether the partitions are added; else they are verified only.
    :param answered: Called once, in this turn or a later one, with those that are refused.
    """
    coordinator = _coordinator(node.view, transactional_id)
    if coordinator is None:
        answered(dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE))
        return
    version = node.network.version(coordinator, _ADD_PARTITIONS)
    if version < _FIRST_OF_BROKERS:  # a broker of a release that verifies nothing
        answered(_NONE_REFUSED)
        return

    def arrived(response: object) -> None:
        assert isinstance(response, AddPartitionsToTxnResponse)
        answered(_refused(response, partitions, support))

    def lost() -> None:
        answered(dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION))

    transaction = AddPartitionsToTxnTransaction(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        verify_only=support is not _ADD,
        topics=_topics(partitions),
    )
    request = AddPartitionsToTxnRequest(transactions=(transaction,))
    node.network.request(
        node.broker_id, coordinator, _ADD_PARTITIONS, version, request, arrived, lost
    )


def _coordinator(view: ClusterImage, transactional_id: str) -> int | None:
    """The broker that coordinates a transactional id, None while there is none."""
    topic = view.topics.get(TRANSACTION_TOPIC)
    if topic is None:
        return None
    leader = topic.partitions[partition_for(transactional_id, len(topic.partitions))].leader
    broker = view.brokers.get(leader)
    return None if broker is None or broker.fenced else leader


def _topics(partitions: Collection[TopicPartition]) -> tuple[AddPartitionsToTxnTopic, ...]:
    if len(partitions) == 1:
        ((name, index),) = partitions
        return (AddPartitionsToTxnTopic(name=name, partitions=(index,)),)
    indexes: dict[str, list[int]] = {}
    for topic, index in partitions:
        indexes.setdefault(topic, []).append(index)
    return tuple(
        [
            AddPartitionsToTxnTopic(name=topic, partitions=tuple(each))
            for topic, each in indexes.items()
        ]
    )


def _refused(
    response: AddPartitionsToTxnResponse,
    partitions: Collection[TopicPartition],
    support: TransactionSupport,
) -> Refused:
    if response.error_code:
        return dict.fromkeys(partitions, ErrorCode(response.error_code))
    refused: dict[TopicPartition, ErrorCode] = {}
    for result in response.results_by_transaction:
        for topic in result.topic_results:
            for each in topic.results_by_partition:
                if each.partition_error_code:
                    code = ErrorCode(each.partition_error_code)
                    refused[topic.name, each.partition_index] = _producer_code(code, support)
    if not refused:
        return _NONE_REFUSED
    asked = frozenset(partitions)
    return {each: code for each, code in refused.items() if each in asked}


def _producer_code(code: ErrorCode, support: TransactionSupport) -> ErrorCode:
    """The coordinator's error as producers know it."""
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and support is TransactionSupport.VERIFY:
        return ErrorCode.INVALID_TXN_STATE
    return code
