"""What a test can do to a cluster. A verb returns when its effect is complete.

:raises ControllerError: (all of them) When it is refused, with Kafka's code and words.
"""

from fencepost.broker.configs.topic_configs import validate_topic_configs
from fencepost.broker.controller.registration import Fence
from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.core.errors import ControllerError
from fencepost.broker.node import operator_actions
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.replication.follower.steps import Step
from fencepost.control.cluster_state import FOLLOWING, partition_state, topic_state
from fencepost.protocol.errors import ErrorCode, error_name
from fencepost.verbs.answers.topics import (
    CompactionState,
    FetchState,
    PartitionState,
    ReplicaCompaction,
    StepState,
)
from fencepost.verbs.bodies import ElectBody, HoldBody, IsolateBody, NewTopicBody, StepBody


def create_topic(cluster: Cluster, body: NewTopicBody) -> None:
    """Create a topic; every replica is then in the ISR."""
    given_counts = body.partitions is not None or body.replication_factor is not None
    if body.assignments is not None and given_counts:
        raise ControllerError(
            ErrorCode.INVALID_REQUEST,
            "assignments say how many partitions and replicas there are: "
            "give them, or partitions and replication_factor, not both",
        )
    if body.assignments == ():
        raise ControllerError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "assignments are empty: a topic has a partition"
        )
    controller = cluster.controller
    configs = cluster.brokers[controller.image.controller_id].configs
    defaults = (configs.num_partitions, configs.default_replication_factor)
    given = (body.partitions, body.replication_factor)
    partitions, replicas = (d if g is None else g for g, d in zip(given, defaults, strict=True))
    new = NewTopic(
        name=body.name,
        partitions=partitions,
        replication_factor=replicas,
        assignments=body.assignments,
        configs=body.configs,
    )
    planned = controller.topic_planner.plan_topic(new)
    layers = configs.layers
    problem = validate_topic_configs(
        body.configs, layers.topic_defaults, tiered=layers.has_tier, on_disk=layers.on_disk
    )
    if problem is not None:
        raise ControllerError(problem.code, problem.message)
    controller.create_topics([(planned, body.configs)])
    cluster.scheduler.run_due()


def delete_topic(cluster: Cluster, name: str) -> None:
    """Delete a topic, on every broker."""
    topic_state(cluster, name)
    cluster.controller.delete_topics([name])
    cluster.scheduler.run_due()


def elect(cluster: Cluster, topic: str, index: int, body: ElectBody) -> PartitionState:
    """Elect a leader; every broker that can hear of it has, and every follower took its steps."""
    operator_actions.elect(cluster, topic, index, body.leader, unclean=body.unclean)
    return partition_state(cluster, topic, index)


def hold(
    cluster: Cluster, topic: str, index: int, broker_id: int, body: HoldBody
) -> PartitionState:
    """Keep a replica from fetching."""
    operator_actions.hold(cluster, topic, index, broker_id, body.at, leave_isr=body.leave_isr)
    return partition_state(cluster, topic, index)


def release(cluster: Cluster, topic: str, index: int, broker_id: int) -> PartitionState:
    """Let a replica fetch on; it has caught up with its leader."""
    operator_actions.release(cluster, topic, index, broker_id)
    return partition_state(cluster, topic, index)


def step(cluster: Cluster, topic: str, index: int, broker_id: int, body: StepBody) -> StepState:
    """Let a replica send requests, and tell what each did."""
    steps = operator_actions.step(cluster, topic, index, broker_id, body.fetches)
    return StepState(fetches=tuple(map(_fetch_state, steps)))


def wipe(cluster: Cluster, topic: str, index: int, broker_id: int) -> PartitionState:
    """Lose a replica's disk; unless it is held it has fetched everything again."""
    operator_actions.wipe(cluster, topic, index, broker_id)
    return partition_state(cluster, topic, index)


def roll(cluster: Cluster, topic: str, index: int) -> PartitionState:
    """Close the active segment of every replica."""
    operator_actions.roll(cluster, topic, index)
    return partition_state(cluster, topic, index)


def compact(cluster: Cluster, topic: str, index: int) -> CompactionState:
    """Compact the closed segments of every replica."""
    dropped = operator_actions.compact(cluster, topic, index)
    return CompactionState(
        replicas=tuple(ReplicaCompaction(broker=b, dropped=n) for b, n in dropped.items())
    )


def isolate(cluster: Cluster, broker_id: int, body: IsolateBody) -> None:
    """Cut a broker off from the controller, or from brokers."""
    if body.origin == "controller":
        operator_actions.isolate(
            cluster, broker_id, from_controller=True, fence=body.fence or Fence.NOW
        )
        return
    if body.fence is not None:
        raise ControllerError(
            ErrorCode.INVALID_REQUEST,
            "fence: it is for a broker that the controller does not hear any more; leave it out, "
            'or isolate the broker from "controller"',
        )
    operator_actions.isolate(cluster, broker_id, brokers=body.origin)


def _fetch_state(step: Step) -> FetchState:
    return FetchState(
        api=step.api,
        asked=step.asked,
        leader=step.leader,
        leader_epoch=step.leader_epoch,
        fetch_offset=step.fetch_offset,
        error=None if step.error is None else error_name(step.error),
        appended=step.appended,
        truncated_to=step.truncated_to,
        log_end_offset=step.log_end_offset,
        high_watermark=step.high_watermark,
        state=FOLLOWING[step.state],
    )
