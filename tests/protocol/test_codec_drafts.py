"""Drafts: versions and fields of proposals that kio does not have, byte for byte."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from struct import pack
from types import ModuleType

import pytest
from msgspec.structs import replace

from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.codec.drafts import (
    DRAFTS,
    KIP_320_DRAFT,
    Draft,
    DraftField,
    DraftVersion,
    Layout,
    find_draft,
)
from fencepost.protocol.codec.error_codes import error_code_finder
from fencepost.protocol.codec.schema import Side, message_schema
from fencepost.protocol.messages.api_versions import ApiVersionsRequest
from fencepost.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from fencepost.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from fencepost.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from fencepost.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from tests.protocol.bodies import Message, decode, encode
from tests.protocol.messages import SIDES
from tools.generate_messages import render

LIST_OFFSETS = BY_NAME["list_offsets"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """A message of the draft and its body on the wire."""

    api: str
    version: int
    side: Side
    message: Message
    body: bytes


# `>i` array sizes and `>h` string sizes are written out, so that no code of the codec is used.
ASKING = b"\x02f\x020" + b"\x01\xd0\x50\x00"
"""Two strings, and one tagged field: 10320 (0x50 << 7 | 0x50), of no bytes."""
API_VERSIONS = [
    Row(
        api="api_versions",
        version=version,
        side="request",
        message=ApiVersionsRequest(
            client_software_name="f", client_software_version="0", dialect_requested=True
        ),
        body=ASKING,
    )
    for version in (3, 4)
]
KIP_320 = [
    *API_VERSIONS,
    Row(
        api="fetch",
        version=9,
        side="request",
        message=FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=1000,
            isolation_level=1,
            topics=(
                FetchTopic(
                    topic="t",
                    partitions=(
                        FetchPartition(
                            partition=7,
                            fetch_offset=40,
                            log_start_offset=3,
                            last_fetched_epoch=5,
                            partition_max_bytes=99,
                        ),
                    ),
                ),
            ),
        ),
        body=(
            pack(">iiiibii", -1, 500, 1, 1000, 1, 0, -1)
            + pack(">ih1si", 1, 1, b"t", 1)
            + pack(">iqqii", 7, 40, 3, 5, 99)
            + pack(">i", 0)
        ),
    ),
    Row(
        api="fetch",
        version=9,
        side="response",
        message=FetchResponse(
            throttle_time_ms=2,
            responses=(
                FetchableTopicResponse(
                    topic="t",
                    partitions=(
                        PartitionData(
                            partition_index=7,
                            error_code=1,
                            high_watermark=50,
                            last_stable_offset=49,
                            log_start_offset=3,
                            aborted_transactions=None,
                        ),
                    ),
                ),
            ),
        ),
        body=(
            pack(">ihi", 2, 0, 0)
            + pack(">ih1si", 1, 1, b"t", 1)
            + pack(">ihqqqii", 7, 1, 50, 49, 3, -1, -1)
        ),
    ),
    Row(
        api="list_offsets",
        version=4,
        side="request",
        message=ListOffsetsRequest(
            replica_id=-1,
            isolation_level=1,
            topics=(
                ListOffsetsTopic(
                    name="t", partitions=(ListOffsetsPartition(partition_index=7, timestamp=-2),)
                ),
            ),
        ),
        body=pack(">ib", -1, 1) + pack(">ih1si", 1, 1, b"t", 1) + pack(">iq", 7, -2),
    ),
    Row(
        api="list_offsets",
        version=4,
        side="response",
        message=ListOffsetsResponse(
            throttle_time_ms=2,
            topics=(
                ListOffsetsTopicResponse(
                    name="t",
                    partitions=(
                        ListOffsetsPartitionResponse(
                            partition_index=7,
                            error_code=3,
                            timestamp=1_600_000_000_000,
                            offset=40,
                            leader_epoch=5,
                        ),
                    ),
                ),
            ),
        ),
        body=(
            pack(">i", 2)
            + pack(">ih1si", 1, 1, b"t", 1)
            + pack(">iqiqh", 7, 40, 5, 1_600_000_000_000, 3)
        ),
    ),
    Row(
        api="offset_commit",
        version=6,
        side="request",
        message=OffsetCommitRequest(
            group_id="g",
            generation_id_or_member_epoch=4,
            member_id="m",
            topics=(
                OffsetCommitRequestTopic(
                    name="t",
                    partitions=(
                        OffsetCommitRequestPartition(
                            partition_index=7,
                            committed_offset=40,
                            timestamp=1_600_000_000_000,
                            committed_leader_epoch=5,
                            committed_metadata="x",
                        ),
                    ),
                ),
            ),
        ),
        body=(
            pack(">h1sih1s", 1, b"g", 4, 1, b"m")
            + pack(">ih1si", 1, 1, b"t", 1)
            + pack(">iqqih1s", 7, 40, 1_600_000_000_000, 5, 1, b"x")
        ),
    ),
    Row(
        api="offset_commit",
        version=6,
        side="response",
        message=OffsetCommitResponse(
            throttle_time_ms=2,
            topics=(
                OffsetCommitResponseTopic(
                    name="t",
                    partitions=(OffsetCommitResponsePartition(partition_index=7, error_code=3),),
                ),
            ),
        ),
        body=pack(">i", 2) + pack(">ih1si", 1, 1, b"t", 1) + pack(">ih", 7, 3),
    ),
    Row(
        api="offset_fetch",
        version=5,
        side="request",
        message=OffsetFetchRequest(
            group_id="g", topics=(OffsetFetchRequestTopic(name="t", partition_indexes=(7,)),)
        ),
        body=pack(">h1s", 1, b"g") + pack(">ih1si", 1, 1, b"t", 1) + pack(">i", 7),
    ),
    Row(
        api="offset_fetch",
        version=5,
        side="response",
        message=OffsetFetchResponse(
            throttle_time_ms=2,
            topics=(
                OffsetFetchResponseTopic(
                    name="t",
                    partitions=(
                        OffsetFetchResponsePartition(
                            partition_index=7,
                            committed_offset=40,
                            timestamp=1_600_000_000_000,
                            committed_leader_epoch=5,
                            metadata=None,
                            error_code=3,
                        ),
                    ),
                ),
            ),
            error_code=16,
        ),
        body=(
            pack(">i", 2)
            + pack(">ih1si", 1, 1, b"t", 1)
            + pack(">iqqihh", 7, 40, 1_600_000_000_000, 5, -1, 3)
            + pack(">h", 16)
        ),
    ),
]


# -- KIP-320's draft ----------------------------------------------------------------------------


@pytest.mark.parametrize("row", KIP_320, ids=lambda row: f"{row.api}-v{row.version}-{row.side}")
def test_messages_of_the_draft_of_kip_320_are_these_bytes(row: Row) -> None:
    body = encode(row.api, row.version, row.side, row.message, KIP_320_DRAFT)
    assert body == row.body
    assert decode(row.api, row.version, row.side, body, KIP_320_DRAFT) == row.message


def test_every_version_of_the_draft_of_kip_320_is_checked() -> None:
    assert {(row.api, row.version) for row in KIP_320} == set(KIP_320_DRAFT.versions)


@pytest.mark.parametrize("row", KIP_320, ids=lambda row: f"{row.api}-v{row.version}-{row.side}")
def test_without_the_draft_these_versions_are_kafkas(row: Row) -> None:
    changed = KIP_320_DRAFT.versions[row.api, row.version]
    is_replaced = KIP_320_DRAFT.replaces(BY_NAME[row.api], row.version)
    assert changed.base == row.version - is_replaced
    if changed.layouts(row.side):
        assert encode(row.api, row.version, row.side, row.message) != row.body
    assert message_schema(row.api, row.side, row.version).version == row.version


def test_exactly_four_versions_are_replaced() -> None:
    replaced = {
        (name, version)
        for name, version in KIP_320_DRAFT.versions
        if KIP_320_DRAFT.replaces(BY_NAME[name], version)
    }
    assert replaced == {
        *(("fetch", 9), ("list_offsets", 4), ("offset_commit", 6), ("offset_fetch", 5))
    }
    assert {KIP_320_DRAFT.highest(BY_NAME[name]) for name, _ in replaced} == {9, 4, 6, 5}
    assert KIP_320_DRAFT.highest(BY_NAME["api_versions"]) is None
    assert KIP_320_DRAFT.highest(BY_NAME["metadata"]) is None


@pytest.mark.parametrize("row", API_VERSIONS, ids=lambda row: f"v{row.version}")
@pytest.mark.parametrize(
    ("body", "is_requested"),
    [
        (ASKING, True),
        (b"\x02f\x020\x00", False),
        (b"\x02f\x020\x02\x05\x01x\xd0\x50\x00", True),
        (b"\x02f\x020\x01\xd0\x51\x00", False),
    ],
    ids=["asking", "no tagged field", "behind another", "another"],
)
def test_a_tagged_field_without_bytes_is_true_where_it_is_there(
    row: Row, body: bytes, is_requested: bool
) -> None:
    request = decode(row.api, row.version, row.side, body, KIP_320_DRAFT)
    assert request == replace(row.message, dialect_requested=is_requested)
    assert decode(row.api, row.version, row.side, body).dialect_requested is False


def test_other_versions_are_kafkas_on_a_connection_with_a_draft() -> None:
    for version in (3, 5):
        assert message_schema("list_offsets", "response", version) is message_schema(
            "list_offsets", "response", version, KIP_320_DRAFT
        )


@pytest.mark.parametrize("draft", DRAFTS.values(), ids=lambda draft: draft.name)
def test_every_draft_fits_the_versions_that_it_is_based_on(draft: Draft) -> None:
    for (name, version), changed in draft.versions.items():
        api = BY_NAME[name]
        assert api.is_flexible(changed.base) is api.is_flexible(version)
        for side in SIDES:
            message = message_schema(name, side, version, draft).cls()
            body = encode(name, version, side, message, draft)
            assert decode(name, version, side, body, draft) == message


def test_a_draft_is_found_by_its_name() -> None:
    assert find_draft("kip-320-draft") is KIP_320_DRAFT
    with pytest.raises(ValueError, match="no dialect 'kip-320'; the dialects are kip-320-draft"):
        find_draft("kip-320")


# -- a version that no kio has ------------------------------------------------------------------

PARTITION: Layout = (
    "partition_index",
    DraftField("not_before", "int64", -1),
    "timestamp",
    DraftField("tenant", "string", None, nullable=True),
    DraftField("racks", "string", (), array=True),
    DraftField("hint", "int16", 0, tag=3),
)
NEW_VERSION = DraftVersion(
    base=11,
    request={"ListOffsetsPartition": PARTITION},
    response={
        "ListOffsetsPartitionResponse": (
            *("partition_index", "error_code", "timestamp", "offset", "leader_epoch"),
            DraftField("served_by", "uuid", None),
        )
    },
)
NEW = Draft(name="new", versions={("list_offsets", 12): NEW_VERSION})


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> Message:
    """The message classes of ListOffsets as they are generated with the draft above."""
    module = generated()
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


@cache
def generated() -> ModuleType:
    """Once: the codec keeps what it compiles for these classes."""
    module = ModuleType("fencepost.protocol.messages.list_offsets")
    exec(render("list_offsets", 2, [NEW]), vars(module))
    return module


def test_a_version_that_kio_does_not_have_can_be_written_and_read(messages: Message) -> None:
    partition = messages.ListOffsetsPartition(
        partition_index=7, not_before=9, timestamp=-1, tenant="x", racks=("a",), hint=2
    )
    topic = messages.ListOffsetsTopic(name="t", partitions=(partition,))
    request = messages.ListOffsetsRequest(replica_id=-1, topics=(topic,), timeout_ms=4)
    body = encode("list_offsets", 12, "request", request, NEW)
    assert body == (
        pack(">ib", -1, 0)
        + b"\x02\x02t\x02"
        + pack(">iqq", 7, 9, -1)
        + b"\x02x\x02\x02a"
        + b"\x01\x03\x02\x00\x02"  # one tagged field: 3, of two bytes
        + b"\x00"
        + pack(">i", 4)
        + b"\x00"
    )
    assert decode("list_offsets", 12, "request", body, NEW) == request


def test_the_new_fields_have_their_defaults_in_all_other_versions(messages: Message) -> None:
    plain = messages.ListOffsetsPartition()
    defaults = (plain.not_before, plain.tenant, plain.racks, plain.hint)
    assert defaults == (-1, None, (), 0)
    assert "    not_before: int = -1  # new\n" in render("list_offsets", 2, [NEW])
    assert "    racks: tuple[str, ...] = ()  # new\n" in render("list_offsets", 2, [NEW])
    assert "    tenant: str | None = None  # new\n" in render("list_offsets", 2, [NEW])


def test_errors_are_found_in_answers_of_a_draft(messages: Message) -> None:
    partition = messages.ListOffsetsPartitionResponse(error_code=74)
    topic = messages.ListOffsetsTopicResponse(partitions=(partition,))
    answer = messages.ListOffsetsResponse(topics=(topic,))
    assert error_code_finder(LIST_OFFSETS, 12, NEW)(answer) == (74,)


def test_a_draft_serves_the_versions_that_it_has() -> None:
    assert [NEW.serves(LIST_OFFSETS, version) for version in (11, 12, 13)] == [False, True, False]
    assert not NEW.serves(BY_NAME["fetch"], 12)
    assert not LIST_OFFSETS.serves(12)


# -- mistakes in a draft ------------------------------------------------------------------------


def draft_of(struct: str, *layout: str | DraftField) -> Draft:
    version = DraftVersion(base=11, request={struct: layout})
    return Draft(name="wrong", versions={("list_offsets", 12): version})


def test_a_struct_that_the_message_does_not_have_is_refused() -> None:
    draft = draft_of("ListOffsetPartition", "partition_index")
    with pytest.raises(ValueError, match="no struct of this list_offsets request is named List"):
        message_schema("list_offsets", "request", 12, draft)
    with pytest.raises(KeyError, match="ListOffsetPartition"):
        render("list_offsets", 2, [draft_of("ListOffsetPartition", DraftField("x", "int8", 0))])


def test_a_field_that_the_base_does_not_have_is_refused() -> None:
    with pytest.raises(KeyError, match="partition_id"):
        message_schema(
            "list_offsets", "request", 12, draft_of("ListOffsetsPartition", "partition_id")
        )


def test_a_field_whose_class_was_not_generated_is_refused() -> None:
    draft = draft_of("ListOffsetsPartition", DraftField("not_generated", "int64", -1))
    with pytest.raises(KeyError, match="not_generated"):
        message_schema("list_offsets", "request", 12, draft)


def test_a_field_without_bytes_needs_a_tag(monkeypatch: pytest.MonkeyPatch) -> None:
    draft = draft_of("ListOffsetsPartition", DraftField("wanted", "presence", False))
    module = ModuleType("fencepost.protocol.messages.list_offsets")
    exec(render("list_offsets", 2, [draft]), vars(module))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    with pytest.raises(ValueError, match="wanted has no bytes, so it needs a tag"):
        message_schema("list_offsets", "request", 12, draft)


@pytest.mark.parametrize(
    ("field", "schema_refuses"),
    [
        (DraftField("timestamp", "int64", -1), True),
        (DraftField("timestamp", "string", 0), False),
        (DraftField("timestamp", "int64", 0, array=True), False),
    ],
    ids=["default", "type", "array"],
)
def test_a_field_that_other_versions_have_keeps_its_type_and_default(
    field: DraftField, *, schema_refuses: bool
) -> None:
    draft = draft_of("ListOffsetsPartition", field)
    with pytest.raises(SystemExit, match=r"wrong: ListOffsetsPartition\.timestamp is int = 0, not"):
        render("list_offsets", 2, [draft])
    if schema_refuses:
        with pytest.raises(ValueError, match="timestamp is 0 by default, not -1"):
            message_schema("list_offsets", "request", 12, draft)
