"""DeleteRecords (21), versions 0 to 2.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from fencepost.protocol.messages import struct


@struct(frozen=True, slots=True, kw_only=True)
class DeleteRecordsPartition:
    partition_index: int = 0
    offset: int = 0


@struct(frozen=True, slots=True, kw_only=True)
class DeleteRecordsTopic:
    name: str = ""
    partitions: tuple[DeleteRecordsPartition, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class DeleteRecordsRequest:
    topics: tuple[DeleteRecordsTopic, ...] = ()
    timeout_ms: int = 0


@struct(frozen=True, slots=True, kw_only=True)
class DeleteRecordsPartitionResult:
    partition_index: int = 0
    low_watermark: int = 0
    error_code: int = 0


@struct(frozen=True, slots=True, kw_only=True)
class DeleteRecordsTopicResult:
    name: str = ""
    partitions: tuple[DeleteRecordsPartitionResult, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class DeleteRecordsResponse:
    throttle_time_ms: int = 0
    topics: tuple[DeleteRecordsTopicResult, ...] = ()
