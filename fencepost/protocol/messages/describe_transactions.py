"""DescribeTransactions (65), versions 0 to 0.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from fencepost.protocol.messages import struct


@struct(frozen=True, slots=True, kw_only=True)
class DescribeTransactionsRequest:
    transactional_ids: tuple[str, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class TopicData:
    topic: str = ""
    partitions: tuple[int, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class TransactionState:
    error_code: int = 0
    transactional_id: str = ""
    transaction_state: str = ""
    transaction_timeout_ms: int = 0
    transaction_start_time_ms: int = 0
    producer_id: int = 0
    producer_epoch: int = 0
    topics: tuple[TopicData, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class DescribeTransactionsResponse:
    throttle_time_ms: int = 0
    transaction_states: tuple[TransactionState, ...] = ()
