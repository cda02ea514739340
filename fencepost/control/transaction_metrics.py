"""Transactions as metrics for Prometheus: by state, and the markers that are held."""

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from fencepost.broker.node import transaction_actions
from fencepost.broker.node.cluster import Cluster


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
