"""The answers for a partition of a Fetch that have no records: errors, and where logs part."""

from typing import Final

from fencepost.broker.replication.replica import Replica
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import (
    EpochEndOffset,
    FetchPartition,
    LeaderIdAndEpoch,
    PartitionData,
)

NOT_DIVERGING: Final = EpochEndOffset()
_NO_LEADER: Final = LeaderIdAndEpoch()


def error_answer(
    index: int,
    code: int,
    *,
    aborted: tuple[()] | None = None,
    leader: LeaderIdAndEpoch = _NO_LEADER,
) -> PartitionData:
    """A partition's answer that is only a code, with a hint at its leader."""
    return PartitionData(
        partition_index=index,
        error_code=code,
        high_watermark=-1,
        aborted_transactions=aborted,
        records=(),
        current_leader=leader,
    )


def moved_answer(index: int, replica: Replica) -> PartitionData:
    """A follower's offset is only in the tier; it is told enough to go on behind (KIP-405)."""
    return PartitionData(
        partition_index=index,
        error_code=ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE,
        high_watermark=replica.high_watermark,
        log_start_offset=replica.log.log_start_offset,
        aborted_transactions=None,
        records=(),
    )


def diverging_epoch(replica: Replica, asked: FetchPartition) -> EpochEndOffset | ErrorCode | None:
    """Where the client's log and this one part, if they do before its fetch offset (KIP-595)."""
    if asked.last_fetched_epoch < 0 or not replica.log.config.keeps_leader_epochs:
        return None
    epoch, end_offset = replica.end_offset_for_epoch(asked.last_fetched_epoch)
    if epoch < 0 or end_offset < 0:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    if epoch < asked.last_fetched_epoch or end_offset < asked.fetch_offset:
        return EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return None
