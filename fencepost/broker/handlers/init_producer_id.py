"""InitProducerId (22), versions 0-6: an id for an idempotent producer (KIP-98, KIP-360).

Without a transactional id every request gets a new producer id with epoch 0, also one that brings
the id and epoch it had: an idempotent producer has no epoch to bump, it starts over. The id and the
epoch are given both or not at all, and a transactional id is not empty: else INVALID_REQUEST.

With ``conformance=apache`` the first request finds no ids, as at a real broker, whose controller
has not given it any yet: COORDINATOR_LOAD_IN_PROGRESS, and clients ask again.

Versions: v2 compact types; v3 the producer's present id and epoch; v4 may answer PRODUCER_FENCED;
v5 TRANSACTION_ABORTABLE (KIP-890); v6 two-phase commit (KIP-939).

Missing: transactions. A transactional id is answered COORDINATOR_NOT_AVAILABLE, as by a broker
whose transaction topic is not up. NOT_COORDINATOR would say that another broker has it, and send
the client looking for it.
"""

from typing import Final

from fencepost.broker.handlers.context import Context
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

NONE: Final = -1


def handle(ctx: Context, request: InitProducerIdRequest) -> InitProducerIdResponse:
    """Give out the next producer id."""
    if (request.producer_id == NONE) != (request.producer_epoch == NONE):
        return refuse(request, ErrorCode.INVALID_REQUEST)
    if request.transactional_id == "":
        return refuse(request, ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return refuse(request, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    producer_id = ctx.broker.producer_ids.generate_producer_id()
    if producer_id is None:
        return refuse(request, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def refuse(_request: InitProducerIdRequest, error_code: int) -> InitProducerIdResponse:
    """The error, and no id."""
    return InitProducerIdResponse(error_code=error_code, producer_id=NONE, producer_epoch=NONE)
