"""AlterReplicaLogDirs (34), versions 1 to 2.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from fencepost.protocol.messages import struct


@struct(frozen=True, slots=True, kw_only=True)
class AlterReplicaLogDirTopic:
    name: str = ""
    partitions: tuple[int, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class AlterReplicaLogDir:
    path: str = ""
    topics: tuple[AlterReplicaLogDirTopic, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class AlterReplicaLogDirsRequest:
    dirs: tuple[AlterReplicaLogDir, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class AlterReplicaLogDirPartitionResult:
    partition_index: int = 0
    error_code: int = 0


@struct(frozen=True, slots=True, kw_only=True)
class AlterReplicaLogDirTopicResult:
    topic_name: str = ""
    partitions: tuple[AlterReplicaLogDirPartitionResult, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class AlterReplicaLogDirsResponse:
    throttle_time_ms: int = 0
    results: tuple[AlterReplicaLogDirTopicResult, ...] = ()
