"""AlterReplicaLogDirs (34), versions 1 to 2.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class AlterReplicaLogDirTopic(Struct, frozen=True, kw_only=True):
    name: str = ""
    partitions: tuple[int, ...] = ()


class AlterReplicaLogDir(Struct, frozen=True, kw_only=True):
    path: str = ""
    topics: tuple[AlterReplicaLogDirTopic, ...] = ()


class AlterReplicaLogDirsRequest(Struct, frozen=True, kw_only=True):
    dirs: tuple[AlterReplicaLogDir, ...] = ()


class AlterReplicaLogDirPartitionResult(Struct, frozen=True, kw_only=True):
    partition_index: int = 0
    error_code: int = 0


class AlterReplicaLogDirTopicResult(Struct, frozen=True, kw_only=True):
    topic_name: str = ""
    partitions: tuple[AlterReplicaLogDirPartitionResult, ...] = ()


class AlterReplicaLogDirsResponse(Struct, frozen=True, kw_only=True):
    throttle_time_ms: int = 0
    results: tuple[AlterReplicaLogDirTopicResult, ...] = ()
