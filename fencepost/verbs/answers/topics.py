"""Topics and their partitions."""

from pydantic import ConfigDict

from fencepost.verbs.answers.base import Answer
from fencepost.verbs.answers.replicas import ReplicaState
from fencepost.verbs.answers.tier import RemoteState


class TopicState(Answer):
    """One topic."""

    name: str
    topic_id: str
    """A UUID; another one for each topic, also where the name comes again."""
    partitions: int
    replication_factor: int
    """Of partition 0."""
    internal: bool
    configs: dict[str, str]
    """Only those that were set for this topic."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "orders",
                    "topic_id": "1c9b5c04-9b5e-4b0a-8d53-0b1ee7b1d0a4",
                    "partitions": 3,
                    "replication_factor": 3,
                    "internal": False,
                    "configs": {"retention.ms": "3600000"},
                }
            ]
        }
    )


class GateState(Answer):
    """KIP-207's gate: after an election ListOffsets is refused to clients for a while."""

    open: bool
    """Whether the high watermark has reached that offset; false while there is no leader."""
    until_offset: int
    """The leader's log end at its election; -1 while there is none."""


class PartitionState(Answer):
    """The whole truth about a partition. Offsets are the leader's; -1 while there is none."""

    topic: str
    topic_id: str
    partition: int
    leader: int
    """Broker id, -1 while there is none."""
    leader_epoch: int
    isr: tuple[int, ...]
    offline: tuple[int, ...]
    """Broker ids of the replicas that the controller takes for offline, as Metadata says."""
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    gate: GateState
    replicas: tuple[ReplicaState, ...]
    """In the order of the assignment, the preferred leader first."""
    remote: RemoteState | None
    """Null for a topic without ``remote.storage.enable``, and while there is no leader."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "topic": "orders",
                    "topic_id": "1c9b5c04-9b5e-4b0a-8d53-0b1ee7b1d0a4",
                    "partition": 0,
                    "leader": 1,
                    "leader_epoch": 0,
                    "isr": [1],
                    "offline": [],
                    "high_watermark": 42,
                    "last_stable_offset": 42,
                    "log_start_offset": 0,
                    "gate": {"open": True, "until_offset": 0},
                    "replicas": [
                        {
                            "broker": 1,
                            "role": "leader",
                            "state": "leading",
                            "log_start_offset": 0,
                            "local_log_start_offset": 0,
                            "log_end_offset": 42,
                            "high_watermark": 42,
                            "epochs": [{"epoch": 0, "start_offset": 0}],
                            "held": False,
                            "held_at": None,
                            "segments": [{"base_offset": 0, "bytes": 4711, "records": 42}],
                        }
                    ],
                    "remote": None,
                }
            ]
        }
    )
