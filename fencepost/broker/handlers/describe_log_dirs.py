"""DescribeLogDirs (35), versions 1-5: the replicas on this broker and their sizes (KIP-113).

There is one directory: the broker's own in ``--data-dir``, or else one that bears the name which
``log.dir`` has, though logs are kept in memory then.
Null asks for all replicas; of those that a request names, the ones that this broker has are
answered. Sizes are the bytes of all segments of a log.

Versions: v2 compact types; v3 a top-level error; v4 total and usable bytes (KIP-827), both -1:
memory is no volume whose size could be told; v5 cordoned directories (KIP-1066), which this one
never is.
"""

from collections.abc import Iterator
from typing import Final

from fencepost.broker.core.outcomes import Steps, take_turns
from fencepost.broker.core.waits import Wait
from fencepost.broker.handlers.context import Context
from fencepost.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

UNKNOWN: Final = -1


def handle(
    ctx: Context, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse | Wait[DescribeLogDirsResponse]:
    """Describe the one directory."""
    return take_turns(ctx.broker.scheduler, _read(ctx, request))


def _read(ctx: Context, request: DescribeLogDirsRequest) -> Steps[DescribeLogDirsResponse]:
    topics: dict[str, dict[int, DescribeLogDirsPartition]] = {}
    for name, index in _asked(ctx, request):
        yield
        replica = ctx.broker.replicas.get((name, index))
        if replica is not None:
            topics.setdefault(name, {})[index] = DescribeLogDirsPartition(
                partition_index=index, partition_size=replica.log.size_bytes
            )
    directory = DescribeLogDirsResult(
        log_dir=ctx.broker.configs.log_dir,
        topics=tuple(
            DescribeLogDirsTopic(name=name, partitions=tuple(partitions.values()))
            for name, partitions in topics.items()
        ),
        total_bytes=UNKNOWN,
        usable_bytes=UNKNOWN,
    )
    return DescribeLogDirsResponse(results=(directory,))


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
