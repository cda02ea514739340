"""A transaction in words: what is open is named with the partitions that wait for its end.

The command line and the report of a failing test show these.
"""

from collections.abc import Iterator
from typing import Final

from fencepost.verbs.answers.transactions import TransactionState
from fencepost.verbs.partition_text import Mark, Part

_NOT_OPEN: Final = frozenset({"Empty", "CompleteCommit", "CompleteAbort", "Dead"})


def is_open(state: TransactionState) -> bool:
    """Whether a transaction is not decided, or not all of its markers are written."""
    return state.state not in _NOT_OPEN


def transaction_mark(state: str) -> Mark:
    """How the state of a transactional id looks."""
    if state in _NOT_OPEN:
        return Mark.PLAIN
    return Mark.GOOD if state == "Ongoing" else Mark.ODD


def partition_names(state: TransactionState) -> Iterator[str]:
    """The partitions of a transaction that have no marker yet, and those that are held."""
    for each in dict.fromkeys((*state.partitions, *state.held)):
        yield f"{each} (held)" if each in state.held else each


def transaction_parts(state: TransactionState) -> Iterator[Part]:
    """Such as ``copier: Ongoing of orders-0, producer 1000 in epoch 4, coordinator 2``."""
    yield Part(state.transactional_id, Mark.STRONG)
    yield Part(": ")
    yield Part(state.state, transaction_mark(state.state))
    partitions = ", ".join(partition_names(state))
    yield Part(f" of {partitions}" if partitions else "")
    yield Part(f", producer {state.producer_id} in epoch {state.producer_epoch}")
    yield Part(f", coordinator {state.coordinator}")


def transaction_text(state: TransactionState) -> str:
    """A transaction in one line."""
    return "".join(part.text for part in transaction_parts(state))
