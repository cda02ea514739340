"""The requests that a follower sends, with just the fields that their version has."""

from typing import Final

from fencepost.broker.configs.effective_configs import BrokerConfigs
from fencepost.broker.replication.follower.start_offset import SpecialTimestamp
from fencepost.broker.replication.replica import Replica
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ReplicaState,
)
from fencepost.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from fencepost.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

FETCH: Final = BY_NAME["fetch"]
LIST_OFFSETS: Final = BY_NAME["list_offsets"]
OFFSET_FOR_LEADER_EPOCH: Final = BY_NAME["offset_for_leader_epoch"]
_UNKNOWN: Final = -1
_FIRST_FETCH_WITH_EPOCH: Final = 9
_FIRST_FETCH_WITH_LAST_EPOCH: Final = 12
_FIRST_FETCH_WITH_STATE: Final = 15
_FIRST_LIST_WITH_EPOCH: Final = 4
_FIRST_LIST_WITH_LOCAL: Final = 8


def fetch_request(
    replica: Replica, configs: BrokerConfigs, *, broker_epoch: int, version: int
) -> FetchRequest:
    """For what comes after the replica's log end, without waiting for it."""
    log = replica.log
    latest = log.latest_epoch if version >= _FIRST_FETCH_WITH_LAST_EPOCH else None
    partition = FetchPartition(
        partition=replica.index,
        current_leader_epoch=(
            replica.leader_epoch if version >= _FIRST_FETCH_WITH_EPOCH else _UNKNOWN
        ),
        fetch_offset=log.log_end_offset,
        last_fetched_epoch=_UNKNOWN if latest is None else latest,
        log_start_offset=log.log_start_offset,
        partition_max_bytes=configs.replica_fetch_max_bytes,
        high_watermark=replica.high_watermark,
    )
    topic = FetchTopic(topic=replica.topic, topic_id=replica.topic_id, partitions=(partition,))
    if version >= _FIRST_FETCH_WITH_STATE:
        return FetchRequest(
            replica_state=ReplicaState(replica_id=replica.broker_id, replica_epoch=broker_epoch),
            max_bytes=configs.replica_fetch_response_max_bytes,
            topics=(topic,),
        )
    return FetchRequest(
        replica_id=replica.broker_id,
        max_bytes=configs.replica_fetch_response_max_bytes,
        topics=(topic,),
    )


def epoch_end_request(replica: Replica, epoch: int) -> OffsetForLeaderEpochRequest:
    """For the end of an epoch in the leader's log."""
    partition = OffsetForLeaderPartition(
        partition=replica.index,
        current_leader_epoch=replica.leader_epoch,
        leader_epoch=epoch,
    )
    return OffsetForLeaderEpochRequest(
        replica_id=replica.broker_id,
        topics=(OffsetForLeaderTopic(topic=replica.topic, partitions=(partition,)),),
    )


def list_offset_request(
    replica: Replica, target: SpecialTimestamp, *, version: int
) -> ListOffsetsRequest:
    """For an offset of the leader's log; a leader that keeps no tier has its log start here."""
    if target is SpecialTimestamp.EARLIEST_LOCAL and version < _FIRST_LIST_WITH_LOCAL:
        target = SpecialTimestamp.EARLIEST
    partition = ListOffsetsPartition(
        partition_index=replica.index,
        current_leader_epoch=(
            replica.leader_epoch if version >= _FIRST_LIST_WITH_EPOCH else _UNKNOWN
        ),
        timestamp=target,
    )
    return ListOffsetsRequest(
        replica_id=replica.broker_id,
        topics=(ListOffsetsTopic(name=replica.topic, partitions=(partition,)),),
    )
