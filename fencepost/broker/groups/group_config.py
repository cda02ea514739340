"""The configs of the group coordinator, as numbers."""

from typing import Final

from msgspec import Struct

from fencepost.broker.configs.effective_configs import BrokerConfigs

_MINUTE_MS: Final = 60_000
NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 5 * _MINUTE_MS
"""How long a new member may wait for its first response, before which it cannot heartbeat."""


class GroupConfig(Struct, frozen=True, kw_only=True):
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
    offsets_retention_ms: int = 7 * 24 * 60 * _MINUTE_MS
    """``offsets.retention.minutes``, in milliseconds."""
    offsets_retention_check_interval_ms: int = 600_000
    """``offsets.retention.check.interval.ms``"""
    offsets_commit_timeout_ms: int = 5000
    """``offsets.commit.timeout.ms``: how long a response waits for its records' replication."""
    request_timeout_ms: int = 30_000
    """``request.timeout.ms``: how long WriteTxnMarkers waits for its markers' replication."""
    offset_value_version: int = 3
    """Schema of committed offsets. Kafka 4.3 writes 4, which adds the topic's id and is compact."""

    @classmethod
    def of_broker(cls, configs: BrokerConfigs, offset_value_version: int) -> "GroupConfig":
        """The configs of a broker; none of these changes while it runs."""
        return cls(
            initial_rebalance_delay_ms=configs.group_initial_rebalance_delay_ms,
            min_session_timeout_ms=configs.group_min_session_timeout_ms,
            max_session_timeout_ms=configs.group_max_session_timeout_ms,
            max_size=configs.group_max_size,
            offset_metadata_max_bytes=configs.offset_metadata_max_bytes,
            offsets_commit_timeout_ms=configs.offsets_commit_timeout_ms,
            offsets_retention_ms=configs.offsets_retention_minutes * _MINUTE_MS,
            offsets_retention_check_interval_ms=configs.offsets_retention_check_interval_ms,
            request_timeout_ms=configs.request_timeout_ms,
            offset_value_version=offset_value_version,
        )
