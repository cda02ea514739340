"""The controller behind a listener of its own, for tools (``--controller-port``, KIP-919).

The same handlers answer as for requests that brokers forward; what a broker answers from its view
is answered from the controller's image. Faults act on brokers' listeners alone.
"""

from collections.abc import Mapping
from typing import Any, Final

from fencepost.broker.configs.effective_configs import BrokerConfigs
from fencepost.broker.controller.controller import Controller
from fencepost.broker.controller.controller_apis import ControllerApis
from fencepost.broker.controller.requests import Envelope
from fencepost.broker.core.context import Context
from fencepost.broker.core.events import Events
from fencepost.broker.core.scheduler import Scheduler
from fencepost.broker.faults.registry import FaultRegistry
from fencepost.broker.handlers import CONTROLLER_APIS, handler_of
from fencepost.broker.metadata.image import ClusterImage
from fencepost.protocol.apis import APIS, NOT_SERVED, Api

LISTENER_APIS: Final = CONTROLLER_APIS | {
    "api_versions",
    "create_delegation_token",
    "describe_acls",
    "describe_cluster",
    "describe_configs",
    "describe_delegation_token",
    "describe_user_scram_credentials",
    "expire_delegation_token",
    "renew_delegation_token",
    "sasl_authenticate",
    "sasl_handshake",
}
"""The names of the APIs that the listener serves, as a Kafka's, as far as brokers serve them. The
APIs between Kafka's own nodes are not served."""


class ControllerServer:
    """What a connection to the controller talks to."""

    is_controller: Final = True
    dialect: Final = None
    """It serves none of the APIs that have drafts."""

    def __init__(
        self,
        controller: Controller,
        apis: ControllerApis,
        *,
        configs: BrokerConfigs,
        scheduler: Scheduler,
        events: Events,
        faults: FaultRegistry,
        ceilings: Mapping[str, int],
    ) -> None:
        """What it is given.

        :param configs: The controller's own, which follow its image.
        :param ceilings: The highest versions that all nodes serve (``--api-max``), by API name.
        """
        self._controller = controller
        self._apis = apis
        self.configs = configs
        self.log_levels = controller.log_levels
        self.scheduler = scheduler
        self.events = events
        self.faults = faults
        others = {api.name: NOT_SERVED for api in APIS if api.name not in LISTENER_APIS}
        self.version_limits: Mapping[str, int] = {**ceilings, **others}
        """The highest versions that it serves, by API name."""

    @property
    def broker_id(self) -> int:
        """The node id of the active controller."""
        return self._controller.image.voters[0]

    @property
    def view(self) -> ClusterImage:
        """The newest image."""
        return self._controller.image

    def max_version(self, api: Api) -> int:
        """The highest version of an API that it serves (inclusive)."""
        return max(self.version_limits.get(api.name, api.max_version), api.min_version)

    def serves(self, api: Api) -> bool:
        """Whether clients are served any version of an API."""
        return self.version_limits.get(api.name, api.max_version) >= api.min_version

    def handle(self, api: Api, ctx: Context[Any], request: object) -> object:
        """Handle a request, as `Broker.handle` does."""
        if api.name not in CONTROLLER_APIS:
            return handler_of(api).handle(ctx, request)
        return self._apis.handle_api(
            Envelope(
                broker_id=self.broker_id,
                to_controller=True,
                api=api,
                version=ctx.version,
                client_id=ctx.client_id,
                peer=ctx.peer,
                request=request,
            )
        )
