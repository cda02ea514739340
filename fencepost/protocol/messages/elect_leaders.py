"""ElectLeaders (43), versions 0 to 2.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from fencepost.protocol.messages import struct


@struct(frozen=True, slots=True, kw_only=True)
class TopicPartitions:
    topic: str = ""
    partitions: tuple[int, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class ElectLeadersRequest:
    topic_partitions: tuple[TopicPartitions, ...] | None = ()
    timeout_ms: int = 60000
    election_type: int = 0  # v1+


@struct(frozen=True, slots=True, kw_only=True)
class PartitionResult:
    partition_id: int = 0
    error_code: int = 0
    error_message: str | None = ""


@struct(frozen=True, slots=True, kw_only=True)
class ReplicaElectionResult:
    topic: str = ""
    partition_result: tuple[PartitionResult, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class ElectLeadersResponse:
    throttle_time_ms: int = 0
    replica_election_results: tuple[ReplicaElectionResult, ...] = ()
    error_code: int = 0  # v1+
