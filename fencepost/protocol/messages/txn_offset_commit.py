"""TxnOffsetCommit (28), versions 0 to 5.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class TxnOffsetCommitRequestPartition(Struct, frozen=True, kw_only=True, gc=False):
    partition_index: int = 0
    committed_offset: int = 0
    committed_metadata: str | None = ""
    committed_leader_epoch: int = -1  # v2+


class TxnOffsetCommitRequestTopic(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""
    partitions: tuple[TxnOffsetCommitRequestPartition, ...] = ()


class TxnOffsetCommitRequest(Struct, frozen=True, kw_only=True, gc=False):
    transactional_id: str = ""
    group_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    topics: tuple[TxnOffsetCommitRequestTopic, ...] = ()
    generation_id: int = -1  # v3+
    member_id: str = ""  # v3+
    group_instance_id: str | None = None  # v3+


class TxnOffsetCommitResponsePartition(Struct, frozen=True, kw_only=True, gc=False):
    partition_index: int = 0
    error_code: int = 0


class TxnOffsetCommitResponseTopic(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""
    partitions: tuple[TxnOffsetCommitResponsePartition, ...] = ()


class TxnOffsetCommitResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    topics: tuple[TxnOffsetCommitResponseTopic, ...] = ()
