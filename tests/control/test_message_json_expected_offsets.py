"""The expected offsets of a produce request, as the trace shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fencepost.protocol.expected_offsets import HEADER
from fencepost.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from fencepost.protocol.records import Record, build_batch, read_header
from tests.control.traces import trace
from tests.harness.control_client import Json, ok
from tests.harness.typed_client import kafka

if TYPE_CHECKING:
    import httpx

    from fencepost.broker.server.server import Server


def _records(base_offset: int, *expected: bytes) -> bytes:
    """A batch that begins at an offset; its records state others in headers."""
    records = [
        Record(base_offset + i, 1_700_000_000_000, None, b"v", ((HEADER, value),))
        for i, value in enumerate(expected)
    ]
    return bytes(build_batch(records, base_offset=base_offset))


async def _stated(
    server: Server, control: httpx.AsyncClient, *batches: bytes, **configs: str
) -> list[Json]:
    """The batches of a produce request to a topic with these configs, as the trace shows them."""
    settings = {name.replace("_", "."): value for name, value in configs.items()}
    new = {"name": "t", "assignments": [[1]], "configs": settings}
    await ok(control, "POST", "/v1/topics", new)
    data = PartitionProduceData(index=0, records=b"".join(batches))
    topic = TopicProduceData(name="t", partition_data=(data,))
    async with kafka(server, 1, "me") as client:
        await client.ask("produce", 9, ProduceRequest(acks=-1, topic_data=(topic,)))
    (shown,) = await trace(control)
    (part,) = shown["request"]["topic_data"][0]["partition_data"]
    batches_shown: list[Json] = part["records"]["batches"]
    return batches_shown


@pytest.mark.parametrize("first", [0, 7], ids=["appended", "refused"])
async def test_it_shows_what_was_expected(
    server: Server, control: httpx.AsyncClient, first: int
) -> None:
    """Also of batches that have got their offsets meanwhile."""
    batches = _records(first, b"", b""), _records(-1, b""), _records(first + 3, b"")
    shown = await _stated(server, control, *batches, check_expected_offsets="true")
    assert [each["expected_offset"] for each in shown] == [first, None, first + 3]
    assert [each["base_offset"] for each in shown] == ([0, 2, 3] if first == 0 else [7, -1, 10])
    assert [each["crc"] for each in shown] == [read_header(batch).crc for batch in batches]


async def test_it_shows_what_headers_expected(server: Server, control: httpx.AsyncClient) -> None:
    batches = _records(0, b"0", b"1"), _records(0, b"-1"), _records(0, (3).to_bytes(8, "big"))
    shown = await _stated(
        server,
        control,
        *batches,
        check_expected_offsets="true",
        check_expected_offsets_source="header",
    )
    assert [each["expected_offset"] for each in shown] == [0, None, 3]
    assert [each["base_offset"] for each in shown] == [0, 2, 3]


@pytest.mark.parametrize(
    "configs", [{}, {"check_expected_offsets": "true", "check_expected_offsets_scope": "key"}]
)
async def test_it_shows_no_expectation_that_nobody_compares(
    server: Server, control: httpx.AsyncClient, configs: dict[str, str]
) -> None:
    (shown,) = await _stated(server, control, _records(0, b""), **configs)
    assert shown.get("expected_offset") is None
