"""Produce and Fetch of the raw client, against what the server's codec reads and writes."""

from __future__ import annotations

import pytest

from bench import wire
from bench.wire_records import batch, decode_fetch, decode_produce, fetch_request, produce_request
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.codec import decode_request, encode_response
from fencepost.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from fencepost.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)


def produced(error: int) -> bytes:
    partition = PartitionProduceResponse(index=1, error_code=error, base_offset=1 << 33)
    topic = TopicProduceResponse(name="t", partition_responses=(partition,))
    response = ProduceResponse(responses=(topic,))
    return b"".join(encode_response(BY_NAME["produce"], 8, 1, response))[4:]


def fetched(error: int, records: bytes) -> bytes:
    partition = PartitionData(partition_index=1, error_code=error, records=(records,))
    topic = FetchableTopicResponse(topic="t", partitions=(partition,))
    return b"".join(encode_response(BY_NAME["fetch"], 11, 1, FetchResponse(responses=(topic,))))[4:]


def test_produce_gives_the_base_offset_or_raises_its_error() -> None:
    assert decode_produce(produced(0)) == 1 << 33
    with pytest.raises(wire.BadAnswer, match="error 6"):
        decode_produce(produced(6))


def test_fetch_gives_the_bytes_of_records_or_raises_its_error() -> None:
    assert decode_fetch(fetched(0, bytes(5000))) == 5000
    assert decode_fetch(fetched(0, b"")) == 0
    with pytest.raises(wire.BadAnswer, match="error 1"):
        decode_fetch(fetched(1, b""))


def test_requests_are_what_the_server_reads() -> None:
    records = batch(2, 10)
    produce = decode_request(BY_NAME["produce"], 8, produce_request("t", 3, records)[4:], 15)
    (topic,) = produce.topic_data
    (partition,) = topic.partition_data
    assert (topic.name, partition.index, bytes(partition.records)) == ("t", 3, records)
    fetch = decode_request(BY_NAME["fetch"], 11, fetch_request("t", 3, 7, 99)[4:], 15)
    (asked,) = fetch.topics[0].partitions
    assert (asked.partition, asked.fetch_offset, asked.partition_max_bytes) == (3, 7, 99)
    assert fetch.topics[0].topic == "t"
