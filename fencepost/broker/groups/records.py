"""The records of ``__consumer_offsets`` in Kafka's formats, and the state that they replay to.

=====  ===================  ================  =====================================================
key    record               value versions    versions written
=====  ===================  ================  =====================================================
0, 1   OffsetCommit         0 to 4            key 1; value 3, 1 with an expiry, 4 if configured, or
                                              with the timestamp of a record
2      GroupMetadata        0 to 4            value 3
=====  ===================  ================  =====================================================

Offsets that a transaction commits have the same format, in transactional batches; the marker that
ends the transaction makes them the group's, or drops them. A null value is a tombstone. Versions up
to 3 are plain, 4 is compact with tagged fields (KIP-915). Keys of other types belong to groups of
other types and are skipped. The timestamp that the earlier draft of KIP-320 commits is a tagged
field that Kafka does not have, and that its tools pass over.
"""

import struct
from functools import partial
from typing import Final, TypeAlias, TypeVar
from uuid import UUID

from msgspec import Struct, field
from msgspec.structs import astuple, replace

from fencepost.broker.coordinator.record_fields import FieldReader, FieldWriter, MalformedRecord
from fencepost.broker.coordinator.shard import (
    CoordinatorRecordSerde,
    CoordinatorResult,
    EndTransaction,
    LoggedRecord,
)
from fencepost.broker.groups.pending_offsets import OffsetKey, PendingOffsets
from fencepost.protocol.records import NO_PRODUCER_ID

GROUP_VALUE_VERSION: Final = 3
_EXPIRING_OFFSET_VERSION: Final = 1
_FIRST_FLEXIBLE: Final = 4
_LONGEST_PLAIN_STRING: Final = 32767
_TOPIC_ID_TAG: Final = 0
_TIMESTAMP_TAG: Final = 10_320
_INT64: Final = struct.Struct(">q")

_T = TypeVar("_T")


class CommittedOffset(Struct, frozen=True, kw_only=True):
    """A committed offset: the next offset to consume, with the consumer's metadata."""

    offset: int
    leader_epoch: int = -1
    """Of the last consumed record, -1 if the consumer did not send it (KIP-320)."""
    metadata: str = ""
    commit_timestamp_ms: int
    expire_timestamp_ms: int = -1
    """From OffsetCommit v2-v4 with a retention time; -1 if the broker's retention applies."""
    topic_id: UUID | None = None
    timestamp_ms: int = -1
    """Of the last consumed record, as a client of ``kip-320-draft`` commits it; -1 if none did."""
    record_offset: int = -1
    """Of its record in ``__consumer_offsets``, which is no part of it; -1 before it is replayed."""

    def __eq__(self, other: object) -> bool:
        """Whether the group committed the same; `record_offset` does not count."""
        return isinstance(other, CommittedOffset) and _committed(self) == _committed(other)

    def __hash__(self) -> int:
        return hash(_committed(self))


def _committed(offset: CommittedOffset) -> tuple[object, ...]:
    return astuple(replace(offset, record_offset=-1))


class StoredMember(Struct, frozen=True, kw_only=True):
    """A member in its group's record."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    """Its metadata for the group's protocol."""
    assignment: bytes


class StoredGroup(Struct, frozen=True, kw_only=True):
    """A generation of a group in its record."""

    protocol_type: str = ""
    """Empty if no member ever joined."""
    generation: int = 0
    protocol: str | None = None
    leader: str | None = None
    state_timestamp_ms: int = -1
    """When the group entered its state, -1 if unknown."""
    members: tuple[StoredMember, ...] = ()


class OffsetRecord(Struct, frozen=True, kw_only=True):
    """A group's committed offset of one partition; without a value, its deletion."""

    group_id: str
    topic: str
    partition: int
    value: CommittedOffset | None

    @property
    def key(self) -> OffsetKey:
        """What the offset is committed for."""
        return OffsetKey(self.group_id, self.topic, self.partition)


class GroupRecord(Struct, frozen=True, kw_only=True):
    """A group's generation; without a value, the group's deletion."""

    group_id: str
    value: StoredGroup | None


CoordinatorRecord: TypeAlias = OffsetRecord | GroupRecord
GroupResult: TypeAlias = CoordinatorResult[_T, CoordinatorRecord]
"""A decision on groups or offsets."""


def record_serde(offset_version: int) -> CoordinatorRecordSerde[CoordinatorRecord]:
    """The formats of these records, with committed offsets in a version."""
    return CoordinatorRecordSerde(
        encode=partial(encode, offset_version=offset_version), decode=decode
    )


def encode(record: CoordinatorRecord, offset_version: int = 3) -> tuple[bytes, bytes | None]:
    """Key and value of a record.

    :param offset_version: Of committed offsets: 3, or 4 with the topic's id.
    :raises MalformedRecord: When a name is too long for its field.
    """
    key = FieldWriter(flexible=False)
    if isinstance(record, GroupRecord):
        key.int16(2)
        key.string(record.group_id)
        return key.to_bytes(), None if record.value is None else _encode_group(record.value)
    key.int16(1)
    key.string(record.group_id)
    key.string(record.topic)
    key.int32(record.partition)
    return key.to_bytes(), None if record.value is None else _encode_offset(
        record.value, offset_version
    )


def decode(key: bytes, value: bytes | None) -> CoordinatorRecord | None:
    """Read a record; None for a key that belongs to groups of another type.

    :raises MalformedRecord: When the bytes end early, or the value's version is unknown.
    """
    fields = FieldReader(key)
    version = fields.int16()
    if version in {0, 1}:
        group_id, topic, partition = fields.string(), fields.string(), fields.int32()
        stored = None if value is None else _decode_offset(value)
        return OffsetRecord(group_id=group_id, topic=topic, partition=partition, value=stored)
    if version == 2:
        group = None if value is None else _decode_group(value)
        return GroupRecord(group_id=fields.string(), value=group)
    return None


def _encode_offset(value: CommittedOffset, version: int) -> bytes:
    if value.expire_timestamp_ms != -1:
        version = _EXPIRING_OFFSET_VERSION
    elif value.timestamp_ms != -1 or len(value.metadata.encode()) > _LONGEST_PLAIN_STRING:
        version = _FIRST_FLEXIBLE
    out = FieldWriter(flexible=version >= _FIRST_FLEXIBLE)
    out.int16(version)
    out.int64(value.offset)
    if version >= 3:
        out.int32(value.leader_epoch)
    out.string(value.metadata)
    out.int64(value.commit_timestamp_ms)
    if version == _EXPIRING_OFFSET_VERSION:
        out.int64(value.expire_timestamp_ms)
    if version >= _FIRST_FLEXIBLE:
        tags = {} if value.topic_id is None else {_TOPIC_ID_TAG: value.topic_id.bytes}
        if value.timestamp_ms != -1:
            tags[_TIMESTAMP_TAG] = _INT64.pack(value.timestamp_ms)
        out.tags(tags)
    return out.to_bytes()


def _decode_offset(data: bytes) -> CommittedOffset:
    body = _value_reader(data)
    version = body.int16()
    offset = body.int64()
    leader_epoch = body.int32() if version >= 3 else -1
    metadata = body.string()
    commit_timestamp_ms = body.int64()
    expire_timestamp_ms = body.int64() if version == _EXPIRING_OFFSET_VERSION else -1
    tags = body.tags()
    topic_id, timestamp = tags.get(_TOPIC_ID_TAG), tags.get(_TIMESTAMP_TAG)
    return CommittedOffset(
        offset=offset,
        leader_epoch=leader_epoch,
        metadata=metadata,
        commit_timestamp_ms=commit_timestamp_ms,
        expire_timestamp_ms=expire_timestamp_ms,
        topic_id=UUID(bytes=topic_id) if topic_id is not None and any(topic_id) else None,
        timestamp_ms=-1 if timestamp is None else FieldReader(timestamp).int64(),
    )


def _encode_group(value: StoredGroup) -> bytes:
    out = FieldWriter(flexible=False)
    out.int16(GROUP_VALUE_VERSION)
    out.string(value.protocol_type)
    out.int32(value.generation)
    out.nullable_string(value.protocol)
    out.nullable_string(value.leader)
    out.int64(value.state_timestamp_ms)
    out.int32(len(value.members))
    for member in value.members:
        out.string(member.member_id)
        out.nullable_string(member.group_instance_id)
        out.string(member.client_id)
        out.string(member.client_host)
        out.int32(member.rebalance_timeout_ms)
        out.int32(member.session_timeout_ms)
        out.blob(member.subscription)
        out.blob(member.assignment)
    return out.to_bytes()


def _decode_group(data: bytes) -> StoredGroup:
    body = _value_reader(data)
    version = body.int16()
    return StoredGroup(
        protocol_type=body.string(),
        generation=body.int32(),
        protocol=body.nullable_string(),
        leader=body.nullable_string(),
        state_timestamp_ms=body.int64() if version >= 2 else -1,
        members=tuple(_decode_member(body, version) for _ in range(body.array_size())),
    )


def _decode_member(body: FieldReader, version: int) -> StoredMember:
    member_id = body.string()
    group_instance_id = body.nullable_string() if version >= 3 else None
    client_id, client_host = body.string(), body.string()
    rebalance_timeout_ms = body.int32() if version >= 1 else -1
    session_timeout_ms = body.int32()
    member = StoredMember(
        member_id=member_id,
        group_instance_id=group_instance_id,
        client_id=client_id,
        client_host=client_host,
        rebalance_timeout_ms=session_timeout_ms
        if rebalance_timeout_ms == -1
        else rebalance_timeout_ms,
        session_timeout_ms=session_timeout_ms,
        subscription=body.blob(),
        assignment=body.blob(),
    )
    body.tags()
    return member


def _value_reader(data: bytes) -> FieldReader:
    version = FieldReader(data).int16()
    if not 0 <= version <= _FIRST_FLEXIBLE:
        raise MalformedRecord(f"a value of version {version}")
    return FieldReader(data, flexible=version >= _FIRST_FLEXIBLE)


GroupOffsets: TypeAlias = dict[str, dict[int, CommittedOffset]]
"""Committed offsets by topic and partition."""

SIMPLE_GROUP: Final = StoredGroup()
"""A group that exists only by its committed offsets."""


class ReplayedState(Struct):
    """Groups and offsets. Only ``replay`` changes them.

    A shard has two: one up to the log's end, from which it decides, and one up to the high
    watermark, which other requests read.
    """

    groups: dict[str, StoredGroup] = field(default_factory=dict)
    offsets: dict[str, GroupOffsets] = field(default_factory=dict)
    """By group; groups and topics without offsets are left out."""
    pending: PendingOffsets[CommittedOffset] = field(default_factory=PendingOffsets)
    """Of open transactions."""

    def replay(self, record: CoordinatorRecord) -> None:
        """Apply a record of no transaction whose offset in the log does not matter."""
        self.replay_logged(LoggedRecord(record, -1))

    def replay_logged(self, logged: LoggedRecord[CoordinatorRecord]) -> None:
        """Apply a record at its place in the log, in offset order."""
        record = logged.record
        match record:
            case GroupRecord(value=None):
                self.groups.pop(record.group_id, None)
            case GroupRecord(value=StoredGroup() as group):
                self.groups[record.group_id] = group
            case OffsetRecord(value=None):
                self._remove_offset(record.key)
                self.pending.discard(record.key)
            case OffsetRecord(value=CommittedOffset() as committed):
                self.groups.setdefault(record.group_id, SIMPLE_GROUP)
                committed = replace(committed, record_offset=logged.offset)
                if logged.producer_id == NO_PRODUCER_ID:
                    self._put_offset(record.key, committed)
                else:
                    self.pending.add(logged.producer_id, record.key, committed)

    def end_transaction(self, ended: EndTransaction) -> None:
        """Apply a marker: what the transaction committed becomes the groups', or is dropped.

        An offset that was committed later without a transaction stays, as its record will when the
        log is compacted.
        """
        offsets = self.pending.end(ended.producer_id)
        for key, committed in offsets.items() if ended.committed else ():
            present = self.offset(*key)
            if present is None or committed.record_offset > present.record_offset:
                self._put_offset(key, committed)

    def offset(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        """A group's committed offset of a partition, or None."""
        return self.offsets.get(group_id, {}).get(topic, {}).get(partition)

    def _put_offset(self, key: OffsetKey, committed: CommittedOffset) -> None:
        topics = self.offsets.setdefault(key.group_id, {})
        topics.setdefault(key.topic, {})[key.partition] = committed

    def _remove_offset(self, key: OffsetKey) -> None:
        topics = self.offsets.get(key.group_id, {})
        partitions = topics.get(key.topic, {})
        partitions.pop(key.partition, None)
        if not partitions:
            topics.pop(key.topic, None)
        if not topics:
            self.offsets.pop(key.group_id, None)
