"""A transaction in one line."""

from __future__ import annotations

from typing import Final

from fencepost.verbs.answers.transactions import TransactionState
from fencepost.verbs.transaction_text import is_open, transaction_text

PLACES: Final = ("orders-0", "__consumer_offsets-17")
EXAMPLE: Final = TransactionState.examples[0]


def transaction(**given: object) -> TransactionState:
    return TransactionState.model_validate({**EXAMPLE, "partitions": PLACES, "held": (), **given})


def test_a_line_says_which_partitions_wait_for_the_end_and_which_are_held() -> None:
    assert transaction_text(transaction(held=("orders-0", "other-1"))) == (
        "copier: Ongoing of orders-0 (held), __consumer_offsets-17, other-1 (held),"
        " producer 1000 in epoch 4, coordinator 2"
    )
    begun = transaction(partitions=(), state="Empty")
    assert transaction_text(begun) == "copier: Empty, producer 1000 in epoch 4, coordinator 2"


def test_a_transaction_is_open_until_all_of_its_markers_are_written() -> None:
    states = ("Empty", "Ongoing", "PrepareCommit", "CompleteCommit", "PrepareAbort", "Dead")
    found = [each for each in states if is_open(transaction(state=each))]
    assert found == ["Ongoing", "PrepareCommit", "PrepareAbort"]
