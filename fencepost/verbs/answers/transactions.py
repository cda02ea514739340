"""Transactions, as their coordinators know them."""

from typing import ClassVar, Final

from fencepost.verbs.answers import Answer, ErrorAnswer
from fencepost.verbs.model import Example, Examples
from fencepost.verbs.transaction_bodies import TransactionStateName

_TRANSACTION: Final[Example] = {
    "transactional_id": "copier",
    "producer_id": 1000,
    "producer_epoch": 4,
    "state": "Ongoing",
    "partitions": ["orders-0", "__consumer_offsets-17"],
    "held": [],
    "timeout_ms": 60000,
    "start_ms": 1767225600000,
    "coordinator": 2,
    "state_partition": 31,
}


class TransactionState(Answer):
    """A transactional id."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    """In a state that is prepared or complete by ``transaction.version`` 2, that of the markers."""
    state: TransactionStateName
    partitions: tuple[str, ...]
    """Those of its transaction that have no marker yet, such as ``orders-0``."""
    held: tuple[str, ...]
    """Partitions to which its markers are held on their way."""
    timeout_ms: int
    """After which an open transaction is aborted."""
    start_ms: int
    """When its transaction began, in ms since 1970-01-01 UTC; -1 where none has."""
    coordinator: int
    """Broker id."""
    state_partition: int
    """Its partition of ``__transaction_state``, whose leader is the coordinator."""

    examples: ClassVar[Examples] = [_TRANSACTION]


class TransactionsState(Answer):
    """All transactional ids."""

    transactions: tuple[TransactionState, ...]
    """By name. Those whose coordinator is not available are not among them."""

    examples: ClassVar[Examples] = [{"transactions": [_TRANSACTION]}]


class TransactionNotSettled(ErrorAnswer):
    """The markers of a transaction were not written in time."""

    transaction: TransactionState
    """As it is."""

    examples: ClassVar[Examples] = [
        {
            "error": "REQUEST_TIMED_OUT",
            "message": "transactional id 'copier' is PrepareAbort after 30000 ms: orders-0"
            " has no marker yet",
            "transaction": {**_TRANSACTION, "state": "PrepareAbort"},
        }
    ]
