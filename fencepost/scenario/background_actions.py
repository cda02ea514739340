"""Actions of a scenario that go on in the background, and whether they are answered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from fencepost.scenario.assertions import StepResult, call_verb
from fencepost.scenario.document import Data
from fencepost.scenario.model import ActionCall
from fencepost.verbs.remote_async import AsyncRemote

RETRY_INTERVAL_S: Final = 0.01
"""Between two looks at the journal."""
_ARRIVAL_S: Final = 1.0
"""An answer that the broker has given reaches its client within this time."""
_MEMBER_ID_REQUIRED_SINCE: Final = 4
"""The version of JoinGroup from which on a new member is given an id before it joins (KIP-394)."""
_Call: TypeAlias = Callable[[ActionCall, str | None], Awaitable[Data]]


@dataclass(frozen=True, slots=True)
class _Action:
    """One action."""

    task: asyncio.Task[Data]
    own_exchanges: Mapping[str, Data]
    """What the verb ``trace`` is asked for the requests that it has sent."""


class BackgroundActions:
    """The actions in the background, by name."""

    def __init__(self, remote: AsyncRemote, call: _Call) -> None:
        """:param call: Executes an action of a name."""
        self._remote = remote
        self._call = call
        self._actions: dict[str, _Action] = {}

    async def close(self) -> None:
        """Cancel what goes on."""
        tasks = [action.task for action in self._actions.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def start(self, do: ActionCall, name: str, within_ms: int, *, since: int) -> None:
        """Begin an action; done when the broker has its request, or after so long.

        :param since: The number of the journal's last exchange.
        """

        async def execute() -> Data:
            return await self._call(do, name)

        field = do.action.request_model.client_field
        client = do.arguments.get("client") or do.arguments.get(field) or name
        own: dict[str, Data] = {"since": since, "client_id": client, "limit": 10}
        task = asyncio.create_task(execute())
        self._actions[name] = _Action(task, own)
        api = do.action.api or do.arguments.get("api")
        deadline = time.monotonic() + within_ms / 1000
        while api is not None and not task.done() and time.monotonic() < deadline:
            if any(map(_is_request_of_action, await self._exchanges({**own, "api": str(api)}))):
                return
            await asyncio.sleep(RETRY_INTERVAL_S)

    async def is_pending(self, name: str) -> bool:
        """Whether an action is without an answer: also without one on its way.

        The journal tells which requests the broker has answered; the client has such an answer a
        little later.
        """
        task, own = self._actions[name].task, self._actions[name].own_exchanges
        deadline = time.monotonic() + _ARRIVAL_S
        while not task.done() and time.monotonic() < deadline:
            sent = await self._exchanges(own)
            if not sent or any(each["answered_ms"] is None for each in sent):
                break
            await asyncio.sleep(RETRY_INTERVAL_S)
        return not task.done()

    async def wait(self, name: str, within_ms: int) -> StepResult:
        """The answer of an action, or that there was none in time."""
        task = self._actions[name].task
        await asyncio.wait([task], timeout=within_ms / 1000)
        if not task.done():
            return StepResult(timeout_reason=f"none within {within_ms} ms")
        return StepResult(answer=task.result(), is_action=True)

    async def _exchanges(self, wanted: Mapping[str, Data]) -> list[dict[str, Data]]:
        found = await call_verb(self._remote, "trace", wanted)
        assert isinstance(found, list)
        return [each for each in found if isinstance(each, dict)]


def _is_request_of_action(exchange: Mapping[str, Data]) -> bool:
    """Whether it is the request of an action, and not one that asks for a member id first.

    Of a member that has no id yet, the request that counts is the second: the first one is
    answered with an id, unless it is a static member's (KIP-345).
    """
    if exchange["api"] != "JoinGroup":
        return True
    version, request = exchange["version"], exchange["request"]
    assert isinstance(version, int)
    assert isinstance(request, dict)
    is_given_an_id = (
        version >= _MEMBER_ID_REQUIRED_SINCE and request.get("group_instance_id") is None
    )
    return bool(request["member_id"]) or not is_given_an_id
