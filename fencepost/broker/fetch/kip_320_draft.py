"""The checks of Fetch v9 in the dialect ``kip-320-draft``, the earlier draft of KIP-320.

Its consumer sends the epoch of the last record that it fetched, and not the epoch in which it
believes the leader to be. So it is never FENCED_LEADER_EPOCH; a leader that has been deposed serves
it until the consumer learns of the next one. It is not sent to divergence either, as from v12 on,
but looks for it by OffsetForLeaderEpoch.

Only an offset below the log start is OFFSET_OUT_OF_RANGE. Above the log end it is a truncation
where the consumer says what it fetched; where it does not, as after a truncation that it ignores,
there are no records until the log reaches the offset.

Followers keep the final protocol.
"""

from fencepost.broker.replication.replica import Replica
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import FetchPartition


def find_truncation(leader: Replica, asked: FetchPartition) -> ErrorCode | None:
    """Why the log can't be what the consumer has fetched; None where it can, or no epoch is sent.

    LOG_TRUNCATION where an epoch larger than the consumer's began below its fetch offset, or the
    log ends below it; UNKNOWN_LEADER_EPOCH where the log knows no epoch as large.
    """
    if asked.last_fetched_epoch < 0 or not leader.log.config.keeps_leader_epochs:
        return None
    epoch, end_offset = leader.end_offset_for_epoch(asked.last_fetched_epoch)
    if epoch < 0:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.LOG_TRUNCATION if end_offset < asked.fetch_offset else None


def is_above_log_end(leader: Replica, asked: FetchPartition) -> bool:
    """Whether the log has not reached the fetch offset, to which there is no error."""
    return asked.fetch_offset > leader.log.log_end_offset
