"""One module an API: ``handle`` answers a request, ``refuse`` answers it with one error code.

The APIs of `CONTROLLER_APIS` are the controller's: brokers forward their requests (KIP-590), and
``handle`` is given a `ControllerContext`. ``refuse`` is the broker's, for it needs no state.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from fencepost.broker.controller.controller_apis import ControllerHandler
from fencepost.broker.core import context
from fencepost.protocol.apis import Api

if TYPE_CHECKING:
    from fencepost.broker.handlers.context import BrokerNode

Handler: TypeAlias = "context.Handler[BrokerNode]"
CONTROLLER_APIS: Final = frozenset(
    {
        "alter_configs",
        "alter_partition_reassignments",
        "create_partitions",
        "create_topics",
        "delete_topics",
        "describe_quorum",
        "elect_leaders",
        "incremental_alter_configs",
        "list_partition_reassignments",
        "update_features",
    }
)
"""The names of the APIs that the controller answers, as in Kafka."""
_HANDLERS: dict[int, Handler] = {}


def handler_of(api: Api) -> Handler:
    """The module that answers an API; imported on first use, because start-up is a goal."""
    handler = _HANDLERS.get(api.key)
    if handler is None:
        handler = cast("Handler", import_module(f"{__name__}.{api.name}"))
        _HANDLERS[api.key] = handler
    return handler


def controller_handler_of(api: Api) -> ControllerHandler:
    """The module that answers one of `CONTROLLER_APIS`."""
    if api.name not in CONTROLLER_APIS:
        raise ValueError(f"the controller does not answer {api.title}")
    return cast(ControllerHandler, handler_of(api))
