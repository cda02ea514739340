"""Retries until an answer is accepted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import pytest

from fencepost.client.client import Client
from fencepost.client.cluster import topic_configs
from fencepost.client.errors import Disconnected
from fencepost.client.retry import RetryFailed, retry
from fencepost.protocol.errors import ErrorCode

DEADLINE_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Said:
    """An answer."""

    error: int = 0
    value: int = 0


def has_value(answer: Said) -> bool:
    return answer.value >= 0


def script(*said: Said | Exception) -> Callable[[], Awaitable[Said]]:
    """Answers one after the other; the last one again and again."""
    left = list(said)

    async def ask() -> Said:
        each = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(each, Exception):
            raise each
        return each

    return ask


@pytest.fixture
def unconnected() -> Client:
    """A client that is not connected."""
    return Client("127.0.0.1:1")


@pytest.mark.parametrize(
    "first", [Disconnected("gone"), Said(ErrorCode.NOT_LEADER_OR_FOLLOWER), Said(value=-1)]
)
async def test_another_attempt_is_made(unconnected: Client, first: Said | Exception) -> None:
    ask = script(first, first, Said(value=7))
    answer = await retry(
        unconnected, ask, deadline_s=DEADLINE_S, accepts=lambda answer: answer.value >= 0
    )
    assert answer.value == 7


async def test_metadata_is_asked_for_anew(client: Client) -> None:
    await client.leader("orders", 0)
    asked: list[bool] = []

    async def ask() -> Said:
        asked.append(client._seen is None)
        return Said(0 if len(asked) > 1 else ErrorCode.NOT_LEADER_OR_FOLLOWER)

    await retry(client, ask, deadline_s=DEADLINE_S)
    assert asked == [False, True]


async def test_an_error_that_stays_is_raised_at_once(unconnected: Client) -> None:
    with pytest.raises(RetryFailed, match=r"^TOPIC_AUTHORIZATION_FAILED$") as refused:
        await retry(
            unconnected, script(Said(ErrorCode.TOPIC_AUTHORIZATION_FAILED)), deadline_s=DEADLINE_S
        )
    assert refused.value.error == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(RetryFailed, match=r"^NOT_LEADER_OR_FOLLOWER$"):
        await retry(
            unconnected,
            script(Said(ErrorCode.NOT_LEADER_OR_FOLLOWER)),
            deadline_s=DEADLINE_S,
            retriable=(),
        )


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (Disconnected("gone"), "gone"),
        (Said(ErrorCode.NOT_LEADER_OR_FOLLOWER), "NOT_LEADER_OR_FOLLOWER"),
        (Said(value=-1), "nothing is there yet"),
    ],
)
async def test_time_is_up(unconnected: Client, said: Said | Exception, why: str) -> None:
    with pytest.raises(RetryFailed, match=rf"^not within 0\.05 s: {why}$") as refused:
        await retry(
            unconnected, script(said), deadline_s=0.05, accepts=lambda answer: answer.value >= 0
        )
    assert refused.value.error is None


async def test_one_attempt_is_made_in_any_case(unconnected: Client) -> None:
    assert (await retry(unconnected, script(Said(value=3)), deadline_s=0)).value == 3


async def test_configs_of_a_topic(client: Client) -> None:
    leader = await client.leader("orders", 0)
    found = await topic_configs(leader, "orders", ["cleanup.policy", "no.such.config"])
    assert (found.error, found.values) == (0, {"cleanup.policy": "delete"})
    missing = await topic_configs(leader, "missing", ["cleanup.policy"])
    assert missing.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
