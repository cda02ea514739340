"""Transactions as the control API shows them."""

from collections.abc import Iterable
from typing import cast

from fencepost.broker.node import transaction_actions
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.node.transaction_actions import FoundTransaction
from fencepost.broker.transactions.transaction_metadata import TopicPartition
from fencepost.verbs.answers.transactions import TransactionsState, TransactionState
from fencepost.verbs.transaction_bodies import TransactionStateName


def transactions_state(cluster: Cluster) -> TransactionsState:
    """All transactional ids, by name."""
    found = transaction_actions.all_transactions(cluster)
    return TransactionsState(transactions=tuple(map(transaction_state, found)))


def transaction_state(found: FoundTransaction) -> TransactionState:
    """One transactional id."""
    metadata = found.metadata
    return TransactionState(
        transactional_id=found.transactional_id,
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        state=cast(TransactionStateName, metadata.state.title),
        partitions=_names(found.partitions),
        held=_names(found.held),
        timeout_ms=metadata.timeout_ms,
        start_ms=metadata.start_ms,
        coordinator=found.coordinator,
        state_partition=found.state_partition,
    )


def _names(partitions: Iterable[TopicPartition]) -> tuple[str, ...]:
    return tuple(f"{topic}-{index}" for topic, index in sorted(partitions))
