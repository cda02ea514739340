"""Two ways to ask a control API: blocking, by verb; and asynchronous, by path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import httpx

Json: TypeAlias = Any
"""What an answer decodes to."""

TIMEOUT_S: Final = 60.0


class Control:
    """A cluster's control API. A refusal is an AssertionError with what it says.

    :param url: Where it listens, as ``fencepost serve`` says.
    """

    def __init__(self, url: str) -> None:
        self._client = httpx.Client(base_url=url, timeout=TIMEOUT_S, trust_env=False)

    def close(self) -> None:
        self._client.close()

    def topics(self) -> list[Json]:
        """All topics, by name."""
        found: list[Json] = self._ask("GET", "/v1/topics")
        return found

    def partition(self, topic: str, index: int = 0) -> Json:
        return self._ask("GET", f"/v1/topics/{topic}/partitions/{index}")

    def elect(self, topic: str, leader: int, index: int = 0, *, unclean: bool = False) -> Json:
        body = {"leader": leader, "unclean": unclean}
        return self._ask("POST", f"/v1/topics/{topic}/partitions/{index}/elect", body)

    def replica(self, verb: str, topic: str, broker: int, index: int = 0, **body: object) -> Json:
        """Hold, release, step or wipe."""
        path = f"/v1/topics/{topic}/partitions/{index}/replicas/{broker}/{verb}"
        return self._ask("POST", path, body or None)

    def broker(self, verb: str, broker: int, **body: object) -> Json:
        """Stop, start, kill, isolate or rejoin; ``from_`` stands for ``from``."""
        wanted = {key.rstrip("_"): value for key, value in body.items()}
        return self._ask("POST", f"/v1/brokers/{broker}/{verb}", wanted or None)

    def transaction(self, transactional_id: str) -> Json:
        return self._ask("GET", f"/v1/transactions/{transactional_id}")

    def trace(self, **wanted: str | int) -> list[Json]:
        """The exchanges of the journal that fit, the oldest first."""
        found: list[Json] = self._ask("GET", "/v1/trace", params={"limit": 4096, **wanted})
        return found

    def reset(self) -> None:
        self._ask("POST", "/v1/reset")

    def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        params: Mapping[str, str | int] | None = None,
    ) -> Json:
        answer = self._client.request(method, path, json=body, params=params)
        assert answer.status_code == 200, f"{path}: {answer.text}"
        return answer.json()


async def ok(client: httpx.AsyncClient, method: str, path: str, body: Json = None) -> Json:
    """The answer to a request that must succeed."""
    answer = await client.request(method, path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def refused(
    client: httpx.AsyncClient, method: str, path: str, body: Json = None
) -> tuple[int, str, str]:
    """Status, code and message of a refusal."""
    answer = await client.request(method, path, json=body)
    found = answer.json()
    assert set(found) == {"error", "message"}, answer.text
    return answer.status_code, found["error"], found["message"]


def covers(found: Json, expected: Json) -> bool:
    """Whether an answer has all that is expected; objects may have more, lists may not."""
    if isinstance(expected, dict):
        return isinstance(found, dict) and all(
            key in found and covers(found[key], value) for key, value in expected.items()
        )
    if isinstance(expected, list):
        return (
            isinstance(found, list)
            and len(found) == len(expected)
            and all(map(covers, found, expected))
        )
    return bool(found == expected)
