"""Messages as JSON: nothing in them makes an answer of megabytes, or none at all."""

from __future__ import annotations

import json

import pytest

from fencepost.broker.server.journal import Exchange
from fencepost.control import message_json
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.codec import encode_request, encode_response
from fencepost.protocol.messages.delete_topics import DeleteTopicsRequest
from fencepost.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from fencepost.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from fencepost.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.harness import records


def exchange(name: str, version: int, *, request: object, response: object = None) -> Exchange:
    """As a connection would have opened and closed it."""
    api = BY_NAME[name]
    frame = bytearray(b"".join(encode_request(api, version, 1, "", request))[4:])
    flexible = api.is_flexible(version)
    return Exchange(
        time_ms=0,
        broker_id=1,
        connection_id="c",
        client_id="",
        api=api,
        version=version,
        correlation_id=1,
        frame=frame,
        body_offset=11 if flexible else 10,
        chunks=None if response is None else encode_response(api, version, 1, response),
    )


def test_long_arrays_are_cut_and_say_so() -> None:
    topics = tuple(
        MetadataResponseTopic(
            name=f"t{i}",
            partitions=tuple(MetadataResponsePartition(partition_index=p) for p in range(100)),
        )
        for i in range(100)
    )
    found = message_json.response_json(
        exchange(
            "metadata", 1, request=MetadataRequest(), response=MetadataResponse(topics=topics)
        ),
        set(),
        message_json.SHORT,
    )
    assert found is not None
    shown = json.dumps(found).count("partition_index")
    assert shown <= message_json.SHORT.elements
    assert len(found["topics"]) == 100  # type: ignore[arg-type]  # of JSON
    counts = [
        len(topic["partitions"]) + topic.get("partitions_left_out", 0)
        for topic in found["topics"]  # type: ignore[attr-defined]  # of JSON
    ]
    assert counts == [100] * 100
    assert shown == message_json.SHORT.elements - 100


@pytest.mark.parametrize(
    ("size", "base64"), [(2, "QUE="), (0, ""), (message_json.MAX_BYTES + 1, None)]
)
def test_bytes_are_shown_while_they_are_few(size: int, base64: str | None) -> None:
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"A" * size)
    request = JoinGroupRequest(group_id="g", protocols=(protocol,))
    found = message_json.request_json(
        exchange("join_group", 5, request=request), set(), message_json.SHORT
    )
    assert found["protocols"] == [{"name": "range", "metadata": {"bytes": size, "base64": base64}}]


def test_topics_are_noted_and_other_names_are_not() -> None:
    topics: set[str] = set()
    deletion = DeleteTopicsRequest(topic_names=("a", "b"), timeout_ms=1)
    message_json.request_json(
        exchange("delete_topics", 1, request=deletion), topics, message_json.SHORT
    )
    assert topics == {"a", "b"}
    topics.clear()
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"")
    join = JoinGroupRequest(group_id="g", protocols=(protocol,))
    message_json.request_json(exchange("join_group", 5, request=join), topics, message_json.SHORT)
    assert topics == set()


def batch(count: int = 1) -> bytearray:
    return records.batch(*[(5, None, b"v")] * count)


def test_a_summary_lists_only_the_first_batches() -> None:
    found = message_json.batch_summary([b"".join([batch()] * 250)], message_json.SHORT.batches)
    assert len(found["batches"]) == message_json.SHORT.batches  # type: ignore[arg-type]  # of JSON
    assert found["batches_left_out"] == 250 - message_json.SHORT.batches
    assert found["bytes"] == 250 * len(batch())


def test_files_are_told_all_elements_and_batches() -> None:
    data = tuple(
        PartitionProduceData(index=index, records=b"".join([batch()] * (250 if not index else 1)))
        for index in range(1200)
    )
    request = ProduceRequest(topic_data=(TopicProduceData(name="t", partition_data=data),))
    asked = exchange("produce", 9, request=request)
    found = json.dumps(message_json.request_json(asked, set(), message_json.WHOLE))
    assert found.count('"index"') == 1200
    assert found.count('"base_offset"') == 250 + 1199
    assert "left_out" not in found


def test_what_is_stated_belongs_to_its_partition_also_behind_one_without_records() -> None:
    data = (
        PartitionProduceData(index=0, records=None),
        PartitionProduceData(index=1, records=batch()),
        PartitionProduceData(index=2, records=batch()),
    )
    request = ProduceRequest(topic_data=(TopicProduceData(name="t", partition_data=data),))
    asked = exchange("produce", 9, request=request)
    asked.expected_offsets = (None, (7,), (8,))
    found = json.loads(json.dumps(message_json.request_json(asked, set(), message_json.SHORT)))
    none, *others = (each["records"] for each in found["topic_data"][0]["partition_data"])
    assert none is None
    assert [each["batches"][0]["expected_offset"] for each in others] == [7, 8]


def test_a_batch_that_is_cut_off_counts_in_bytes_alone() -> None:
    data = bytes(batch(2)) + bytes(batch())[:-1]
    found = message_json.batch_summary([data], message_json.SHORT.batches)
    assert [b["count"] for b in found["batches"]] == [2]  # type: ignore[attr-defined]  # of JSON
    assert found["bytes"] == len(data)
    assert "corrupt" not in found


def test_data_that_is_no_batch_is_called_corrupt() -> None:
    found = message_json.batch_summary([bytes(batch()), b"\x00" * 100], message_json.SHORT.batches)
    assert len(found["batches"]) == 1  # type: ignore[arg-type]  # of JSON
    assert "less than the minimum record overhead" in str(found["corrupt"])


def test_an_answer_that_does_not_decode_is_called_malformed() -> None:
    broken = exchange("metadata", 1, request=MetadataRequest(), response=MetadataResponse())
    broken.chunks = [bytes(9)]
    found = message_json.response_json(broken, set(), message_json.SHORT)
    assert found is not None
    assert "not a Metadata v1 response" in str(found["malformed"])
