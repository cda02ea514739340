"""A client's connection asks for its dialect, and reads and writes the versions of the draft."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from fencepost.client import Client, DialectNotServed, Partition, connect, fetch, list_offsets
from fencepost.client.connection import Connection
from fencepost.client.groups import commit_offset, fetch_committed_offset
from fencepost.client.model import ConsumerGroupMetadata
from fencepost.protocol.apis import APIS, BY_KEY, BY_NAME
from fencepost.protocol.codec import decode_request, encode_response
from fencepost.protocol.codec.drafts import KIP_320_DRAFT, Draft
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.frames import read_header
from fencepost.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    SupportedFeatureKey,
)
from fencepost.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from fencepost.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from fencepost.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from fencepost.protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from tests.harness.in_process_server import HOST

DIALECT = KIP_320_DRAFT.name
NAMED = SupportedFeatureKey(name="kip.320.draft", min_version=1, max_version=1)
OTHER = SupportedFeatureKey(name="metadata.version", min_version=7, max_version=29)
LATER = SupportedFeatureKey(name="kip.320.draft", min_version=2, max_version=3)
T = Partition(topic="t", index=0)
ANSWERS: dict[str, object] = {
    "fetch": FetchResponse(
        responses=(FetchableTopicResponse(topic="t", partitions=(PartitionData(error_code=2702),)),)
    ),
    "list_offsets": ListOffsetsResponse(
        topics=(
            ListOffsetsTopicResponse(
                name="t",
                partitions=(
                    ListOffsetsPartitionResponse(
                        offset=6, leader_epoch=2, timestamp=5, error_code=78
                    ),
                ),
            ),
        )
    ),
    "offset_commit": OffsetCommitResponse(
        topics=(OffsetCommitResponseTopic(name="t", partitions=(OffsetCommitResponsePartition(),)),)
    ),
    "offset_fetch": OffsetFetchResponse(
        topics=(
            OffsetFetchResponseTopic(
                name="t",
                partitions=(OffsetFetchResponsePartition(timestamp=8, committed_leader_epoch=3),),
            ),
        )
    ),
}


class Broker:
    """Answers by a draft, and keeps what it was asked."""

    def __init__(self, draft: Draft | None, *features: SupportedFeatureKey) -> None:
        self.draft = draft
        self.port = 0
        self.asked: list[object] = []
        self.api_versions_frames: list[bytes] = []
        self.versions = ApiVersionsResponse(
            api_keys=tuple(
                ApiVersion(
                    api_key=api.key, min_version=api.advertised_min, max_version=api.max_version
                )
                for api in APIS
            ),
            supported_features=features,
        )
        self.knows_api_versions = True

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                writer.writelines(self._answer(bytearray(await reader.readexactly(size))))
        except asyncio.IncompleteReadError:
            writer.close()

    def _answer(self, frame: bytearray) -> list[bytes | bytearray | memoryview]:
        header = read_header(frame)
        api, version = BY_KEY[header.api_key], header.version
        answer = ANSWERS.get(api.name, self.versions)
        if api.name == "api_versions":
            self.api_versions_frames.append(bytes(frame))
            if not self.knows_api_versions:
                answer, version = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION), 0
        if version:
            at = header.body_offset + api.is_flexible(version)
            self.asked.append(decode_request(api, version, frame, at, self.draft))
        return encode_response(api, version, header.correlation_id, answer, self.draft)


@asynccontextmanager
async def serving(broker: Broker) -> AsyncIterator[Broker]:
    server = await asyncio.start_server(broker.serve, HOST, 0)
    broker.port = server.sockets[0].getsockname()[1]
    try:
        yield broker
    finally:
        server.close()
        await server.wait_closed()


@asynccontextmanager
async def connected(broker: Broker, dialect: str | None) -> AsyncIterator[Connection]:
    async with serving(broker):
        connection = await connect(HOST, broker.port, "tests", dialect=dialect)
        try:
            yield connection
        finally:
            await connection.close()


@pytest.mark.parametrize("draft", [None, KIP_320_DRAFT], ids=["kafka", "draft"])
async def test_raw_calls_take_and_return_the_fields_of_the_draft(draft: Draft | None) -> None:
    broker = Broker(draft, OTHER, NAMED)
    async with connected(broker, None if draft is None else DIALECT) as connection:
        who = ConsumerGroupMetadata(group="g")
        fetched = await fetch(connection, T, 40, last_epoch=4, version=9)
        found = await list_offsets(connection, T, -1, version=4)
        await commit_offset(connection, who, T, 40, epoch=2, timestamp=7, version=6)
        committed = await fetch_committed_offset(connection, "g", T, version=5)

    fetch_request, _, commit_request, _ = broker.asked[-4:]
    (asked,) = fetch_request.topics[0].partitions  # type: ignore[attr-defined]  # of any message
    (sent,) = commit_request.topics[0].partitions  # type: ignore[attr-defined]  # of any message
    assert asked.last_fetched_epoch == (4 if draft else -1)
    assert (sent.timestamp, sent.committed_leader_epoch) == (7 if draft else -1, 2)
    assert fetched.error == ErrorCode.LOG_TRUNCATION
    assert (found.offset, found.epoch, found.timestamp, found.error) == (6, 2, 5, 78)
    assert (committed.timestamp, committed.epoch) == (8 if draft else -1, 3)


async def test_the_best_version_is_the_drafts_where_it_has_one() -> None:
    versions = {"fetch": 9, "list_offsets": 4, "offset_commit": 6, "offset_fetch": 5}
    async with connected(Broker(KIP_320_DRAFT, NAMED), DIALECT) as drafted:
        for api in APIS:
            best = versions.get(api.name, api.max_version)
            assert await drafted.best_version(api) == best
    async with connected(Broker(KIP_320_DRAFT, NAMED), None) as plain:
        assert await plain.best_version(BY_NAME["fetch"]) == BY_NAME["fetch"].max_version


async def test_below_the_draft_the_best_version_is_what_the_broker_serves() -> None:
    broker = Broker(KIP_320_DRAFT, NAMED)
    fetches = ApiVersion(api_key=1, min_version=4, max_version=8)
    broker.versions = ApiVersionsResponse(api_keys=(fetches,), supported_features=(NAMED,))
    async with connected(broker, DIALECT) as connection:
        assert await connection.best_version(BY_NAME["fetch"]) == 8


async def test_a_connection_asks_for_its_dialect_before_all_else() -> None:
    for dialect, ending in ((DIALECT, b"\x01\xd0\x50\x00"), (None, b"\x020\x00")):
        broker = Broker(KIP_320_DRAFT, NAMED)
        async with connected(broker, dialect) as connection:
            assert len(broker.asked) == (dialect is not None)
            await connection.versions()
        (request,) = broker.asked
        assert isinstance(request, ApiVersionsRequest)
        assert request.dialect_requested is (dialect is not None)
        assert broker.api_versions_frames[0].endswith(ending)


@pytest.mark.parametrize(
    ("features", "named"),
    [
        ((), "no feature"),
        ((OTHER,), "metadata.version 7 to 29"),
        ((LATER,), "kip.320.draft 2 to 3"),
    ],
    ids=["no feature", "another", "at another level"],
)
async def test_a_broker_that_does_not_serve_the_dialect_is_not_asked_further(
    features: tuple[SupportedFeatureKey, ...], named: str
) -> None:
    broker = Broker(KIP_320_DRAFT, *features)
    async with serving(broker):
        with pytest.raises(DialectNotServed) as refused:
            await connect(HOST, broker.port, "tests", dialect=DIALECT)
        assert str(refused.value) == (
            "the broker does not serve the dialect kip-320-draft: of the supported feature"
            f" kip.320.draft it does not name level 1, only {named};"
            " serve it with --dialect kip-320-draft, or connect without a dialect"
        )
        async with Client(f"{HOST}:{broker.port}", dialect=DIALECT) as client:
            with pytest.raises(DialectNotServed):
                await client.leader("t", 0)
    assert [type(each) for each in broker.asked] == [ApiVersionsRequest] * 2


async def test_a_broker_without_features_does_not_serve_a_dialect() -> None:
    broker = Broker(None)
    broker.knows_api_versions = False
    async with serving(broker):
        with pytest.raises(DialectNotServed):
            await connect(HOST, broker.port, "tests", dialect=DIALECT)
    assert broker.asked == []


async def test_an_unknown_dialect_is_refused_before_anything_is_sent() -> None:
    message = "no dialect 'kip-320'; the dialects are kip-320-draft"
    with pytest.raises(ValueError, match=message):
        await connect(HOST, 1, "tests", dialect="kip-320")
    with pytest.raises(ValueError, match=message):
        Client(f"{HOST}:1", dialect="kip-320")
