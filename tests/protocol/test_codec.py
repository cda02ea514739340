"""The compiled writers and the readers, of every API and version, against kio's own."""

from __future__ import annotations

import struct
import tracemalloc
from contextlib import suppress
from io import BytesIO

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.serial import entity_reader, entity_writer

from fencepost.protocol import codec
from fencepost.protocol.apis import APIS, BY_NAME, Api
from fencepost.protocol.codec.schema import Side, StructSchema, default_value, message_schema
from fencepost.protocol.frames import read_header, skip_tags
from fencepost.protocol.messages.alter_configs import (
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from fencepost.protocol.messages.describe_groups import DescribeGroupsRequest
from fencepost.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from fencepost.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from fencepost.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.protocol.messages import EVERY, Content, Value, content_of, contents, kios, ours, title
from tools.kio_schemas import kio_class

CORRELATION_ID = 0x01020304


def encode(api: Api, version: int, side: Side, message: Value) -> tuple[bytes, int]:
    """A frame without its size, and where the body starts."""
    if side == "request":
        whole = b"".join(codec.encode_request(api, version, CORRELATION_ID, "c", message))
        frame = bytearray(whole[4:])
        offset = skip_tags(frame, read_header(frame), api)
    else:
        whole = b"".join(codec.encode_response(api, version, CORRELATION_ID, message))
        offset = codec.response_body_offset(api, version)
    assert struct.unpack_from(">i", whole) == (len(whole) - 4,)
    return whole[4:], offset


def decode(api: Api, version: int, side: Side, frame: bytes, offset: int = 0) -> Value:
    read = codec.decode_request if side == "request" else codec.decode_response
    return read(api, version, frame, offset)


def kio_bytes(schema: StructSchema, content: Content) -> bytes:
    out = BytesIO()
    entity_writer(kio_class(schema))(out, kios(schema, content))
    return out.getvalue()


@pytest.mark.parametrize("case", EVERY, ids=title)
def test_what_is_written_and_read_is_what_kio_writes_and_reads(
    case: tuple[Api, int, Side],
) -> None:
    api, version, side = case
    schema = message_schema(api.name, side, version)

    @settings(max_examples=6, database=None, suppress_health_check=list(HealthCheck))
    @given(contents(schema))
    def agree(content: Content) -> None:
        theirs = kio_bytes(schema, content)
        frame, offset = encode(api, version, side, ours(schema, content))
        assert frame[offset:] == theirs
        entity, size = entity_reader(kio_class(schema))(theirs, 0)
        assert (entity, size) == (kios(schema, content), len(theirs))
        for read in (decode(api, version, side, theirs), decode(api, version, side, frame, offset)):
            assert content_of(schema, read) == content

    agree()


@pytest.mark.parametrize("case", EVERY, ids=title)
def test_what_a_version_lacks_reads_as_its_default(case: tuple[Api, int, Side]) -> None:
    api, version, side = case
    schema = message_schema(api.name, side, version)
    frame, offset = encode(api, version, side, schema.cls())
    read = decode(api, version, side, frame, offset)
    known = {f.name for f in schema.fields}
    for name in schema.cls.__struct_fields__:
        if name not in known:
            assert getattr(read, name) == default_value(schema.cls, name)


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.title)
@pytest.mark.parametrize("side", ["request", "response"])
def test_no_bytes_do_more_to_a_reader_than_be_malformed(api: Api, side: Side) -> None:
    @settings(max_examples=20, database=None, suppress_health_check=list(HealthCheck))
    @given(st.binary(max_size=120), st.sampled_from([api.min_version, api.max_version]))
    def refuse(noise: bytes, version: int) -> None:
        with suppress(codec.MalformedMessage):
            decode(api, version, side, noise)

    refuse()


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.title)
def test_a_request_that_is_cut_short_is_malformed(api: Api) -> None:
    schema = message_schema(api.name, "request", api.max_version)

    @settings(max_examples=4, database=None, suppress_health_check=list(HealthCheck))
    @given(contents(schema), st.data())
    def refuse(content: Content, data: st.DataObject) -> None:
        whole = kio_bytes(schema, content)
        end = data.draw(st.integers(0, len(whole) - 1))
        with pytest.raises(codec.MalformedMessage):
            decode(api, api.max_version, "request", whole[:end])

    refuse()


@pytest.mark.parametrize(
    ("version", "count"),
    [
        (1, b"\x7f\xff\xff\xff"),
        (12, b"\xff\xff\xff\xff\x07"),
        (12, b"\xff\xff\xff\xff\x0f"),
        (12, b"\xff\xff\xff\xff\xff\xff"),
    ],
)
def test_no_memory_is_taken_for_elements_that_are_only_claimed(version: int, count: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(codec.MalformedMessage):
            decode(BY_NAME["metadata"], version, "request", count + bytes(100))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_bytes_behind_a_request_are_ignored() -> None:
    api = BY_NAME["metadata"]
    frame, offset = encode(api, 12, "request", MetadataRequest(topics=None))
    assert decode(api, 12, "request", frame + b"more", offset).topics is None


def test_tagged_fields_that_nobody_knows_are_passed_over() -> None:
    api = BY_NAME["metadata"]
    request = MetadataRequest(topics=(MetadataRequestTopic(name="t"),))
    frame, offset = encode(api, 12, "request", request)
    assert frame.endswith(b"\0")
    tagged = frame[:-1] + b"\x01\x63\x03abc"
    (topic,) = decode(api, 12, "request", tagged, offset).topics
    assert topic.name == "t"


@pytest.mark.parametrize("version", [8, 12])
def test_batches_of_a_produce_request_are_views_of_its_frame(version: int) -> None:
    api = BY_NAME["produce"]
    partition = PartitionProduceData(index=1, records=b"batch")
    request = ProduceRequest(topic_data=(TopicProduceData(name="t", partition_data=(partition,)),))
    encoded, offset = encode(api, version, "request", request)
    frame = bytearray(encoded)
    records = (
        codec.decode_request(api, version, frame, offset).topic_data[0].partition_data[0].records
    )
    records[0:1] = b"B"
    assert b"Batch" in frame


def test_batches_of_a_fetch_response_leave_as_the_very_buffers() -> None:
    api = BY_NAME["fetch"]
    batches = (b"one", memoryview(b"two"))
    partition = PartitionData(records=batches)
    response = FetchResponse(
        responses=(FetchableTopicResponse(topic="t", partitions=(partition, partition)),)
    )
    chunks = codec.encode_response(api, 12, 1, response)
    sent = [chunk for chunk in chunks if not isinstance(chunk, bytearray)]
    assert [id(chunk) for chunk in sent] == [id(batch) for batch in batches * 2]


def test_the_header_of_an_api_versions_answer_has_no_tags() -> None:
    api = BY_NAME["api_versions"]
    schema = message_schema("api_versions", "response", 3)
    (head,) = codec.encode_response(api, 3, CORRELATION_ID, schema.cls())
    assert bytes(head[4:8]) == struct.pack(">i", CORRELATION_ID)
    assert bytes(head[8:10]) == b"\0\0", "the error code comes at once"


@pytest.mark.parametrize(
    ("name", "version", "body"),
    [
        ("delete_records", 0, struct.pack(">ii", -1, 1000)),
        ("delete_records", 2, b"\x00" + struct.pack(">i", 1000) + b"\x00"),
        ("offset_delete", 0, struct.pack(">h", -1)),
    ],
    ids=["array", "compact array", "string"],
)
def test_null_where_the_schema_has_none_is_malformed(name: str, version: int, body: bytes) -> None:
    with pytest.raises(codec.MalformedMessage, match="is null, which it must not be"):
        codec.decode_request(BY_NAME[name], version, body)


@pytest.mark.parametrize(
    ("version", "claimed"), [(1, b"\0\0\x03\xe8" + bytes(1_999)), (12, b"\xe9\x07" + bytes(9_000))]
)
def test_an_array_is_refused_before_its_first_element(version: int, claimed: bytes) -> None:
    """A thousand topics have two bytes each in version 1, a name; in version 12 18, with an id."""
    with pytest.raises(codec.MalformedMessage, match=r"\d+ bytes wanted at"):
        decode(BY_NAME["metadata"], version, "request", claimed)


def test_a_tagged_field_ends_within_its_size() -> None:
    frame, offset = encode(BY_NAME["fetch"], 12, "request", FetchRequest(cluster_id="abc"))
    assert frame.endswith(b"\x01\x00\x04\x04abc")
    with pytest.raises(codec.MalformedMessage, match="tagged field 0 reaches to"):
        decode(BY_NAME["fetch"], 12, "request", frame[:-5] + b"\x03\x04abc", offset)


def test_a_message_has_a_limited_number_of_tagged_fields() -> None:
    api = BY_NAME["metadata"]
    frame, offset = encode(api, 12, "request", MetadataRequest(topics=None))
    for count, length in ((100_000, b"\xa0\x8d\x06"), (100_001, b"\xa1\x8d\x06")):
        tagged = frame[:-1] + length + b"\x63\0" * count
        if count == 100_000:
            assert decode(api, 12, "request", tagged, offset).topics is None
        else:
            with pytest.raises(codec.MalformedMessage, match="more than 100000 tagged fields"):
                decode(api, 12, "request", tagged, offset)


def test_a_message_has_a_limited_number_of_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "MAX_ELEMENTS", 10_000)
    api = BY_NAME["describe_groups"]
    for count in (14_999, 15_000):  # counted in slices of 5,000
        request = DescribeGroupsRequest(groups=("g",) * count)
        frame, offset = encode(api, 5, "request", request)
        reading = codec.decode_request_in_slices(api, 5, frame, offset)
        if count < 15_000:
            assert [*reading] == [None, None]
        else:
            with pytest.raises(codec.MalformedMessage, match="more than 10000 elements"):
                list(reading)


@pytest.mark.parametrize("version", [1, 2])
def test_a_message_that_is_too_long_for_a_string_is_cut_at_a_character(version: int) -> None:
    result = AlterConfigsResourceResponse(
        error_code=40, error_message="é" * 20_000, resource_type=2, resource_name="t"
    )
    response = AlterConfigsResponse(throttle_time_ms=0, responses=(result,))
    api = BY_NAME["alter_configs"]
    frame = b"".join(codec.encode_response(api, version, CORRELATION_ID, response))
    assert ("é" * 16_383).encode() in frame
    assert ("é" * 16_384).encode() not in frame
