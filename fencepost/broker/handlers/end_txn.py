"""EndTxn (26), versions 0-5: commit or abort a transaction (KIP-98, KIP-890).

The coordinator answers when the decision is durable, and before any partition has its marker. Until
all have, requests of the transactional id are CONCURRENT_TRANSACTIONS.

Before v5 the epoch stays. A repeated request succeeds when the transaction is complete, and one
that wants the opposite is INVALID_TXN_STATE, as where no transaction is open.

From v5 on (``transaction.version`` 2) each end bumps the epoch, and the response has the producer
id and the epoch to go on with: another id with epoch 0 where the epochs are used up. A repeated
request is one with the epoch before, and is answered the same. Where no transaction is open, an
abort succeeds, and a commit is INVALID_TXN_STATE.

Versions: v2 PRODUCER_FENCED, which is INVALID_PRODUCER_EPOCH before (KIP-588); v3 compact types; v4
TRANSACTION_ABORTABLE (KIP-890); v5 the bump.
"""

from typing import Final

from fencepost.broker.core.outcomes import map_response
from fencepost.broker.core.waits import Wait
from fencepost.broker.handlers.context import Context
from fencepost.broker.transactions import requests
from fencepost.broker.transactions.end_transaction import TransactionEnd
from fencepost.broker.transactions.requests import ProducerResult
from fencepost.broker.transactions.transaction_metadata import (
    EPOCH_BUMP_VERSION,
    ProducerIdAndEpoch,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

_FIRST_WITH_FENCED: Final = 2
_FIRST_WITH_EPOCH_BUMP: Final = 5


def handle(ctx: Context, request: EndTxnRequest) -> EndTxnResponse | Wait[EndTxnResponse]:
    """End the transaction, and answer when the decision is durable."""
    if not request.transactional_id:
        return refuse(request, ErrorCode.INVALID_REQUEST)
    shard = ctx.broker.transactions.shard_for(request.transactional_id)
    if isinstance(shard, ErrorCode):
        return refuse(request, shard)
    end = TransactionEnd(
        producer=ProducerIdAndEpoch(producer_id=request.producer_id, epoch=request.producer_epoch),
        commit=request.committed,
        client_version=EPOCH_BUMP_VERSION if ctx.version >= _FIRST_WITH_EPOCH_BUMP else 0,
    )

    def respond(result: ProducerResult) -> EndTxnResponse:
        code = result.error
        if code is ErrorCode.PRODUCER_FENCED and ctx.version < _FIRST_WITH_FENCED:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        return EndTxnResponse(
            error_code=code,
            producer_id=result.producer.producer_id,
            producer_epoch=result.producer.epoch,
        )

    return map_response(requests.end_transaction(shard, request.transactional_id, end), respond)


def refuse(_request: EndTxnRequest, error_code: int) -> EndTxnResponse:
    """The error, and no producer id."""
    return EndTxnResponse(error_code=error_code)
