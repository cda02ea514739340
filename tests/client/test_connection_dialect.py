"""A client's connection writes and reads the versions of the draft that it speaks."""

from __future__ import annotations

import asyncio
import struct

import pytest

from fencepost.client.connection import connect
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.codec import decode_request, encode_response
from fencepost.protocol.codec.drafts import KIP_320_DRAFT, Draft
from fencepost.protocol.frames import read_header
from fencepost.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from fencepost.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from tests.control.served import HOST

COMMIT = BY_NAME["offset_commit"]
FETCH = BY_NAME["offset_fetch"]


@pytest.mark.parametrize("draft", [None, KIP_320_DRAFT], ids=["kafka", "draft"])
async def test_fields_that_only_the_draft_has_go_both_ways(draft: Draft | None) -> None:
    committed: list[OffsetCommitRequest] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(2):
            (size,) = struct.unpack(">i", await reader.readexactly(4))
            frame = bytearray(await reader.readexactly(size))
            header = read_header(frame)
            version, at = header.version, header.body_offset
            if header.api_key == COMMIT.key:
                committed.append(decode_request(COMMIT, version, frame, at, draft))
                answer: object = OffsetCommitResponse()
                api = COMMIT
            else:
                partition = OffsetFetchResponsePartition(timestamp=8, committed_leader_epoch=3)
                topic = OffsetFetchResponseTopic(name="t", partitions=(partition,))
                api, answer = FETCH, OffsetFetchResponse(topics=(topic,))
            writer.writelines(encode_response(api, version, header.correlation_id, answer, draft))
        writer.close()

    server = await asyncio.start_server(serve, HOST, 0)
    port = server.sockets[0].getsockname()[1]
    connection = await connect(HOST, port, "tests", dialect=draft)
    partition = OffsetCommitRequestPartition(timestamp=7, committed_leader_epoch=2)
    topic = OffsetCommitRequestTopic(name="t", partitions=(partition,))
    await connection.ask_any(COMMIT, 6, OffsetCommitRequest(topics=(topic,)))
    fetched = await connection.ask_any(FETCH, 5, OffsetFetchRequest())
    await connection.close()
    server.close()
    await server.wait_closed()

    (sent,) = committed[0].topics[0].partitions
    assert (sent.timestamp, sent.committed_leader_epoch) == (7 if draft else -1, 2)
    (read,) = fetched.topics[0].partitions
    assert (read.timestamp, read.committed_leader_epoch) == (8 if draft else -1, 3)
