"""A follower cuts its log to where it and the leader's last agreed (KIP-101, KIP-279)."""

from typing import TYPE_CHECKING, cast

from fencepost.broker.core.events import Kind
from fencepost.broker.replication.follower.requests import (
    OFFSET_FOR_LEADER_EPOCH,
    epoch_end_request,
)
from fencepost.broker.replication.follower.steps import FollowerState
from fencepost.broker.replication.follower_progress import UNKNOWN_OFFSET
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochResponse
from fencepost.storage.log.leader_epoch_cache import EpochEndOffset, truncation_step

if TYPE_CHECKING:
    from fencepost.broker.replication.follower.follower import Follower


def ask_epoch_end(follower: "Follower") -> None:
    """TRUNCATING: ask the leader where the newest epoch of the own log ends."""
    latest = follower.replica.log.latest_epoch
    if latest is None:
        follower.fetch()
        return

    def take(answer: object) -> int:
        return _take_epoch_end(follower, cast(OffsetForLeaderEpochResponse, answer))

    version = follower.version(OFFSET_FOR_LEADER_EPOCH)
    request = epoch_end_request(follower.replica, latest)
    follower.send(OFFSET_FOR_LEADER_EPOCH, version, request, take)


def _take_epoch_end(follower: "Follower", answer: OffsetForLeaderEpochResponse) -> int:
    partition = answer.topics[0].partitions[0]
    epoch, end_offset = partition.leader_epoch, partition.end_offset
    if partition.error_code != ErrorCode.NONE:
        follower.back_off()
    elif end_offset == UNKNOWN_OFFSET:
        truncate(follower, follower.replica.high_watermark)
        follower.continue_in(FollowerState.FETCHING)
    else:
        agree = truncate_to_common_offset(follower, epoch, end_offset)
        follower.continue_in(FollowerState.FETCHING if agree else FollowerState.TRUNCATING)
    return partition.error_code


def truncate_to_common_offset(follower: "Follower", epoch: int, end_offset: int) -> bool:
    """Cut to where the own log and the leader's last agreed.

    :param epoch: The leader's largest epoch that is not above the own newest, and its end.
    :returns: Whether both logs know that epoch; if not, an older one has to be compared.
    """
    own = EpochEndOffset(*follower.replica.end_offset_for_epoch(epoch))
    step = truncation_step(EpochEndOffset(epoch, end_offset), own)
    truncate(follower, step.offset)
    return step.is_common


def truncate(follower: "Follower", offset: int) -> None:
    """Cut there, if the log goes on so far; epochs that begin there or later go anyway.

    Where that leaves nothing here of a log that is in the tier for the rest, it starts again at
    its log start: what it knows of the tier ends behind where it was to be cut.
    """
    replica, log = follower.replica, follower.replica.log
    before = log.log_end_offset
    if log.log_start_offset <= offset < log.local_log_start_offset:
        now_ms = follower.broker.scheduler.wall_ms()
        replica.truncate_fully_and_start_at(log.log_start_offset, now_ms=now_ms)
        report_truncation(follower, before)
    elif replica.truncate_to(offset):
        report_truncation(follower, before)


def report_truncation(follower: "Follower", before: int) -> None:
    """Tell that the log, which ended there before, was truncated or started again."""
    replica = follower.replica
    follower.truncated_to = replica.log.log_end_offset
    follower.broker.events.emit(
        Kind.LOG_TRUNCATED,
        topic=replica.topic,
        partition=replica.index,
        broker=replica.broker_id,
        offset=follower.truncated_to,
        previous_offset=before,
    )
