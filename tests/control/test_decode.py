"""Messages as JSON: nothing in them makes an answer of megabytes, or none at all."""

from __future__ import annotations

import json

import pytest

from fencepost.broker.server.journal import Exchange
from fencepost.control import decode
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
from fencepost.protocol.records import Record, build_batch


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
    found = decode.decoded_response(
        exchange(
            "metadata", 1, request=MetadataRequest(), response=MetadataResponse(topics=topics)
        ),
        set(),
    )
    assert found is not None
    shown = json.dumps(found).count("partition_index")
    assert shown <= decode.MAX_ELEMENTS
    assert len(found["topics"]) == 100  # type: ignore[arg-type]  # of JSON
    counts = [
        len(topic["partitions"]) + topic.get("partitions_left_out", 0)
        for topic in found["topics"]  # type: ignore[attr-defined]  # of JSON
    ]
    assert counts == [100] * 100
    assert shown == decode.MAX_ELEMENTS - 100


@pytest.mark.parametrize(("size", "base64"), [(2, "QUE="), (0, ""), (decode.MAX_BYTES + 1, None)])
def test_bytes_are_shown_while_they_are_few(size: int, base64: str | None) -> None:
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"A" * size)
    request = JoinGroupRequest(group_id="g", protocols=(protocol,))
    found = decode.decoded_request(exchange("join_group", 5, request=request), set())
    assert found["protocols"] == [{"name": "range", "metadata": {"bytes": size, "base64": base64}}]


def test_topics_are_noted_and_other_names_are_not() -> None:
    topics: set[str] = set()
    deletion = DeleteTopicsRequest(topic_names=("a", "b"), timeout_ms=1)
    decode.decoded_request(exchange("delete_topics", 1, request=deletion), topics)
    assert topics == {"a", "b"}
    topics.clear()
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"")
    join = JoinGroupRequest(group_id="g", protocols=(protocol,))
    decode.decoded_request(exchange("join_group", 5, request=join), topics)
    assert topics == set()


def batch(count: int = 1) -> bytearray:
    return build_batch([Record(i, 5, None, b"v") for i in range(count)])


def test_a_summary_lists_only_the_first_batches() -> None:
    found = decode.summary([b"".join([batch()] * 250)])
    assert len(found["batches"]) == decode.MAX_BATCHES  # type: ignore[arg-type]  # of JSON
    assert found["batches_left_out"] == 250 - decode.MAX_BATCHES
    assert found["bytes"] == 250 * len(batch())


def test_a_batch_that_is_cut_off_counts_in_bytes_alone() -> None:
    data = bytes(batch(2)) + bytes(batch())[:-1]
    found = decode.summary([data])
    assert [b["count"] for b in found["batches"]] == [2]  # type: ignore[attr-defined]  # of JSON
    assert found["bytes"] == len(data)
    assert "corrupt" not in found


def test_data_that_is_no_batch_is_called_corrupt() -> None:
    found = decode.summary([bytes(batch()), b"\x00" * 100])
    assert len(found["batches"]) == 1  # type: ignore[arg-type]  # of JSON
    assert "less than the minimum record overhead" in str(found["corrupt"])


def test_an_answer_that_does_not_decode_is_called_malformed() -> None:
    broken = exchange("metadata", 1, request=MetadataRequest(), response=MetadataResponse())
    broken.chunks = [bytes(9)]
    found = decode.decoded_response(broken, set())
    assert found is not None
    assert "not a Metadata v1 response" in str(found["malformed"])
