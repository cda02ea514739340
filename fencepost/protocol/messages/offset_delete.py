"""OffsetDelete (47), versions 0 to 0.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class OffsetDeleteRequestPartition(Struct, frozen=True, kw_only=True, gc=False):
    partition_index: int = 0


class OffsetDeleteRequestTopic(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""
    partitions: tuple[OffsetDeleteRequestPartition, ...] = ()


class OffsetDeleteRequest(Struct, frozen=True, kw_only=True, gc=False):
    group_id: str = ""
    topics: tuple[OffsetDeleteRequestTopic, ...] = ()


class OffsetDeleteResponsePartition(Struct, frozen=True, kw_only=True, gc=False):
    partition_index: int = 0
    error_code: int = 0


class OffsetDeleteResponseTopic(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""
    partitions: tuple[OffsetDeleteResponsePartition, ...] = ()


class OffsetDeleteResponse(Struct, frozen=True, kw_only=True, gc=False):
    error_code: int = 0
    throttle_time_ms: int = 0
    topics: tuple[OffsetDeleteResponseTopic, ...] = ()
