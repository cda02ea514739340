"""Transactions that a test looks at, ends, and holds."""

from __future__ import annotations

from typing import Final

from tests.four_ways.meeting import TOPIC, TRANSACTIONAL_ID
from tests.four_ways.row import NEW_TOPIC, TRANSACT, Row, Step, partition

_ID: Final = {"transactional_id": TRANSACTIONAL_ID}
_NOWHERE: Final = {"transactional_id": "nope"}
_MARKER: Final = {**_ID, "topic": TOPIC, "partition": 0}
_OPEN: Final = {**_ID, "state": "Ongoing", "producer_epoch": 0, "partitions": ["t-0"], "held": []}
_ABORTED: Final = {"state": "CompleteAbort", "producer_epoch": 1, "partitions": [], "held": []}
_STATE_TOPIC: Final[Step] = (
    "create_topic",
    {"name": "__transaction_state", "assignments": [[1, 2, 3]]},
)
_BEFORE: Final = (NEW_TOPIC, _STATE_TOPIC, TRANSACT)

TRANSACTIONS: Final = (
    Row(
        verb="transactions",
        command="transactions",
        before=_BEFORE,
        answers={"transactions": [_OPEN]},
        changes=partition(last_stable_offset=0, high_watermark=1),
    ),
    Row(
        verb="transaction",
        command="transaction x",
        given=_ID,
        before=_BEFORE,
        answers={**_OPEN, "timeout_ms": 60_000, "state_partition": 0},
    ),
    Row(
        verb="transaction",
        command="transaction show nope",
        given=_NOWHERE,
        refused="TRANSACTIONAL_ID_NOT_FOUND",
    ),
    Row(
        verb="abort_transaction",
        command="transaction x abort",
        given=_ID,
        before=_BEFORE,
        answers={**_ID, **_ABORTED},
        changes=partition(last_stable_offset=2, high_watermark=2),
    ),
    Row(
        verb="abort_transaction",
        command="transaction abort x",
        given=_ID,
        before=(*_BEFORE, ("abort_transaction", _ID)),
        refused="INVALID_TXN_STATE",
    ),
    Row(
        verb="abort_hanging_transaction",
        command="transaction abort-hanging t 0 7",
        given={"topic": TOPIC, "partition": 0, "producer_id": 7},
        before=_BEFORE,
        refused="INVALID_TXN_STATE",
        changes=partition(last_stable_offset=0),
    ),
    Row(
        verb="expire_transaction",
        command="transaction x expire",
        given=_ID,
        before=_BEFORE,
        clock="manual",
        answers=_ABORTED,
        changes=partition(last_stable_offset=2),
    ),
    Row(
        verb="expire_transaction",
        command="transaction expire x",
        given=_ID,
        before=_BEFORE,
        refused="INVALID_REQUEST",
    ),
    Row(
        verb="hold_marker",
        command="transaction hold x t 0",
        given=_MARKER,
        before=_BEFORE,
        answers={"state": "Ongoing", "held": ["t-0"]},
        after=("abort_transaction", _ID),
        then={"state": "PrepareAbort", "partitions": ["t-0"], "held": ["t-0"]},
        changes=partition(last_stable_offset=0),
    ),
    Row(
        verb="release_marker",
        command="transaction x release t 0",
        given=_MARKER,
        before=(*_BEFORE, ("hold_marker", _MARKER), ("abort_transaction", _ID)),
        answers=_ABORTED,
        changes=partition(last_stable_offset=2),
    ),
    Row(
        verb="release_marker",
        command="transaction release x t 0",
        given=_MARKER,
        before=_BEFORE,
        refused="INVALID_REQUEST",
    ),
)
