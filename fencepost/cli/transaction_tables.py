"""The table of transactional ids: a row for each, with what its transaction waits for."""

from collections.abc import Mapping
from typing import Final

from fencepost.cli.output import GOOD, ODD, QUIET, STRONG, Cell, Table, Text
from fencepost.verbs.answers.transactions import TransactionsState, TransactionState

_HEADERS: Final = ("transactional id", "producer", "epoch", "state", "coordinator", "partitions")
_STATES: Final[Mapping[str, str]] = {
    "Empty": QUIET,
    "Ongoing": GOOD,
    "CompleteCommit": QUIET,
    "CompleteAbort": QUIET,
}
"""How a state looks; all others are odd."""


def transaction_table(answer: TransactionsState | TransactionState) -> Table:
    """What is shown of an answer about transactions."""
    states = answer.transactions if isinstance(answer, TransactionsState) else (answer,)
    return Table(_HEADERS, tuple(map(_row, states)))


def _row(state: TransactionState) -> tuple[Cell, ...]:
    partitions = ", ".join(
        f"{each} (held)" if each in state.held else each
        for each in dict.fromkeys((*state.partitions, *state.held))
    )
    return (
        Text(state.transactional_id, STRONG),
        str(state.producer_id),
        str(state.producer_epoch),
        Text(state.state, _STATES.get(state.state, ODD)),
        str(state.coordinator),
        partitions or "-",
    )
