"""AlterReplicaLogDirs (34), versions 1-2: replicas move to other directories (KIP-113).

The answer says that a move has begun; DescribeLogDirs shows the copy until it takes the replica's
place. A partition that this broker does not have is refused, and made in the directory when it
comes here: REPLICA_NOT_AVAILABLE if the cluster has it, else UNKNOWN_TOPIC_OR_PARTITION. Cordoned
directories are INVALID_REPLICA_ASSIGNMENT (KIP-1066). Of several directories for one partition the
last one counts.

Without ``--log-dirs`` a broker has one directory, and all others are LOG_DIR_NOT_FOUND.

Versions: v2 compact types.
"""

from fencepost.broker.handlers.context import Context
from fencepost.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


def handle(ctx: Context, request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    """Begin the moves."""
    moves = ctx.broker.replica_manager.log_dir_moves
    return _respond(
        {
            topic: {index: moves.alter(topic, index, path) for index, path in paths.items()}
            for topic, paths in _by_topic(request).items()
        }
    )


def refuse(request: AlterReplicaLogDirsRequest, error_code: int) -> AlterReplicaLogDirsResponse:
    """The error for every partition."""
    return _respond(
        {topic: dict.fromkeys(paths, error_code) for topic, paths in _by_topic(request).items()}
    )


def _by_topic(request: AlterReplicaLogDirsRequest) -> dict[str, dict[int, str]]:
    """The directory of each partition, by topic and index."""
    paths: dict[str, dict[int, str]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            for index in topic.partitions:
                paths.setdefault(topic.name, {})[index] = directory.path
    return paths


def _respond(codes: dict[str, dict[int, int]]) -> AlterReplicaLogDirsResponse:
    return AlterReplicaLogDirsResponse(
        results=tuple(
            AlterReplicaLogDirTopicResult(
                topic_name=topic,
                partitions=tuple(
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
                    for index, code in partitions.items()
                ),
            )
            for topic, partitions in codes.items()
        )
    )
