"""One module an API: ``handle`` answers a request, ``refuse`` answers it with one error code.

The APIs of `CONTROLLER_APIS` are the controller's: brokers forward their requests (KIP-590), and
``handle`` is given a `ControllerContext`. ``refuse`` is the broker's, for it needs no state.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from fencepost.broker.controller.controller_apis import ControllerHandler
from fencepost.broker.core import context
from fencepost.broker.core.outcomes import HANG_UP
from fencepost.protocol.apis import Api
from fencepost.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from fencepost.broker.handlers.context import BrokerNode

Handler: TypeAlias = "context.Handler[BrokerNode]"
CONTROLLER_APIS: Final = frozenset(
    {
        "add_raft_voter",
        "alter_client_quotas",
        "alter_configs",
        "alter_partition_reassignments",
        "alter_user_scram_credentials",
        "create_acls",
        "create_partitions",
        "create_topics",
        "delete_acls",
        "delete_topics",
        "describe_quorum",
        "elect_leaders",
        "incremental_alter_configs",
        "list_partition_reassignments",
        "remove_raft_voter",
        "unregister_broker",
        "update_features",
    }
)
"""The names of the APIs that the controller answers, as in Kafka."""
READING_APIS: Final = frozenset(
    {
        "api_versions",
        "describe_acls",
        "describe_client_quotas",
        "describe_cluster",
        "describe_configs",
        "describe_delegation_token",
        "describe_groups",
        "describe_log_dirs",
        "describe_producers",
        "describe_quorum",
        "describe_topic_partitions",
        "describe_transactions",
        "describe_user_scram_credentials",
        "fetch",
        "find_coordinator",
        "get_telemetry_subscriptions",
        "list_config_resources",
        "list_groups",
        "list_offsets",
        "list_partition_reassignments",
        "list_transactions",
        "metadata",
        "offset_fetch",
        "offset_for_leader_epoch",
        "sasl_authenticate",
        "sasl_handshake",
    }
)
"""The names of the APIs that change nothing; topics that Metadata creates have their own limit."""
MAX_CHANGES: Final = 100_000
"""Elements of a request that changes something: one with as many is refused."""
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


def changes_too_much(api: Api, elements: int) -> bool:
    """Whether a request with so many elements is refused: it would be carried out in one turn."""
    return elements >= MAX_CHANGES and api.name not in READING_APIS


def refuse_changes(api: Api, request: object) -> object:
    """The outcome of a request that changes too much: POLICY_VIOLATION, as of Kafka's controller.

    A Produce with acks=0, to which nothing is answered, closes its connection.
    """
    if getattr(request, "acks", None) == 0:
        return HANG_UP
    return handler_of(api).refuse(request, ErrorCode.POLICY_VIOLATION)
