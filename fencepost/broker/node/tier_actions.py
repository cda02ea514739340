"""What a test does to a partition's remote tier: the verbs, without HTTP (KIP-405).

The tier is somewhere else and takes its time: what has to do with it is told a callback when it is
over, never before these return.

:raises ControllerError: (all of them) When it is refused, with Kafka's code and words.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from fencepost.broker.core.async_tasks import OnDone
from fencepost.broker.core.errors import ControllerError
from fencepost.broker.core.events import Kind
from fencepost.broker.node import operator_actions
from fencepost.broker.node.broker import Broker
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.replication.follower.steps import FollowerState
from fencepost.broker.replication.replica import Replica
from fencepost.protocol.errors import ErrorCode
from fencepost.storage.tier.object_store import ObjectStore, TierError, partition_prefix
from fencepost.storage.tier.segment_metadata import TopicIdPartition


class DeletedSegments(NamedTuple):
    """What a replica has let go of.

    :ivar segments: How many.
    """

    broker_id: int
    segments: int
    local_log_start_offset: int


def upload(cluster: Cluster, topic: str, index: int, then: OnDone) -> None:
    """Have the leader's task run now: it learns what the tier has, uploads, deletes, expires."""
    broker, replica = find_leader(cluster, topic, index)
    broker.remote_log_manager.run_task(replica, _at_end_of_turn(cluster, then))


def expire(cluster: Cluster, topic: str, index: int, then: OnDone) -> None:
    """Have retention in the tier run now."""
    broker, replica = find_leader(cluster, topic, index)
    broker.remote_log_manager.expire(replica, _at_end_of_turn(cluster, then))


def forget(cluster: Cluster, topic: str, index: int, then: OnDone) -> None:
    """Let the leader know nothing of the tier, as if it were newly elected.

    Until its task runs again -5 and -6 are answered -1.
    """
    broker, replica = find_leader(cluster, topic, index)
    broker.remote_log_manager.forget(replica, _at_end_of_turn(cluster, then))


def delete_local(
    cluster: Cluster,
    topic: str,
    index: int,
    then: Callable[[tuple[DeletedSegments, ...] | TierError], None],
) -> None:
    """Have every replica delete what the tier has, whatever local retention says.

    The leader goes by what it knows. A follower looks what the tier has first: else it would know
    only what it saw when its own task ran last.

    :param then: Told of each replica on a broker that runs, the leader first; or why it could not
        be done, and then nothing was.
    """
    find_leader(cluster, topic, index)
    held = [
        (cluster.brokers[broker_id], cluster.brokers[broker_id].replicas.get((topic, index)))
        for broker_id in operator_actions.leader_first(cluster.controller.partition(topic, index))
    ]
    replicas = [(broker, replica) for broker, replica in held if replica is not None]
    unheard = [(broker, replica) for broker, replica in replicas if not replica.is_leader]
    cluster.scheduler.soon(partial(_delete_local, replicas, unheard, then, None))


def _delete_local(
    replicas: list[tuple[Broker, Replica]],
    unheard: list[tuple[Broker, Replica]],
    then: Callable[[tuple[DeletedSegments, ...] | TierError], None],
    error: TierError | None,
) -> None:
    """Let those followers look that have not, one after the other, and then have all delete."""
    if error is not None:
        then(error)
    elif unheard:
        broker, replica = unheard.pop()
        go_on = partial(_delete_local, replicas, unheard, then)
        broker.remote_log_manager.run_task(replica, go_on)
    else:
        then(tuple(_deleted_segments(broker, replica) for broker, replica in replicas))


def _deleted_segments(broker: Broker, replica: Replica) -> DeletedSegments:
    count = broker.remote_log_manager.delete_local(replica)
    return DeletedSegments(broker.broker_id, count, replica.log.local_log_start_offset)


def lose(cluster: Cluster, topic: str, index: int, then: Callable[[int | TierError], None]) -> None:
    """Let the tier lose all objects that it has of a partition; no fault is met.

    The leader is not informed: it serves with what it knows until its task runs again.

    :param then: Told how many there were.
    """
    _, replica = find_leader(cluster, topic, index)
    objects: ObjectStore | None = cluster.objects
    assert objects is not None, "there is no tier, and yet a topic has one"
    whose = TopicIdPartition(topic=topic, topic_id=replica.topic_id, index=index)

    def listed(keys: list[str] | TierError) -> None:
        if isinstance(keys, TierError):
            then(keys)
        else:
            objects.delete(keys, partial(deleted, len(keys)))

    def deleted(count: int, error: TierError | None) -> None:
        if error is None:
            cluster.events.emit(Kind.TIER_LOST, topic=topic, partition=index, objects=count)
        then(error or count)

    objects.list(partition_prefix(whose), listed)


def when_built(cluster: Cluster, then: Callable[[], None]) -> None:
    """Wait until the followers that the tier keeps waiting now have what they read, or an error.

    What a fault delays is not waited for: with a manual clock it may never come.

    :param then: Called now or later.
    """
    building = [
        follower
        for broker in cluster.brokers.values()
        for follower in broker.replica_manager.followers
        if follower.state is FollowerState.BUILDING
    ]

    def check() -> None:
        building[:] = [each for each in building if each.state is FollowerState.BUILDING]
        if building and cluster.tier_operations.count:
            cluster.tier_operations.on_next_end(check)
        else:
            then()

    check()


def find_leader(cluster: Cluster, topic: str, index: int) -> tuple[Broker, Replica]:
    """The leader of a partition that has a tier, and its broker.

    :raises ControllerError: LEADER_NOT_AVAILABLE when there is none; INVALID_REQUEST when the topic
        has no tier.
    """
    broker, replica = operator_actions.find_leader(cluster, topic, index)
    if not replica.log.config.remote_storage_enable:
        raise ControllerError(
            ErrorCode.INVALID_REQUEST,
            f"{topic} is not tiered: its remote.storage.enable is to be true",
        )
    return broker, replica


def _at_end_of_turn(cluster: Cluster, then: OnDone) -> OnDone:
    """Where the answer is known at once, it is told at the end of this turn all the same."""
    return lambda error: cluster.scheduler.soon(lambda: then(error))
