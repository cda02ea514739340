"""OffsetForLeaderEpoch (23), versions 2 to 4.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class OffsetForLeaderPartition(Struct, frozen=True, kw_only=True, gc=False):
    partition: int = 0
    current_leader_epoch: int = -1
    leader_epoch: int = 0


class OffsetForLeaderTopic(Struct, frozen=True, kw_only=True, gc=False):
    topic: str = ""
    partitions: tuple[OffsetForLeaderPartition, ...] = ()


class OffsetForLeaderEpochRequest(Struct, frozen=True, kw_only=True, gc=False):
    topics: tuple[OffsetForLeaderTopic, ...] = ()
    replica_id: int = -2  # v3+


class EpochEndOffset(Struct, frozen=True, kw_only=True, gc=False):
    error_code: int = 0
    partition: int = 0
    leader_epoch: int = -1
    end_offset: int = -1


class OffsetForLeaderTopicResult(Struct, frozen=True, kw_only=True, gc=False):
    topic: str = ""
    partitions: tuple[EpochEndOffset, ...] = ()


class OffsetForLeaderEpochResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    topics: tuple[OffsetForLeaderTopicResult, ...] = ()
