"""How a verb of the catalogue comes by its route: ``@serves("hold")`` over what carries it out."""

from collections.abc import Callable
from typing import Annotated, Any, Final, TypeVar

from fastapi import APIRouter, Depends, Request

from fencepost.broker.server.server import Server
from fencepost.verbs.answers.base import ErrorAnswer
from fencepost.verbs.catalogue import VERBS
from fencepost.verbs.described import describe

F = TypeVar("F", bound=Callable[..., object])

describe()  # before any route is made of the models

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
"""The address that whoever asks has reached."""


def serves(name: str, **settings: Any) -> Callable[[F], F]:  # noqa: ANN401  # FastAPI's own
    """Let a function carry a verb out. Its parameters are those of the verb.

    :param settings: Of the route, besides what the catalogue says.
    """
    verb = VERBS[name]

    def register(function: F) -> F:
        assert function.__name__ == name, f"{function.__name__} is to be named {name}"
        route = router.api_route(
            verb.path, methods=[verb.method], description=verb.does, **settings
        )
        return route(function)

    return register
