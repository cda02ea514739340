"""What a test does to brokers, links and replicas: the verbs, without HTTP.

In service a verb returns when its effect is complete: all brokers that can hear of it have, and
every follower has taken the steps that came of it. Verbs that concern all replicas of a broker
(`stopping`, `killing`, `starting`, `isolating`, `rejoining`) have steps: the server runs what is
due of them in several turns of its event loop, so that clients are served between.

:raises ControllerError: (all of them) When it is refused, with Kafka's code and words.
"""

from collections.abc import Collection, Iterable, Iterator

from fencepost.broker.controller import Fence
from fencepost.broker.controller.failed_replicas import wipe_replica
from fencepost.broker.core.errors import ControllerError, ControllerUnreachable
from fencepost.broker.core.events import Kind
from fencepost.broker.metadata.image import PartitionImage
from fencepost.broker.network.links import CONTROLLER, BrokerId, ControllerNode, NodeId
from fencepost.broker.node.broker import Broker
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.node.unclean_elections import LostRecords, emit_lost, lost_records
from fencepost.broker.replication.follower.follower import Follower
from fencepost.broker.replication.follower.steps import Step
from fencepost.broker.replication.replica import Replica
from fencepost.protocol.errors import ErrorCode

# -- brokers ------------------------------------------------------------------------------------


def stop(cluster: Cluster, broker_id: int) -> None:
    """Shut a broker down in order: others lead where it led, then its process ends."""
    _run(cluster, stopping(cluster, broker_id))


def kill(cluster: Cluster, broker_id: int, fence: Fence = Fence.NOW) -> None:
    """End a broker's process at once; its logs stay, high watermarks as of their checkpoint."""
    _run(cluster, killing(cluster, broker_id, fence))


def start(cluster: Cluster, broker_id: int) -> None:
    """Start a broker that is down: it registers again, and its replicas catch up."""
    _run(cluster, starting(cluster, broker_id))


def stopping(cluster: Cluster, broker_id: int) -> Iterator[None]:
    """The steps of `stop`; after each one what is due is to be run."""
    broker = _running(cluster, broker_id)
    cluster.controller.fence(broker_id)
    yield
    yield from broker.stopping(crash=False)
    cluster.events.emit(Kind.BROKER_CHANGED, broker=broker_id, state="stopped")
    yield


def killing(cluster: Cluster, broker_id: int, fence: Fence) -> Iterator[None]:
    """The steps of `kill`; after each one what is due is to be run."""
    broker = _running(cluster, broker_id)
    yield from broker.stopping(crash=True)
    cluster.events.emit(Kind.BROKER_CHANGED, broker=broker_id, state="killed")
    _fence(cluster, broker_id, fence)
    yield


def starting(cluster: Cluster, broker_id: int) -> Iterator[None]:
    """The steps of `start`; after each one what is due is to be run."""
    broker = _broker(cluster, broker_id)
    if broker.running:
        raise ControllerError(ErrorCode.INVALID_REQUEST, f"broker {broker_id} runs already")
    if cluster.network.is_cut(broker.broker_id, CONTROLLER):
        raise ControllerError(
            ErrorCode.INVALID_REQUEST,
            f"broker {broker_id} is isolated from the controller and cannot register: "
            "rejoin it first",
        )
    cluster.controller.fence(broker_id)
    cluster.controller.finish_evaluations()  # it would lead what it led before
    yield from broker.starting(cluster.controller.image)
    cluster.events.emit(Kind.BROKER_CHANGED, broker=broker_id, state="running")
    cluster.controller.unfence(broker_id)
    yield


def _run(cluster: Cluster, steps: Iterator[None]) -> None:
    for _ in steps:
        cluster.scheduler.run_due()


def isolate(
    cluster: Cluster,
    broker_id: int,
    *,
    from_controller: bool = False,
    brokers: Collection[int] = (),
    fence: Fence = Fence.NOW,
) -> None:
    """Cut a broker off, from the controller or from other brokers; clients still reach it.

    Away from the controller it serves on with what it knows and fetches on: the zombie of
    KAFKA-6880.

    :param fence: When the controller notices, where it is the controller that it is cut off from.
    """
    steps = isolating(
        cluster, broker_id, from_controller=from_controller, brokers=brokers, fence=fence
    )
    _run(cluster, steps)


def rejoin(cluster: Cluster, broker_id: int) -> None:
    """Restore every link of a broker; it registers again where the controller had fenced it."""
    _run(cluster, rejoining(cluster, broker_id))


def isolating(
    cluster: Cluster,
    broker_id: int,
    *,
    from_controller: bool,
    brokers: Collection[int],
    fence: Fence,
) -> Iterator[None]:
    """The steps of `isolate`; after each one what is due is to be run."""
    broker = _running(cluster, broker_id)
    for other in brokers:
        _broker(cluster, other)
        if other == broker_id:
            raise ControllerError(
                ErrorCode.INVALID_REQUEST, f"broker {broker_id} cannot be isolated from itself"
            )
    for other in brokers:
        cluster.network.cut_link(broker.broker_id, BrokerId(other))
    if from_controller:
        cluster.network.cut_link(broker.broker_id, CONTROLLER)
    cluster.events.emit(
        Kind.BROKER_CHANGED,
        broker=broker_id,
        state="isolated",
        from_controller=from_controller,
        from_brokers=sorted(brokers),
    )
    if from_controller:
        _fence(cluster, broker_id, fence)
    yield


def rejoining(cluster: Cluster, broker_id: int) -> Iterator[None]:
    """The steps of `rejoin`; after each one what is due is to be run."""
    broker = _broker(cluster, broker_id)
    others = cluster.network.unreachable_nodes(broker.broker_id)
    for other in others:
        cluster.network.restore_link(broker.broker_id, other)
    if others:
        cluster.events.emit(Kind.BROKER_CHANGED, broker=broker_id, state="rejoined")
    if broker.running and others:
        _reconnect(cluster, broker, others)
    yield


def restore(cluster: Cluster) -> None:
    """Every broker up, every link whole, no replica held."""
    for broker_id, broker in cluster.brokers.items():
        for topic, index in list(broker.replica_manager.holds):
            broker.replica_manager.release(topic, index)
        rejoin(cluster, broker_id)
    for broker_id, broker in cluster.brokers.items():
        if not broker.running:
            start(cluster, broker_id)
    for broker_id in cluster.controller.image.unregistered:
        cluster.controller.unfence(broker_id)


def _reconnect(cluster: Cluster, broker: Broker, others: Collection[NodeId]) -> None:
    broker_id = broker.broker_id
    if CONTROLLER in others:
        if cluster.controller.is_fenced(broker_id):
            cluster.controller.unfence(broker_id)
        else:
            cluster.send_image(broker_id)
        broker.replica_manager.failures.report()
        for replica in broker.replicas.values():
            broker.isr_manager.resend_lost_proposal(replica)
    for other in others:
        if not isinstance(other, ControllerNode):
            broker.replica_manager.wake_followers_of(other)
            cluster.brokers[other].replica_manager.wake_followers_of(broker_id)


def _fence(cluster: Cluster, broker_id: int, fence: Fence) -> None:
    if fence is Fence.NOW:
        cluster.controller.fence(broker_id)
    elif fence is Fence.TIMEOUT:
        broker = cluster.brokers[broker_id]
        epoch = cluster.controller.image.registrations[broker_id].epoch
        timeout_ms = broker.configs.broker_session_timeout_ms

        def expire() -> None:
            silent = not cluster.network.reaches(broker.broker_id, CONTROLLER)
            if silent and cluster.controller.image.registrations[broker_id].epoch == epoch:
                cluster.controller.fence(broker_id)

        cluster.scheduler.at(cluster.scheduler.now_ms() + timeout_ms, expire)


def _broker(cluster: Cluster, broker_id: int) -> Broker:
    broker = cluster.brokers.get(broker_id)
    if broker is None:
        raise ControllerError(
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            f"there is no broker {broker_id}, only {', '.join(map(str, cluster.brokers))}",
        )
    return broker


def _running(cluster: Cluster, broker_id: int) -> Broker:
    broker = _broker(cluster, broker_id)
    if not broker.running:
        raise ControllerError(ErrorCode.INVALID_REQUEST, f"broker {broker_id} is not running")
    return broker


# -- partitions and replicas --------------------------------------------------------------------


def elect(
    cluster: Cluster, topic: str, index: int, leader: int, *, unclean: bool = False
) -> LostRecords | None:
    """Make a broker the leader; the leader epoch rises, also where it led before.

    :param unclean: Whether it may be outside the ISR; then it is the whole ISR.
    :returns: What is lost by it, None where that is nothing.
    """
    before = cluster.controller.partition(topic, index)
    lost = lost_records(cluster.brokers, before, topic, index, leader) if unclean else None
    cluster.controller.elect(topic, index, leader, unclean=unclean)
    is_told = cluster.controller.partition(topic, index).is_led_uncleanly_after(before)
    if lost is not None and not is_told:  # by a leader from the ISR, that lacks the latest records
        emit_lost(cluster.events, topic, index, lost)
    cluster.scheduler.run_due()
    return lost


def hold(
    cluster: Cluster,
    topic: str,
    index: int,
    broker_id: int,
    at: int | None = None,
    *,
    leave_isr: bool = False,
) -> None:
    """Keep a replica from fetching.

    :param at: It goes on up to here (exclusive), by whole batches; None is where it is.
    :param leave_isr: Whether its leader drops it from the ISR now, and not when it has lagged for
        ``replica.lag.time.max.ms``.
    """
    broker = _assigned(cluster, topic, index, broker_id)
    replica = broker.replicas.get((topic, index))
    if at is not None and replica is not None and at < replica.log.log_end_offset:
        raise ControllerError(
            ErrorCode.INVALID_REQUEST,
            f"broker {broker_id} has {topic}-{index} up to {replica.log.log_end_offset} already "
            f"and cannot be held at {at}",
        )
    leader = _leader_with_in_isr(cluster, topic, index, broker_id) if leave_isr else None
    broker.replica_manager.hold(topic, index, at)
    cluster.events.emit(Kind.REPLICA_HELD, topic=topic, partition=index, broker=broker_id, at=at)
    cluster.scheduler.run_due()
    if leader is not None:
        leader.isr_manager.remove_from_isr(leader.replicas[topic, index], broker_id)
        cluster.scheduler.run_due()


def release(cluster: Cluster, topic: str, index: int, broker_id: int) -> None:
    """Let a replica fetch on; nothing changes where it was not held."""
    broker = _assigned(cluster, topic, index, broker_id)
    if broker.replica_manager.release(topic, index):
        cluster.events.emit(Kind.REPLICA_RELEASED, topic=topic, partition=index, broker=broker_id)
    cluster.scheduler.run_due()


def step(
    cluster: Cluster, topic: str, index: int, broker_id: int, fetches: int = 1
) -> tuple[Step, ...]:
    """Let a replica send so many requests, held or not, and tell what each did.

    It goes beyond the offset that it is held at.
    """
    follower = _follower(cluster, topic, index, broker_id)
    steps: list[Step] = []
    for sent in range(fetches):
        if not follower.step(steps.append):
            break
        cluster.scheduler.run_due()
        if len(steps) == sent:
            steps.append(follower.unanswered_step())
    return tuple(steps)


def wipe(cluster: Cluster, topic: str, index: int, broker_id: int) -> None:
    """Lose what a replica has: it leaves the ISR, and starts with an empty log."""
    broker = _assigned(cluster, topic, index, broker_id)
    if broker.running and broker.view is not cluster.controller.image:
        raise ControllerUnreachable(broker_id)
    partition = cluster.controller.partition(topic, index)
    broker.replica_manager.wipe(topic, index)
    cluster.events.emit(
        Kind.REPLICA_WIPED,
        topic=topic,
        partition=index,
        broker=broker_id,
        alone={*partition.isr, *partition.elr} <= {broker_id},
    )
    wipe_replica(cluster.controller, topic, index, broker_id)
    cluster.scheduler.run_due()


def roll(cluster: Cluster, topic: str, index: int) -> None:
    """Close the active segment of every replica that has records in it."""
    partition = cluster.controller.partition(topic, index)
    now_ms = cluster.scheduler.wall_ms()
    for broker_id in partition.replicas:
        replica = cluster.brokers[broker_id].replicas.get((topic, index))
        # One that truncates in rounds may end behind a hole, and closes nothing until it is done.
        if replica is None or replica.ends_after_gap:
            continue
        with cluster.brokers[broker_id].offline_on_failure(replica):
            replica.log.roll(now_ms)
            cluster.events.emit(
                Kind.SEGMENT_ROLLED,
                topic=topic,
                partition=index,
                broker=broker_id,
                base_offset=replica.log.segments()[-1].base_offset,
            )


def compact(cluster: Cluster, topic: str, index: int) -> dict[int, int]:
    """Compact the closed segments of every replica below its high watermark, however clean.

    What ``min.compaction.lag.ms`` protects stays.

    :returns: How many records each broker has dropped, the leader first.
    """
    partition = cluster.controller.partition(topic, index)
    now_ms = cluster.scheduler.wall_ms()
    dropped = {}
    for broker_id in leader_first(partition):
        replica = cluster.brokers[broker_id].replicas.get((topic, index))
        if replica is None:
            continue
        if not replica.log.config.is_compacted:
            raise ControllerError(
                ErrorCode.INVALID_REQUEST,
                f"{topic} is not compacted: its cleanup.policy is to have compact in it",
            )
        with cluster.brokers[broker_id].offline_on_failure(replica):
            dropped[broker_id] = replica.log.compact(now_ms, replica.high_watermark, at_once=True)
        if broker_id not in dropped:
            continue
        cluster.events.emit(
            Kind.LOG_COMPACTED,
            topic=topic,
            partition=index,
            broker=broker_id,
            records=dropped[broker_id],
        )
    return dropped


def find_leader(cluster: Cluster, topic: str, index: int) -> tuple[Broker, Replica]:
    """The broker that the controller has made a partition's leader, and its replica.

    :raises ControllerError: LEADER_NOT_AVAILABLE when there is none that leads;
        UNKNOWN_TOPIC_OR_PARTITION when there is no such partition.
    """
    partition = cluster.controller.partition(topic, index)
    broker = cluster.brokers.get(partition.leader)
    replica = None if broker is None else broker.replicas.get((topic, index))
    if broker is None or replica is None or not replica.is_leader:
        raise ControllerError(
            ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}-{index} has no leader at present"
        )
    return broker, replica


def leader_first(partition: PartitionImage) -> Iterable[int]:
    """The brokers that have a replica, the leader before the others."""
    return sorted(partition.replicas, key=lambda broker_id: broker_id != partition.leader)


def _leader_with_in_isr(cluster: Cluster, topic: str, index: int, broker_id: int) -> Broker | None:
    """The leader that is to drop a replica from the ISR; None where it is not in it."""
    partition = cluster.controller.partition(topic, index)
    if broker_id not in partition.isr:
        return None
    leader = cluster.brokers.get(partition.leader)
    replica = None if leader is None else leader.replicas.get((topic, index))
    if leader is None or replica is None or not replica.is_leader or leader.broker_id == broker_id:
        raise ControllerError(
            ErrorCode.INVALID_REQUEST,
            f"broker {broker_id} leads {topic}-{index}, or the partition has no leader that "
            "could drop it from the ISR: elect another leader first",
        )
    return leader


def _assigned(cluster: Cluster, topic: str, index: int, broker_id: int) -> Broker:
    """The broker, which has a replica of the partition or is to have one."""
    broker = _broker(cluster, broker_id)
    partition = cluster.controller.partition(topic, index)
    if broker_id not in partition.replicas:
        raise ControllerError(
            ErrorCode.REPLICA_NOT_AVAILABLE,
            f"broker {broker_id} has no replica of {topic}-{index}: "
            f"{list(partition.replicas)} have",
        )
    return broker


def _follower(cluster: Cluster, topic: str, index: int, broker_id: int) -> Follower:
    broker = _assigned(cluster, topic, index, broker_id)
    follower = broker.replica_manager.follower(topic, index)
    if follower is None:
        problem = "leads" if broker.running else "is not running, and has no replica that fetches"
        raise ControllerError(
            ErrorCode.INVALID_REQUEST, f"broker {broker_id} {problem}: {topic}-{index}"
        )
    return follower
