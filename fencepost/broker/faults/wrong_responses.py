"""Requests and responses that a fault falsifies: records with one changed byte, stale metadata.

A record is changed in a copy; what it was copied from is left as it is. Stale metadata are those of
an earlier leader epoch (KIP-232).
"""

from collections.abc import Sequence
from typing import Final, cast

from msgspec.structs import replace

from fencepost.broker.faults.interceptor import Interception
from fencepost.broker.faults.matching import partition_index_of, topic_name_of, topics_of
from fencepost.broker.faults.request_fields import topic_fields
from fencepost.broker.handlers.context import Context
from fencepost.broker.metadata.image import PartitionImage, TopicImage
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import FetchResponse, PartitionData
from fencepost.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from fencepost.protocol.messages.produce import PartitionProduceData, ProduceRequest
from fencepost.protocol.records import HEADER_SIZE, CorruptBatch, iter_headers


def corrupt(hit: Interception) -> object:
    """Carry out a Produce with other records, or answer a Fetch with other ones."""
    if hit.api.name == "produce":
        return hit.carry_out(_corrupt_request(hit, cast(ProduceRequest, hit.request)))
    return hit.convert(
        hit.carry_out(), lambda response: _corrupt_response(hit, cast(FetchResponse, response))
    )


def _corrupt_request(hit: Interception, request: ProduceRequest) -> ProduceRequest:
    """The request with other records in the selected partitions."""
    shape = topics_of(topic_fields(hit.api))

    def partition(name: str | None, data: PartitionProduceData) -> PartitionProduceData:
        if not data.records or not hit.selects(name, partition_index_of(shape, data)):
            return data
        return replace(data, records=corrupted(data.records))

    names = [topic_name_of(shape, hit.ctx, topic) for topic in request.topic_data]
    return replace(
        request,
        topic_data=tuple(
            replace(topic, partition_data=tuple(partition(name, p) for p in topic.partition_data))
            for name, topic in zip(names, request.topic_data, strict=True)
        ),
    )


def _corrupt_response(hit: Interception, response: FetchResponse) -> FetchResponse:
    """The response with other records in the selected partitions; a hit only if there are any."""
    shape = topics_of(topic_fields(hit.api))

    def selected(topic: str | None, partition: PartitionData) -> bool:
        return bool(partition.records) and hit.selects(topic, partition.partition_index)

    names = [topic_name_of(shape, hit.ctx, topic) for topic in response.responses]
    topics = tuple(zip(names, response.responses, strict=True))
    if not any(selected(name, p) for name, topic in topics for p in topic.partitions):
        return response
    if not hit.try_hit():
        return response
    return replace(
        response,
        responses=tuple(
            replace(
                topic,
                partitions=tuple(
                    replace(p, records=_first_corrupted(p.records or ()))
                    if selected(name, p)
                    else p
                    for p in topic.partitions
                ),
            )
            for name, topic in topics
        ),
    )


def corrupted(records: Buffer) -> bytearray:
    """A copy with another last byte of the first batch, so that the batch's checksum fails.

    Where there is no batch it is the last byte of all.
    """
    copy = bytearray(records)
    try:
        at, header = next(iter(iter_headers(records)))
        end = at + header.size
    except (CorruptBatch, StopIteration):
        end = len(copy)
    end = min(end, len(copy))
    copy[(end if end > HEADER_SIZE else len(copy)) - 1] ^= 0xFF
    return copy


def _first_corrupted(buffers: Sequence[Buffer]) -> tuple[Buffer, ...]:
    return (corrupted(buffers[0]), *buffers[1:])


_NO_EPOCH: Final = -1


def with_stale_epoch(hit: Interception, epoch: int) -> object:
    """Answer a Metadata with the selected partitions as they were in ``epoch``.

    A partition that never had that epoch, or whose history does not go back so far, stays as it is.
    The leaders of that epoch are among the brokers, also those that are gone.
    """
    return hit.convert(
        hit.carry_out(), lambda response: _stale(hit, epoch, cast(MetadataResponse, response))
    )


def _stale(hit: Interception, epoch: int, response: MetadataResponse) -> MetadataResponse:
    ctx, selectors = hit.ctx, hit.selectors
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
        MetadataResponseBroker(
            node_id=b.broker_id, host=ctx.host_of(b), port=ctx.port_of(b), rack=b.rack
        )
        for b in (known[leader] for leader in sorted(missing) if leader in known)
    )
