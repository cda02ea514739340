"""The verbs on transactions: look, abort, expire, hold a marker on its way and let it go.

They act at the coordinators and leaders in this process: no fault hits them, and the journal has no
trace of them but that of the brokers' own requests.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.core.waits import Wait
from fencepost.broker.node import transaction_actions
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.node.transaction_actions import FoundTransaction
from fencepost.broker.server.server import Server
from fencepost.control.asgi import Request
from fencepost.control.cluster_state import partition_state
from fencepost.control.routing import Unmet, outcome_within, serves, wait_within
from fencepost.control.transaction_state import transaction_state, transactions_state
from fencepost.protocol.errors import ErrorCode
from fencepost.verbs.answers.topics import PartitionState
from fencepost.verbs.answers.transactions import (
    TransactionNotSettled,
    TransactionsState,
    TransactionState,
)
from fencepost.verbs.bodies import DEFAULT_TIMEOUT_MS
from fencepost.verbs.transaction_bodies import HangingTransactionBody, MarkerBody

LOOK_S: Final = 0.005
"""Between two looks at a transaction whose markers are waited for."""
_NOT_SETTLED: Final = (TransactionNotSettled, "Not in time")


@serves("transactions")
async def transactions(server: Server) -> TransactionsState:
    return transactions_state(server.cluster)


@serves("transaction")
async def transaction(server: Server, transactional_id: str) -> TransactionState:
    return transaction_state(transaction_actions.find_transaction(server.cluster, transactional_id))


@serves("abort_transaction", conflict=_NOT_SETTLED)
async def abort_transaction(
    server: Server, request: Request, transactional_id: str
) -> TransactionState:
    await _replicated(request, transaction_actions.abort(server.cluster, transactional_id))
    return await _settled(server.cluster, request, transactional_id)


@serves("abort_hanging_transaction")
async def abort_hanging_transaction(
    server: Server, request: Request, body: HangingTransactionBody
) -> PartitionState:
    cluster, topic, index = server.cluster, body.topic, body.partition
    answer = transaction_actions.abort_hanging(cluster, topic, index, body.producer_id)
    await _replicated(request, answer)
    return partition_state(cluster, topic, index)


@serves("expire_transaction", conflict=_NOT_SETTLED)
async def expire_transaction(
    server: Server, request: Request, transactional_id: str
) -> TransactionState:
    cluster = server.cluster
    before = transaction_actions.find_transaction(cluster, transactional_id)
    server.advance(transaction_actions.ms_until_expiry(cluster, transactional_id))
    try:
        return await _settled(cluster, request, transactional_id)
    except ControllerError as error:
        if error.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise
        return transaction_state(before).model_copy(update={"state": "Dead", "partitions": ()})


@serves("hold_marker")
async def hold_marker(server: Server, transactional_id: str, body: MarkerBody) -> TransactionState:
    cluster = server.cluster
    transaction_actions.hold_marker(cluster, transactional_id, body.topic, body.partition)
    return transaction_state(transaction_actions.find_transaction(cluster, transactional_id))


@serves("release_marker", conflict=_NOT_SETTLED)
async def release_marker(
    server: Server, request: Request, transactional_id: str, body: MarkerBody
) -> TransactionState:
    cluster, partition = server.cluster, (body.topic, body.partition)
    transaction_actions.release_marker(cluster, transactional_id, *partition)
    return await _settled(
        cluster,
        request,
        transactional_id,
        lambda found: found.is_settled or _waits_elsewhere(found, partition),
    )


def _waits_elsewhere(found: FoundTransaction, partition: tuple[str, int]) -> bool:
    return partition not in found.partitions and bool(found.partitions)


async def _settled(
    cluster: Cluster,
    request: Request,
    transactional_id: str,
    is_done: Callable[[FoundTransaction], bool] = lambda found: found.is_settled,
) -> TransactionState:
    """The transactional id once its markers are written, but for those that are held."""

    async def looking() -> TransactionState:
        while True:
            found = transaction_actions.find_transaction(cluster, transactional_id)
            if is_done(found):
                return transaction_state(found)
            await asyncio.sleep(LOOK_S)

    settled = await wait_within(DEFAULT_TIMEOUT_MS, request, looking())
    if settled is not None:
        return settled
    state = transaction_state(transaction_actions.find_transaction(cluster, transactional_id))
    raise Unmet(
        TransactionNotSettled(
            error=ErrorCode.REQUEST_TIMED_OUT.name,
            message=f"transactional id {transactional_id!r} is {state.state} after"
            f" {DEFAULT_TIMEOUT_MS} ms: {', '.join(state.partitions)} has no marker yet",
            transaction=state,
        )
    )


async def _replicated(request: Request, answer: ErrorCode | Wait[ErrorCode]) -> None:
    """:raises ControllerError: When it is not replicated in time, or refused."""
    code = await outcome_within(DEFAULT_TIMEOUT_MS, request, answer)
    if code is not ErrorCode.NONE:
        error = code or ErrorCode.REQUEST_TIMED_OUT
        raise ControllerError(
            error,
            "it could not be committed: the ISR is too small, a replica is held, or the log refuses"
            f" it ({error.name})",
        )
