"""The cluster as the control API shows it.

Unlike a client, a test may know the truth: the controller's registry, and each replica as its own
broker knows it.
"""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias
from uuid import UUID

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.core.scheduler import ManualClock
from fencepost.broker.metadata.features import finalized
from fencepost.broker.metadata.image import (
    AdvertisedEndpoint,
    ClusterImage,
    PartitionImage,
    TopicImage,
    offline_replicas,
    online_brokers,
)
from fencepost.broker.network.links import ControllerNode
from fencepost.broker.node.broker import Broker
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.replication.follower.steps import FollowerState
from fencepost.broker.replication.replica import Replica
from fencepost.broker.tiering.remote_log_manager import RemoteView
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.listener_text import in_uri
from fencepost.storage.files.file_system import StorageFailure
from fencepost.storage.log.interface import Log
from fencepost.storage.tier.segment_metadata import segment_to_event
from fencepost.verbs.answers.cluster import BrokerState, ClockState, ClusterState
from fencepost.verbs.answers.topics import (
    EpochStart,
    Following,
    GateState,
    PartitionState,
    RemoteSegmentState,
    RemoteState,
    ReplicaState,
    SegmentState,
    TopicState,
)
from fencepost.verbs.partition_text import replica_label, two_leaders

UNKNOWN: Final = -1
_ReplicaStateName: TypeAlias = Following | Literal["leading", "held", "offline"]
FOLLOWING: Final[dict[FollowerState, Following]] = {
    FollowerState.IDLE: "idle",
    FollowerState.TRUNCATING: "truncating",
    FollowerState.FETCHING: "fetching",
    FollowerState.LOST: "lost",
    FollowerState.TRACING: "tracing",
    FollowerState.BUILDING: "building",
    FollowerState.BACKING_OFF: "backing_off",
}


def cluster_state(cluster: Cluster, *, reached_host: str) -> ClusterState:
    """Brokers, controller, features and time.

    :param reached_host: The address that the asker reached, which is a broker's too where none is
        advertised.
    """
    image = cluster.controller.image
    return ClusterState(
        cluster_id=image.cluster_id,
        brokers=tuple(
            broker_state(cluster, broker_id, reached_host=reached_host)
            for broker_id in cluster.brokers
        ),
        controller=image.controller_id,
        controller_listener=_controller_listener(image, reached_host),
        features=dict(finalized(image.features)),
        dialect=None if cluster.options.dialect is None else cluster.options.dialect.name,
        seed=cluster.options.seed,
        clock=clock_state(cluster),
    )


def _controller_listener(image: ClusterImage, reached_host: str) -> str | None:
    where = image.controller_address
    return None if where is None else f"{in_uri(where.host or reached_host)}:{where.port}"


def broker_state(cluster: Cluster, broker_id: int, *, reached_host: str) -> BrokerState:
    """One broker, which there is."""
    image = cluster.controller.image
    registered = image.registrations[broker_id]
    broker = cluster.brokers[broker_id]
    down: Literal["stopped", "killed"] = "killed" if broker.crashed else "stopped"
    return BrokerState(
        id=broker_id,
        host=registered.host or reached_host,
        port=registered.port,
        listeners={
            name: f"{in_uri(where.host or reached_host)}:{where.port}"
            for name, where in _endpoints(cluster, broker_id).items()
        },
        state="running" if broker.running else down,
        fenced=registered.fenced,
        registered=broker_id in image.brokers,
        epoch=registered.epoch,
        isolated_from=tuple(
            "controller" if isinstance(node, ControllerNode) else node
            for node in cluster.network.unreachable_nodes(broker.broker_id)
        ),
    )


def _endpoints(cluster: Cluster, broker_id: int) -> dict[str, AdvertisedEndpoint]:
    return {each.listener: each.advertised for each in cluster.addresses[broker_id]}


def clock_state(cluster: Cluster) -> ClockState:
    """The time, and who lets it pass."""
    clock = cluster.scheduler.clock
    mode: Literal["real", "manual"] = "manual" if isinstance(clock, ManualClock) else "real"
    return ClockState(mode=mode, now_ms=clock.wall_ms())


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
    """The state of a partition: leader, ISR, and each replica.

    :raises ControllerError: UNKNOWN_TOPIC_OR_PARTITION when there is no such partition.
    """
    image = cluster.controller.image
    partition = image.partition(topic, index)
    if partition is None:
        raise ControllerError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {topic}-{index}"
        )
    replicas = {b: _replica_of(cluster, b, topic, index) for b in partition.replicas}
    leader = replicas.get(partition.leader)
    return _partition_state(
        topic,
        index,
        image.topics[topic].topic_id,
        partition,
        leader=leader,
        remote=remote_state(_remote_view(cluster, leader)),
        offline=offline_replicas(partition, online_brokers(image)),
        replicas=tuple(
            _replica_state(cluster.brokers[broker_id], topic, index, partition)
            for broker_id in replicas
        ),
        explanation=two_leaders(
            partition.leader,
            partition.leader_epoch,
            [
                (broker_id, replica.leader_epoch)
                for broker_id, replica in replicas.items()
                if replica is not None and _is_zombie(replica, partition)
            ],
        ),
    )


def _is_zombie(replica: Replica, partition: PartitionImage) -> bool:
    """Whether a replica leads in an epoch that is over for the controller."""
    return replica.is_leader and replica.leader_epoch < partition.leader_epoch


def _remote_view(cluster: Cluster, leader: Replica | None) -> RemoteView | None:
    """What a leader knows of the tier; None where there is no leader, or no tier."""
    if leader is None or not leader.log.config.remote_storage_enable:
        return None
    return cluster.brokers[leader.broker_id].remote_log_manager.state(leader)


def remote_state(view: RemoteView | None) -> RemoteState | None:
    """What a leader knows of its partition's tier; None where it has none."""
    if view is None:
        return None
    return RemoteState(
        start_offset=view.start_offset,
        last_tiered_offset=view.last_tiered_offset,
        pending_upload_offset=view.pending_upload_offset,
        segments=tuple(
            remote_segment_state(segment_to_event(segment)) for segment in view.segments
        ),
    )


def remote_segment_state(told: Mapping[str, object]) -> RemoteSegmentState:
    """A segment in the tier as events tell of it."""
    return RemoteSegmentState.model_validate(dict(told))


def _replica_of(cluster: Cluster, broker_id: int, topic: str, index: int) -> Replica | None:
    return cluster.brokers[broker_id].replicas.get((topic, index))


def _partition_state(
    topic: str,
    index: int,
    topic_id: UUID,
    partition: PartitionImage,
    *,
    leader: Replica | None,
    remote: RemoteState | None,
    offline: tuple[int, ...],
    replicas: tuple[ReplicaState, ...],
    explanation: str | None,
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
        gate=GateState(
            open=leader is not None and leader.gate_is_open,
            until_offset=leader.epoch_start_offset if leader else UNKNOWN,
        ),
        replicas=replicas,
        remote=remote,
        explanation=explanation,
    )


def _replica_state(
    broker: Broker, topic: str, index: int, partition: PartitionImage
) -> ReplicaState:
    replica = broker.replicas.get((topic, index))
    hold = broker.replica_manager.holds.get((topic, index))
    log = broker.storage.peek_log(topic, index) if replica is None else replica.log
    role, state = _role_and_state(broker, replica)
    is_zombie = replica is not None and _is_zombie(replica, partition)
    held_at = None if hold is None else hold.at
    return ReplicaState(
        broker=broker.broker_id,
        role=role,
        state=state,
        log_start_offset=UNKNOWN if log is None else log.log_start_offset,
        local_log_start_offset=UNKNOWN if log is None else log.local_log_start_offset,
        log_end_offset=UNKNOWN if log is None else log.log_end_offset,
        high_watermark=UNKNOWN if replica is None else replica.high_watermark,
        epochs=() if log is None else _epochs(log),
        held=hold is not None,
        held_at=held_at,
        segments=() if log is None else _segments(log),
        zombie=is_zombie,
        label=replica_label(state, is_zombie=is_zombie, held=hold is not None, held_at=held_at),
    )


def _role_and_state(
    broker: Broker, replica: Replica | None
) -> tuple[Literal["leader", "follower", "offline"], _ReplicaStateName]:
    """A replica's role and state; it is offline where its broker is down or has not heard of it."""
    if replica is None:
        return "offline", "offline"
    if replica.is_leader:
        return "leader", "leading"
    follower = broker.replica_manager.follower(replica.topic, replica.index)
    if follower is None:
        return "follower", "idle"
    hold = follower.hold
    is_held = hold is not None and (hold.at is None or hold.reached)
    return "follower", "held" if is_held else FOLLOWING[follower.state]


def _epochs(log: Log) -> tuple[EpochStart, ...]:
    return tuple(
        EpochStart(epoch=entry.epoch, start_offset=entry.start_offset)
        for entry in log.epoch_entries()
    )


def _segments(log: Log) -> tuple[SegmentState, ...]:
    try:
        return tuple(
            SegmentState(
                base_offset=segment.base_offset, bytes=segment.size_bytes, records=segment.records
            )
            for segment in log.segments()
        )
    except StorageFailure:  # its files are closed, or can't be read any more
        return ()
