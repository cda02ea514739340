"""DescribeLogDirs (35), versions 1-5: the replicas on this broker and their sizes (KIP-113).

There is one directory, or those of ``--log-dirs``: in ``--data-dir``, or else by names alone, the
first of which ``log.dir`` has, though logs are kept in memory then.
Null asks for all replicas; of those that a request names, the ones that this broker has are
answered. Sizes are the bytes of all segments of a log. A replica that is being moved is in two
directories; the copy says by how many offsets it is behind.

Versions: v2 compact types; v3 a top-level error; v4 total and usable bytes (KIP-827), both -1:
memory is no volume whose size could be told; v5 cordoned directories (KIP-1066).
"""

from collections.abc import Iterator
from typing import Final

from fencepost.broker.core.outcomes import Steps, take_turns
from fencepost.broker.core.waits import Wait
from fencepost.broker.handlers.context import Context
from fencepost.broker.replication.log_dir_placement import is_cordoned
from fencepost.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

UNKNOWN: Final = -1
_Topics = dict[str, dict[int, DescribeLogDirsPartition]]
"""Partitions of one directory, by topic and index."""


def handle(
    ctx: Context, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse | Wait[DescribeLogDirsResponse]:
    """Describe the directories."""
    return take_turns(ctx.broker.scheduler, _read(ctx, request))


def _read(ctx: Context, request: DescribeLogDirsRequest) -> Steps[DescribeLogDirsResponse]:
    manager, storage = ctx.broker.replica_manager, ctx.broker.storage
    found: dict[str, _Topics] = {name: {} for name in storage.placement.names}
    for key in _asked(ctx, request):
        yield
        replica, directory = manager.replicas.get(key), storage.directory_of(key)
        if replica is None or directory is None:
            continue
        name, index = key
        found[directory].setdefault(name, {})[index] = DescribeLogDirsPartition(
            partition_index=index, partition_size=replica.log.size_bytes
        )
        future = manager.log_dir_moves.futures.get(key)
        if future is not None:
            found[future.directory].setdefault(name, {})[index] = DescribeLogDirsPartition(
                partition_index=index,
                partition_size=future.log.size_bytes,
                offset_lag=manager.log_dir_moves.offset_lag(key),
                is_future_key=True,
            )
    cordoned = ctx.broker.configs.cordoned_log_dirs
    return DescribeLogDirsResponse(
        results=tuple(
            _describe(directory, topics, cordoned=is_cordoned(directory, cordoned))
            for directory, topics in found.items()
        )
    )


def _describe(directory: str, topics: _Topics, *, cordoned: bool) -> DescribeLogDirsResult:
    return DescribeLogDirsResult(
        log_dir=directory,
        topics=tuple(
            DescribeLogDirsTopic(name=name, partitions=tuple(partitions.values()))
            for name, partitions in topics.items()
        ),
        total_bytes=UNKNOWN,
        usable_bytes=UNKNOWN,
        is_cordoned=cordoned,
    )


def refuse(_request: DescribeLogDirsRequest, error_code: int) -> DescribeLogDirsResponse:
    """The error at the top (v3+), and no directories."""
    return DescribeLogDirsResponse(error_code=error_code)


def _asked(ctx: Context, request: DescribeLogDirsRequest) -> Iterator[tuple[str, int]]:
    if request.topics is None:
        yield from tuple(ctx.broker.replicas)
        return
    for topic in request.topics:
        for index in topic.partitions:
            yield topic.topic, index
