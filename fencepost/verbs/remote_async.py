"""`fencepost.verbs.remote` for asyncio: each request in a thread, so that the loop goes on."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import TypeVar

from fencepost.verbs.answers import Answer
from fencepost.verbs.catalogue import Verb
from fencepost.verbs.remote import TIMEOUT_S, Remote

A = TypeVar("A", bound=Answer)


class AsyncRemote:
    """A control API. Its methods raise what those of `Remote` do.

    :param url: Such as ``http://127.0.0.1:9644``.
    """

    def __init__(self, url: str, *, timeout_s: float = TIMEOUT_S) -> None:
        self._remote = Remote(url, timeout_s=timeout_s)
        self.url = self._remote.url

    async def call(
        self, verb: Verb, answers: type[A], path: Mapping[str, object], given: Mapping[str, object]
    ) -> A:
        """Carry out a verb that answers one thing."""
        return await asyncio.to_thread(self._remote.call, verb, answers, path, given)

    async def call_list(
        self, verb: Verb, answers: type[A], path: Mapping[str, object], given: Mapping[str, object]
    ) -> list[A]:
        """Carry out a verb that answers a list."""
        return await asyncio.to_thread(self._remote.call_list, verb, answers, path, given)

    async def call_stream(
        self, verb: Verb, answers: type[A], path: Mapping[str, object], given: Mapping[str, object]
    ) -> AsyncIterator[A]:
        """Carry out a verb that answers a stream; it goes on until the cluster ends."""
        stream = self._remote.call_stream(verb, answers, path, given)
        while (found := await asyncio.to_thread(next, stream, None)) is not None:
            yield found
