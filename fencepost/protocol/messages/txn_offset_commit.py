"""TxnOffsetCommit (28), versions 0 to 5.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from fencepost.protocol.messages import struct


@struct(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitRequestPartition:
    partition_index: int = 0
    committed_offset: int = 0
    committed_metadata: str | None = ""
    committed_leader_epoch: int = -1  # v2+


@struct(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitRequestTopic:
    name: str = ""
    partitions: tuple[TxnOffsetCommitRequestPartition, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitRequest:
    transactional_id: str = ""
    group_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    topics: tuple[TxnOffsetCommitRequestTopic, ...] = ()
    generation_id: int = -1  # v3+
    member_id: str = ""  # v3+
    group_instance_id: str | None = None  # v3+


@struct(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitResponsePartition:
    partition_index: int = 0
    error_code: int = 0


@struct(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitResponseTopic:
    name: str = ""
    partitions: tuple[TxnOffsetCommitResponsePartition, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitResponse:
    throttle_time_ms: int = 0
    topics: tuple[TxnOffsetCommitResponseTopic, ...] = ()
