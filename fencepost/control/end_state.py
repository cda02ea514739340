"""The state of the cluster in lines of text, for the end of a timeline."""

from collections.abc import Iterator
from typing import Final

from fencepost.broker.groups.classic_group import ClassicGroup
from fencepost.broker.groups.group_coordinator import GroupCoordinatorShard
from fencepost.broker.node.broker import Broker
from fencepost.broker.node.cluster import Cluster
from fencepost.control.cluster_state import broker_state, partition_state
from fencepost.control.transaction_state import transactions_state
from fencepost.verbs.partition_text import join_numbers, partition_text
from fencepost.verbs.transaction_text import is_open, transaction_text

MAX_PARTITIONS: Final = 50
"""How many partitions are shown."""


def unusual_brokers(cluster: Cluster) -> Iterator[str]:
    """Brokers that are down, fenced or cut off."""
    for broker_id in cluster.brokers:
        state = broker_state(cluster, broker_id, reached_host="")
        words: list[str] = [] if state.state == "running" else [state.state]
        words += ["fenced"] if state.fenced else []
        if state.isolated_from:
            words.append(f"isolated from {join_numbers(state.isolated_from)}")
        if words:
            yield f"broker {broker_id}: {', '.join(words)}"


def partitions(cluster: Cluster) -> Iterator[str]:
    """Partitions by topic; of internal topics only those without a leader."""
    image = cluster.controller.image
    shown = [
        (topic.name, index)
        for topic in sorted(image.topics.values(), key=lambda each: (each.is_internal, each.name))
        for index, partition in enumerate(topic.partitions)
        if not topic.is_internal or partition.leader < 0
    ]
    for name, index in shown[:MAX_PARTITIONS]:
        yield partition_text(partition_state(cluster, name, index))
    if len(shown) > MAX_PARTITIONS:
        yield f"... {len(shown) - MAX_PARTITIONS} partitions are not shown ..."


def groups(cluster: Cluster) -> Iterator[str]:
    """Groups by name, each as its coordinator knows it."""
    found = [
        (group.group_id, _group(cluster, broker, shard, group))
        for broker in cluster.brokers.values()
        if broker.running
        for shard in broker.coordinator.runtime.shards.values()
        for group in shard.visible_groups()
    ]
    for _, line in sorted(found):
        yield line


def transactions(cluster: Cluster) -> Iterator[str]:
    """Open transactions by transactional id, each as its coordinator knows it."""
    yield from map(transaction_text, filter(is_open, transactions_state(cluster).transactions))


def _group(
    cluster: Cluster, broker: Broker, shard: GroupCoordinatorShard, group: ClassicGroup
) -> str:
    members = f"{len(group.members)} member{'' if len(group.members) == 1 else 's'}"
    offsets = [
        _offset(cluster, topic, index, committed.offset)
        for topic, by_index in sorted(shard.committed.offsets.get(group.group_id, {}).items())
        for index, committed in sorted(by_index.items())
    ]
    head = (
        f"{group.group_id}: {group.state.value}, generation {group.generation}, {members},"
        f" coordinator {broker.broker_id}"
    )
    return "; ".join([head, *offsets])


def _offset(cluster: Cluster, topic: str, index: int, offset: int) -> str:
    partition = cluster.controller.image.partition(topic, index)
    leader = None if partition is None else cluster.brokers.get(partition.leader)
    replica = None if leader is None else leader.replicas.get((topic, index))
    lag = "" if replica is None else f", lag {max(replica.high_watermark - offset, 0)}"
    return f"{topic}-{index} at {offset}{lag}"
