"""What a test sees of transactions and does to them: the verbs, without HTTP.

A transactional id is where its coordinator is: at the broker that leads its partition of
``__transaction_state``. What these do is written to that partition, or sent to the leaders of the
transaction's partitions, as for a client's request, and no fault hits it.

:raises ControllerError: (all of them) When it is refused, with Kafka's code and words.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from fencepost.broker.coordinator import partition_for
from fencepost.broker.coordinator.commit_queue import ReplicaLog
from fencepost.broker.core.errors import ControllerError
from fencepost.broker.core.waits import Wait
from fencepost.broker.groups.group_coordinator import OFFSETS_TOPIC
from fencepost.broker.metadata.image import TRANSACTION_TOPIC
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.node.coordinator_shards import loaded_shard
from fencepost.broker.node.operator_actions import find_leader
from fencepost.broker.replication.replica import Replica
from fencepost.broker.transactions.transaction_coordinator import (
    NEVER_TIMES_OUT,
    TransactionCoordinatorShard,
)
from fencepost.broker.transactions.transaction_metadata import TopicPartition, TransactionMetadata
from fencepost.broker.transactions.transaction_state import IDLE, TransactionState
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.transaction_markers import TransactionMarker
from fencepost.storage.log.producer_state import ProducerStateEntry

_ANY_EPOCH: Final = 0
"""The ``transaction.version`` by which a marker may have the epoch of the records, as that of
``kafka-transactions.sh abort`` has it."""


class FoundTransaction(NamedTuple):
    """A transactional id at its coordinator."""

    transactional_id: str
    metadata: TransactionMetadata
    """The newest, committed or not."""
    coordinator: int
    """Broker id."""
    state_partition: int
    """Of ``__transaction_state``."""
    shard: TransactionCoordinatorShard

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """The partitions of its transaction that have no marker yet, in order."""
        return tuple(sorted(self.shard.remaining_partitions(self.transactional_id, self.metadata)))

    @property
    def held(self) -> frozenset[TopicPartition]:
        """The partitions to which no marker of this id is sent."""
        channel = self.shard.coordinator.channel
        return frozenset(each for owner, each in channel.held if owner == self.transactional_id)

    @property
    def is_settled(self) -> bool:
        """Whether nothing goes on by itself: what has no marker yet is held, or not decided."""
        is_committed = not self.shard.is_in_transition(self.transactional_id)
        if self.metadata.state in IDLE or self.metadata.state is TransactionState.ONGOING:
            return is_committed
        return is_committed and frozenset(self.partitions) <= self.held and bool(self.partitions)


# -- looking ------------------------------------------------------------------------------------


def all_transactions(cluster: Cluster) -> list[FoundTransaction]:
    """The transactional ids of every coordinator that is available, by name."""
    return sorted(_found(cluster), key=lambda each: each.transactional_id)


def _found(cluster: Cluster) -> Iterator[FoundTransaction]:
    image = cluster.controller.image.topics.get(TRANSACTION_TOPIC)
    for index in range(0 if image is None else len(image.partitions)):
        try:
            coordinator, shard = _shard(cluster, index)
        except ControllerError:
            continue
        for transactional_id, metadata in shard.latest.transactions.items():
            yield FoundTransaction(transactional_id, metadata, coordinator, index, shard)


def find_transaction(cluster: Cluster, transactional_id: str) -> FoundTransaction:
    """A transactional id in its present state.

    :raises ControllerError: TRANSACTIONAL_ID_NOT_FOUND when there is none of this name;
        COORDINATOR_NOT_AVAILABLE when its partition has no leader.
    """
    image = cluster.controller.image.topics.get(TRANSACTION_TOPIC)
    if image is not None:
        index = partition_for(transactional_id, len(image.partitions))
        coordinator, shard = _shard(cluster, index)
        metadata = shard.find(transactional_id)
        if metadata is not None:
            return FoundTransaction(transactional_id, metadata, coordinator, index, shard)
    raise ControllerError(
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, f"there is no transactional id {transactional_id!r}"
    )


def _shard(cluster: Cluster, index: int) -> tuple[int, TransactionCoordinatorShard]:
    """The coordinator of a partition, and its shard, which has loaded."""
    return loaded_shard(
        cluster, TRANSACTION_TOPIC, index, lambda broker: broker.transactions.runtime
    )


# -- ending -------------------------------------------------------------------------------------


def abort(cluster: Cluster, transactional_id: str) -> Wait[ErrorCode]:
    """Abort a transaction as its coordinator does when it times out: its producer is fenced.

    :returns: NONE once the decision is replicated, or why it is not; the markers come then.
    :raises ControllerError: INVALID_TXN_STATE when there is no open transaction.
    """
    found = find_transaction(cluster, transactional_id)
    if found.metadata.state is not TransactionState.ONGOING:
        raise ControllerError(
            ErrorCode.INVALID_TXN_STATE,
            f"transactional id {transactional_id!r} has no open transaction: it is"
            f" {found.metadata.state.title}",
        )
    answer: Wait[ErrorCode] = Wait()
    found.shard.abort(transactional_id, found.metadata, answer.complete)
    cluster.scheduler.run_due()
    return answer


def abort_hanging(
    cluster: Cluster, topic: str, index: int, producer_id: int
) -> ErrorCode | Wait[ErrorCode]:
    """Write an abort marker to one partition, for a transaction that no coordinator knows.

    It is what ``kafka-transactions.sh abort`` does (KIP-664).

    :returns: NONE once the marker is replicated, or why it is not.
    :raises ControllerError: INVALID_TXN_STATE when the producer has no open transaction there, or
        its coordinator knows of it.
    """
    _, replica = find_leader(cluster, topic, index)
    producer = _open_producer(replica, producer_id)
    _check_unknown(cluster, topic, index, producer_id)
    marker = TransactionMarker(
        producer_id=producer_id,
        producer_epoch=producer.producer_epoch,
        coordinator_epoch=max(producer.coordinator_epoch, 0),
        committed=False,
        transaction_version=_ANY_EPOCH,
    )
    answer = _write_marker(cluster, replica, marker)
    cluster.scheduler.run_due()
    return answer


def _open_producer(replica: Replica, producer_id: int) -> ProducerStateEntry:
    opened = [each for each in replica.log.producers() if each.txn_first_offset is not None]
    for each in opened:
        if each.producer_id == producer_id:
            return each
    others = ", ".join(str(each.producer_id) for each in opened) or "none"
    raise ControllerError(
        ErrorCode.INVALID_TXN_STATE,
        f"producer {producer_id} has no open transaction in {replica.topic}-{replica.index};"
        f" producers that have one: {others}",
    )


def _check_unknown(cluster: Cluster, topic: str, index: int, producer_id: int) -> None:
    for found in _found(cluster):
        is_its = found.metadata.producer_id == producer_id
        if is_its and (topic, index) in found.metadata.partitions:
            raise ControllerError(
                ErrorCode.INVALID_TXN_STATE,
                f"the transaction of producer {producer_id} does not hang: it is that of"
                f" transactional id {found.transactional_id!r}, which can be aborted",
            )


def _write_marker(
    cluster: Cluster, replica: Replica, marker: TransactionMarker
) -> ErrorCode | Wait[ErrorCode]:
    if replica.topic == OFFSETS_TOPIC:
        groups = cluster.brokers[replica.broker_id].coordinator
        return groups.complete_transaction(replica.index, marker)
    log = ReplicaLog(replica, cluster.scheduler)
    offset = log.append_marker(marker)
    if isinstance(offset, ErrorCode):
        return offset
    answer: Wait[ErrorCode] = Wait()
    log.when_committed(offset, lambda: answer.complete(ErrorCode.NONE))
    return answer


# -- time ---------------------------------------------------------------------------------------


def ms_until_expiry(cluster: Cluster, transactional_id: str) -> int:
    """By how much the clock has to move for the coordinator to end an id's present state.

    An open transaction times out and is aborted; an id without one expires and is forgotten. The
    coordinator looks at intervals: one of them is included.

    :raises ControllerError: CONCURRENT_TRANSACTIONS while its markers are on their way;
        INVALID_REQUEST when its transaction never times out.
    """
    found = find_transaction(cluster, transactional_id)
    metadata, config = found.metadata, found.shard.coordinator.config
    now_ms = cluster.scheduler.wall_ms()
    if metadata.state is TransactionState.ONGOING:
        if metadata.timeout_ms == NEVER_TIMES_OUT:
            raise ControllerError(
                ErrorCode.INVALID_REQUEST, "the transaction has no timeout: it is a two-phase one"
            )
        due_ms = metadata.start_ms + metadata.timeout_ms
        return max(due_ms - now_ms, 0) + config.abort_interval_ms + 1
    if metadata.state not in IDLE:
        raise ControllerError(
            ErrorCode.CONCURRENT_TRANSACTIONS,
            f"transactional id {transactional_id!r} is {metadata.state.title}: its markers are on"
            " their way",
        )
    due_ms = metadata.last_update_ms + config.expiration_ms
    return max(due_ms - now_ms, 0) + config.expiration_interval_ms + 1


# -- markers on their way -----------------------------------------------------------------------


def hold_marker(cluster: Cluster, transactional_id: str, topic: str, index: int) -> None:
    """Send no marker of an id to a partition, this one and later ones, by any coordinator.

    :raises ControllerError: UNKNOWN_TOPIC_OR_PARTITION when there is no such partition.
    """
    find_transaction(cluster, transactional_id)
    cluster.controller.partition(topic, index)
    for broker in cluster.brokers.values():
        broker.transactions.channel.hold(transactional_id, (topic, index))


def release_marker(cluster: Cluster, transactional_id: str, topic: str, index: int) -> None:
    """Let the markers of an id go to a partition again.

    :raises ControllerError: INVALID_REQUEST when nothing is held there.
    """
    found = find_transaction(cluster, transactional_id)
    partition = (topic, index)
    if partition not in found.held:
        others = ", ".join(f"{name}-{at}" for name, at in sorted(found.held)) or "none"
        raise ControllerError(
            ErrorCode.INVALID_REQUEST,
            f"no marker of {transactional_id!r} is held on its way to {topic}-{index}; held:"
            f" {others}",
        )
    for broker in cluster.brokers.values():
        broker.transactions.channel.release(transactional_id, partition)
    cluster.scheduler.run_due()
