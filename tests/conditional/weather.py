"""Bad weather for who appends: late answers, lost ones, refusals, other leaders, slow followers.

All of it is drawn from a seed; when it comes depends on the machine.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeAlias

from fencepost.testing.cluster import AsyncCluster
from fencepost.verbs.remote import Refused

Action: TypeAlias = dict[str, Any]

BROKERS: Final = (1, 2, 3)
PRODUCE: Final[Sequence[Action]] = (
    {"delay": 15},
    {"disconnect": "before"},
    {"disconnect": "after"},
    {"error": "NOT_LEADER_OR_FOLLOWER"},
    {"error": "NOT_ENOUGH_REPLICAS"},
    # It is appended all the same.
    {"error": "REQUEST_TIMED_OUT"},
)
OTHERS: Final[Sequence[tuple[str, Action]]] = (
    ("Metadata", {"disconnect": "before"}),
    ("Metadata", {"delay": 20}),
    ("Fetch", {"error": "NOT_LEADER_OR_FOLLOWER"}),
    ("Fetch", {"disconnect": "after"}),
    ("ListOffsets", {"error": "OFFSET_NOT_AVAILABLE"}),
)


@asynccontextmanager
async def bad_weather(
    cluster: AsyncCluster,
    topic: str,
    seed: int,
    *,
    probability: float = 0.004,
    pause_s: tuple[float, float] = (0.05, 0.4),
) -> AsyncIterator[None]:
    """While this lasts, clients meet faults, and the topic's first partition elections.

    :param probability: That a Produce meets a fault, of each kind.
    :param pause_s: Between two elections, or followers that are held.
    """
    for action in PRODUCE:
        await _always(cluster, "Produce", topic, probability, action)
    for api, action in OTHERS:
        await _always(cluster, api, topic, 10 * probability, action)
    steering = asyncio.create_task(_steer(cluster, topic, random.Random(seed), pause_s))
    try:
        yield
        assert not steering.done(), steering.exception()
    finally:
        steering.cancel()
        with suppress(asyncio.CancelledError):
            await steering
        await cluster.remove_faults()
        for broker in BROKERS:
            with suppress(Refused):  # it was not held
                await cluster.release(topic, 0, broker)


async def _always(
    cluster: AsyncCluster, api: str, topic: str, probability: float, action: Action
) -> None:
    await cluster.add_fault(
        api, source="clients", topic=topic, count=None, probability=probability, action=action
    )


async def _steer(
    cluster: AsyncCluster, topic: str, drawn: random.Random, pause_s: tuple[float, float]
) -> None:
    deeds: Sequence[Callable[[AsyncCluster, str, random.Random], Awaitable[None]]]
    deeds = (_elect, _elect, _lag)
    while True:
        await asyncio.sleep(drawn.uniform(*pause_s))
        # A broker that lags may not lead, and one that leads has no leader to lag behind.
        with suppress(Refused):
            await drawn.choice(deeds)(cluster, topic, drawn)


async def _elect(cluster: AsyncCluster, topic: str, drawn: random.Random) -> None:
    await cluster.elect(topic, 0, leader=drawn.choice(BROKERS))


async def _lag(cluster: AsyncCluster, topic: str, drawn: random.Random) -> None:
    broker = drawn.choice(BROKERS)
    await cluster.hold(topic, 0, broker)
    try:
        await asyncio.sleep(drawn.uniform(0, 0.08))
        if drawn.random() < 0.3:  # what the leader alone has is lost
            await _elect(cluster, topic, drawn)
    finally:
        await cluster.release(topic, 0, broker)
