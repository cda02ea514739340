"""What befalls a cluster and two leaders of a shard, drawn from a seed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeAlias

from fencepost.broker.controller import Fence
from fencepost.broker.core.errors import ControllerError
from fencepost.broker.faults.kinds import Action, Delay, Disconnect, DisconnectWhen, Drop, Refuse
from fencepost.broker.faults.rules import FaultRule
from fencepost.broker.faults.selectors import Apis
from fencepost.broker.node import operator_actions
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from tests.examples.kvstore.contest import Contest

Step: TypeAlias = Callable[["Contest"], Awaitable[None]]
BROKERS: Final = (1, 2, 3)
RULES_A_LEADER: Final = 8
WITHIN: Final = 40
"""Requests of a leader, among which its faults are spread."""


def rules(rng: random.Random, client_id: str, topic: str) -> Iterator[FaultRule]:
    """Faults that a leader's requests meet, each once."""
    for _ in range(RULES_A_LEADER):
        api = rng.choice(("produce", "produce", "produce", "fetch"))
        yield FaultRule(
            api=Apis((BY_NAME[api],)),
            action=_action(rng, api),
            client_id=client_id,
            topic=topic if api == "produce" else None,
            after=rng.randrange(WITHIN),
        )


def _action(rng: random.Random, api: str) -> Action:
    anything: list[Action] = [
        Delay(rng.randint(1, 15)),
        Disconnect(DisconnectWhen.BEFORE),
        Disconnect(DisconnectWhen.AFTER),
        Refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ]
    if api == "produce":
        # Both are carried out.
        anything += [Disconnect(DisconnectWhen.AFTER), Refuse(ErrorCode.REQUEST_TIMED_OUT), Drop()]
    return rng.choice(anything)


async def strike(contest: Contest) -> None:
    """Let one thing after the other happen, until the clients are done."""
    while not contest.is_over:
        step = contest.rng.choice(STEPS)
        # Two that do not go together: no broker left that is in sync, or none to kill.
        with suppress(ControllerError):
            await step(contest)
        await contest.a_while()


async def heal(contest: Contest) -> None:
    """Nothing stands in anybody's way any more."""
    cluster = contest.server.cluster
    cluster.faults.remove_all()
    for broker_id, broker in cluster.brokers.items():
        for topic, index in list(broker.replica_manager.holds):
            operator_actions.release(cluster, topic, index, broker_id)
        operator_actions.rejoin(cluster, broker_id)
        if not broker.running:
            await contest.server.start_broker(broker_id)


# -- the steps ----------------------------------------------------------------------------------


async def elect(contest: Contest) -> None:
    """Another leader, who has everything that is acknowledged."""
    operator_actions.elect(contest.server.cluster, contest.topic, 0, contest.rng.choice(BROKERS))


async def hold(contest: Contest) -> None:
    """A follower fetches nothing, so that appends are not acknowledged; then it goes on."""
    cluster, broker_id = contest.server.cluster, contest.rng.choice(BROKERS)
    operator_actions.hold(cluster, contest.topic, 0, broker_id)
    await contest.a_while()
    operator_actions.release(cluster, contest.topic, 0, broker_id)


async def truncate(contest: Contest) -> None:
    """A follower that has not the newest becomes the leader: what was not acknowledged is lost."""
    cluster, broker_id = contest.server.cluster, contest.rng.choice(BROKERS)
    operator_actions.hold(cluster, contest.topic, 0, broker_id)
    await contest.a_while()
    try:
        operator_actions.elect(cluster, contest.topic, 0, broker_id)
    finally:
        operator_actions.release(cluster, contest.topic, 0, broker_id)


async def kill(contest: Contest) -> None:
    """A broker ends, and starts again."""
    broker_id = contest.rng.choice(BROKERS)
    await contest.server.kill_broker(broker_id, Fence.NOW)
    await contest.a_while()
    await contest.server.start_broker(broker_id)


async def zombie(contest: Contest) -> None:
    """A broker loses touch with the controller, and goes on as if nothing had happened."""
    cluster, broker_id = contest.server.cluster, contest.rng.choice(BROKERS)
    operator_actions.isolate(cluster, broker_id, from_controller=True)
    await contest.a_while()
    operator_actions.rejoin(cluster, broker_id)


async def crash(contest: Contest) -> None:
    """A leader of the shard ends, and another takes its place who has nothing but the log."""
    await contest.rng.choice(contest.contenders).restart()


async def nothing(_contest: Contest) -> None:
    await asyncio.sleep(0)


STEPS: Final[tuple[Step, ...]] = (elect, hold, truncate, truncate, kill, zombie, crash, nothing)
