"""ElectLeaders (43), versions 0 to 2.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class TopicPartitions(Struct, frozen=True, kw_only=True, gc=False):
    topic: str = ""
    partitions: tuple[int, ...] = ()


class ElectLeadersRequest(Struct, frozen=True, kw_only=True, gc=False):
    topic_partitions: tuple[TopicPartitions, ...] | None = ()
    timeout_ms: int = 60000
    election_type: int = 0  # v1+


class PartitionResult(Struct, frozen=True, kw_only=True, gc=False):
    partition_id: int = 0
    error_code: int = 0
    error_message: str | None = ""


class ReplicaElectionResult(Struct, frozen=True, kw_only=True, gc=False):
    topic: str = ""
    partition_result: tuple[PartitionResult, ...] = ()


class ElectLeadersResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    replica_election_results: tuple[ReplicaElectionResult, ...] = ()
    error_code: int = 0  # v1+
