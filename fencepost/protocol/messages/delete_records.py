"""DeleteRecords (21), versions 0 to 2.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class DeleteRecordsPartition(Struct, frozen=True, kw_only=True, gc=False):
    partition_index: int = 0
    offset: int = 0


class DeleteRecordsTopic(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""
    partitions: tuple[DeleteRecordsPartition, ...] = ()


class DeleteRecordsRequest(Struct, frozen=True, kw_only=True, gc=False):
    topics: tuple[DeleteRecordsTopic, ...] = ()
    timeout_ms: int = 0


class DeleteRecordsPartitionResult(Struct, frozen=True, kw_only=True, gc=False):
    partition_index: int = 0
    low_watermark: int = 0
    error_code: int = 0


class DeleteRecordsTopicResult(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""
    partitions: tuple[DeleteRecordsPartitionResult, ...] = ()


class DeleteRecordsResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    topics: tuple[DeleteRecordsTopicResult, ...] = ()
