"""OffsetDelete (47), versions 0 to 0.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from fencepost.protocol.messages import struct


@struct(frozen=True, slots=True, kw_only=True)
class OffsetDeleteRequestPartition:
    partition_index: int = 0


@struct(frozen=True, slots=True, kw_only=True)
class OffsetDeleteRequestTopic:
    name: str = ""
    partitions: tuple[OffsetDeleteRequestPartition, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class OffsetDeleteRequest:
    group_id: str = ""
    topics: tuple[OffsetDeleteRequestTopic, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class OffsetDeleteResponsePartition:
    partition_index: int = 0
    error_code: int = 0


@struct(frozen=True, slots=True, kw_only=True)
class OffsetDeleteResponseTopic:
    name: str = ""
    partitions: tuple[OffsetDeleteResponsePartition, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class OffsetDeleteResponse:
    error_code: int = 0
    throttle_time_ms: int = 0
    topics: tuple[OffsetDeleteResponseTopic, ...] = ()
