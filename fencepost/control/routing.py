"""How a verb of the catalogue comes by its route: ``@serves("hold")`` over what carries it out.

Waiting for something on behalf of a request, for as long as its asker has patience.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Final, TypeVar

from fastapi import APIRouter, Depends, Request

from fencepost.broker.server.server import Server
from fencepost.verbs.answers.base import ErrorAnswer
from fencepost.verbs.catalogue import VERBS
from fencepost.verbs.models import add_descriptions

F = TypeVar("F", bound=Callable[..., object])

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
"""The address that the client has reached."""


def serves(name: str, **settings: Any) -> Callable[[F], F]:  # noqa: ANN401  # FastAPI's own
    """Let a function carry a verb out. Its parameters are those of the verb.

    :param settings: Of the route, besides what the catalogue says.
    """
    verb = VERBS[name]

    def register(function: F) -> F:
        assert function.__name__ == name, f"{function.__name__} is to be named {name}"
        route = router.api_route(
            verb.path, methods=[verb.method], description=verb.summary, **settings
        )
        return route(function)

    return register


T = TypeVar("T")


async def wait_within(
    timeout_ms: int, request: Request, coming: Coroutine[object, object, T]
) -> T | None:
    """What comes; None where it does not within this real time, or the client is gone."""
    wanted = asyncio.ensure_future(coming)
    tasks = (wanted, asyncio.ensure_future(_wait_for_disconnect(request)))
    try:
        done, _ = await asyncio.wait(
            tasks, timeout=timeout_ms / 1000, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    return wanted.result() if wanted in done else None


async def _wait_for_disconnect(request: Request) -> None:
    """Wait until the client closes its connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
