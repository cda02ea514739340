"""The cluster and its remote tier as metrics for Prometheus, in its text format.

What only rises was counted while it happened (`fencepost.broker.server.request_metrics`); all else
is looked up with each scrape. A cluster may have ten thousand partitions, and a row of numbers
for each would cost more than all that it serves: only so many are told one by one, the whole is
summed up. Between two families of metrics the loop serves its clients.

The metrics of the tier have Kafka's names where it has them (KIP-405).
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from msgspec import Struct
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import generate_latest

from fencepost.broker.core.events import NEVER_EMITTED, Kind
from fencepost.broker.metadata.image import NO_LEADER, PartitionImage
from fencepost.broker.node.broker import Broker
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.replication.replica import Replica
from fencepost.broker.server.logs import dropped_lines
from fencepost.broker.server.request_metrics import BOUNDS_US, ApiMetrics
from fencepost.broker.server.resources import LIMITS
from fencepost.broker.server.server import Server
from fencepost.broker.tiering.remote_log_manager import RemoteView
from fencepost.broker.tiering.remote_storage_metrics import RemoteStorageMetrics
from fencepost.control.group_metrics import group_families
from fencepost.control.transaction_metrics import transaction_families
from fencepost.protocol.errors import error_name

MAX_PARTITIONS: Final = 250
"""That are told one by one, in the order of their topics' names."""
UNKNOWN: Final = -1
_BOUNDS: Final = (*(str(bound / 1e6) for bound in BOUNDS_US), "+Inf")


async def exposition(server: Server, topics: Collection[str]) -> bytes:
    """All metrics.

    :param topics: Whose partitions are told one by one; where there are none, all topics'.
    """
    parts: list[bytes] = []
    for metric in _families(server, topics):
        parts.append(generate_latest(_SingleFamilyRegistry(metric)))
        await asyncio.sleep(0)
    return b"".join(parts)


class _SingleFamilyRegistry:
    """A registry of one family."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterable[Metric]:
        return (self._metric,)


def _families(server: Server, topics: Collection[str]) -> Iterator[Metric]:
    yield from _requests(server)
    yield from _brokers(server)
    yield from _totals(server.cluster)
    told, left_out = _listed_partitions(server.cluster, topics)
    yield _gauge("partitions_left_out", "Partitions that are not told one by one.", left_out)
    for name, text, value in _OF_PARTITION:
        family = GaugeMetricFamily(f"fencepost_partition_{name}", text, labels=_PARTITION)
        for each in told:
            family.add_metric(each.labels, value(each))
        yield family
    yield from _replicas(server.cluster, told)
    leaders = [(each.labels, each.leader) for each in told if each.leader is not None]
    yield from tier_families(server.cluster, leaders)
    yield from group_families(server.cluster, topics)
    yield from transaction_families(server.cluster)
    yield _refusals(server)
    yield _gauge("log_memory_bytes", "What logs in memory take.", server.cluster.log_memory.used)
    yield _gauge(
        "request_memory_bytes",
        "What requests take that arrive or wait.",
        server.request_memory.used,
    )
    yield from _changes(server)
    yield from _faults(server)
    exchanges, size = server.journal.size
    yield _gauge("journal_exchanges", "Requests and answers in the journal.", exchanges)
    yield _gauge("journal_bytes", "Bytes that the journal counts for them.", size)
    yield CounterMetricFamily(
        "fencepost_log_lines_dropped",
        "Lines of the log that standard error's reader did not read in time.",
        value=dropped_lines(),
    )


def _refusals(server: Server) -> Metric:
    family = CounterMetricFamily(
        "fencepost_connections_refused",
        "Connections that were closed because a limit was reached.",
        labels=("limit",),
    )
    for limit in sorted(LIMITS):
        family.add_metric((limit,), server.refusals[limit])
    return family


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"fencepost_{name}", text, value=value)


# -- requests -----------------------------------------------------------------------------------

_SOURCE: Final = ("broker", "api", "source")


def _requests(server: Server) -> Iterator[Metric]:
    found = [
        ((str(figures.broker_id), figures.api.title, source), figures)
        for source, meter in zip(("clients", "brokers"), server.journal.metrics, strict=True)
        for figures in meter
    ]
    for name, text, value in _OF_REQUESTS:
        family = CounterMetricFamily(f"fencepost_{name}", text, labels=_SOURCE)
        for labels, figures in found:
            family.add_metric(labels, value(figures))
        yield family
    errors = CounterMetricFamily(
        "fencepost_errors", "Error codes in answers, by name.", labels=(*_SOURCE, "error")
    )
    times = HistogramMetricFamily(
        "fencepost_request_seconds", "From taking a request up to its answer.", labels=_SOURCE
    )
    for labels, figures in found:
        for code, count in figures.errors.items():
            errors.add_metric((*labels, error_name(code)), count)
        buckets = list(zip(_BOUNDS, accumulate(figures.buckets), strict=True))
        times.add_metric(labels, buckets, figures.elapsed_us / 1e6)
    yield errors
    yield times


_OF_REQUESTS: Final[Sequence[tuple[str, str, Callable[[ApiMetrics], float]]]] = (
    ("requests", "Requests that are over.", lambda figures: figures.requests),
    ("request_bytes", "Bytes of requests; 0 between brokers.", lambda figures: figures.bytes_in),
    (
        "response_bytes",
        "Bytes of answers; between brokers those of records.",
        lambda figures: figures.bytes_out,
    ),
)


# -- brokers ------------------------------------------------------------------------------------


def _brokers(server: Server) -> Iterator[Metric]:
    brokers = server.cluster.brokers.values()
    connections = server.connections
    registered = server.cluster.controller.image.registrations
    values: Sequence[tuple[str, str, Callable[[Broker], float]]] = (
        (
            "connections",
            "Clients' connections.",
            lambda broker: connections.get(broker.broker_id, 0),
        ),
        ("broker_running", "Whether its process runs.", lambda broker: broker.running),
        (
            "broker_fenced",
            "Whether the controller takes it for offline.",
            lambda broker: registered[broker.broker_id].fenced,
        ),
        (
            "held_replicas",
            "Replicas that a test keeps from fetching.",
            lambda b: len(b.replica_manager.holds),
        ),
    )
    for name, text, value in values:
        family = GaugeMetricFamily(f"fencepost_{name}", text, labels=("broker",))
        for broker in brokers:
            family.add_metric((str(broker.broker_id),), value(broker))
        yield family


# -- partitions ---------------------------------------------------------------------------------

_PARTITION: Final = ("topic", "partition")


class _Partition(Struct, frozen=True, kw_only=True):
    """A partition that is told by itself."""

    topic: str
    index: int
    image: PartitionImage
    leader: Replica | None
    """As its own broker has it; None while there is none."""

    @property
    def labels(self) -> tuple[str, str]:
        """By which it is told."""
        return self.topic, str(self.index)


def _listed_partitions(cluster: Cluster, topics: Collection[str]) -> tuple[list[_Partition], int]:
    """The partitions to tell one by one, and how many there are besides."""
    told: list[_Partition] = []
    image = cluster.controller.image
    for name in sorted(image.topics):
        if topics and name not in topics:
            continue
        for index, partition in enumerate(image.topics[name].partitions):
            if len(told) == MAX_PARTITIONS:
                break
            broker = cluster.brokers.get(partition.leader)
            leader = None if broker is None else broker.replicas.get((name, index))
            told.append(_Partition(topic=name, index=index, image=partition, leader=leader))
    total = sum(len(topic.partitions) for topic in image.topics.values())
    return told, total - len(told)


_OF_PARTITION: Final[Sequence[tuple[str, str, Callable[[_Partition], float]]]] = (
    ("leader", "Broker id of its leader, -1 while there is none.", lambda p: p.image.leader),
    ("leader_epoch", "Rises with each election.", lambda p: p.image.leader_epoch),
    ("isr_size", "Replicas in sync.", lambda p: len(p.image.isr)),
    (
        "under_replicated",
        "Whether replicas are out of sync.",
        lambda p: _is_under_replicated(p.image),
    ),
    ("offline", "Whether it has no leader.", lambda p: p.image.leader == NO_LEADER),
    (
        "log_start_offset",
        "The leader's, inclusive; -1 while there is none.",
        lambda p: p.leader.log.log_start_offset if p.leader else UNKNOWN,
    ),
    (
        "log_end_offset",
        "The leader's, exclusive; -1 while there is none.",
        lambda p: p.leader.log.log_end_offset if p.leader else UNKNOWN,
    ),
    (
        "high_watermark",
        "The leader's, exclusive; -1 while there is none.",
        lambda p: p.leader.high_watermark if p.leader else UNKNOWN,
    ),
)


def _totals(cluster: Cluster) -> Iterator[Metric]:
    image = cluster.controller.image
    partitions = [each for topic in image.topics.values() for each in topic.partitions]
    yield _gauge("topics", "Topics, internal ones too.", len(image.topics))
    yield _gauge("partitions", "Partitions of all topics.", len(partitions))
    yield _gauge(
        "under_replicated_partitions",
        "Partitions with replicas out of sync.",
        sum(map(_is_under_replicated, partitions)),
    )
    yield _gauge(
        "offline_partitions",
        "Partitions without a leader.",
        sum(each.leader == NO_LEADER for each in partitions),
    )


def _is_under_replicated(partition: PartitionImage) -> bool:
    return len(partition.isr) < len(partition.replicas)


def _replicas(cluster: Cluster, told: Iterable[_Partition]) -> Iterator[Metric]:
    labels = (*_PARTITION, "broker")
    ends = GaugeMetricFamily(
        "fencepost_replica_log_end_offset",
        "Exclusive; -1 where there is no log.",
        labels=labels,
    )
    for each in told:
        for broker_id in each.image.replicas:
            end = _log_end(cluster.brokers[broker_id], each)
            ends.add_metric((*each.labels, str(broker_id)), end)
    yield ends
    lags = GaugeMetricFamily(
        "fencepost_replica_lag",
        "Offsets from a follower's log end to its leader's, while there is one.",
        labels=labels,
    )
    for each in told:
        leader_end = each.leader.log.log_end_offset if each.leader else 0
        for broker_id in each.image.replicas if each.leader else ():
            if broker_id != each.image.leader:
                end = _log_end(cluster.brokers[broker_id], each)
                lags.add_metric((*each.labels, str(broker_id)), max(0, leader_end - max(end, 0)))
    yield lags


def _log_end(broker: Broker, partition: _Partition) -> int:
    topic, index = partition.topic, partition.index
    replica = broker.replicas.get((topic, index))
    log = broker.storage.peek_log(topic, index) if replica is None else replica.log
    return UNKNOWN if log is None else log.log_end_offset


# -- what happened ------------------------------------------------------------------------------

_COUNTED: Final = tuple(kind for kind in Kind if kind not in NEVER_EMITTED)


def _changes(server: Server) -> Iterator[Metric]:
    changes = server.event_metrics
    yield CounterMetricFamily(
        "fencepost_elections",
        "Elections of leaders.",
        value=changes.events[Kind.LEADER_CHANGED],
    )
    isr = CounterMetricFamily("fencepost_isr_changes", "Changes of ISRs.", labels=("change",))
    for change in ("expand", "shrink", "swap"):
        isr.add_metric((change,), changes.isr[change])
    yield isr
    refused = CounterMetricFamily(
        "fencepost_publishes_refused",
        "Partitions of Produce requests with an expected offset that did not match (KIP-27).",
        labels=("topic",),
    )
    for topic, count in changes.publishes_refused.items():
        refused.add_metric((topic,), count)
    yield refused
    events = CounterMetricFamily("fencepost_events", "Changes of state.", labels=("kind",))
    for kind in _COUNTED:
        events.add_metric((kind,), changes.events[kind])
    yield events


def _faults(server: Server) -> Iterator[Metric]:
    yield _gauge("faults", "Faults that are set.", len(server.cluster.faults.all()))
    hits = CounterMetricFamily(
        "fencepost_fault_hits", "Requests that met a fault.", labels=("api", "action")
    )
    for labels, count in server.event_metrics.fault_hits.items():
        hits.add_metric(labels, count)
    yield hits


Labels = tuple[str, str]


class _TieredPartition(NamedTuple):
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
    for name, text, count in _TIER_COUNTERS:
        yield CounterMetricFamily(
            f"fencepost_remote_{name}", text, value=count(cluster.remote_storage_metrics)
        )
    told = list(_tiered_partitions(cluster, leaders))
    for name, text, value in _TIER_GAUGES:
        family = GaugeMetricFamily(f"fencepost_partition_remote_{name}", text, labels=_PARTITION)
        for each in told:
            family.add_metric(each.labels, value(each))
        yield family


def _tiered_partitions(
    cluster: Cluster, leaders: Sequence[tuple[Labels, Replica]]
) -> Iterator[_TieredPartition]:
    for labels, leader in leaders:
        if leader.log.config.remote_storage_enable:
            view = cluster.brokers[leader.broker_id].remote_log_manager.state(leader)
            if view is not None:
                yield _TieredPartition(labels, leader, view)


_TIER_COUNTERS: Final[Sequence[tuple[str, str, Callable[[RemoteStorageMetrics], int]]]] = (
    ("copy_requests", "Segments on their way to the tier.", lambda c: c.copy_requests),
    ("copy_bytes", "Bytes of records copied to the tier.", lambda c: c.copy_bytes),
    ("copy_errors", "Copies that failed.", lambda c: c.copy_errors),
    ("fetch_requests", "Reads from the tier.", lambda c: c.fetch_requests),
    ("fetch_bytes", "Bytes read from the tier.", lambda c: c.fetch_bytes),
    ("fetch_errors", "Reads that failed.", lambda c: c.fetch_errors),
    ("delete_requests", "Deletions of segments from the tier.", lambda c: c.delete_requests),
    ("delete_errors", "Deletions that failed.", lambda c: c.delete_errors),
)
_TIER_GAUGES: Final[Sequence[tuple[str, str, Callable[[_TieredPartition], float]]]] = (
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
