"""Records with one changed byte, in a copy: what they were copied from is left as it is."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from fencepost.broker.faults.interceptor import Interception
from fencepost.broker.faults.matching import partition_index_of, topic_name_of, topics_of
from fencepost.broker.faults.request_fields import topic_fields
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.messages.fetch import FetchResponse, PartitionData
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
    shape, selectors = topics_of(topic_fields(hit.api)), hit.selectors

    def partition(data: PartitionProduceData) -> PartitionProduceData:
        index = partition_index_of(shape, data)
        if selectors.partition not in (None, index) or not data.records:
            return data
        return replace(data, records=corrupted(data.records))

    return replace(
        request,
        topic_data=tuple(
            replace(topic, partition_data=tuple(map(partition, topic.partition_data)))
            if selectors.topic in (None, topic_name_of(shape, hit.ctx, topic))
            else topic
            for topic in request.topic_data
        ),
    )


def _corrupt_response(hit: Interception, response: FetchResponse) -> FetchResponse:
    """The response with other records in the selected partitions; a hit only if there are any."""
    shape, selectors = topics_of(topic_fields(hit.api)), hit.selectors

    def selected(topic: str | None, partition: PartitionData) -> bool:
        return (
            selectors.topic in (None, topic)
            and selectors.partition in (None, partition.partition_index)
            and bool(partition.records)
        )

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
