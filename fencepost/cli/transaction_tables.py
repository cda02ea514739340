"""The table of transactional ids, a row for each with what its transaction waits for; and lines."""

from typing import Final

from fencepost.cli.output import QUIET, STRONG, Cell, Line, Table, Text, line
from fencepost.cli.partition_tables import styled
from fencepost.verbs.answers.transactions import TransactionsState, TransactionState
from fencepost.verbs.partition_text import Part
from fencepost.verbs.transaction_text import (
    is_open,
    partition_names,
    transaction_mark,
    transaction_parts,
)

_HEADERS: Final = ("transactional id", "producer", "epoch", "state", "coordinator", "partitions")


def transaction_table(answer: TransactionsState | TransactionState) -> Table:
    """What is shown of an answer about transactions."""
    states = answer.transactions if isinstance(answer, TransactionsState) else (answer,)
    return Table(_HEADERS, tuple(map(_row, states)))


def transaction_line(state: TransactionState) -> Line:
    """A transaction in one line."""
    return line("transaction ", *map(styled, transaction_parts(state)))


def _row(state: TransactionState) -> tuple[Cell, ...]:
    shown = styled(Part(state.state, transaction_mark(state.state)))
    return (
        Text(state.transactional_id, STRONG),
        str(state.producer_id),
        str(state.producer_epoch),
        shown if is_open(state) else Text(state.state, QUIET),
        str(state.coordinator),
        ", ".join(partition_names(state)) or "-",
    )
