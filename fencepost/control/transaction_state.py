"""Transactions as the control API shows them, and as metrics for Prometheus: by state, and the
markers that are held.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import cast

from prometheus_client.core import GaugeMetricFamily, Metric

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


def transaction_families(cluster: Cluster) -> Iterator[Metric]:
    """All metrics of transactions."""
    found = transaction_actions.all_transactions(cluster)
    by_state = GaugeMetricFamily(
        "fencepost_transactions",
        "Transactional ids whose coordinator is available.",
        labels=("state",),
    )
    for state, count in sorted(Counter(each.metadata.state.title for each in found).items()):
        by_state.add_metric((state,), count)
    yield by_state
    yield GaugeMetricFamily(
        "fencepost_transaction_markers_held",
        "Partitions of transactional ids to which their markers are held.",
        value=sum(len(each.held) for each in found),
    )
