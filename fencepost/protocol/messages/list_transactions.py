"""ListTransactions (66), versions 0 to 2.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from fencepost.protocol.messages import struct


@struct(frozen=True, slots=True, kw_only=True)
class ListTransactionsRequest:
    state_filters: tuple[str, ...] = ()
    producer_id_filters: tuple[int, ...] = ()
    duration_filter: int = -1  # v1+
    transactional_id_pattern: str | None = None  # v2+


@struct(frozen=True, slots=True, kw_only=True)
class TransactionState:
    transactional_id: str = ""
    producer_id: int = 0
    transaction_state: str = ""


@struct(frozen=True, slots=True, kw_only=True)
class ListTransactionsResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    unknown_state_filters: tuple[str, ...] = ()
    transaction_states: tuple[TransactionState, ...] = ()
