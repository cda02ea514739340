"""What the tests of the trace share: requests that are traced, and the trace itself."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from fencepost.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.harness.control_client import Json, ok

if TYPE_CHECKING:
    import httpx


def fetch(topic_id: UUID, *, max_wait_ms: int = 0, offset: int = 0) -> FetchRequest:
    asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=50 << 20)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        topics=(FetchTopic(topic_id=topic_id, partitions=(asked,)),),
    )


async def topic(control: httpx.AsyncClient, name: str) -> UUID:
    made = await ok(control, "POST", "/v1/topics", {"name": name, "assignments": [[1]]})
    return UUID(made["topic_id"])


async def trace(control: httpx.AsyncClient, **filters: object) -> Json:
    query = "&".join(f"{name}={value}" for name, value in filters.items())
    return await ok(control, "GET", f"/v1/trace?{query}")


async def replicated(control: httpx.AsyncClient) -> None:
    """Topic t on all three brokers, led by broker 1; broker 3 fetches when it is told."""
    await ok(control, "POST", "/v1/topics", {"name": "t", "assignments": [[1, 2, 3]]})
    await ok(control, "POST", "/v1/topics/t/partitions/0/replicas/3/hold", {"leave_isr": True})
