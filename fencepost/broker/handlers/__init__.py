"""One module an API: ``handle`` answers a request, ``refuse`` answers it with one error code."""

from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias, cast

from fencepost.broker.core import context
from fencepost.protocol.apis import Api

if TYPE_CHECKING:
    from fencepost.broker.handlers.context import BrokerNode

Handler: TypeAlias = "context.Handler[BrokerNode]"

_HANDLERS: dict[int, Handler] = {}


def handler_of(api: Api) -> Handler:
    """The module that answers an API; imported on first use, because start-up is a goal."""
    handler = _HANDLERS.get(api.key)
    if handler is None:
        handler = cast("Handler", import_module(f"{__name__}.{api.name}"))
        _HANDLERS[api.key] = handler
    return handler
