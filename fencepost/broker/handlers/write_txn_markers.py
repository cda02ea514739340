"""WriteTxnMarkers (27), versions 1-2: append the markers that end transactions (KIP-98).

The transaction coordinator sends them to the leaders of a transaction's partitions. Each marker is
appended on its own, and the answer waits until all are committed (acks=all), for
``request.timeout.ms`` at most. In ``__consumer_offsets`` the group coordinator appends them, by
which the offsets that the transaction has committed are the groups', or dropped. A partition of
which there is no replica here is UNKNOWN_TOPIC_OR_PARTITION, one that this broker does not lead
NOT_LEADER_OR_FOLLOWER; a marker of an old coordinator is TRANSACTION_COORDINATOR_FENCED, one with
an old epoch INVALID_PRODUCER_EPOCH.

Versions: v2 transaction version, by which the leader judges the epoch (KIP-890).
"""

from collections.abc import Iterable
from typing import TypeAlias

from fencepost.broker.core.outcomes import gather_responses, respond_after
from fencepost.broker.core.waits import Wait
from fencepost.broker.groups.group_coordinator import OFFSETS_TOPIC
from fencepost.broker.handlers.context import Context
from fencepost.broker.produce.append import PendingAppend, pending_append
from fencepost.broker.produce.markers import append_marker
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from fencepost.protocol.transaction_markers import TransactionMarker

_Outcome: TypeAlias = PendingAppend | ErrorCode
_Partitions: TypeAlias = dict[int, _Outcome]
_Outcomes: TypeAlias = dict[int, dict[str, _Partitions]]
"""By producer id, topic and partition: as in Kafka a producer is answered once, and one without
partitions is not.
"""


def handle(
    ctx: Context, request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse | Wait[WriteTxnMarkersResponse]:
    """Append every marker, then wait until all are committed."""
    outcomes: _Outcomes = {}
    of_groups: list[Wait[ErrorCode]] = []
    places: list[tuple[_Partitions, int]] = []
    for each in request.markers:
        marker = _marker(each)
        for name, index in _partitions(each):
            partitions = outcomes.setdefault(each.producer_id, {}).setdefault(name, {})
            outcome = _append(ctx, name, index, marker)
            if isinstance(outcome, Wait):
                of_groups.append(outcome)
                places.append((partitions, index))
            else:
                partitions[index] = outcome

    if not of_groups:
        return _wait_for_others(ctx, outcomes)

    def settle(codes: list[ErrorCode]) -> bool:
        for (partitions, index), code in zip(places, codes, strict=True):
            partitions[index] = code
        return True

    settled = gather_responses(of_groups, settle)
    return respond_after(settled, lambda _: _wait_for_others(ctx, outcomes))


def _wait_for_others(
    ctx: Context, outcomes: _Outcomes
) -> WriteTxnMarkersResponse | Wait[WriteTxnMarkersResponse]:
    pending = [
        outcome
        for topics in outcomes.values()
        for partitions in topics.values()
        for outcome in partitions.values()
        if isinstance(outcome, PendingAppend) and not outcome.is_settled
    ]
    return _wait(ctx, outcomes, pending) if pending else _respond(outcomes)


def refuse(request: WriteTxnMarkersRequest, error_code: int) -> WriteTxnMarkersResponse:
    """The same error for every partition."""
    code = ErrorCode(error_code)
    outcomes: _Outcomes = {}
    for each in request.markers:
        topics = outcomes.setdefault(each.producer_id, {})
        for topic in each.topics:
            topics.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes, code))
    return _respond(outcomes)


def _partitions(sent: WritableTxnMarker) -> Iterable[tuple[str, int]]:
    """The partitions of a marker, each once, as in Kafka, however often it is named."""
    found: dict[tuple[str, int], None] = {}
    for topic in sent.topics:
        for index in topic.partition_indexes:
            found[topic.name, index] = None
    return found


def _marker(sent: WritableTxnMarker) -> TransactionMarker:
    return TransactionMarker(
        producer_id=sent.producer_id,
        producer_epoch=sent.producer_epoch,
        coordinator_epoch=sent.coordinator_epoch,
        committed=sent.transaction_result,
        transaction_version=sent.transaction_version,
    )


def _append(
    ctx: Context, topic: str, index: int, marker: TransactionMarker
) -> _Outcome | Wait[ErrorCode]:
    replica = ctx.broker.replicas.get((topic, index))
    if replica is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic == OFFSETS_TOPIC:
        return ctx.broker.coordinator.complete_transaction(index, marker)
    offset = append_marker(replica, marker, now_ms=ctx.wall_ms)
    return offset if isinstance(offset, ErrorCode) else pending_append(replica, offset)


def _wait(
    ctx: Context, outcomes: _Outcomes, pending: list[PendingAppend]
) -> Wait[WriteTxnMarkersResponse]:
    wait: Wait[WriteTxnMarkersResponse] = Wait()
    wait.watch_each(pending, lambda: _respond(outcomes))
    deadline_ms = ctx.now_ms + ctx.broker.configs.request_timeout_ms
    wait.expire_at(ctx.broker.scheduler, deadline_ms, lambda: _respond(outcomes))
    return wait


def _respond(outcomes: _Outcomes) -> WriteTxnMarkersResponse:
    markers: list[WritableTxnMarkerResult] = []  # built in loops, as each transaction waits for it
    for producer_id, topics in outcomes.items():
        results: list[WritableTxnMarkerTopicResult] = []
        for name, partitions in topics.items():
            codes = [
                WritableTxnMarkerPartitionResult(partition_index=index, error_code=_error(outcome))
                for index, outcome in partitions.items()
            ]
            results.append(WritableTxnMarkerTopicResult(name=name, partitions=tuple(codes)))
        markers.append(WritableTxnMarkerResult(producer_id=producer_id, topics=tuple(results)))
    return WriteTxnMarkersResponse(markers=tuple(markers))


def _error(outcome: _Outcome) -> ErrorCode:
    return outcome if isinstance(outcome, ErrorCode) else outcome.error
