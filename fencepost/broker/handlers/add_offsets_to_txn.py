"""AddOffsetsToTxn (25), versions 0-4: add a group's committed offsets to a transaction (KIP-98).

It adds the partition of ``__consumer_offsets`` that has the group, as AddPartitionsToTxn would.
Producers of ``transaction.version`` 2 do not send it: their TxnOffsetCommit adds the partition.

Versions: v2 PRODUCER_FENCED, which is INVALID_PRODUCER_EPOCH before (KIP-588); v3 compact types; v4
TRANSACTION_ABORTABLE (KIP-890).
"""

from typing import Final

from fencepost.broker.coordinator import partition_for
from fencepost.broker.core.outcomes import map_response
from fencepost.broker.core.waits import Wait
from fencepost.broker.groups.group_coordinator import OFFSETS_TOPIC
from fencepost.broker.handlers.context import Context
from fencepost.broker.transactions import requests
from fencepost.broker.transactions.transaction_metadata import ProducerIdAndEpoch
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)

_FIRST_WITH_FENCED: Final = 2
_CLIENT_VERSION: Final = 0
"""The ``transaction.version`` of the producers that send it, as Kafka writes it."""


def handle(
    ctx: Context, request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse | Wait[AddOffsetsToTxnResponse]:
    """Add the group's partition to the transaction."""
    if not request.transactional_id:
        return refuse(request, ErrorCode.INVALID_REQUEST)
    shard = ctx.broker.transactions.shard_for(request.transactional_id)
    if isinstance(shard, ErrorCode):
        return refuse(request, shard)

    def respond(code: ErrorCode) -> AddOffsetsToTxnResponse:
        if code is ErrorCode.PRODUCER_FENCED and ctx.version < _FIRST_WITH_FENCED:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        return AddOffsetsToTxnResponse(error_code=code)

    answer = requests.add_partitions(
        shard,
        request.transactional_id,
        ProducerIdAndEpoch(producer_id=request.producer_id, epoch=request.producer_epoch),
        [(OFFSETS_TOPIC, partition_for(request.group_id, _offsets_partitions(ctx)))],
        _CLIENT_VERSION,
    )
    return map_response(answer, respond)


def refuse(_request: AddOffsetsToTxnRequest, error_code: int) -> AddOffsetsToTxnResponse:
    """The error."""
    return AddOffsetsToTxnResponse(error_code=error_code)


def _offsets_partitions(ctx: Context) -> int:
    """How many partitions ``__consumer_offsets`` has, or would have."""
    topic = ctx.broker.view.topics.get(OFFSETS_TOPIC)
    if topic is None:
        return ctx.broker.configs.offsets_topic_num_partitions
    return len(topic.partitions)
