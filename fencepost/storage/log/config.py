"""The topic configs that a log acts on, typed, with Kafka's defaults."""

from enum import StrEnum
from typing import Final
from zlib import crc32

from msgspec import Struct

from fencepost.protocol.errors import ErrorCode

MAX_LONG: Final = 2**63 - 1
HOUR_MS: Final = 3_600_000
INHERITED: Final = -2
"""A local retention that is what the retention of the whole log is."""
DAY_MS: Final = 24 * HOUR_MS
"""Metadata of a field that is not the value of a topic config."""


class TimestampType(StrEnum):
    """Values of ``message.timestamp.type``."""

    CREATE_TIME = "CreateTime"
    LOG_APPEND_TIME = "LogAppendTime"


_LOG_APPEND_TIME: Final = TimestampType.LOG_APPEND_TIME
"""Each append asks, and a member of an enum is found by the slowest way of Python 3.11."""


class ExpectedOffsetsSource(StrEnum):
    """Values of ``check.expected.offsets.source``: where a record's expected offset stands."""

    BATCH = "batch"
    """Base offset and offset delta, as KIP-27 has it."""
    HEADER = "header"
    """The record header ``expected-offset``, which every client can send."""


class ExpectedOffsetsScope(StrEnum):
    """Values of ``check.expected.offsets.scope``: what an expected offset is compared with."""

    PARTITION = "partition"
    """It has to be the upcoming offset of the partition."""
    KEY = "key"
    """It has to be beyond the last offset of the record's key."""


class TopicLogConfig(Struct, frozen=True, kw_only=True):
    """One field for each topic config: Kafka's name with underscores; sizes in bytes, times in ms.

    The broker fills the fields by their names: a field is the only place where a log's config gets
    its type. The defaults are Kafka's, but for delays of deletion, of which there are none.

    `local_retention_ms` and `local_retention_bytes` of -2 are those of retention.*.
    """

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * DAY_MS
    segment_jitter_ms: int = 0
    retention_ms: int = 7 * DAY_MS
    retention_bytes: int = -1
    max_message_bytes: int = 1_048_588
    message_timestamp_type: TimestampType = TimestampType.CREATE_TIME
    message_timestamp_before_max_ms: int = MAX_LONG
    message_timestamp_after_max_ms: int = HOUR_MS
    cleanup_policy: frozenset[str] = frozenset({"delete"})
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    min_cleanable_dirty_ratio: float = 0.5
    delete_retention_ms: int = DAY_MS
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = MAX_LONG
    check_expected_offsets: bool = False
    check_expected_offsets_source: ExpectedOffsetsSource = ExpectedOffsetsSource.BATCH
    check_expected_offsets_scope: ExpectedOffsetsScope = ExpectedOffsetsScope.PARTITION
    check_expected_offsets_error_code: int = ErrorCode.EXPECTED_OFFSET_MISMATCH
    remote_storage_enable: bool = False
    remote_log_copy_disable: bool = False
    remote_log_delete_on_disable: bool = False
    local_retention_ms: int = -2
    local_retention_bytes: int = -2
    index_interval_bytes: int = 4096
    segment_index_bytes: int = 10 << 20
    flush_messages: int = MAX_LONG
    flush_ms: int = MAX_LONG
    file_delete_delay_ms: int = 0


class LogConfig(TopicLogConfig, frozen=True, kw_only=True):
    """The topic's configs, and what is no topic config."""

    keeps_leader_epochs: bool = True
    """By ``message.format.version``: below 0.11 batches carry no epoch."""
    producer_id_expiration_ms: int = DAY_MS
    """The broker's."""
    directory_delete_delay_ms: int = 0
    """The broker's ``log.segment.delete.delay.ms``: how long the directory of a log that is gone
    stays."""
    transaction_partition_verification_enable: bool = True
    """The broker's."""
    require_zero_base_offset: bool = False
    """Refuse a produced batch whose base offset is not 0, as Apache Kafka does
    (``conformance=apache``); otherwise base offsets are overwritten unread, or judged by
    conditional publish (KIP-27)."""
    validate_records: bool = False
    """Parse every record that a client appends, as Apache Kafka does; without it the header is
    believed where it suffices."""

    @property
    def checks_keys(self) -> bool:
        """Whether appends are compared with the last offset of their key (KIP-27)."""
        is_key = self.check_expected_offsets_scope is ExpectedOffsetsScope.KEY
        return self.check_expected_offsets and is_key

    @property
    def refuses_base_offsets(self) -> bool:
        """Whether a produced batch has to have the base offset 0, as it says nothing."""
        says_something = (
            self.check_expected_offsets
            and self.check_expected_offsets_source is ExpectedOffsetsSource.BATCH
        )
        return self.require_zero_base_offset and not says_something

    @property
    def is_copied(self) -> bool:
        """Whether closed segments go to the tier: then they leave here for no other reason."""
        return self.remote_storage_enable and not self.remote_log_copy_disable

    @property
    def effective_local_retention_ms(self) -> int:
        """How long records that are tiered stay here as well (ms), -1 without a limit."""
        own = self.local_retention_ms
        return self.retention_ms if own == INHERITED else own

    @property
    def effective_local_retention_bytes(self) -> int:
        """How much is kept here where it is tiered as well, -1 without a limit."""
        own = self.local_retention_bytes
        return self.retention_bytes if own == INHERITED else own

    @property
    def is_compacted(self) -> bool:
        """Whether ``cleanup.policy`` has compact in it."""
        return "compact" in self.cleanup_policy

    @property
    def is_deleted(self) -> bool:
        """Whether ``cleanup.policy`` has delete in it; without it retention deletes nothing."""
        return "delete" in self.cleanup_policy

    @property
    def is_log_append_time(self) -> bool:
        """Whether the broker's clock is every record's timestamp."""
        return self.message_timestamp_type is _LOG_APPEND_TIME

    @property
    def max_segment_ms(self) -> int:
        """segment.ms, or max.compaction.lag.ms where that is less and the log compacted."""
        if "compact" in self.cleanup_policy:
            return min(self.segment_ms, self.max_compaction_lag_ms)
        return self.segment_ms

    def jitter_ms(self, log: str, base_offset: int) -> int:
        """What is taken off segment.ms for one segment (ms), so that not all logs roll at once.

        It is below segment.jitter.ms, and the same for the same segment wherever it is.
        """
        most = min(self.segment_jitter_ms, self.segment_ms)
        return crc32(f"{log}:{base_offset}".encode()) % most if most else 0
