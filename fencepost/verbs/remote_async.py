"""`fencepost.verbs.remote` for asyncio: each request in a thread, so that the loop goes on.

asyncio is imported where it is awaited: each run of tests imports this module, and few tests wait
so.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from functools import partial
from typing import Final, TypeVar

from fencepost.verbs.answers import Answer
from fencepost.verbs.catalogue import Verb
from fencepost.verbs.remote import TIMEOUT_S, ControlConnection, VerbError

MAX_THREADS: Final = 64
"""Of one `AsyncRemote`: requests that may wait for their answers at the same time."""

__tracebackhide__ = True  # as in `remote`
A = TypeVar("A", bound=Answer)
T = TypeVar("T")


class AsyncRemote:
    """A control API. It and its methods raise what `Remote` and its methods do.

    A call that is cancelled leaves no waiting thread behind.

    :param url: Such as ``http://127.0.0.1:9644``.
    :param token: Sent with each request, where the control API needs one.
    """

    def __init__(self, url: str, *, timeout_s: float = TIMEOUT_S, token: str | None = None) -> None:
        self._connect = partial(ControlConnection, url, timeout_s=timeout_s, token=token)
        first = self._connect()
        self.url = first.url
        self._idle = [first]
        self._threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="fencepost-verbs")

    async def call(
        self, verb: Verb, answers: type[A], path: Mapping[str, object], given: Mapping[str, object]
    ) -> A:
        """Carry out a verb that answers one thing."""
        return await self._run(lambda connection: connection.call(verb, answers, path, given))

    async def call_list(
        self, verb: Verb, answers: type[A], path: Mapping[str, object], given: Mapping[str, object]
    ) -> list[A]:
        """Carry out a verb that answers a list."""
        return await self._run(lambda connection: connection.call_list(verb, answers, path, given))

    async def call_stream(
        self, verb: Verb, answers: type[A], path: Mapping[str, object], given: Mapping[str, object]
    ) -> AsyncIterator[A]:
        """Carry out a verb that answers a stream; it goes on until the cluster ends.

        The stream is opened when its first answer is asked for.
        """
        async with aclosing(await self.open_stream(verb, answers, path, given)) as stream:
            async for answer in stream:
                yield answer

    async def open_stream(
        self, verb: Verb, answers: type[A], path: Mapping[str, object], given: Mapping[str, object]
    ) -> AsyncGenerator[A, None]:
        """As `call_stream`, but it is open when this returns, as with `Remote.call_stream`."""
        import asyncio

        connection = self._connect()
        opening = self._threads.submit(connection.call_stream, verb, answers, path, given)
        try:
            stream = await asyncio.wrap_future(opening)
        except asyncio.CancelledError:
            connection.abort()
            raise
        return self._stream_answers(connection, stream)

    async def _stream_answers(
        self, connection: ControlConnection, stream: Iterator[A]
    ) -> AsyncGenerator[A, None]:
        import asyncio

        try:
            while True:
                read = self._threads.submit(next, stream, None)
                found = await asyncio.wrap_future(read)
                if found is None:
                    return
                yield found
        finally:
            connection.abort()

    def close(self) -> None:
        """Close the connections that are kept; the next request opens another."""
        while self._idle:
            self._idle.pop().close()

    async def _run(self, ask: Callable[[ControlConnection], T]) -> T:
        """Ask on an idle connection."""
        import asyncio

        connection = self._idle.pop() if self._idle else self._connect()
        asked = self._threads.submit(ask, connection)
        try:
            answer = await asyncio.wrap_future(asked)
        except asyncio.CancelledError:
            connection.abort()
            asked.add_done_callback(lambda _: connection.close())
            raise
        except VerbError as error:
            self._idle.append(connection)
            raise error.with_traceback(None) from None
        self._idle.append(connection)
        return answer
