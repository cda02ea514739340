"""DescribeLogDirs (35), versions 1 to 5.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from fencepost.protocol.messages import struct


@struct(frozen=True, slots=True, kw_only=True)
class DescribableLogDirTopic:
    topic: str = ""
    partitions: tuple[int, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class DescribeLogDirsRequest:
    topics: tuple[DescribableLogDirTopic, ...] | None = ()


@struct(frozen=True, slots=True, kw_only=True)
class DescribeLogDirsPartition:
    partition_index: int = 0
    partition_size: int = 0
    offset_lag: int = 0
    is_future_key: bool = False


@struct(frozen=True, slots=True, kw_only=True)
class DescribeLogDirsTopic:
    name: str = ""
    partitions: tuple[DescribeLogDirsPartition, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class DescribeLogDirsResult:
    error_code: int = 0
    log_dir: str = ""
    topics: tuple[DescribeLogDirsTopic, ...] = ()
    total_bytes: int = -1  # v4+
    usable_bytes: int = -1  # v4+
    is_cordoned: bool = False  # v5+


@struct(frozen=True, slots=True, kw_only=True)
class DescribeLogDirsResponse:
    throttle_time_ms: int = 0
    results: tuple[DescribeLogDirsResult, ...] = ()
    error_code: int = 0  # v3+
