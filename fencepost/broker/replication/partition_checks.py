"""The checks that stand before the work of every partition request, in Kafka's order.

Known topic, known partition, replica here and its log in order, leader epoch (KIP-320), leader.
Written once; a handler gets the replica or the error code to answer.
"""

from fencepost.broker.replication.node import ReplicaHolder
from fencepost.broker.replication.replica import Replica
from fencepost.protocol.errors import ErrorCode

NO_EPOCH = -1


def find_leader(
    broker: ReplicaHolder,
    topic: str,
    index: int,
    current_leader_epoch: int = NO_EPOCH,
    *,
    is_broker: bool = False,
) -> Replica | ErrorCode:
    """The replica on this broker, if it leads the partition in the epoch that the client knows.

    The parameters are those of `find_replica`.
    """
    replica = find_replica(broker, topic, index, current_leader_epoch, is_broker=is_broker)
    if isinstance(replica, Replica) and not replica.is_leader:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return replica


def find_replica(
    broker: ReplicaHolder,
    topic: str,
    index: int,
    current_leader_epoch: int = NO_EPOCH,
    *,
    is_broker: bool = False,
) -> Replica | ErrorCode:
    """The replica on this broker, leader or follower, in the epoch that the client knows.

    :param current_leader_epoch: What the client knows; -1 is not checked. That of a topic in the
        old message format is not checked either, because clients learn none: librdkafka sends 0.
    :param is_broker: Whether another broker asks, which knows the epoch of every topic.
    """
    replica = broker.replicas.get((topic, index))
    if replica is None:
        if (topic, index) in broker.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if broker.view.partition(topic, index) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if current_leader_epoch not in (NO_EPOCH, replica.leader_epoch) and (
        is_broker or replica.log.config.keeps_leader_epochs
    ):
        if current_leader_epoch < replica.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    return replica
