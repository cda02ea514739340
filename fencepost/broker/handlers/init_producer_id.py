"""InitProducerId (22), versions 0-6: an id and an epoch for a producer (KIP-98, KIP-360).

Without a transactional id every request gets a new producer id with epoch 0, also one that brings
the id and epoch it had: an idempotent producer has no epoch to bump, it starts over. The id and the
epoch are given both or not at all, and a transactional id is not empty: else INVALID_REQUEST.

With a transactional id its coordinator answers the id's producer id with the next epoch; every
producer with an earlier epoch is fenced. An open transaction of such a producer is aborted first:
CONCURRENT_TRANSACTIONS until that is complete. The timeout of transactions is at most
``transaction.max.timeout.ms``: else INVALID_TRANSACTION_TIMEOUT.

With ``conformance=apache`` the first request finds no ids, as at a real broker, whose controller
has not given it any yet: COORDINATOR_LOAD_IN_PROGRESS, and clients ask again.

Versions: v2 compact types; v3 the producer's present id and epoch; v4 may answer PRODUCER_FENCED,
which is INVALID_PRODUCER_EPOCH before; v5 TRANSACTION_ABORTABLE (KIP-890); v6 two-phase commit
(KIP-939), which Kafka 4.3 does not advertise.

Missing: two-phase commits. As with ``transaction.two.phase.commit.enable=false`` a request of one
is TRANSACTIONAL_ID_AUTHORIZATION_FAILED; one that keeps a prepared transaction is
UNSUPPORTED_VERSION, as in Kafka 4.3.
"""

from typing import Final

from fencepost.broker.core.outcomes import map_response
from fencepost.broker.core.waits import Wait
from fencepost.broker.handlers.context import Context
from fencepost.broker.transactions import requests
from fencepost.broker.transactions.requests import ProducerResult
from fencepost.broker.transactions.transaction_metadata import ProducerIdAndEpoch
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

NONE: Final = -1
_FIRST_WITH_FENCED: Final = 4


def handle(
    ctx: Context, request: InitProducerIdRequest
) -> InitProducerIdResponse | Wait[InitProducerIdResponse]:
    """Give out the next producer id, or the next epoch of a transactional id."""
    if (request.producer_id == NONE) != (request.producer_epoch == NONE):
        return refuse(request, ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return _init_transactional(ctx, request, request.transactional_id)
    producer_id = ctx.broker.producer_ids.generate_producer_id()
    if producer_id is None:
        return refuse(request, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def refuse(_request: InitProducerIdRequest, error_code: int) -> InitProducerIdResponse:
    """The error, and no id."""
    return InitProducerIdResponse(error_code=error_code, producer_id=NONE, producer_epoch=NONE)


def _init_transactional(
    ctx: Context, request: InitProducerIdRequest, transactional_id: str
) -> InitProducerIdResponse | Wait[InitProducerIdResponse]:
    error = _check(ctx, request, transactional_id)
    if error is not ErrorCode.NONE:
        return refuse(request, error)
    shard = ctx.broker.transactions.shard_for(transactional_id)
    if isinstance(shard, ErrorCode):
        return refuse(request, shard)
    expected = None
    if request.producer_id != NONE:
        expected = ProducerIdAndEpoch(producer_id=request.producer_id, epoch=request.producer_epoch)

    def respond(result: ProducerResult) -> InitProducerIdResponse:
        code = result.error
        if code is ErrorCode.PRODUCER_FENCED and ctx.version < _FIRST_WITH_FENCED:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        return InitProducerIdResponse(
            error_code=code,
            producer_id=result.producer.producer_id,
            producer_epoch=result.producer.epoch,
        )

    result = requests.init_producer_id(
        shard, transactional_id, request.transaction_timeout_ms, expected
    )
    return map_response(result, respond)


def _check(ctx: Context, request: InitProducerIdRequest, transactional_id: str) -> ErrorCode:
    if not transactional_id:
        return ErrorCode.INVALID_REQUEST
    if request.enable2_pc:
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if request.keep_prepared_txn:
        return ErrorCode.UNSUPPORTED_VERSION
    longest_ms = ctx.broker.transactions.config.max_timeout_ms
    if not 0 < request.transaction_timeout_ms <= longest_ms:
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    return ErrorCode.NONE
