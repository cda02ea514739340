"""What all routes share: ``@serves("hold")`` makes a function the route of a verb of the catalogue.

A route that waits does so with `listening`, for events or exchanges, and `wait_within`, which ends
with the request's timeout or with its client's connection.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Final, Generic, TypeVar

from fastapi import APIRouter, Depends, Request

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.core.waits import Wait
from fencepost.broker.server.server import Server
from fencepost.control.verb_events import recorded
from fencepost.protocol.errors import ErrorCode
from fencepost.verbs.answers import ErrorAnswer
from fencepost.verbs.catalogue import VERBS, Method
from fencepost.verbs.models import add_descriptions

F = TypeVar("F", bound=Callable[..., object])


class Unmet(ControllerError):
    """What a request waited for did not happen: REQUEST_TIMED_OUT, with what there is instead.

    :param answer: The whole answer.
    """

    def __init__(self, answer: ErrorAnswer) -> None:
        super().__init__(ErrorCode.REQUEST_TIMED_OUT, answer.message)
        self.answer = answer


add_descriptions()  # before any route is made of the models

router: Final = APIRouter(
    responses={"4XX": {"model": ErrorAnswer, "description": "Refused"}},
)


async def _served(request: Request) -> Server:
    server: Server = request.app.state.server
    return server


async def _reached_host(request: Request) -> str:
    host: str = request.scope["server"][0]
    return host


Served = Annotated[Server, Depends(_served)]
ReachedHost = Annotated[str, Depends(_reached_host)]
"""The server's own address, as the client has connected to it."""


_MAY_HAVE_SLASHES: Final = frozenset({"group", "member", "transactional_id"})


def serves(name: str, **settings: Any) -> Callable[[F], F]:  # noqa: ANN401  # FastAPI's own
    """Register a function as the route of a verb. Its parameters are those of the verb.

    :param settings: Further arguments of the route.
    """
    verb = VERBS[name]
    path = verb.path.format_map({each: _parameter(each) for each in verb.path_parameters})

    def register(function: F) -> F:
        assert function.__name__ == name, f"{function.__name__} is to be named {name}"
        route = router.api_route(path, methods=[verb.method], description=verb.summary, **settings)
        route(function if verb.method is Method.GET else recorded(verb, function))
        return function

    return register


def _parameter(name: str) -> str:
    """A parameter in a route's path: the names that clients choose may have slashes."""
    return f"{{{name}:path}}" if name in _MAY_HAVE_SLASHES else f"{{{name}}}"


T = TypeVar("T")


class Received(Generic[T]):
    """The items that a listener has received.

    :param most: How many are kept; of more, the oldest are dropped.
    """

    def __init__(self, most: int | None) -> None:
        self.items: deque[T] = deque(maxlen=most)
        """The oldest first. The reader may take them out."""
        self._arrived = asyncio.Event()

    def add(self, item: T) -> None:
        """Keep an item and wake the reader."""
        self.items.append(item)
        self._arrived.set()

    async def wait(self) -> None:
        """Wait for the next item that arrives after this call."""
        self._arrived.clear()
        await self._arrived.wait()


@contextmanager
def listening(
    listeners: list[Callable[[T], None]],
    accepts: Callable[[T], bool],
    most: int | None = None,
) -> Iterator[Received[T]]:
    """Listen while the context is open.

    :param accepts: Whether an item is kept.
    :param most: How many items are kept; None keeps all.
    """
    received: Received[T] = Received(most)

    def listener(item: T) -> None:
        if accepts(item):
            received.add(item)

    listeners.append(listener)
    try:
        yield received
    finally:
        listeners.remove(listener)


async def wait_within(
    timeout_ms: int, request: Request, coroutine: Coroutine[object, object, T]
) -> T | None:
    """A coroutine's result; None after this real time, or when the client closes its connection.

    :raises ControllerError: BROKER_NOT_AVAILABLE when the cluster stops meanwhile.
    """
    stopping: asyncio.Event = request.app.state.stopping
    wanted = asyncio.ensure_future(coroutine)
    others = (_wait_for_disconnect(request), stopping.wait())
    tasks = (wanted, *map(asyncio.ensure_future, others))
    try:
        done, _ = await asyncio.wait(
            tasks, timeout=timeout_ms / 1000, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    if wanted in done:
        return wanted.result()
    if stopping.is_set():
        raise ControllerError(ErrorCode.BROKER_NOT_AVAILABLE, "the cluster is stopping")
    return None


async def outcome_within(timeout_ms: int, request: Request, answer: Wait[T] | T) -> T | None:
    """A response of the core that may be due later; None after this real time, as `wait_within`.

    :raises ControllerError: As `wait_within`.
    """
    if not isinstance(answer, Wait):
        return answer
    done = asyncio.Event()
    answer.then(lambda _: done.set())
    if not done.is_set():
        await wait_within(timeout_ms, request, done.wait())
    result = answer.result
    answer.cancel()
    return result


async def _wait_for_disconnect(request: Request) -> None:
    """Wait until the client closes its connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
