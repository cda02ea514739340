"""The verbs on transactions."""

from typing import Final

from fencepost.verbs.catalogue.verb import Method, Verb

_TRANSACTION: Final = "/v1/transactions/{transactional_id}"

TRANSACTIONS: Final[tuple[Verb, ...]] = (
    Verb(
        name="transactions",
        method=Method.GET,
        path="/v1/transactions",
        answer="answers.transactions.TransactionsState",
        command="transactions",
        summary="List all transactional ids, by name.",
    ),
    Verb(
        name="transaction",
        method=Method.GET,
        path=_TRANSACTION,
        answer="answers.transactions.TransactionState",
        command="transaction show",
        name_first=True,
        summary="Show a transactional id: its producer, and what its transaction has.",
    ),
    Verb(
        name="abort_transaction",
        method=Method.POST,
        path=f"{_TRANSACTION}/abort",
        answer="answers.transactions.TransactionState",
        command="transaction abort",
        name_first=True,
        summary="Abort an open transaction and fence its producer, as its coordinator may.",
    ),
    Verb(
        name="abort_hanging_transaction",
        method=Method.POST,
        path="/v1/transactions/abort",
        request="transaction_bodies.HangingTransactionBody",
        answer="answers.topics.PartitionState",
        command="transaction abort-hanging",
        positional=("topic", "partition", "producer_id"),
        summary="Abort a producer's open transaction in a partition that no coordinator knows.",
    ),
    Verb(
        name="expire_transaction",
        method=Method.POST,
        path=f"{_TRANSACTION}/expire",
        answer="answers.transactions.TransactionState",
        command="transaction expire",
        name_first=True,
        summary="Move the manual clock until a transaction times out, or an idle id is forgotten.",
    ),
    Verb(
        name="hold_marker",
        method=Method.POST,
        path=f"{_TRANSACTION}/hold",
        request="transaction_bodies.MarkerBody",
        answer="answers.transactions.TransactionState",
        command="transaction hold",
        positional=("topic", "partition"),
        name_first=True,
        summary="Hold the markers of a transactional id on their way to a partition.",
    ),
    Verb(
        name="release_marker",
        method=Method.POST,
        path=f"{_TRANSACTION}/release",
        request="transaction_bodies.MarkerBody",
        answer="answers.transactions.TransactionState",
        command="transaction release",
        positional=("topic", "partition"),
        name_first=True,
        summary="Let the markers of a transactional id go to a partition again.",
    ),
)
