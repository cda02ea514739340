"""UnregisterBroker (64), version 0: end a broker's registration (KIP-631).

The broker leaves every ISR, others are elected where it led, and metadata names it no more; where
it was assigned it is an offline replica. One that runs is not stopped: it hears of every change,
its replicas follow, and it registers again when it starts the next time, as with Apache Kafka. A
broker that is not registered is BROKER_ID_NOT_REGISTERED.
"""

from fencepost.broker.controller.controller_apis import ControllerContext
from fencepost.broker.core.errors import ControllerError
from fencepost.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)


def handle(ctx: ControllerContext, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    """Unregister one broker; a success has an empty message, as Kafka's."""
    try:
        ctx.controller.unregister(request.broker_id)
    except ControllerError as error:
        return UnregisterBrokerResponse(error_code=error.code, error_message=str(error))
    return UnregisterBrokerResponse(error_message="")


def refuse(_request: UnregisterBrokerRequest, error_code: int) -> UnregisterBrokerResponse:
    """The error alone."""
    return UnregisterBrokerResponse(error_code=error_code)
