"""AddPartitionsToTxn (24), versions 0 to 5.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class AddPartitionsToTxnTopic(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""
    partitions: tuple[int, ...] = ()


class AddPartitionsToTxnTransaction(Struct, frozen=True, kw_only=True, gc=False):
    transactional_id: str = ""  # v4+
    producer_id: int = 0  # v4+
    producer_epoch: int = 0  # v4+
    verify_only: bool = False  # v4+
    topics: tuple[AddPartitionsToTxnTopic, ...] = ()  # v4+


class AddPartitionsToTxnRequest(Struct, frozen=True, kw_only=True, gc=False):
    v3_and_below_transactional_id: str = ""  # v0-v3
    v3_and_below_producer_id: int = 0  # v0-v3
    v3_and_below_producer_epoch: int = 0  # v0-v3
    v3_and_below_topics: tuple[AddPartitionsToTxnTopic, ...] = ()  # v0-v3
    transactions: tuple[AddPartitionsToTxnTransaction, ...] = ()  # v4+


class AddPartitionsToTxnPartitionResult(Struct, frozen=True, kw_only=True, gc=False):
    partition_index: int = 0
    partition_error_code: int = 0


class AddPartitionsToTxnTopicResult(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""
    results_by_partition: tuple[AddPartitionsToTxnPartitionResult, ...] = ()


class AddPartitionsToTxnResult(Struct, frozen=True, kw_only=True, gc=False):
    transactional_id: str = ""  # v4+
    topic_results: tuple[AddPartitionsToTxnTopicResult, ...] = ()  # v4+


class AddPartitionsToTxnResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    results_by_topic_v3_and_below: tuple[AddPartitionsToTxnTopicResult, ...] = ()  # v0-v3
    error_code: int = 0  # v4+
    results_by_transaction: tuple[AddPartitionsToTxnResult, ...] = ()  # v4+
