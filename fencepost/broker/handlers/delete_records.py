"""DeleteRecords (21), versions 0-2: move a partition's log start forward (KIP-107).

Every record before the offset is gone for readers at once; -1 means up to the high watermark,
beyond which nothing can be deleted. The answer's low watermark is the least log start of all
replicas on brokers that are not fenced. It is sent when all of them have followed; those that did
not within the timeout make it REQUEST_TIMED_OUT. A partition that stands twice in a request is
deleted up to the offset named last. Kafka's own topics are INVALID_TOPIC_EXCEPTION, and topics that
are only compacted are POLICY_VIOLATION.

Versions: v1 is throttled after the answer; v2 compact types.
"""

from typing import Final

from msgspec import Struct

from fencepost.broker.core.outcomes import Answer
from fencepost.broker.core.waits import Wait, WatchList
from fencepost.broker.handlers.context import Context
from fencepost.broker.replication.partition_checks import find_leader
from fencepost.broker.replication.replica import Replica
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

HIGH_WATERMARK: Final = -1
NO_WATERMARK: Final = -1


class _Deleted(Struct, eq=False):
    """A partition whose log start has moved here, and perhaps not everywhere yet.

    What settles first counts, as in Kafka, however long other partitions hold the answer back.
    """

    ctx: Context
    replica: Replica
    offset: int
    """Exclusive: the low watermark must reach it."""
    settled: DeleteRecordsPartitionResult | None = None
    """What it answers, once it can't change any more."""

    @property
    def watch_list(self) -> WatchList:
        """It is notified when the low watermark may rise and when the leadership ends."""
        return self.replica.watermark_watch

    def settle(self) -> bool:
        """Whether its result can't change any more."""
        if self.settled is None:
            index = self.replica.index
            if not self.replica.is_leader:
                self.settled = _error(index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            elif (low_watermark := self._low_watermark) >= self.offset:
                self.settled = _result(index, low_watermark, ErrorCode.NONE)
        return self.settled is not None

    def result(self) -> DeleteRecordsPartitionResult:
        """What it answers now; REQUEST_TIMED_OUT while it is not settled."""
        return self.settled or _result(
            self.replica.index, self._low_watermark, ErrorCode.REQUEST_TIMED_OUT
        )

    @property
    def _low_watermark(self) -> int:
        brokers = self.ctx.broker.view.brokers.values()
        return self.replica.low_watermark({b.broker_id for b in brokers if not b.fenced})


_Outcomes = dict[tuple[str, int], _Deleted | DeleteRecordsPartitionResult]


def handle(ctx: Context, request: DeleteRecordsRequest) -> Answer[DeleteRecordsResponse]:
    """Delete here, then wait for the followers."""
    offsets = {
        (topic.name, partition.partition_index): partition.offset
        for topic in request.topics
        for partition in topic.partitions
    }
    outcomes = {key: _delete(ctx, *key, offset) for key, offset in offsets.items()}
    pending = [d for d in outcomes.values() if isinstance(d, _Deleted) and not d.settle()]
    if not pending or request.timeout_ms <= 0:
        return _respond(outcomes)
    return _wait(ctx, request.timeout_ms, outcomes, pending)


def refuse(request: DeleteRecordsRequest, error_code: int) -> DeleteRecordsResponse:
    """The same error for every partition."""
    return DeleteRecordsResponse(
        topics=tuple(
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=tuple(_error(p.partition_index, error_code) for p in topic.partitions),
            )
            for topic in request.topics
        )
    )


def _delete(
    ctx: Context, name: str, index: int, offset: int
) -> _Deleted | DeleteRecordsPartitionResult:
    topic = ctx.broker.view.topics.get(name)
    if topic is not None and topic.is_internal:
        return _error(index, ErrorCode.INVALID_TOPIC_EXCEPTION)
    replica = find_leader(ctx.broker, name, index)
    if isinstance(replica, ErrorCode):
        return _error(index, replica)
    config = replica.log.config
    if config.is_compacted and not config.is_deleted:
        return _error(index, ErrorCode.POLICY_VIOLATION)
    if offset == HIGH_WATERMARK:
        offset = replica.high_watermark
    if not 0 <= offset <= replica.high_watermark:
        return _error(index, ErrorCode.OFFSET_OUT_OF_RANGE)
    replica.delete_records(offset)
    return _Deleted(ctx, replica, offset)


def _error(index: int, code: int) -> DeleteRecordsPartitionResult:
    return _result(index, NO_WATERMARK, code)


def _result(index: int, low_watermark: int, code: int) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=low_watermark, error_code=code
    )


def _wait(
    ctx: Context, timeout_ms: int, outcomes: _Outcomes, pending: list[_Deleted]
) -> Wait[DeleteRecordsResponse]:
    wait: Wait[DeleteRecordsResponse] = Wait()
    wait.watch_each(pending, lambda: _respond(outcomes))
    wait.expire_at(ctx.broker.scheduler, ctx.now_ms + timeout_ms, lambda: _respond(outcomes))
    return wait


def _respond(outcomes: _Outcomes) -> DeleteRecordsResponse:
    topics: dict[str, list[DeleteRecordsPartitionResult]] = {}
    for (name, _), outcome in outcomes.items():
        result = outcome.result() if isinstance(outcome, _Deleted) else outcome
        topics.setdefault(name, []).append(result)
    return DeleteRecordsResponse(
        topics=tuple(
            DeleteRecordsTopicResult(name=name, partitions=tuple(partitions))
            for name, partitions in topics.items()
        )
    )
