"""The events of a cluster while a scenario is played."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

from fencepost.broker.core.events import Kind
from fencepost.scenario.document import Data
from fencepost.verbs.answers.cluster import EventState
from fencepost.verbs.catalogue import VERBS
from fencepost.verbs.methods import AsyncVerbs


class EventRecorder:
    """The events of a cluster, from the scenario's begin on.

    :param verbs: Of the cluster.
    """

    def __init__(self, verbs: AsyncVerbs) -> None:
        self._verbs = verbs
        self._events: list[EventState] = []
        self._arrived = asyncio.Event()
        self._listening: asyncio.Task[None] | None = None

    async def start(self, *, reset: bool) -> None:
        """Record what happens from now on.

        :param reset: Whether to reset the cluster: then its mark is the first event, and what goes
            with the reset is left out.
        :raises VerbError: When the cluster refuses, or there is none.
        """
        stream = await self._verbs.remote.open_stream(VERBS["events"], EventState, {}, {})
        self._listening = asyncio.create_task(self._listen(stream, is_begun=not reset))
        if reset:
            await self._verbs.reset()

    async def events_since(self, since: int | None, within_s: float) -> Data:
        """What happened, in order; one event at least, unless none comes in time.

        :param since: Only events of a higher number; None is all from the begin on.
        """
        deadline = asyncio.get_running_loop().time() + within_s
        while not (found := [e for e in self._events if since is None or e.number > since]):
            left_s = deadline - asyncio.get_running_loop().time()
            if left_s <= 0:
                break
            await self._wait(left_s)
        return [event.model_dump(mode="json") for event in found]

    async def close(self) -> None:
        """Listen no more."""
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)

    async def _listen(self, stream: AsyncGenerator[EventState, None], *, is_begun: bool) -> None:
        reset_until = 0
        async with aclosing(stream):
            async for event in stream:
                is_mark = not is_begun and event.kind == Kind.RESET
                if is_mark:
                    is_begun, reset_until = True, event.end_of_reset
                # What a reset does away with is of no scenario's concern.
                if is_mark or (is_begun and event.number > reset_until):
                    self._events.append(event)
                    self._arrived.set()

    async def _wait(self, at_most_s: float) -> None:
        """Wait for an event that is not there yet, or for the end of the stream."""
        self._arrived.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._arrived.wait(), at_most_s)
