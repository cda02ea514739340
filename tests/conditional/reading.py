"""What is in a log in the end."""

from __future__ import annotations

import asyncio
from typing import Final

from fencepost.client import Client, OffsetSpec, Partition, fetch, list_offsets

_MAX_BYTES: Final = 4 << 20


async def log_of(client: Client, topic: str) -> list[bytes]:
    """The values of a topic's first partition, without a gap from its first offset, which is 0."""
    partition = Partition(topic=topic, index=0)
    client.forget()
    connection = await client.leader(topic, 0)
    end = await list_offsets(connection, partition, OffsetSpec.LATEST)
    for _ in range(500):  # a new leader may not tell yet
        if not end.error:
            break
        await asyncio.sleep(0.02)
        end = await list_offsets(connection, partition, OffsetSpec.LATEST)
    assert end.error == 0
    values: list[bytes] = []
    while len(values) < end.offset:
        answer = await fetch(connection, partition, len(values), max_bytes=_MAX_BYTES)
        assert answer.error == 0
        assert answer.content.records, f"nothing at {len(values)} of {end.offset}"
        for record in answer.content.records:
            assert record.offset == len(values), "offsets in a row"
            values.append(record.value or b"")
    return values
