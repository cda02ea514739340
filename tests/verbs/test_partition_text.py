"""A partition in words: a hold, a zombie, and why two lead."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from fencepost.verbs.answers.topics import PartitionState
from fencepost.verbs.partition_text import partition_text, replica_label, two_leaders

(EXAMPLE,) = PartitionState.examples
USUAL: Final = (
    "orders-0: leader 1 in epoch 0, ISR 1, high watermark 42, last stable offset 42;"
    " replicas 1 at 42"
)


def text(replica: dict[str, Any] | None = None, **given: object) -> str:
    replicas = [{**EXAMPLE["replicas"][0], **(replica or {})}]
    state = json.dumps({**EXAMPLE, "replicas": replicas, **given})
    return partition_text(PartitionState.model_validate_json(state))


def test_what_is_as_usual_is_not_named() -> None:
    assert text() == USUAL


def test_a_held_leader_is_named() -> None:
    assert text({"held": True}).startswith("orders-0: held leader 1 in epoch 0")
    assert text({"held": True}).endswith("replicas 1 at 42 (hold)")


def test_a_zombie_is_named_and_explained() -> None:
    why = two_leaders(2, 3, [(1, 2)])
    assert why is not None
    assert text({"zombie": True}, leader=2, explanation=why).endswith(
        f"replicas 1 zombie leader at 42; {why}"
    )
    assert why.startswith(
        "two leaders: broker 2 leads in epoch 3 by the word of the controller, and still broker 1"
        " in epoch 2, which does not hear from the controller"
    )
    assert two_leaders(2, 3, []) is None
    assert (two_leaders(-1, 3, [(1, 2)]) or "").startswith("no leader: none in epoch 3 by the")


@pytest.mark.parametrize(
    ("state", "is_zombie", "held", "held_at", "label"),
    [
        ("leading", False, False, None, "leading"),
        ("leading", True, False, None, "zombie leader"),
        ("leading", False, True, None, "held leader"),
        ("leading", True, True, 3, "held zombie leader at 3"),
        ("held", False, True, 17, "held at 17"),
        ("fetching", False, True, 17, "fetching, hold at 17"),
        ("offline", False, True, None, "offline, hold"),
    ],
)
def test_a_label_says_what_a_replica_does(
    state: str, is_zombie: bool, held: bool, held_at: int | None, label: str
) -> None:
    assert replica_label(state, is_zombie=is_zombie, held=held, held_at=held_at) == label
