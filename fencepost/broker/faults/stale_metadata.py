"""Metadata as it was: partitions in an earlier leader epoch (KIP-232)."""

from dataclasses import replace
from typing import Final, cast

from fencepost.broker.faults.interceptor import Interception
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


def with_stale_epoch(hit: Interception, epoch: int) -> MetadataResponse:
    """The response with the selected partitions as they were in ``epoch``.

    A partition that never had that epoch, or whose history does not go back so far, stays as it is.
    The leaders of that epoch are among the brokers, also those that are gone.
    """
    ctx, selectors = hit.ctx, hit.selectors
    response = cast(MetadataResponse, hit.carry_out())
    leaders: set[int] = set()

    def partition(
        topic: TopicImage, current: MetadataResponsePartition
    ) -> MetadataResponsePartition:
        index = current.partition_index
        if selectors.partition not in (None, index):
            return current
        was = hit.leader_epoch_history.find(topic.topic_id, index, epoch)
        if was is None:
            return current
        leaders.add(was.leader)
        return _stale_partition(current, was)

    def topic(current: MetadataResponseTopic) -> MetadataResponseTopic:
        image = ctx.broker.view.topics.get(current.name or "")
        if image is None or selectors.topic not in (None, image.name):
            return current
        return replace(current, partitions=tuple(partition(image, p) for p in current.partitions))

    topics = tuple(map(topic, response.topics))
    return replace(response, topics=topics, brokers=_with_brokers(leaders, ctx, response))


def _stale_partition(
    current: MetadataResponsePartition, was: PartitionImage
) -> MetadataResponsePartition:
    return replace(
        current,
        error_code=ErrorCode.LEADER_NOT_AVAILABLE if was.leader < 0 else ErrorCode.NONE,
        leader_id=was.leader,
        # In the old message format no response has an epoch, whatever the time.
        leader_epoch=_NO_EPOCH if current.leader_epoch == _NO_EPOCH else was.leader_epoch,
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
