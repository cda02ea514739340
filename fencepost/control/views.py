"""The cluster as the control API shows it.

Unlike a client, a test may know the truth: the controller's registry, and each replica as its own
broker knows it.
"""

from typing import Final, Literal
from uuid import UUID

from fencepost.broker.broker import Broker
from fencepost.broker.cluster import Cluster
from fencepost.broker.controller import ControllerError
from fencepost.broker.follower import State
from fencepost.broker.image import ClusterImage, PartitionImage, TopicImage
from fencepost.broker.replica import Replica
from fencepost.broker.scheduler import ManualClock
from fencepost.control.models import (
    BrokerState,
    ClockState,
    ClusterState,
    EpochStart,
    GateState,
    PartitionState,
    ReplicaState,
    SegmentState,
    TopicState,
)
from fencepost.protocol.errors import ErrorCode

UNKNOWN: Final = -1
_FOLLOWING: Final[dict[State, Literal["fetching", "out_of_range", "idle"]]] = {
    State.IDLE: "idle",
    State.FETCHING: "fetching",
    State.OUT_OF_RANGE: "out_of_range",
}


def cluster_state(cluster: Cluster, *, reached_host: str) -> ClusterState:
    """Brokers, controller, features and time.

    :param reached_host: The address that the asker reached, which is a broker's too where none is
        advertised.
    """
    image, clock = cluster.controller.image, cluster.scheduler.clock
    return ClusterState(
        cluster_id=image.cluster_id,
        brokers=tuple(
            BrokerState(
                id=broker.broker_id,
                host=broker.host or reached_host,
                port=broker.port,
                state="fenced" if broker.fenced else "running",
            )
            for broker in image.brokers.values()
        ),
        controller=image.controller_id,
        features=dict(image.features),
        clock=ClockState(
            mode="manual" if isinstance(clock, ManualClock) else "real", now_ms=clock.now_ms()
        ),
    )


def topic_states(cluster: Cluster) -> list[TopicState]:
    """All topics, by name."""
    image = cluster.controller.image
    return [_topic_state(image, image.topics[name]) for name in sorted(image.topics)]


def topic_state(cluster: Cluster, name: str) -> TopicState:
    """One topic.

    :raises ControllerError: UNKNOWN_TOPIC_OR_PARTITION when there is none of this name.
    """
    image = cluster.controller.image
    topic = image.topics.get(name)
    if topic is None:
        raise ControllerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
    return _topic_state(image, topic)


def _topic_state(image: ClusterImage, topic: TopicImage) -> TopicState:
    return TopicState(
        name=topic.name,
        topic_id=str(topic.topic_id),
        partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas),
        internal=topic.is_internal,
        configs=dict(image.configs_of(topic.name)),
    )


def partition_state(cluster: Cluster, topic: str, index: int) -> PartitionState:
    """The whole truth about a partition.

    :raises ControllerError: UNKNOWN_TOPIC_OR_PARTITION when there is no such partition.
    """
    image = cluster.controller.image
    partition = image.partition(topic, index)
    if partition is None:
        raise ControllerError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {topic}-{index}"
        )
    replicas = {b: _replica_of(cluster, b, topic, index) for b in partition.replicas}
    return _partition_state(
        topic,
        index,
        image.topics[topic].topic_id,
        partition,
        leader=replicas.get(partition.leader),
        offline=tuple(b for b in partition.replicas if image.brokers[b].fenced),
        replicas=tuple(
            _replica_state(cluster.brokers[broker_id], replica)
            for broker_id, replica in replicas.items()
        ),
    )


def _replica_of(cluster: Cluster, broker_id: int, topic: str, index: int) -> Replica | None:
    return cluster.brokers[broker_id].replicas.get((topic, index))


def _partition_state(
    topic: str,
    index: int,
    topic_id: UUID,
    partition: PartitionImage,
    *,
    leader: Replica | None,
    offline: tuple[int, ...],
    replicas: tuple[ReplicaState, ...],
) -> PartitionState:
    return PartitionState(
        topic=topic,
        topic_id=str(topic_id),
        partition=index,
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=partition.isr,
        offline=offline,
        high_watermark=leader.high_watermark if leader else UNKNOWN,
        last_stable_offset=leader.last_stable_offset if leader else UNKNOWN,
        log_start_offset=leader.log.log_start_offset if leader else UNKNOWN,
        gate=GateState(open=True, until_offset=leader.epoch_start_offset if leader else UNKNOWN),
        replicas=replicas,
        remote=None,
    )


def _replica_state(broker: Broker, replica: Replica | None) -> ReplicaState:
    if replica is None:
        return _offline(broker.broker_id)
    log = replica.log
    return ReplicaState(
        broker=broker.broker_id,
        role="leader" if replica.is_leader else "follower",
        state="leading" if replica.is_leader else _following(broker, replica),
        log_start_offset=log.log_start_offset,
        local_log_start_offset=log.local_log_start_offset,
        log_end_offset=log.log_end_offset,
        high_watermark=replica.high_watermark,
        epochs=tuple(
            EpochStart(epoch=entry.epoch, start_offset=entry.start_offset)
            for entry in log.epoch_entries()
        ),
        held=False,
        held_at=None,
        segments=tuple(
            SegmentState(
                base_offset=segment.base_offset, bytes=segment.size_bytes, records=segment.records
            )
            for segment in log.segments()
        ),
    )


def _following(broker: Broker, replica: Replica) -> Literal["fetching", "out_of_range", "idle"]:
    follower = broker.follower(replica.topic, replica.index)
    return "idle" if follower is None else _FOLLOWING[follower.state]


def _offline(broker_id: int) -> ReplicaState:
    """An assigned replica that its broker does not have: the broker has not heard of it."""
    return ReplicaState(
        broker=broker_id,
        role="offline",
        state="offline",
        log_start_offset=UNKNOWN,
        local_log_start_offset=UNKNOWN,
        log_end_offset=UNKNOWN,
        high_watermark=UNKNOWN,
        epochs=(),
        held=False,
        held_at=None,
        segments=(),
    )
