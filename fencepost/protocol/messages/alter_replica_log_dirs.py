"""AlterReplicaLogDirs (34), versions 1 to 2.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class AlterReplicaLogDirTopic(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""
    partitions: tuple[int, ...] = ()


class AlterReplicaLogDir(Struct, frozen=True, kw_only=True, gc=False):
    path: str = ""
    topics: tuple[AlterReplicaLogDirTopic, ...] = ()


class AlterReplicaLogDirsRequest(Struct, frozen=True, kw_only=True, gc=False):
    dirs: tuple[AlterReplicaLogDir, ...] = ()


class AlterReplicaLogDirPartitionResult(Struct, frozen=True, kw_only=True, gc=False):
    partition_index: int = 0
    error_code: int = 0


class AlterReplicaLogDirTopicResult(Struct, frozen=True, kw_only=True, gc=False):
    topic_name: str = ""
    partitions: tuple[AlterReplicaLogDirPartitionResult, ...] = ()


class AlterReplicaLogDirsResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    results: tuple[AlterReplicaLogDirTopicResult, ...] = ()
