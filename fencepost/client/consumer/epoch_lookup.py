"""OffsetForLeaderEpoch (23): where an epoch ends in the leader's log.

For positions that wait for validation, as KIP-320 has it, and for those whose log the broker found
truncated, as its earlier draft has it (`divergence`). Brokers that do not serve the API, which has
the current epoch from version 2 on, validate nothing: then positions are taken for valid.
"""

from collections.abc import Iterable
from typing import Final

from fencepost.client.consumer.cluster_metadata import NO_EPOCH
from fencepost.client.consumer.context import CONSUMER, ConsumerContext, may_pass
from fencepost.client.consumer.epoch_cache import NextEpoch
from fencepost.client.consumer.model import OffsetAndMetadata
from fencepost.client.consumer.position import AssignedPartition, FetchState
from fencepost.client.consumer.requests import Request, Turn, typed
from fencepost.client.consumer.truncation import Diverged, Valid, compare
from fencepost.client.errors import KafkaClientError, NotServed
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

_OFFSET_FOR_LEADER_EPOCH: Final = BY_NAME["offset_for_leader_epoch"]


class EpochLookup:
    """Asks leaders about the epochs of positions."""

    def __init__(self, context: ConsumerContext) -> None:
        self._context = context

    def run(self, turn: Turn) -> None:
        """Ask about all positions that wait for it, with one request a leader."""
        waiting = self._context.assignment.due(FetchState.AWAIT_VALIDATION, turn)
        waiting += self._context.assignment.due(FetchState.AWAIT_DIVERGENCE, turn)
        by_leader: dict[int, list[AssignedPartition]] = {}
        for each in waiting:
            leader = self._context.metadata.leader(each.partition).leader
            if leader is not None and self._context.nodes.is_ready(leader, turn):
                by_leader.setdefault(leader, []).append(each)
        for leader, partitions in by_leader.items():
            try:
                version = self._context.nodes.version(leader, _OFFSET_FOR_LEADER_EPOCH)
            except NotServed:
                for each in partitions:
                    self._not_served(each)
                continue
            if version is not None:
                turn.send(self._request(leader, version, partitions))

    def _request(self, leader: int, version: int, partitions: list[AssignedPartition]) -> Request:
        token = object()
        waiting = {(each.partition.topic, each.partition.index): each for each in partitions}
        topics: dict[str, list[OffsetForLeaderPartition]] = {}
        for each in partitions:
            each.pending = token
            topics.setdefault(each.partition.topic, []).append(self._partition(each))

        is_current = self._context.assignment.is_current

        def answered(response: OffsetForLeaderEpochResponse, now: int) -> None:
            for topic in response.topics:
                for end in topic.partitions:
                    partition = waiting.pop((topic.topic, end.partition), None)
                    if partition is not None and is_current(partition, token):
                        partition.pending = None
                        self._handle(partition, end, now)
            self._retry(waiting.values(), token, now)

        def failed(_error: KafkaClientError, now: int) -> None:
            self._retry(waiting.values(), token, now)

        return Request(
            node=leader,
            api=_OFFSET_FOR_LEADER_EPOCH,
            version=version,
            message=OffsetForLeaderEpochRequest(
                replica_id=CONSUMER,
                topics=tuple(
                    OffsetForLeaderTopic(topic=topic, partitions=tuple(asked))
                    for topic, asked in topics.items()
                ),
            ),
            timeout_ms=self._context.config.request_timeout_ms,
            on_answer=typed(OffsetForLeaderEpochResponse, answered),
            on_failure=failed,
        )

    def _partition(self, partition: AssignedPartition) -> OffsetForLeaderPartition:
        position = partition.position
        assert position is not None
        asked = position.epoch if partition.asked_epoch is None else partition.asked_epoch
        # The draft's consumer sends no current epoch: that its metadata is stale is its own to see.
        current = position.leader.epoch if self._context.config.draft is None else NO_EPOCH
        return OffsetForLeaderPartition(
            partition=partition.partition.index, current_leader_epoch=current, leader_epoch=asked
        )

    # -- answers --------------------------------------------------------------------------------

    def _handle(self, partition: AssignedPartition, end: EpochEndOffset, now: int) -> None:
        if end.error_code == ErrorCode.NONE:
            if partition.state is FetchState.AWAIT_DIVERGENCE:
                self._find_divergence(partition, end, now)
            else:
                self._validate(partition, end)
        elif may_pass(end.error_code):
            partition.retry.pause(now)
            self._context.refresh.request()
        else:
            self._context.refuse(_OFFSET_FOR_LEADER_EPOCH, partition, end.error_code, now)

    def _validate(self, partition: AssignedPartition, end: EpochEndOffset) -> None:
        assert partition.position is not None
        found = compare(partition.position, end.leader_epoch, end.end_offset)
        if isinstance(found, Valid):
            partition.validated(found.epoch)
        else:
            self._context.assignment.truncated(partition, found)

    def _find_divergence(self, partition: AssignedPartition, end: EpochEndOffset, now: int) -> None:
        position = partition.position
        assert position is not None
        found = partition.epochs.compare(end.leader_epoch, end.end_offset, position.offset)
        if isinstance(found, NextEpoch):
            partition.asked_epoch = found.epoch
        elif found.offset is None:
            self._context.assignment.truncated(partition, Diverged(None))
        elif found.offset < position.offset:
            epoch = partition.epochs.before(found.offset)
            at = OffsetAndMetadata(offset=found.offset, leader_epoch=epoch)
            self._context.assignment.truncated(partition, Diverged(at))
        else:  # another leader has come meanwhile, whose log has the position
            partition.validated(position.epoch)
            partition.retry.pause(now)

    def _not_served(self, partition: AssignedPartition) -> None:
        assert partition.position is not None
        if partition.state is FetchState.AWAIT_DIVERGENCE:
            self._context.assignment.truncated(partition, Diverged(None))
        else:
            partition.validated(partition.position.epoch)

    def _retry(self, partitions: Iterable[AssignedPartition], token: object, now: int) -> None:
        for each in partitions:
            if self._context.assignment.is_current(each, token):
                each.pending = None
                each.retry.pause(now)
                self._context.refresh.request()
