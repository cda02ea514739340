"""DescribeLogDirs (35), versions 1 to 5.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class DescribableLogDirTopic(Struct, frozen=True, kw_only=True, gc=False):
    topic: str = ""
    partitions: tuple[int, ...] = ()


class DescribeLogDirsRequest(Struct, frozen=True, kw_only=True, gc=False):
    topics: tuple[DescribableLogDirTopic, ...] | None = ()


class DescribeLogDirsPartition(Struct, frozen=True, kw_only=True, gc=False):
    partition_index: int = 0
    partition_size: int = 0
    offset_lag: int = 0
    is_future_key: bool = False


class DescribeLogDirsTopic(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""
    partitions: tuple[DescribeLogDirsPartition, ...] = ()


class DescribeLogDirsResult(Struct, frozen=True, kw_only=True, gc=False):
    error_code: int = 0
    log_dir: str = ""
    topics: tuple[DescribeLogDirsTopic, ...] = ()
    total_bytes: int = -1  # v4+
    usable_bytes: int = -1  # v4+
    is_cordoned: bool = False  # v5+


class DescribeLogDirsResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    results: tuple[DescribeLogDirsResult, ...] = ()
    error_code: int = 0  # v3+
