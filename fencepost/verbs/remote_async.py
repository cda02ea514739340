"""`fencepost.verbs.remote` for asyncio: each request in a thread, so that the loop goes on."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from fencepost.verbs.answers.base import Answer
from fencepost.verbs.catalogue import Verb
from fencepost.verbs.remote import TIMEOUT_S, Line, VerbError

MAX_THREADS: Final = 64
"""Of one `AsyncRemote`: requests that may wait for their answers at the same time."""

A = TypeVar("A", bound=Answer)
T = TypeVar("T")


class AsyncRemote:
    """A control API. Its methods raise what those of `Remote` do.

    Who is cancelled leaves no thread behind that waits on.

    :param url: Such as ``http://127.0.0.1:9644``.
    """

    def __init__(self, url: str, *, timeout_s: float = TIMEOUT_S) -> None:
        first = Line(url, timeout_s=timeout_s)
        self.url = first.url
        self._timeout_s = timeout_s
        self._idle = [first]
        self._threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="fencepost-verbs")

    async def call(
        self, verb: Verb, answers: type[A], path: Mapping[str, object], given: Mapping[str, object]
    ) -> A:
        """Carry out a verb that answers one thing."""
        return await self._ask(lambda line: line.call(verb, answers, path, given))

    async def call_list(
        self, verb: Verb, answers: type[A], path: Mapping[str, object], given: Mapping[str, object]
    ) -> list[A]:
        """Carry out a verb that answers a list."""
        return await self._ask(lambda line: line.call_list(verb, answers, path, given))

    async def call_stream(
        self, verb: Verb, answers: type[A], path: Mapping[str, object], given: Mapping[str, object]
    ) -> AsyncIterator[A]:
        """Carry out a verb that answers a stream; it goes on until the cluster ends."""
        line = Line(self.url, timeout_s=self._timeout_s)
        stream = line.call_stream(verb, answers, path, given)
        try:
            while True:
                read = self._threads.submit(next, stream, None)
                found = await asyncio.wrap_future(read)
                if found is None:
                    return
                yield found
        finally:
            line.abort()

    def close(self) -> None:
        """Close the connections that are kept; the next request opens another."""
        while self._idle:
            self._idle.pop().close()

    async def _ask(self, ask: Callable[[Line], T]) -> T:
        """Ask on a line that nobody uses now."""
        line = self._idle.pop() if self._idle else Line(self.url, timeout_s=self._timeout_s)
        asked = self._threads.submit(ask, line)
        try:
            answer = await asyncio.wrap_future(asked)
        except asyncio.CancelledError:
            line.abort()
            asked.add_done_callback(lambda _: line.close())
            raise
        except VerbError:
            self._idle.append(line)
            raise
        self._idle.append(line)
        return answer
