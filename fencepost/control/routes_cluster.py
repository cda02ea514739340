"""The routes of the verbs on topics, replicas, brokers and the cluster.

Every route runs in the cluster's own event loop and does not wait between its steps, so no other
request runs meanwhile and nothing is locked. The answer is the state after the effect is complete:
where replicas read from a remote tier, after they have.
"""

import asyncio
from typing import Final

from msgspec.structs import asdict

from fencepost.broker.controller import Fence
from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.core.errors import ControllerError
from fencepost.broker.node import operator_actions, tier_actions
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.replication.follower.steps import Step
from fencepost.broker.server.server import Server
from fencepost.control.cluster_state import (
    FOLLOWING,
    broker_state,
    clock_state,
    cluster_state,
    partition_state,
    topic_state,
    topic_states,
)
from fencepost.control.routing import serves
from fencepost.protocol.errors import ErrorCode, error_name
from fencepost.verbs.answers import Done, Health
from fencepost.verbs.answers.cluster import BrokerState, ClockState, ClusterState
from fencepost.verbs.answers.topics import (
    CompactionState,
    FetchState,
    LostState,
    PartitionState,
    ReplicaCompaction,
    StepState,
    TopicState,
)
from fencepost.verbs.bodies import (
    AdvanceBody,
    ElectBody,
    HoldBody,
    IsolateBody,
    KillBody,
    NewTopicBody,
    ResetBody,
    StepBody,
)

_HOLD: Final = HoldBody()
_STEP: Final = StepBody()
_KILL: Final = KillBody()
_RESET: Final = ResetBody()


@serves("healthz")
async def healthz() -> Health:
    return Health()


@serves("cluster")
async def cluster(server: Server, host: str) -> ClusterState:
    return cluster_state(server.cluster, reached_host=host)


@serves("topics")
async def topics(server: Server) -> list[TopicState]:
    return topic_states(server.cluster)


@serves("create_topic")
async def create_topic(server: Server, body: NewTopicBody) -> TopicState:
    _create_topic(server.cluster, body)
    await server.run_due()
    return topic_state(server.cluster, body.name)


def _create_topic(cluster: Cluster, body: NewTopicBody) -> None:
    """Create a topic; every replica is in the ISR, when what is due has been run.

    :raises ControllerError: When it is refused, with Kafka's code and message.
    """
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
    problem = configs.layers.topic_problem(body.configs)
    if problem is not None:
        raise ControllerError(problem.code, problem.message)
    controller.create_topics([(planned, body.configs)])


@serves("delete_topic")
async def delete_topic(server: Server, topic: str) -> Done:
    topic_state(server.cluster, topic)
    server.cluster.controller.delete_topics([topic])
    server.cluster.scheduler.run_due()
    return Done()


@serves("partition")
async def partition(server: Server, topic: str, partition: int) -> PartitionState:
    return partition_state(server.cluster, topic, partition)


@serves("elect")
async def elect(server: Server, topic: str, partition: int, body: ElectBody) -> PartitionState:
    cluster = server.cluster
    lost = operator_actions.elect(cluster, topic, partition, body.leader, unclean=body.unclean)
    state = partition_state(cluster, topic, partition)
    if lost is None:
        return state
    return state.model_copy(update={"lost": LostState.model_validate(asdict(lost))})


@serves("roll")
async def roll(server: Server, topic: str, partition: int) -> PartitionState:
    operator_actions.roll(server.cluster, topic, partition)
    return partition_state(server.cluster, topic, partition)


@serves("compact")
async def compact(server: Server, topic: str, partition: int) -> CompactionState:
    dropped = operator_actions.compact(server.cluster, topic, partition)
    return CompactionState(
        replicas=tuple(ReplicaCompaction(broker=b, dropped=n) for b, n in dropped.items())
    )


@serves("hold")
async def hold(
    server: Server, topic: str, partition: int, broker: int, body: HoldBody = _HOLD
) -> PartitionState:
    cluster = server.cluster
    operator_actions.hold(cluster, topic, partition, broker, body.at, leave_isr=body.leave_isr)
    return partition_state(cluster, topic, partition)


@serves("release")
async def release(server: Server, topic: str, partition: int, broker: int) -> PartitionState:
    operator_actions.release(server.cluster, topic, partition, broker)
    await _built(server.cluster)
    return partition_state(server.cluster, topic, partition)


@serves("step")
async def step(
    server: Server, topic: str, partition: int, broker: int, body: StepBody = _STEP
) -> StepState:
    steps = operator_actions.step(server.cluster, topic, partition, broker, body.fetches)
    return StepState(fetches=tuple(map(_fetch_state, steps)))


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


@serves("wipe")
async def wipe(server: Server, topic: str, partition: int, broker: int) -> PartitionState:
    operator_actions.wipe(server.cluster, topic, partition, broker)
    await _built(server.cluster)
    return partition_state(server.cluster, topic, partition)


@serves("stop_broker")
async def stop_broker(server: Server, host: str, broker: int) -> BrokerState:
    await server.stop_broker(broker)
    return broker_state(server.cluster, broker, reached_host=host)


@serves("kill_broker")
async def kill_broker(
    server: Server, host: str, broker: int, body: KillBody = _KILL
) -> BrokerState:
    await server.kill_broker(broker, body.fence)
    return broker_state(server.cluster, broker, reached_host=host)


@serves("start_broker")
async def start_broker(server: Server, host: str, broker: int) -> BrokerState:
    await server.start_broker(broker)
    await _built(server.cluster)
    return broker_state(server.cluster, broker, reached_host=host)


@serves("isolate_broker")
async def isolate_broker(server: Server, host: str, broker: int, body: IsolateBody) -> BrokerState:
    from_controller = body.origin == "controller"
    if body.fence is not None and not from_controller:
        raise ControllerError(
            ErrorCode.INVALID_REQUEST,
            "fence: it is for a broker that the controller does not hear any more; leave it out, "
            'or isolate the broker from "controller"',
        )
    await server.isolate_broker(
        broker,
        from_controller=from_controller,
        brokers=() if body.origin == "controller" else body.origin,
        fence=body.fence or Fence.NOW,
    )
    return broker_state(server.cluster, broker, reached_host=host)


@serves("rejoin_broker")
async def rejoin_broker(server: Server, host: str, broker: int) -> BrokerState:
    await server.rejoin_broker(broker)
    await _built(server.cluster)
    return broker_state(server.cluster, broker, reached_host=host)


async def _built(cluster: Cluster) -> None:
    """Wait for the replicas that read the remote tier to go on where it ends."""
    built: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def set_built() -> None:
        if not built.done():  # the client may be gone
            built.set_result(None)

    tier_actions.when_built(cluster, set_built)
    await built
    cluster.scheduler.run_due()


@serves("advance_clock")
async def advance_clock(server: Server, body: AdvanceBody) -> ClockState:
    server.advance(body.ms)
    return clock_state(server.cluster)


@serves("reset")
async def reset(server: Server, body: ResetBody = _RESET) -> Done:
    def create_topics() -> None:
        for topic in body.all_topics():
            try:
                _create_topic(server.cluster, topic)
            except ControllerError as error:
                raise ControllerError(error.code, f"topic {topic.name}: {error}") from None

    await server.reset(create_topics)
    if body.topics:
        await server.run_due()
    return Done()
