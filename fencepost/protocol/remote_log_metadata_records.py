"""The records of the topic ``__remote_log_metadata``: which segments a real Kafka has in its tier.

Fields are those of Apache Kafka 4.3 (storage/src/main/resources/message), which KIP-405 introduces.
"""

from typing import Final
from uuid import UUID

from msgspec import Struct, field

from fencepost.protocol.framed_records import RecordField, RecordLayout, RecordTypes

REMOTE_LOG_METADATA_TOPIC: Final = "__remote_log_metadata"
COPY_SEGMENT_FINISHED: Final = 1
DELETE_SEGMENT_FINISHED: Final = 3
"""``remote_log_segment_state``; 0 is a copy and 2 a deletion that began."""
DELETE_PARTITION_FINISHED: Final = 2
"""``remote_partition_delete_state``."""


class TopicIdPartitionEntry(Struct):
    """Which partition it is."""

    name: str = ""
    id: UUID | None = None
    partition: int = 0


class RemoteLogSegmentIdEntry(Struct):
    """Which copy of a segment it is."""

    topic_id_partition: TopicIdPartitionEntry = field(default_factory=TopicIdPartitionEntry)
    id: UUID | None = None


class SegmentLeaderEpochEntry(Struct):
    """A leader epoch, and where it begins in the segment."""

    leader_epoch: int = 0
    offset: int = 0


class RemoteLogSegmentMetadataRecord(Struct):
    """A copy of a segment to the tier began."""

    remote_log_segment_id: RemoteLogSegmentIdEntry = field(default_factory=RemoteLogSegmentIdEntry)
    start_offset: int = 0
    end_offset: int = 0
    """Inclusive."""
    broker_id: int = 0
    max_timestamp_ms: int = 0
    event_timestamp_ms: int = 0
    segment_leader_epochs: tuple[SegmentLeaderEpochEntry, ...] = ()
    segment_size_in_bytes: int = 0
    custom_metadata: bytes | None = None
    remote_log_segment_state: int = 0
    txn_index_empty: bool = False


class RemoteLogSegmentMetadataUpdateRecord(Struct):
    """The state of a copy changed."""

    remote_log_segment_id: RemoteLogSegmentIdEntry = field(default_factory=RemoteLogSegmentIdEntry)
    broker_id: int = 0
    event_timestamp_ms: int = 0
    custom_metadata: bytes | None = None
    remote_log_segment_state: int = 0


class RemotePartitionDeleteMetadataRecord(Struct):
    """All of a partition is deleted from the tier."""

    topic_id_partition: TopicIdPartitionEntry = field(default_factory=TopicIdPartitionEntry)
    broker_id: int = 0
    event_timestamp_ms: int = 0
    remote_partition_delete_state: int = 0


_PARTITION: Final = RecordField(
    name="topic_id_partition",
    struct=RecordLayout(
        cls=TopicIdPartitionEntry,
        fields=(
            RecordField(name="name", kind="string"),
            RecordField(name="id", kind="uuid"),
            RecordField(name="partition", kind="int32"),
        ),
    ),
)
_SEGMENT: Final = RecordField(
    name="remote_log_segment_id",
    struct=RecordLayout(
        cls=RemoteLogSegmentIdEntry, fields=(_PARTITION, RecordField(name="id", kind="uuid"))
    ),
)
_EPOCHS: Final = RecordField(
    name="segment_leader_epochs",
    array=True,
    struct=RecordLayout(
        cls=SegmentLeaderEpochEntry,
        fields=(
            RecordField(name="leader_epoch", kind="int32"),
            RecordField(name="offset", kind="int64"),
        ),
    ),
)
_BROKER: Final = RecordField(name="broker_id", kind="int32")
_TIME: Final = RecordField(name="event_timestamp_ms", kind="int64")
_CUSTOM: Final = RecordField(name="custom_metadata", kind="bytes", nullable=True)
_STATE: Final = RecordField(name="remote_log_segment_state", kind="int8")

LAYOUTS: Final = {
    0: RecordLayout(
        cls=RemoteLogSegmentMetadataRecord,
        fields=(
            _SEGMENT,
            RecordField(name="start_offset", kind="int64"),
            RecordField(name="end_offset", kind="int64"),
            _BROKER,
            RecordField(name="max_timestamp_ms", kind="int64"),
            _TIME,
            _EPOCHS,
            RecordField(name="segment_size_in_bytes", kind="int32"),
            _CUSTOM,
            _STATE,
            RecordField(name="txn_index_empty", kind="bool", tag=0),
        ),
    ),
    1: RecordLayout(
        cls=RemoteLogSegmentMetadataUpdateRecord,
        fields=(_SEGMENT, _BROKER, _TIME, _CUSTOM, _STATE),
    ),
    2: RecordLayout(
        cls=RemotePartitionDeleteMetadataRecord,
        fields=(
            _PARTITION,
            _BROKER,
            _TIME,
            RecordField(name="remote_partition_delete_state", kind="int8"),
        ),
    ),
}
"""By the numbers of their types."""

REMOTE_LOG_METADATA_RECORDS: Final = RecordTypes(layouts=LAYOUTS)
