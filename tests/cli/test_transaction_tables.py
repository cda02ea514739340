"""The table of transactional ids."""

from __future__ import annotations

from fencepost.cli.output import Text
from fencepost.cli.transaction_tables import transaction_table
from fencepost.verbs.answers.transactions import TransactionsState, TransactionState


def state(**different: object) -> TransactionState:
    given = {
        "transactional_id": "copier",
        "producer_id": 1000,
        "producer_epoch": 4,
        "state": "PrepareCommit",
        "partitions": ("orders-0", "orders-1"),
        "held": (),
        "timeout_ms": 60_000,
        "start_ms": 7,
        "coordinator": 2,
        "state_partition": 31,
    }
    return TransactionState.model_validate({**given, **different})


def shown(answer: TransactionsState | TransactionState) -> list[list[str]]:
    table = transaction_table(answer)
    return [
        [each.text if isinstance(each, Text) else str(each) for each in row] for row in table.rows
    ]


def test_a_row_says_which_markers_are_missing_and_which_are_held() -> None:
    held = state(held=("orders-1", "other-0"))
    partitions = "orders-0, orders-1 (held), other-0 (held)"
    assert shown(held) == [["copier", "1000", "4", "PrepareCommit", "2", partitions]]
    assert shown(state(partitions=()))[0][-1] == "-"


def test_a_list_has_a_row_for_each_id() -> None:
    both = TransactionsState(transactions=(state(), state(transactional_id="other")))
    assert [row[0] for row in shown(both)] == ["copier", "other"]
