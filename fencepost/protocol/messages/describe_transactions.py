"""DescribeTransactions (65), versions 0 to 0.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class DescribeTransactionsRequest(Struct, frozen=True, kw_only=True, gc=False):
    transactional_ids: tuple[str, ...] = ()


class TopicData(Struct, frozen=True, kw_only=True, gc=False):
    topic: str = ""
    partitions: tuple[int, ...] = ()


class TransactionState(Struct, frozen=True, kw_only=True, gc=False):
    error_code: int = 0
    transactional_id: str = ""
    transaction_state: str = ""
    transaction_timeout_ms: int = 0
    transaction_start_time_ms: int = 0
    producer_id: int = 0
    producer_epoch: int = 0
    topics: tuple[TopicData, ...] = ()


class DescribeTransactionsResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    transaction_states: tuple[TransactionState, ...] = ()
