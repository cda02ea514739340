"""Where requests reach the controller, and what its handlers are given.

Brokers forward clients' requests in an `Envelope` and ask on their own account by the other
messages of `requests`. The listener for tools (`node.controller_server`) calls
`ControllerApis.handle_api` with one of its own.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar, cast

from fencepost.broker.configs.config_layers import ConfigLayers
from fencepost.broker.configs.effective_configs import BrokerConfigs
from fencepost.broker.controller.auto_topic_creation import with_default_counts
from fencepost.broker.controller.controller import Controller
from fencepost.broker.controller.failed_replicas import fail_replicas, restore_replicas
from fencepost.broker.controller.requests import (
    AllocateProducerIds,
    AlterPartitions,
    CreateTopics,
    Envelope,
    FailReplicas,
    RestoreReplicas,
)
from fencepost.broker.core.context import Peer
from fencepost.broker.core.scheduler import Scheduler
from fencepost.broker.core.waits import Wait
from fencepost.broker.network.links import ControllerRequest
from fencepost.protocol.apis import Api

R = TypeVar("R")


class ControllerContext(NamedTuple):
    """One request's surroundings at the controller."""

    controller: Controller
    configs: BrokerConfigs
    """The controller's own."""
    broker_id: int
    """The node that the client sent its request to."""
    to_controller: bool
    """Whether that is the controller, which takes configs of every node."""
    version: int
    """Of the API that is being answered."""
    client_id: str | None
    peer: Peer
    """The client, as the broker sees it."""
    wall_ms: int
    """Milliseconds since 1970-01-01 UTC, when the controller received the request."""

    @property
    def layers(self) -> ConfigLayers:
        """The configs of the broker that the client sent its request to."""
        return self.configs.layers_of(self.broker_id)

    @property
    def own_layers(self) -> ConfigLayers:
        """The configs of the controller's node, which it has for itself and for topics."""
        return self.configs.layers_of(self.controller.image.voters[0])


class ControllerHandler(Protocol):
    """A module of ``fencepost.broker.handlers`` whose API the controller answers."""

    def handle(self, ctx: ControllerContext, request: object) -> object:
        """Answer a request."""
        ...


class ControllerApis:
    """The controller as an end of links."""

    def __init__(
        self,
        controller: Controller,
        configs: BrokerConfigs,
        scheduler: Scheduler,
        handler_of: Callable[[Api], ControllerHandler],
        is_applying: Callable[[], bool],
    ) -> None:
        """What it is given.

        :param configs: Those of the controller, which follow its image.
        :param handler_of: The table of the APIs that the controller answers.
        :param is_applying: Whether brokers still open replicas of images that have reached them.
        """
        self._controller = controller
        self._configs = configs
        self._scheduler = scheduler
        self._handler_of = handler_of
        self._is_applying = is_applying

    def handle(self, request: ControllerRequest[R]) -> R | Wait[R]:
        """Answer a broker."""
        return cast(R | Wait[R], self._answer(request))

    def handle_api(self, envelope: Envelope) -> object:
        """Answer a client's request by the handler of its API.

        :returns: The response. Where it has changed more than brokers apply in one turn, a `Wait`:
            it is complete when they have.
        """
        before = self._controller.image
        response = self._handle(envelope)
        if self._controller.image is before or not self._is_applying():
            return response
        answer: Wait[object] = Wait()

        def go_on() -> None:
            if self._is_applying():
                self._scheduler.in_later_turn(go_on)
            else:
                answer.complete(response)

        self._scheduler.in_later_turn(go_on)
        return answer

    def _handle(self, envelope: Envelope) -> object:
        ctx = ControllerContext(
            controller=self._controller,
            configs=self._configs,
            broker_id=envelope.broker_id,
            to_controller=envelope.to_controller,
            version=envelope.version,
            client_id=envelope.client_id,
            peer=envelope.peer,
            wall_ms=self._scheduler.wall_ms(),
        )
        return self._handler_of(envelope.api).handle(ctx, envelope.request)

    def _answer(self, request: object) -> object:
        controller = self._controller
        match request:
            case Envelope():
                return self.handle_api(request)
            case AlterPartitions():
                return controller.alter_partitions(request.proposals)
            case FailReplicas():
                fail_replicas(controller, request.broker_id, request.replicas)
                return None
            case RestoreReplicas():
                restore_replicas(controller, request.broker_id, request.replicas)
                return None
            case AllocateProducerIds():
                return controller.next_producer_ids(request.count)
            case CreateTopics():
                configs = self._configs
                topics = [with_default_counts(topic, configs) for topic in request.topics]
                return controller.create_each_topic(topics)
            case _:
                raise TypeError(f"the controller answers no {type(request).__name__}")
