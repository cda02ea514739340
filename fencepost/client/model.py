"""Requests to a partition's leader and their answers, as data."""

from enum import IntEnum
from uuid import UUID

from msgspec import Struct

from fencepost.client.aborted_transactions import AbortedTransaction
from fencepost.client.batches import FetchedRecords


class Isolation(IntEnum):
    """What a consumer sees of transactions."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class OffsetSpec(IntEnum):
    """Timestamps of ListOffsets that mean something else."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5
    EARLIEST_PENDING_UPLOAD = -6


class Partition(Struct, frozen=True, kw_only=True):
    """Which partition is meant."""

    topic: str
    index: int
    topic_id: UUID | None = None
    """Asked of the broker by Metadata where a version needs it and it is None."""


class ConsumerGroupMetadata(Struct, frozen=True, kw_only=True):
    """Who speaks in a group."""

    group: str
    member_id: str = ""
    """Empty for who is no member."""
    generation: int = -1
    instance: str | None = None


class Produced(Struct, frozen=True, kw_only=True):
    """The answer to Produce (0)."""

    version: int
    throttle_time_ms: int
    error: int
    message: str | None
    """From version 8 on."""
    base_offset: int
    """Of the first record that was appended; -1 where none was."""
    log_append_time_ms: int
    log_start_offset: int
    """-1 before version 5."""
    record_errors: tuple[tuple[int, str | None], ...]
    """Index and message of each record that is refused; from version 8 on."""
    leader: tuple[int, int] | None
    """Leader and its epoch, where the broker tells who leads instead (KIP-951, version 10)."""


class Fetched(Struct, frozen=True, kw_only=True):
    """The answer to Fetch (1)."""

    version: int
    throttle_time_ms: int
    error: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    """-1 before version 5."""
    diverging: tuple[int, int] | None
    """Epoch and end offset where the logs part; from version 12 on."""
    leader: tuple[int, int] | None
    """Leader and its epoch, where the broker tells who leads instead; from version 12 on."""
    preferred_read_replica: int
    """-1 for none, and before version 11."""
    content: FetchedRecords
    """Records of aborted transactions are among them."""
    aborted: tuple[AbortedTransaction, ...] = ()
    """With `Isolation.READ_COMMITTED`, the aborted transactions that have records in the answer."""


class FoundOffset(Struct, frozen=True, kw_only=True):
    """The answer to ListOffsets (2)."""

    version: int
    throttle_time_ms: int
    error: int
    offset: int
    """-1 where there is none."""
    timestamp: int
    epoch: int
    """-1 before version 4."""


class EpochEnd(Struct, frozen=True, kw_only=True):
    """The answer to OffsetForLeaderEpoch (23)."""

    version: int
    throttle_time_ms: int
    error: int
    epoch: int
    """The largest one that is not above the epoch asked about; -1 for none."""
    end_offset: int
    """Exclusive; -1 for none."""
