"""What a test sees of groups and does to them: the verbs, without HTTP.

A group is where its coordinator is: at the broker that leads its partition of
``__consumer_offsets``. What these do is written to that partition as a client's request is, and no
fault hits it. They ask for no membership: offsets can be set and deleted behind the members' backs.

:raises ControllerError: (all of them) When it is refused, with Kafka's code and words.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

from fencepost.broker.controller.auto_topic_creation import create_internal_topic
from fencepost.broker.coordinator import partition_for
from fencepost.broker.coordinator.shard import CoordinatorResult
from fencepost.broker.core.errors import ControllerError
from fencepost.broker.core.waits import Wait
from fencepost.broker.groups import offsets, rebalance, requests
from fencepost.broker.groups.classic_group import ClassicGroup, ClassicGroupState
from fencepost.broker.groups.group_coordinator import OFFSETS_TOPIC, GroupCoordinatorShard
from fencepost.broker.groups.offsets import NO_RETENTION, Commit, PartitionCommit
from fencepost.broker.groups.records import CommittedOffset, CoordinatorRecord
from fencepost.broker.node import operator_actions
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.node.coordinator_shards import loaded_shard
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.leave_group import LeaveGroupResponse, MemberIdentity

T = TypeVar("T")

_BY_A_TEST: Final = "a test asked for it"


class FoundGroup(NamedTuple):
    """A group at its coordinator."""

    group: ClassicGroup
    coordinator: int
    """Broker id."""
    offsets_partition: int
    """Of ``__consumer_offsets``."""
    shard: GroupCoordinatorShard

    def committed_offsets(self) -> Iterator[tuple[str, int, CommittedOffset]]:
        """Topic, partition and offset of each commit that is replicated."""
        by_topic = self.shard.committed.offsets.get(self.group.group_id, {})
        for topic, partitions in sorted(by_topic.items()):
            for index, committed in sorted(partitions.items()):
                yield topic, index, committed


# -- looking ------------------------------------------------------------------------------------


def all_groups(cluster: Cluster) -> list[FoundGroup]:
    """The groups of every coordinator that is available, by name."""
    image = cluster.controller.image.topics.get(OFFSETS_TOPIC)
    found: list[FoundGroup] = []
    for index in range(0 if image is None else len(image.partitions)):
        try:
            coordinator, shard = _shard(cluster, index)
        except ControllerError:
            continue
        groups = (shard.find(name) for name in {*shard.groups, *shard.latest.groups})
        found += (FoundGroup(group, coordinator, index, shard) for group in groups if group)
    return sorted(found, key=lambda each: each.group.group_id)


def find_group(cluster: Cluster, group_id: str) -> FoundGroup:
    """A group in its present state.

    :raises ControllerError: GROUP_ID_NOT_FOUND when there is none of this name;
        COORDINATOR_NOT_AVAILABLE when its partition has no leader.
    """
    image = cluster.controller.image.topics.get(OFFSETS_TOPIC)
    if image is None:
        raise _not_found(group_id)
    index = partition_for(group_id, len(image.partitions))
    coordinator, shard = _shard(cluster, index)
    group = shard.find(group_id)
    if group is None:
        raise _not_found(group_id)
    return FoundGroup(group, coordinator, index, shard)


def _not_found(group_id: str) -> ControllerError:
    return ControllerError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id!r}")


def _shard(cluster: Cluster, index: int) -> tuple[int, GroupCoordinatorShard]:
    """The coordinator of a partition, and its shard, which has loaded."""
    return loaded_shard(cluster, OFFSETS_TOPIC, index, lambda broker: broker.coordinator.runtime)


def _after_turn(cluster: Cluster, answer: T | Wait[T]) -> T | Wait[T]:
    """An answer when the followers have fetched that can: mostly it is there by then."""
    cluster.scheduler.run_due()
    if isinstance(answer, Wait) and answer.result is not None:
        return answer.result
    return answer


# -- members ------------------------------------------------------------------------------------


def remove_member(
    cluster: Cluster, group_id: str, member_id: str
) -> LeaveGroupResponse | Wait[LeaveGroupResponse]:
    """Remove a member as if it had left; the others rebalance.

    :raises ControllerError: UNKNOWN_MEMBER_ID when the group has no such member.
    """
    found = find_group(cluster, group_id)
    if member_id not in {*found.group.members, *found.group.pending_joins}:
        members = ", ".join(found.group.members) or "none"
        raise ControllerError(
            ErrorCode.UNKNOWN_MEMBER_ID,
            f"group {group_id!r} has no member {member_id!r}; it has {members}",
        )
    leaving = MemberIdentity(member_id=member_id, group_instance_id=None, reason=_BY_A_TEST)
    return _after_turn(cluster, requests.leave(found.shard, group_id, (leaving,)))


def force_rebalance(cluster: Cluster, group_id: str) -> None:
    """Begin a rebalance: each member joins again when it has sent its next heartbeat.

    :raises ControllerError: INVALID_REQUEST when the group has no members.
    """
    group, _, _, shard = find_group(cluster, group_id)
    if group.state is ClassicGroupState.EMPTY:
        raise ControllerError(
            ErrorCode.INVALID_REQUEST, f"group {group_id!r} has no members that could rebalance"
        )
    if group.state is not ClassicGroupState.PREPARING_REBALANCE:
        rebalance.prepare_rebalance(shard, group, _BY_A_TEST)
    cluster.scheduler.run_due()


def move_coordinator(cluster: Cluster, group_id: str, broker_id: int) -> None:
    """Make a broker the coordinator of a group, and of all others of its partition.

    :raises ControllerError: ELIGIBLE_LEADERS_NOT_AVAILABLE when the broker is not in the ISR.
    """
    found = find_group(cluster, group_id)
    operator_actions.elect(cluster, OFFSETS_TOPIC, found.offsets_partition, broker_id)


# -- offsets ------------------------------------------------------------------------------------


class NewOffset(NamedTuple):
    """An offset to commit."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str = ""


def set_offsets(
    cluster: Cluster, group_id: str, given: Sequence[NewOffset]
) -> ErrorCode | Wait[ErrorCode]:
    """Commit offsets for a group, whatever its state; a group that is not there is created.

    :returns: NONE once they are replicated, or why they are not.
    :raises ControllerError: UNKNOWN_TOPIC_OR_PARTITION when a partition does not exist.
    """
    for each in given:
        cluster.controller.partition(each.topic, each.partition)
    shard = _shard_to_write(cluster, group_id)
    topics = cluster.controller.image.topics
    commit = Commit(
        group_id=group_id,
        generation=-1,
        member_id="",
        group_instance_id=None,
        retention_time_ms=NO_RETENTION,
        partitions=tuple(
            PartitionCommit(
                topic=each.topic,
                topic_id=topics[each.topic].topic_id,
                partition=each.partition,
                offset=each.offset,
                leader_epoch=each.leader_epoch,
                metadata=each.metadata,
            )
            for each in given
        ),
        missing_group_error=ErrorCode.GROUP_ID_NOT_FOUND,
    )
    decided = offsets.decide_commit(commit, shard.config, cluster.scheduler.wall_ms())
    refused = next((code for code in decided.response if code), None)
    if refused is not None:
        raise ControllerError(refused, f"the metadata of an offset is refused: {refused.name}")
    result = CoordinatorResult(response=ErrorCode.NONE, records=decided.records)
    return _after_turn(cluster, shard.commit_result(result, lambda error, _: error))


def delete_offsets(
    cluster: Cluster, group_id: str, topics: Iterable[str]
) -> ErrorCode | Wait[ErrorCode]:
    """Delete a group's offsets of topics, also where members are subscribed to them.

    :returns: NONE once the deletion is replicated, or why it is not.
    :raises ControllerError: UNKNOWN_TOPIC_OR_PARTITION when it has none of a topic.
    """
    shard = find_group(cluster, group_id).shard
    by_topic = shard.latest.offsets.get(group_id, {})
    wanted = list(dict.fromkeys(topics))
    for topic in wanted:
        if topic not in by_topic:
            others = f", only of {', '.join(sorted(by_topic))}" if by_topic else ""
            raise ControllerError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"group {group_id!r} has no offsets of topic {topic!r}{others}",
            )
    records: list[CoordinatorRecord] = [
        offsets.tombstone(group_id, topic, index) for topic in wanted for index in by_topic[topic]
    ]
    result = CoordinatorResult(response=ErrorCode.NONE, records=tuple(records))
    return _after_turn(cluster, shard.commit_result(result, lambda error, _: error))


def _shard_to_write(cluster: Cluster, group_id: str) -> GroupCoordinatorShard:
    """The shard of a group that may not be there yet; ``__consumer_offsets`` is created for it."""
    if OFFSETS_TOPIC not in cluster.controller.image.topics:
        running = (each for each in cluster.brokers.values() if each.running)
        broker = next(running, None)
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        if broker is not None:
            code = create_internal_topic(broker, OFFSETS_TOPIC)
            cluster.scheduler.run_due()
        if code is not ErrorCode.NONE:
            raise ControllerError(code, f"{OFFSETS_TOPIC} cannot be created: {code.name}")
    count = len(cluster.controller.image.topics[OFFSETS_TOPIC].partitions)
    return _shard(cluster, partition_for(group_id, count))[1]
