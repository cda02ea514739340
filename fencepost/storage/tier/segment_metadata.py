"""The metadata of a segment in the remote tier (KIP-405), and its form in events.

The names are those of Kafka's ``RemoteLogSegmentMetadata``. The metadata of each segment lies in
the tier beside the segment's bytes, as one small JSON object with the fields of Kafka's
``RemoteLogSegmentMetadataRecord``; it is written again at each change of state. It has the leader
epoch of the copy besides: Kafka's brokers write theirs to a topic, where a leader that was deposed
and cut off is refused.
"""

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Self, cast
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace

from fencepost.protocol.byte_utils import format_uuid, parse_uuid
from fencepost.storage.log.leader_epoch_cache import EpochEntry


class RemoteLogSegmentState(StrEnum):
    """The states of a segment in the tier, in this order; see `TRANSITIONS`."""

    COPY_SEGMENT_STARTED = "COPY_SEGMENT_STARTED"
    """Its copy has begun. If the leader ends first, it keeps this state until it is deleted."""
    COPY_SEGMENT_FINISHED = "COPY_SEGMENT_FINISHED"
    """All of it is there: the only state in which it is served."""
    DELETE_SEGMENT_STARTED = "DELETE_SEGMENT_STARTED"
    """Some of it may be gone."""
    DELETE_SEGMENT_FINISHED = "DELETE_SEGMENT_FINISHED"
    """All of it is gone. Its metadata go with it, so that this state is never written."""


TRANSITIONS: Final[Mapping[RemoteLogSegmentState, frozenset[RemoteLogSegmentState]]] = {
    RemoteLogSegmentState.COPY_SEGMENT_STARTED: frozenset(
        {RemoteLogSegmentState.COPY_SEGMENT_FINISHED, RemoteLogSegmentState.DELETE_SEGMENT_STARTED}
    ),
    RemoteLogSegmentState.COPY_SEGMENT_FINISHED: frozenset(
        {RemoteLogSegmentState.DELETE_SEGMENT_STARTED}
    ),
    RemoteLogSegmentState.DELETE_SEGMENT_STARTED: frozenset(
        {RemoteLogSegmentState.DELETE_SEGMENT_FINISHED}
    ),
    RemoteLogSegmentState.DELETE_SEGMENT_FINISHED: frozenset(),
}
"""The states that may follow on each; the same one again is no change and allowed."""


class CorruptMetadata(ValueError):
    """Bytes that are not the metadata of a segment."""


class TopicIdPartition(Struct, frozen=True, kw_only=True):
    """Whose segments they are. The topic's id keeps topics of the same name apart."""

    topic: str
    topic_id: UUID
    index: int

    def __str__(self) -> str:
        """Topic and partition as Kafka's messages print them: ``topic-0``."""
        return f"{self.topic}-{self.index}"


class RemoteSegment(Struct, frozen=True, kw_only=True):
    """One segment in the tier.

    :ivar id: Its own: of two copies of the same records each has another.
    :ivar start_offset: Inclusive.
    :ivar end_offset: Inclusive.
    :ivar epochs: The leader epochs of its records, oldest first, at least one. The first begins
        at `start_offset` however much earlier the log had it.
    :ivar size_bytes: Of its records alone.
    :ivar max_timestamp: The largest of its records' (ms), -1 without one.
    :ivar broker_id: The leader that copied it or, later, changed its state.
    :ivar event_ms: When its state was changed.
    :ivar txn_index_empty: Whether it has no aborted transaction, and thus no transaction index.
    :ivar leader_epoch: That in which it was copied; -1 where its metadata are older than the field.
    """

    partition: TopicIdPartition
    id: UUID
    start_offset: int
    end_offset: int
    epochs: tuple[EpochEntry, ...]
    size_bytes: int
    max_timestamp: int
    broker_id: int
    event_ms: int
    state: RemoteLogSegmentState
    txn_index_empty: bool = True
    leader_epoch: int = -1

    @property
    def is_served(self) -> bool:
        """Whether all of it is there."""
        return self.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED

    @property
    def last_epoch(self) -> int:
        """The leader epoch of its last record."""
        return self.epochs[-1].epoch

    def with_state(self, state: RemoteLogSegmentState, *, broker_id: int, now_ms: int) -> Self:
        """The same segment in another state.

        :raises ValueError: When that state may not follow on its own: see `TRANSITIONS`.
        """
        if state is not self.state and state not in TRANSITIONS[self.state]:
            raise ValueError(
                f"segment {format_uuid(self.id)} is {self.state} and cannot be {state}"
            )
        return replace(self, state=state, broker_id=broker_id, event_ms=now_ms)

    def to_json(self) -> bytes:
        """The metadata as they are written."""
        partition = self.partition
        return json.dumps(
            {
                "remoteLogSegmentId": {
                    "topicIdPartition": {
                        "name": partition.topic,
                        "id": format_uuid(partition.topic_id),
                        "partition": partition.index,
                    },
                    "id": format_uuid(self.id),
                },
                "startOffset": self.start_offset,
                "endOffset": self.end_offset,
                "brokerId": self.broker_id,
                "maxTimestampMs": self.max_timestamp,
                "eventTimestampMs": self.event_ms,
                "segmentLeaderEpochs": [
                    {"leaderEpoch": entry.epoch, "offset": entry.start_offset}
                    for entry in self.epochs
                ],
                "segmentSizeInBytes": self.size_bytes,
                "remoteLogSegmentState": str(self.state),
                "txnIndexEmpty": self.txn_index_empty,
                "leaderEpoch": self.leader_epoch,
            }
        ).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """The segment that metadata tell of.

        :raises CorruptMetadata: When they do not.
        """
        try:
            return cls._read(json.loads(data))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CorruptMetadata(f"no metadata of a remote segment: {error!r}") from error

    @classmethod
    def _read(cls, fields: Mapping[str, object]) -> Self:
        segment_id = cast("Mapping[str, object]", fields["remoteLogSegmentId"])
        partition = cast("Mapping[str, object]", segment_id["topicIdPartition"])
        epochs = tuple(
            EpochEntry(_number(entry, "leaderEpoch"), _number(entry, "offset"))
            for entry in cast("list[Mapping[str, object]]", fields["segmentLeaderEpochs"])
        )
        if not epochs:
            raise ValueError("it has no leader epoch")
        return cls(
            partition=TopicIdPartition(
                topic=str(partition["name"]),
                topic_id=parse_uuid(str(partition["id"])),
                index=_number(partition, "partition"),
            ),
            id=parse_uuid(str(segment_id["id"])),
            start_offset=_number(fields, "startOffset"),
            end_offset=_number(fields, "endOffset"),
            epochs=epochs,
            size_bytes=_number(fields, "segmentSizeInBytes"),
            max_timestamp=_number(fields, "maxTimestampMs"),
            broker_id=_number(fields, "brokerId"),
            event_ms=_number(fields, "eventTimestampMs"),
            state=RemoteLogSegmentState(str(fields["remoteLogSegmentState"])),
            # Without the field they are from before transactions were served.
            txn_index_empty=fields.get("txnIndexEmpty", True) is True,
            leader_epoch=_number(fields, "leaderEpoch") if "leaderEpoch" in fields else -1,
        )


def _number(fields: Mapping[str, object], name: str) -> int:
    value = fields[name]
    if type(value) is not int:
        raise ValueError(f"{name} is {value!r} instead of a number")
    return value


def segment_to_event(segment: RemoteSegment) -> Mapping[str, object]:
    """A segment in an event: ``id``, ``start_offset``, ``end_offset``, ``epochs``, ``bytes``."""
    return {
        "id": format_uuid(segment.id),
        "start_offset": segment.start_offset,
        "end_offset": segment.end_offset,
        "epochs": [
            {"epoch": entry.epoch, "start_offset": entry.start_offset} for entry in segment.epochs
        ],
        "bytes": segment.size_bytes,
    }
