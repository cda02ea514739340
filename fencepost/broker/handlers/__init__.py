"""One module an API: ``handle`` answers a request, ``refuse`` answers it with one error code."""

from importlib import import_module
from typing import cast

from fencepost.broker.core.context import Handler
from fencepost.protocol.apis import Api

_HANDLERS: dict[int, Handler] = {}


def handler_of(api: Api) -> Handler:
    """The module that answers an API; imported on first use, because start-up is a goal."""
    handler = _HANDLERS.get(api.key)
    if handler is None:
        handler = cast(Handler, import_module(f"{__name__}.{api.name}"))
        _HANDLERS[api.key] = handler
    return handler
