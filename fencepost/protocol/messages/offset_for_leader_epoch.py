"""OffsetForLeaderEpoch (23), versions 2 to 4.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from fencepost.protocol.messages import struct


@struct(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderPartition:
    partition: int = 0
    current_leader_epoch: int = -1
    leader_epoch: int = 0


@struct(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderTopic:
    topic: str = ""
    partitions: tuple[OffsetForLeaderPartition, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderEpochRequest:
    topics: tuple[OffsetForLeaderTopic, ...] = ()
    replica_id: int = -2  # v3+


@struct(frozen=True, slots=True, kw_only=True)
class EpochEndOffset:
    error_code: int = 0
    partition: int = 0
    leader_epoch: int = -1
    end_offset: int = -1


@struct(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderTopicResult:
    topic: str = ""
    partitions: tuple[EpochEndOffset, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderEpochResponse:
    throttle_time_ms: int = 0
    topics: tuple[OffsetForLeaderTopicResult, ...] = ()
