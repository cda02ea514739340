"""Groups as metrics for Prometheus: their members, their offsets and their lag."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric

from fencepost.broker.node import group_actions
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.node.group_actions import FoundGroup
from fencepost.control.group_state import offset_states
from fencepost.verbs.answers.groups import CommittedOffsetState

MAX_ROWS: Final = 250
"""Groups that are told one by one, and partitions of all groups, in order of their names."""
_GROUP: Final = ("group",)
_PARTITION: Final = ("group", "topic", "partition")

Row = tuple[str, CommittedOffsetState]


def group_families(cluster: Cluster, topics: Collection[str]) -> Iterator[Metric]:
    """All metrics of groups.

    :param topics: Whose partitions are told; where there are none, all topics'.
    """
    groups = group_actions.all_groups(cluster)
    rows, left_out = _rows(cluster, groups, topics)
    states = Counter(found.group.state.value for found in groups)
    by_state = GaugeMetricFamily(
        "fencepost_groups", "Groups whose coordinator is available.", labels=("state",)
    )
    for state, count in sorted(states.items()):
        by_state.add_metric((state,), count)
    yield by_state
    members = GaugeMetricFamily("fencepost_group_members", "Members of a group.", labels=_GROUP)
    for found in groups[:MAX_ROWS]:
        members.add_metric((found.group.group_id,), len(found.group.members))
    yield members
    offsets = GaugeMetricFamily(
        "fencepost_group_committed_offset", "Of the next record to consume.", labels=_PARTITION
    )
    lags = GaugeMetricFamily(
        "fencepost_group_lag",
        "Offsets from the committed one to the leader's high watermark, where both are known.",
        labels=_PARTITION,
    )
    for group, row in rows:
        labels = (group, row.topic, str(row.partition))
        if row.committed_offset >= 0:
            offsets.add_metric(labels, row.committed_offset)
        if row.lag is not None:
            lags.add_metric(labels, row.lag)
    yield offsets
    yield lags
    yield GaugeMetricFamily(
        "fencepost_group_partitions_left_out",
        "Partitions of groups that are not told one by one.",
        value=left_out,
    )


def _rows(
    cluster: Cluster, groups: Sequence[FoundGroup], topics: Collection[str]
) -> tuple[list[Row], int]:
    """The partitions to tell one by one, and how many there are besides."""
    rows: list[Row] = []
    left_out = 0
    for found in groups:
        if len(rows) == MAX_ROWS:
            left_out += sum(1 for _ in found.committed_offsets())
            continue
        for state in offset_states(cluster, found):
            if len(rows) == MAX_ROWS or (topics and state.topic not in topics):
                left_out += 1
            else:
                rows.append((found.group.group_id, state))
    return rows, left_out
