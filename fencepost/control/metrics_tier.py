"""The remote tier as metrics, by Kafka's names where it has them (KIP-405)."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from fencepost.broker.cluster import Cluster
from fencepost.broker.replica import Replica
from fencepost.broker.tiering.counts import TierCounts
from fencepost.broker.tiering.manager import RemoteView

Labels = tuple[str, str]
_PARTITION: Final = ("topic", "partition")


class _Tiered(NamedTuple):
    """A partition that has a tier."""

    labels: Labels
    leader: Replica
    view: RemoteView

    def lag(self) -> Iterator[int]:
        """The bytes of each closed segment that is still to be uploaded."""
        for segment in self.leader.log.segments()[:-1]:
            if segment.next_offset - 1 > self.view.last_tiered_offset:
                yield segment.size_bytes


def tier_families(cluster: Cluster, leaders: Sequence[tuple[Labels, Replica]]) -> Iterator[Metric]:
    """All metrics of the tier.

    :param leaders: Of the partitions that are told one by one, with their labels.
    """
    for name, text, count in _COUNTED:
        yield CounterMetricFamily(
            f"fencepost_remote_{name}", text, value=count(cluster.tier_counts)
        )
    told = list(_tiered(cluster, leaders))
    for name, text, value in _OF_PARTITION:
        family = GaugeMetricFamily(f"fencepost_partition_remote_{name}", text, labels=_PARTITION)
        for each in told:
            family.add_metric(each.labels, value(each))
        yield family


def _tiered(cluster: Cluster, leaders: Sequence[tuple[Labels, Replica]]) -> Iterator[_Tiered]:
    for labels, leader in leaders:
        if leader.log.config.remote_storage_enable:
            view = cluster.brokers[leader.broker_id].tiering.state(leader)
            if view is not None:
                yield _Tiered(labels, leader, view)


_COUNTED: Final[Sequence[tuple[str, str, Callable[[TierCounts], int]]]] = (
    ("copy_requests", "Segments on their way to the tier.", lambda c: c.copy_requests),
    ("copy_bytes", "Bytes of records copied to the tier.", lambda c: c.copy_bytes),
    ("copy_errors", "Copies that failed.", lambda c: c.copy_errors),
    ("fetch_requests", "Reads from the tier.", lambda c: c.fetch_requests),
    ("fetch_bytes", "Bytes read from the tier.", lambda c: c.fetch_bytes),
    ("fetch_errors", "Reads that failed.", lambda c: c.fetch_errors),
    ("delete_requests", "Deletions of segments from the tier.", lambda c: c.delete_requests),
    ("delete_errors", "Deletions that failed.", lambda c: c.delete_errors),
)
_OF_PARTITION: Final[Sequence[tuple[str, str, Callable[[_Tiered], float]]]] = (
    (
        "log_start_offset",
        "The first offset in the tier, inclusive; -1 without one.",
        lambda p: p.view.start_offset,
    ),
    (
        "last_tiered_offset",
        "Inclusive; -1 while the leader knows none.",
        lambda p: p.view.last_tiered_offset,
    ),
    ("segments", "Segments in the tier.", lambda p: len(p.view.segments)),
    (
        "log_size_bytes",
        "Bytes of records in the tier.",
        lambda p: sum(each.size_bytes for each in p.view.segments),
    ),
    ("copy_lag_segments", "Closed segments not in the tier yet.", lambda p: len([*p.lag()])),
    ("copy_lag_bytes", "Bytes of closed segments not in the tier yet.", lambda p: sum(p.lag())),
)
