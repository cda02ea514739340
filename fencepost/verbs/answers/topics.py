"""Topics, their partitions and replicas, and their remote tiers: states, and results of verbs."""

from typing import ClassVar, Literal, TypeAlias

from fencepost.verbs.answers import Answer
from fencepost.verbs.model import Examples


class EpochStart(Answer):
    """A leader epoch of a replica's log."""

    epoch: int
    start_offset: int


Following: TypeAlias = Literal[
    "fetching", "truncating", "lost", "tracing", "building", "backing_off", "idle"
]
"""What a follower does that may."""


class SegmentState(Answer):
    """A segment of a replica's log."""

    base_offset: int
    bytes: int
    records: int


class ReplicaState(Answer):
    """One replica, as its own broker knows it; of a broker that is down, what is on its disk."""

    broker: int
    role: Literal["leader", "follower", "offline"]
    """Offline while its broker is down, or has not heard of it."""
    state: Literal["leading", "held", "offline"] | Following
    """What it is doing; a follower that has all that its leader has is idle."""
    log_start_offset: int
    local_log_start_offset: int
    log_end_offset: int
    """It and the others are -1 where there is no log."""
    high_watermark: int
    """As far as it knows; -1 while it is offline."""
    epochs: tuple[EpochStart, ...]
    held: bool
    """Whether a test keeps it from fetching. It stays so under every leader, until it is
    released."""
    held_at: int | None
    """Up to where it may fetch, exclusive; null where it is not held, or not at an offset."""
    segments: tuple[SegmentState, ...]
    zombie: bool = False
    """Whether it leads in an epoch that is over: the controller's news do not reach its broker."""
    label: str = ""
    """Its state in words, such as ``held at 17`` or ``zombie leader``."""


class FetchState(Answer):
    """What one request of a replica did."""

    api: str
    """Kafka's name of the request: ``Fetch``, or what a replica asks before it can fetch; ``Tier``
    where it asked its remote tier."""
    asked: str | None
    """What ListOffsets was for, such as ``earliest_pending_upload``; null for others."""
    leader: int
    """Broker id of whom it asked, or would have."""
    leader_epoch: int
    """The epoch under which it asked."""
    fetch_offset: int
    """Its log end before."""
    error: str | None
    """Kafka's name of the error code, ``NONE`` for none; null where no answer came."""
    appended: int
    """Records."""
    truncated_to: int | None
    """Its log end where the answer made it truncate; else null."""
    log_end_offset: int
    """After it."""
    high_watermark: int
    """After it, as far as it knows."""
    state: Following
    """What it does next."""


class StepState(Answer):
    """What a replica did, one step after the other."""

    fetches: tuple[FetchState, ...]
    """Fewer than were asked for where a replica has no leader to ask."""

    examples: ClassVar[Examples] = [
        {
            "fetches": [
                {
                    "api": "Fetch",
                    "asked": None,
                    "leader": 1,
                    "leader_epoch": 3,
                    "fetch_offset": 42,
                    "error": "NONE",
                    "appended": 2,
                    "truncated_to": None,
                    "log_end_offset": 44,
                    "high_watermark": 42,
                    "state": "fetching",
                }
            ]
        }
    ]


class ReplicaCompaction(Answer):
    """What compaction did to one replica's log."""

    broker: int
    dropped: int
    """Records that a later one of the same key replaces, and tombstones that were old enough."""


class CompactionState(Answer):
    """What compaction did, replica by replica."""

    replicas: tuple[ReplicaCompaction, ...]
    """Of all brokers that run, the leader first."""

    examples: ClassVar[Examples] = [{"replicas": [{"broker": 1, "dropped": 17}]}]


class RemoteSegmentState(Answer):
    """A segment in the remote tier, whole (KIP-405)."""

    id: str
    """As in the keys of its objects: a UUID as Kafka writes it, 22 characters of base64."""
    start_offset: int
    end_offset: int
    """Inclusive, as KIP-405 has it."""
    epochs: tuple[EpochStart, ...]
    """The leader epochs that its records are of, oldest first."""
    bytes: int
    """Of its records."""


class RemoteState(Answer):
    """A partition's remote tier, as far as its leader knows it."""

    start_offset: int
    """The first that the tier has; -1 where it has nothing that the leader knows of."""
    last_tiered_offset: int
    """Inclusive; -1 where nothing is tiered, or the leader does not know it (yet)."""
    pending_upload_offset: int
    """The next to be tiered; -1 as above."""
    segments: tuple[RemoteSegmentState, ...]
    """Oldest first."""


class LocalDeletion(Answer):
    """What a replica let go of, because the tier has it."""

    broker: int
    segments: int
    """How many."""
    local_log_start_offset: int
    """After it."""


class TierState(Answer):
    """The effect of an action on a partition's remote tier, and its state after it."""

    uploaded: tuple[RemoteSegmentState, ...]
    """Segments that are in the tier now and were not before, oldest first."""
    deleted_locally: tuple[LocalDeletion, ...]
    """One for each replica that was asked, the leader first."""
    expired: tuple[RemoteSegmentState, ...]
    """Segments that retention took from the tier, oldest first."""
    lost_objects: int
    """Objects that the tier has lost."""
    remote: RemoteState

    examples: ClassVar[Examples] = [
        {
            "uploaded": [
                {
                    "id": "C36fXIxjTw6cXApKXB0uPw",
                    "start_offset": 0,
                    "end_offset": 41,
                    "epochs": [{"epoch": 0, "start_offset": 0}],
                    "bytes": 4711,
                }
            ],
            "deleted_locally": [],
            "expired": [],
            "lost_objects": 0,
            "remote": {
                "start_offset": 0,
                "last_tiered_offset": 41,
                "pending_upload_offset": 42,
                "segments": [
                    {
                        "id": "C36fXIxjTw6cXApKXB0uPw",
                        "start_offset": 0,
                        "end_offset": 41,
                        "epochs": [{"epoch": 0, "start_offset": 0}],
                        "bytes": 4711,
                    }
                ],
            },
        }
    ]


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

    examples: ClassVar[Examples] = [
        {
            "name": "orders",
            "topic_id": "1c9b5c04-9b5e-4b0a-8d53-0b1ee7b1d0a4",
            "partitions": 3,
            "replication_factor": 3,
            "internal": False,
            "configs": {"retention.ms": "3600000"},
        }
    ]


class GateState(Answer):
    """KIP-207's gate: after an election ListOffsets is refused to clients for a while."""

    open: bool
    """Whether the high watermark has reached that offset; false while there is no leader."""
    until_offset: int
    """The leader's log end at its election; -1 while there is none."""


class LostState(Answer):
    """Records that an unclean election lost: the new leader lacks them."""

    broker: int
    """The broker that has them, and truncates them when it follows."""
    start_offset: int
    end_offset: int
    """Exclusive."""
    records: int | None
    """Null where that broker's files can't be read."""
    committed_records: int | None
    """Those below the high watermark; if the leader is down, those that all of the ISR have."""


class PartitionState(Answer):
    """A partition and its replicas. Offsets are the leader's; -1 while there is none."""

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
    explanation: str | None = None
    """Why more than one broker leads; null where that is not so."""
    lost: LostState | None = None
    """What the unclean election lost that this answers; null if nothing, and in other answers."""

    examples: ClassVar[Examples] = [
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
                    "zombie": False,
                    "label": "leading",
                }
            ],
            "remote": None,
            "explanation": None,
            "lost": None,
        }
    ]
