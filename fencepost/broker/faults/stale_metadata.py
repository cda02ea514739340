"""Metadata as it was: partitions in an earlier leader epoch (KIP-232)."""

from dataclasses import replace
from typing import Final

from fencepost.broker.faults.leader_epoch_history import LeaderEpochHistory
from fencepost.broker.faults.rules import FaultRule
from fencepost.broker.handlers.context import Context
from fencepost.broker.metadata.image import PartitionImage, TopicImage
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

_NO_EPOCH: Final = -1


def with_stale_epoch(
    rule: FaultRule,
    epoch: int,
    ctx: Context,
    history: LeaderEpochHistory,
    response: MetadataResponse,
) -> MetadataResponse:
    """The answer with the rule's partitions as they were in ``epoch``.

    One that has not had that epoch, or whose history does not go back so far, stays as it is. Those
    who led then are among the brokers, whatever became of them.
    """
    leaders: set[int] = set()

    def partition(topic: TopicImage, told: MetadataResponsePartition) -> MetadataResponsePartition:
        index = told.partition_index
        if rule.partition not in (None, index):
            return told
        was = history.find(topic.topic_id, index, epoch)
        if was is None:
            return told
        leaders.add(was.leader)
        return _stale_partition(told, was)

    def topic(told: MetadataResponseTopic) -> MetadataResponseTopic:
        image = ctx.broker.view.topics.get(told.name or "")
        if image is None or rule.topic not in (None, image.name):
            return told
        return replace(told, partitions=tuple(partition(image, p) for p in told.partitions))

    topics = tuple(map(topic, response.topics))
    return replace(response, topics=topics, brokers=_with_brokers(leaders, ctx, response))


def _stale_partition(
    told: MetadataResponsePartition, was: PartitionImage
) -> MetadataResponsePartition:
    nobody = was.leader < 0
    return replace(
        told,
        error_code=ErrorCode.LEADER_NOT_AVAILABLE if nobody else ErrorCode.NONE,
        leader_id=was.leader,
        # In the old message format no epoch is told, of whatever time.
        leader_epoch=_NO_EPOCH if told.leader_epoch == _NO_EPOCH else was.leader_epoch,
        isr_nodes=was.isr,
    )


def _with_brokers(
    leaders: set[int], ctx: Context, response: MetadataResponse
) -> tuple[MetadataResponseBroker, ...]:
    missing = leaders - {broker.node_id for broker in response.brokers}
    known = ctx.broker.view.brokers
    return response.brokers + tuple(
        MetadataResponseBroker(node_id=b.broker_id, host=ctx.host_of(b), port=b.port, rack=b.rack)
        for b in (known[leader] for leader in sorted(missing) if leader in known)
    )
