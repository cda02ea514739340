"""Records with a byte that is another one; what they were copied from stays whole."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from fencepost.broker.faults.matching import partition_index_of, topic_name_of
from fencepost.broker.faults.request_fields import TOPICS
from fencepost.broker.faults.rules import FaultRule
from fencepost.broker.handlers.context import Context
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.messages.fetch import FetchResponse, PartitionData
from fencepost.protocol.messages.produce import PartitionProduceData, ProduceRequest
from fencepost.protocol.records import HEADER_SIZE, CorruptBatch, iter_headers

_PRODUCE = TOPICS["produce"]
_FETCH = TOPICS["fetch"]


def corrupt_produce(rule: FaultRule, ctx: Context, request: ProduceRequest) -> ProduceRequest:
    """The request as it arrives, in the partitions that the rule selects."""

    def partition(data: PartitionProduceData) -> PartitionProduceData:
        if rule.partition not in (None, partition_index_of(_PRODUCE, data)) or not data.records:
            return data
        return replace(data, records=corrupted(data.records))

    return replace(
        request,
        topic_data=tuple(
            replace(topic, partition_data=tuple(map(partition, topic.partition_data)))
            if rule.topic in (None, topic_name_of(_PRODUCE, ctx, topic))
            else topic
            for topic in request.topic_data
        ),
    )


def corrupt_fetch(
    rule: FaultRule, ctx: Context, response: FetchResponse, strike: Callable[[], bool]
) -> FetchResponse:
    """The answer, in the partitions that the rule selects.

    :param strike: Asked once, and only if there are records: whether the rule hits.
    """

    def selected(topic: str | None, partition: PartitionData) -> bool:
        return (
            rule.topic in (None, topic)
            and rule.partition in (None, partition.partition_index)
            and bool(partition.records)
        )

    names = [topic_name_of(_FETCH, ctx, topic) for topic in response.responses]
    topics = tuple(zip(names, response.responses, strict=True))
    if not any(selected(name, p) for name, topic in topics for p in topic.partitions):
        return response
    if not strike():
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
    """A copy in which the last byte of the first batch is another one, so that its checksum fails.

    Of what is no batch it is the last byte of all.
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
