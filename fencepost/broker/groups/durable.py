"""What a partition of ``__consumer_offsets`` remembers, as far as its records have been applied."""

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from fencepost.broker.groups.records import (
    CommittedOffset,
    CoordinatorRecord,
    GroupRecord,
    OffsetRecord,
    StoredGroup,
)

GroupOffsets: TypeAlias = dict[str, dict[int, CommittedOffset]]
"""Committed offsets by topic and partition."""

SIMPLE_GROUP: Final = StoredGroup()
"""A group that exists by its committed offsets alone."""


@dataclass(slots=True)
class DurableState:
    """Groups and offsets. ``apply`` is the only thing that changes them.

    A shard keeps two: one up to the log's end, from which it decides, and one up to the high
    watermark, which is what others may see.
    """

    groups: dict[str, StoredGroup] = field(default_factory=dict)
    offsets: dict[str, GroupOffsets] = field(default_factory=dict)
    """By group; no group or topic here is without offsets."""

    def apply(self, record: CoordinatorRecord) -> None:
        """Take a record over, in the order of the log."""
        match record:
            case GroupRecord(value=None):
                self.groups.pop(record.group_id, None)
            case GroupRecord(value=StoredGroup() as group):
                self.groups[record.group_id] = group
            case OffsetRecord(value=None):
                self._forget_offset(record)
            case OffsetRecord(value=CommittedOffset() as committed):
                self.groups.setdefault(record.group_id, SIMPLE_GROUP)
                topics = self.offsets.setdefault(record.group_id, {})
                topics.setdefault(record.topic, {})[record.partition] = committed

    def offset(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        """What a group has committed for a partition, None where nothing."""
        return self.offsets.get(group_id, {}).get(topic, {}).get(partition)

    def _forget_offset(self, record: OffsetRecord) -> None:
        topics = self.offsets.get(record.group_id, {})
        partitions = topics.get(record.topic, {})
        partitions.pop(record.partition, None)
        if not partitions:
            topics.pop(record.topic, None)
        if not topics:
            self.offsets.pop(record.group_id, None)
