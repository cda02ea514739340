"""What a partition holds in the end, read by `fencepost.client` from a served cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from fencepost.client import Client, FetchedRecord, OffsetSpec, Partition, fetch, list_offsets
from tests.harness.wait import WAIT_S

_MAX_BYTES: Final = 4 << 20
_PAUSE_S: Final = 0.02


async def iter_log(client: Client, topic: str, index: int = 0) -> AsyncIterator[FetchedRecord]:
    """The records of a partition up to its end, which begin at offset 0 and have no gap."""
    partition = Partition(topic=topic, index=index)
    client.forget()
    leader = await client.leader(topic, index)
    async with asyncio.timeout(WAIT_S):
        # A new leader refuses until a follower has caught up (KIP-207).
        while (end := await list_offsets(leader, partition, OffsetSpec.LATEST)).error:  # noqa: ASYNC110  # a broker has no event
            await asyncio.sleep(_PAUSE_S)
    at = 0
    while at < end.offset:
        answer = await fetch(leader, partition, at, max_bytes=_MAX_BYTES)
        assert answer.error == 0
        assert answer.content.records, f"nothing at {at} of {end.offset}"
        for record in answer.content.records:
            assert record.offset == at, "offsets in a row"
            at += 1
            yield record


async def log_of(client: Client, topic: str, index: int = 0) -> list[FetchedRecord]:
    """As `iter_log`, at once."""
    return [record async for record in iter_log(client, topic, index)]
