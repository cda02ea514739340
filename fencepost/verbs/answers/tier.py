"""Partitions' remote tiers, and what was done about them."""

from pydantic import ConfigDict

from fencepost.verbs.answers.base import Answer
from fencepost.verbs.answers.replicas import EpochStart


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
    """What was done about a partition's remote tier, and what is there now."""

    uploaded: tuple[RemoteSegmentState, ...]
    """Segments that are in the tier now and were not before, oldest first."""
    deleted_locally: tuple[LocalDeletion, ...]
    """One for each replica that was asked, the leader first."""
    expired: tuple[RemoteSegmentState, ...]
    """Segments that retention took from the tier, oldest first."""
    lost_objects: int
    """Objects that the tier has lost."""
    remote: RemoteState

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
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
        }
    )
