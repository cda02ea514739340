"""Replicas: their logs, and what following and compaction did to them."""

from typing import Literal, TypeAlias

from pydantic import ConfigDict

from fencepost.verbs.answers.base import Answer


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
    """Whether a test keeps it from fetching. It stays so whoever leads, until it is released."""
    held_at: int | None
    """Up to where it may fetch, exclusive; null where it is not held, or not at an offset."""
    segments: tuple[SegmentState, ...]


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
    """Fewer than were asked for where a replica has nobody to ask."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
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
        }
    )


class ReplicaCompaction(Answer):
    """What compaction did to one replica's log."""

    broker: int
    dropped: int
    """Records that a later one of the same key replaces, and tombstones that were old enough."""


class CompactionState(Answer):
    """What compaction did, replica by replica."""

    replicas: tuple[ReplicaCompaction, ...]
    """Of all brokers that run, the leader first."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"replicas": [{"broker": 1, "dropped": 17}]}]}
    )
