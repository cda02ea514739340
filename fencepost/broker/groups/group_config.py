"""The configs that group coordination acts on, as numbers."""

from dataclasses import dataclass

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000
"""How long a member that does not know its id yet may wait in a rebalance: it cannot heartbeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """Kafka's broker configs, with its defaults; times are milliseconds."""

    initial_rebalance_delay_ms: int = 3000
    """``group.initial.rebalance.delay.ms``: how long an empty group waits for more members."""
    min_session_timeout_ms: int = 6000
    """``group.min.session.timeout.ms``, inclusive."""
    max_session_timeout_ms: int = 1_800_000
    """``group.max.session.timeout.ms``, inclusive."""
    max_size: int = 2**31 - 1
    """``group.max.size``: members of one group."""
    offset_metadata_max_bytes: int = 4096
    """``offset.metadata.max.bytes``; Kafka compares it with UTF-16 code units, not with bytes."""
    offsets_retention_ms: int = 7 * 24 * 60 * 60 * 1000
    """``offsets.retention.minutes``, in milliseconds."""
    offsets_retention_check_interval_ms: int = 600_000
    """``offsets.retention.check.interval.ms``"""
    offsets_commit_timeout_ms: int = 5000
    """``offsets.commit.timeout.ms``: how long an answer waits for its records to be replicated."""
    offset_value_version: int = 3
    """Schema of committed offsets. Kafka 4.3 writes 4, which adds the topic's id and is compact."""
