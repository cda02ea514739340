"""ListOffsets (2), versions 1-11: offsets by time, and the special targets.

    >= 0  the first record at or after that time, its timestamp and epoch
    -1    latest: high watermark, last stable offset (read_committed), log end (replicas, debugging)
    -2    earliest: log start offset            -4  earliest that is local
    -3    the record with the highest timestamp -5  latest that is tiered
                                                -6  earliest that waits to be tiered
Nothing found is offset and epoch -1 without an error. The same partition asked twice is one answer,
INVALID_REQUEST.

After an election clients are refused as ``list.offsets.gate`` says (KIP-207, `broker.gate`): with
``kip`` at every lookup; with ``kafka`` as Apache Kafka does it, at latest, and at a lookup by time
or of the maximum timestamp that finds nothing below what may be read.

Versions: v2 isolation level; v4 current leader epoch, and the epoch in the answer (KIP-320); v5
OFFSET_NOT_AVAILABLE; v7 -3; v8 -4; v9 -5; v10 timeout; v11 -6 (KIP-1023). A target below its
version is UNSUPPORTED_VERSION, before any other check.

Missing: the tier (-5 and -6 find nothing).
"""

from typing import Final

from fencepost.broker.configs.own import ListOffsetsGate
from fencepost.broker.context import Context
from fencepost.broker.gate import gate_of, refusal
from fencepost.broker.ladder import NO_EPOCH, find_leader, find_replica
from fencepost.broker.replica import Replica
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
_SINCE: Final = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
"""The first version of each special target."""
CONSUMER: Final = -1
DEBUGGING: Final = -2
READ_COMMITTED: Final = 1
_ISOLATION_LEVELS: Final = (0, READ_COMMITTED)


def handle(ctx: Context, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Look up every partition asked for, each once."""
    if request.isolation_level not in _ISOLATION_LEVELS:
        return refuse(request, ErrorCode.UNKNOWN_SERVER_ERROR)
    topics: dict[str, dict[int, ListOffsetsPartitionResponse]] = {}
    for topic in request.topics:
        answers = topics.setdefault(topic.name, {})
        for asked in topic.partitions:
            index = asked.partition_index
            if index in answers:
                answers[index] = _error(index, ErrorCode.INVALID_REQUEST)
            else:
                answers[index] = _look_up(ctx, request, topic.name, asked)
    found = [
        ListOffsetsTopicResponse(name=name, partitions=tuple(answers.values()))
        for name, answers in topics.items()
        if answers
    ]
    return ListOffsetsResponse(topics=tuple(found))


def refuse(request: ListOffsetsRequest, error_code: int) -> ListOffsetsResponse:
    """The same error for every partition."""
    return ListOffsetsResponse(
        topics=tuple(
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=tuple(_error(p.partition_index, error_code) for p in topic.partitions),
            )
            for topic in request.topics
        )
    )


def _look_up(
    ctx: Context, request: ListOffsetsRequest, topic: str, asked: ListOffsetsPartition
) -> ListOffsetsPartitionResponse:
    index, target = asked.partition_index, asked.timestamp
    if target < 0 and ctx.version < _SINCE.get(target, ctx.version + 1):
        return _error(index, ErrorCode.UNSUPPORTED_VERSION)
    find = find_replica if request.replica_id == DEBUGGING else find_leader
    replica = find(ctx.broker, topic, index, asked.current_leader_epoch)
    if isinstance(replica, ErrorCode):
        return _error(index, replica)
    is_client = request.replica_id == CONSUMER
    gate = gate_of(ctx.broker, replica) if is_client else ListOffsetsGate.OFF
    if gate is ListOffsetsGate.KIP or (gate is ListOffsetsGate.KAFKA and target == LATEST):
        return _error(index, refusal(ctx.version))
    timestamp, offset, epoch = _find(replica, target, _bound(replica, request))
    if gate is ListOffsetsGate.KAFKA and offset < 0 and _is_by_time(target):
        return _error(index, refusal(ctx.version))
    has_epochs = replica.log.config.keeps_leader_epochs
    return ListOffsetsPartitionResponse(
        partition_index=index,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=epoch if has_epochs else NO_EPOCH,
    )


def _is_by_time(target: int) -> bool:
    return target >= 0 or target == MAX_TIMESTAMP


def _error(index: int, code: int) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=index, error_code=code)


def _bound(replica: Replica, request: ListOffsetsRequest) -> int:
    """Exclusive end of what the asker may read."""
    if request.replica_id != CONSUMER:
        return replica.log.log_end_offset
    if request.isolation_level == READ_COMMITTED:
        return replica.last_stable_offset
    return replica.high_watermark


def _find(replica: Replica, target: int, bound: int) -> tuple[int, int, int]:
    """Timestamp, offset and epoch; all -1 where there is nothing."""
    log = replica.log
    if target == LATEST:
        return -1, bound, replica.leader_epoch
    if target in (EARLIEST, EARLIEST_LOCAL):
        start = log.log_start_offset if target == EARLIEST else log.local_log_start_offset
        epoch = log.epoch_for_offset(start)
        return -1, start, -1 if epoch is None else epoch
    if target in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return -1, -1, -1
    if target == MAX_TIMESTAMP:
        found = log.offset_of_max_timestamp()
    else:
        found = log.offset_for_timestamp(target)
    if found is None or found.offset >= bound:
        return -1, -1, -1
    return found.timestamp, found.offset, found.epoch
