"""What each verb on topics, replicas, brokers and the cluster does.

Every route runs in the cluster's own event loop and does its work in one go, so nothing else
happens meanwhile and nothing is locked. What it answers is what is.
"""

from typing import Final

from fencepost.broker.node import operator_actions
from fencepost.control import cluster_operations
from fencepost.control.cluster_state import (
    broker_state,
    clock_state,
    cluster_state,
    partition_state,
    topic_state,
    topic_states,
)
from fencepost.control.routing import ReachedHost, Served, serves
from fencepost.verbs.answers.base import Done, Health
from fencepost.verbs.answers.cluster import BrokerState, ClockState, ClusterState
from fencepost.verbs.answers.topics import CompactionState, PartitionState, StepState, TopicState
from fencepost.verbs.bodies import (
    AdvanceBody,
    ElectBody,
    HoldBody,
    IsolateBody,
    KillBody,
    NewTopicBody,
    StepBody,
)

_HOLD: Final = HoldBody()
_STEP: Final = StepBody()
_KILL: Final = KillBody()


@serves("healthz")
async def healthz() -> Health:
    return Health()


@serves("cluster")
async def cluster(server: Served, host: ReachedHost) -> ClusterState:
    return cluster_state(server.cluster, reached_host=host)


@serves("topics")
async def topics(server: Served) -> list[TopicState]:
    return topic_states(server.cluster)


@serves("create_topic")
async def create_topic(server: Served, body: NewTopicBody) -> TopicState:
    cluster_operations.create_topic(server.cluster, body)
    return topic_state(server.cluster, body.name)


@serves("delete_topic")
async def delete_topic(server: Served, topic: str) -> Done:
    cluster_operations.delete_topic(server.cluster, topic)
    return Done()


@serves("partition")
async def partition(server: Served, topic: str, partition: int) -> PartitionState:
    return partition_state(server.cluster, topic, partition)


@serves("elect")
async def elect(server: Served, topic: str, partition: int, body: ElectBody) -> PartitionState:
    return cluster_operations.elect(server.cluster, topic, partition, body)


@serves("roll")
async def roll(server: Served, topic: str, partition: int) -> PartitionState:
    return cluster_operations.roll(server.cluster, topic, partition)


@serves("compact")
async def compact(server: Served, topic: str, partition: int) -> CompactionState:
    return cluster_operations.compact(server.cluster, topic, partition)


@serves("hold")
async def hold(
    server: Served, topic: str, partition: int, broker: int, body: HoldBody = _HOLD
) -> PartitionState:
    return cluster_operations.hold(server.cluster, topic, partition, broker, body)


@serves("release")
async def release(server: Served, topic: str, partition: int, broker: int) -> PartitionState:
    return cluster_operations.release(server.cluster, topic, partition, broker)


@serves("step")
async def step(
    server: Served, topic: str, partition: int, broker: int, body: StepBody = _STEP
) -> StepState:
    return cluster_operations.step(server.cluster, topic, partition, broker, body)


@serves("wipe")
async def wipe(server: Served, topic: str, partition: int, broker: int) -> PartitionState:
    return cluster_operations.wipe(server.cluster, topic, partition, broker)


@serves("stop_broker")
async def stop_broker(server: Served, host: ReachedHost, broker: int) -> BrokerState:
    await server.stop_broker(broker)
    return broker_state(server.cluster, broker, reached_host=host)


@serves("kill_broker")
async def kill_broker(
    server: Served, host: ReachedHost, broker: int, body: KillBody = _KILL
) -> BrokerState:
    await server.kill_broker(broker, body.fence)
    return broker_state(server.cluster, broker, reached_host=host)


@serves("start_broker")
async def start_broker(server: Served, host: ReachedHost, broker: int) -> BrokerState:
    await server.start_broker(broker)
    return broker_state(server.cluster, broker, reached_host=host)


@serves("isolate_broker")
async def isolate_broker(
    server: Served, host: ReachedHost, broker: int, body: IsolateBody
) -> BrokerState:
    cluster_operations.isolate(server.cluster, broker, body)
    return broker_state(server.cluster, broker, reached_host=host)


@serves("rejoin_broker")
async def rejoin_broker(server: Served, host: ReachedHost, broker: int) -> BrokerState:
    operator_actions.rejoin(server.cluster, broker)
    return broker_state(server.cluster, broker, reached_host=host)


@serves("advance_clock")
async def advance_clock(server: Served, body: AdvanceBody) -> ClockState:
    server.advance(body.ms)
    return clock_state(server.cluster)


@serves("reset")
async def reset(server: Served) -> Done:
    await server.reset()
    return Done()
