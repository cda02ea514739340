"""Which segments a real Kafka has in its tier, by the topic ``__remote_log_metadata`` (KIP-405).

Its partitions are in the log directories, as those of any topic. A segment's records are all in one
of them: the first has the offsets and leader epochs, later ones its state. The objects of the tier
are where a plugin has put them, and are not read.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import UUID

from fencepost.pipeline.audit.log_files import last_header
from fencepost.pipeline.audit.rule import TierSegment, TopicPartition
from fencepost.pipeline.datasource.log_directories import Replica
from fencepost.protocol.byte_utils import format_uuid
from fencepost.protocol.framed_records import MalformedValue
from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import CorruptBatch, crc_ok, iter_headers
from fencepost.protocol.remote_log_metadata_records import (
    COPY_SEGMENT_FINISHED,
    DELETE_PARTITION_FINISHED,
    DELETE_SEGMENT_FINISHED,
    REMOTE_LOG_METADATA_RECORDS,
    REMOTE_LOG_METADATA_TOPIC,
    RemoteLogSegmentIdEntry,
    RemoteLogSegmentMetadataRecord,
    RemoteLogSegmentMetadataUpdateRecord,
    RemotePartitionDeleteMetadataRecord,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteLogMetadata:
    """What the topic tells."""

    segments: Mapping[TopicPartition, tuple[TierSegment, ...]] = field(default_factory=dict)
    """Those that are not deleted, by start offset."""
    is_complete: bool = False
    """Whether all of the topic was read, so that what it does not name is not in the tier."""
    text: str | None = None
    """What was read; None where the topic is not there."""
    problems: tuple[str, ...] = ()


def read_remote_log_metadata(
    replicas: Iterable[Replica],
    expected: int | None = None,
    topics: Collection[str] | None = None,
) -> RemoteLogMetadata:
    """What the log directories of a cluster have of it.

    :param replicas: All that there are of the topic.
    :param expected: How many partitions it has; None where that is not known.
    :param topics: Only segments of these; None for all.
    """
    copies: dict[int, list[Replica]] = defaultdict(list)
    for replica in replicas:
        copies[replica.partition].append(replica)
    if not copies:
        return RemoteLogMetadata()
    listing = _Listing()
    problems: list[str] = []
    for _, of_one in sorted(copies.items()):
        furthest = max(of_one, key=_rank)
        try:
            listing.read(furthest)
        except (CorruptBatch, MalformedValue, OSError) as error:
            problems.append(f"{furthest.path} can't be read to its end: {error}")
    if expected is None:
        expected = max(copies) + 1
    if len(copies) < expected:
        problems.append(
            f"{expected - len(copies)} of {expected} partitions of {REMOTE_LOG_METADATA_TOPIC} "
            "are not there"
        )
    segments = listing.by_partition(topics)
    count = sum(map(len, segments.values()))
    return RemoteLogMetadata(
        segments=segments,
        is_complete=not problems,
        text=f"{len(copies)} of {expected} partitions of {REMOTE_LOG_METADATA_TOPIC}, "
        f"{count} {'segment' if count == 1 else 'segments'}",
        problems=tuple(problems),
    )


def _rank(replica: Replica) -> tuple[int, int]:
    try:
        last = last_header({each.base_offset: each.log for each in replica.segments})
    except OSError:
        last = None
    return (-1, 0) if last is None else (last.partition_leader_epoch, last.next_offset)


class _Listing:
    """Segments by their ids, as records tell of them one after the other."""

    def __init__(self) -> None:
        self._segments: dict[UUID | None, tuple[TopicPartition, TierSegment]] = {}

    def read(self, replica: Replica) -> None:
        """Take in all records of a partition of the topic.

        :raises CorruptBatch: Where it is damaged, or its beginning is deleted: what came before is
            taken in.
        :raises MalformedValue: At a value that is no record, or of a newer version.
        :raises OSError: When a file can't be read.
        """
        end = 0
        for segment in replica.segments:
            if segment.base_offset > end:
                raise CorruptBatch(f"the records before offset {segment.base_offset} are not there")
            for end, records in _batches(segment.log):  # noqa: B007  # the last one is needed
                for record in records:
                    self._apply(record)

    def _apply(self, record: object) -> None:
        match record:
            case RemoteLogSegmentMetadataRecord(remote_log_segment_id=copy):
                self._segments[copy.id] = (_key(copy), _tier_segment(record))
            case RemoteLogSegmentMetadataUpdateRecord(remote_log_segment_id=copy):
                if copy.id not in self._segments:
                    return
                state, (key, segment) = record.remote_log_segment_state, self._segments[copy.id]
                if state == DELETE_SEGMENT_FINISHED:
                    del self._segments[copy.id]
                else:
                    finished = state == COPY_SEGMENT_FINISHED
                    self._segments[copy.id] = (key, replace(segment, finished=finished))
            case RemotePartitionDeleteMetadataRecord(topic_id_partition=partition):
                if record.remote_partition_delete_state == DELETE_PARTITION_FINISHED:
                    self._delete((partition.name, partition.partition), _text(partition.id))

    def _delete(self, key: TopicPartition, topic_id: str) -> None:
        self._segments = {
            copy_id: (own, segment)
            for copy_id, (own, segment) in self._segments.items()
            if (own, segment.topic_id) != (key, topic_id)
        }

    def by_partition(
        self, topics: Collection[str] | None
    ) -> dict[TopicPartition, tuple[TierSegment, ...]]:
        """Those that are left."""
        found: dict[TopicPartition, list[TierSegment]] = defaultdict(list)
        for key, segment in self._segments.values():
            if topics is None or key[0] in topics:
                found[key].append(segment)
        return {
            key: tuple(sorted(segments, key=lambda each: (each.start_offset, each.id)))
            for key, segments in sorted(found.items())
        }


def _batches(path: Path) -> Iterator[tuple[int, list[object]]]:
    """Of each batch the offset behind it, and its records.

    :raises CorruptBatch: At the first batch that is damaged.
    :raises MalformedValue: At a value that is no record, or of a newer version.
    """
    data = path.read_bytes()
    for position, header in iter_headers(data):
        if not crc_ok(data, position, header):
            raise CorruptBatch(f"the checksum of the batch at offset {header.base_offset} is wrong")
        records = () if header.is_control else iter_records(data, position)
        values = [each.value for each in records if each.value is not None]
        yield header.next_offset, [REMOTE_LOG_METADATA_RECORDS.decode(each) for each in values]


def _key(copy: RemoteLogSegmentIdEntry) -> TopicPartition:
    return copy.topic_id_partition.name, copy.topic_id_partition.partition


def _text(unique: UUID | None) -> str:
    return "" if unique is None else format_uuid(unique)


def _tier_segment(record: RemoteLogSegmentMetadataRecord) -> TierSegment:
    copy = record.remote_log_segment_id
    return TierSegment(
        id=_text(copy.id),
        topic_id=_text(copy.topic_id_partition.id),
        start_offset=record.start_offset,
        end_offset=record.end_offset,
        epochs=tuple((e.leader_epoch, e.offset) for e in record.segment_leader_epochs),
        bytes=record.segment_size_in_bytes,
        finished=record.remote_log_segment_state == COPY_SEGMENT_FINISHED,
    )
