"""The object store of the tier: bytes by key, with asynchronous calls.

The keys of a segment's objects are::

    TOPIC-TOPICID/PARTITION/STARTOFFSET-SEGMENTID.log
                                                 .index
                                                 .timeindex
                                                 .txnindex
                                                 .snapshot
                                                 .leader-epoch-checkpoint
                                                 .json

with ids as Kafka writes them and the start offset in 20 digits. ``.json`` is the segment's
metadata, written first and deleted last; the others have the formats of the files with the same
suffixes in a log directory. Only a segment with aborted transactions has a ``.txnindex``.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Final, Protocol
from uuid import UUID

from fencepost.protocol.byte_utils import Buffer, format_uuid
from fencepost.storage.tier.segment_metadata import RemoteSegment, TopicIdPartition


class TierError(Exception):
    """An operation of the store failed; passed to callbacks, and raised where one waits.

    :ivar key: Of the object, or the prefix, that was asked for.
    :ivar missing: Whether there is no such object.
    """

    def __init__(self, key: str, why: str, *, missing: bool = False) -> None:
        super().__init__(f"{key}: {why}")
        self.key = key
        self.missing = missing


DoneCallback = Callable[[TierError | None], None]
"""Called when an operation has ended, with its error."""
ReadCallback = Callable[[bytes | TierError], None]
ListCallback = Callable[[list[str] | TierError], None]


class ObjectStore(Protocol):
    """Objects by key.

    Each call begins an operation and returns; its callback comes later, exactly once, on the
    thread of the caller and never within the call.
    """

    def put(self, key: str, buffers: Iterable[Buffer], done: DoneCallback) -> None:
        """Write an object whole, in place of one that there may be; on an error nothing of it.

        :param buffers: Its bytes in order. They are taken once, perhaps by another thread.
        """

    def get(self, key: str, start: int, end: int | None, done: ReadCallback) -> None:
        """Read an object's bytes from `start` (inclusive) to `end` (exclusive; None: all).

        What lies behind the object's end is left out. Of an object that is not there the error
        has `missing`.
        """

    def delete(self, keys: Sequence[str], done: DoneCallback) -> None:
        """Delete objects; those that are not there are no error. On an error any may be gone."""

    def list(self, prefix: str, done: ListCallback) -> None:
        """The keys that begin with `prefix`, which ends with a slash, in order."""


class ObjectKind(StrEnum):
    """The suffix of each of a segment's objects."""

    LOG = ".log"
    OFFSET_INDEX = ".index"
    TIME_INDEX = ".timeindex"
    TRANSACTION_INDEX = ".txnindex"
    PRODUCER_SNAPSHOT = ".snapshot"
    LEADER_EPOCHS = ".leader-epoch-checkpoint"
    METADATA = ".json"


DATA_KINDS: Final = tuple(part for part in ObjectKind if part is not ObjectKind.METADATA)
"""All but the metadata; of a segment without aborted transactions there is no transaction index."""


def topic_prefix(topic: str, topic_id: UUID) -> str:
    """The prefix of all keys of a topic."""
    return f"{topic}-{format_uuid(topic_id)}/"


def partition_prefix(partition: TopicIdPartition) -> str:
    """The prefix of all keys of a partition."""
    return f"{topic_prefix(partition.topic, partition.topic_id)}{partition.index}/"


def object_key(segment: RemoteSegment, part: ObjectKind) -> str:
    """The key of one of a segment's objects."""
    stem = f"{segment.start_offset:020d}-{format_uuid(segment.id)}"
    return f"{partition_prefix(segment.partition)}{stem}{part}"


class MemoryObjectStore:
    """An `ObjectStore` in memory, for tests, the simulation and ``--remote memory:``.

    :param soon: Runs a callback when this turn is over (`Scheduler.soon`).
    :param count: Called with each change of the bytes in it.
    :ivar objects: All objects by key.
    """

    def __init__(
        self,
        soon: Callable[[Callable[[], None]], None],
        count: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.objects: dict[str, bytes] = {}
        self._soon = soon
        self._count = count

    def put(self, key: str, buffers: Iterable[Buffer], done: DoneCallback) -> None:
        """Write an object whole."""

        def write() -> None:
            data = b"".join(buffers)
            self._count(len(data) - len(self.objects.get(key, b"")))
            self.objects[key] = data
            done(None)

        self._soon(write)

    def get(self, key: str, start: int, end: int | None, done: ReadCallback) -> None:
        """Read an object's bytes."""

        def read() -> None:
            data = self.objects.get(key)
            if data is None:
                done(TierError(key, "there is no such object", missing=True))
            else:
                done(data[start:end])

        self._soon(read)

    def delete(self, keys: Sequence[str], done: DoneCallback) -> None:
        """Delete objects."""

        def remove() -> None:
            for key in keys:
                self._count(-len(self.objects.pop(key, b"")))
            done(None)

        self._soon(remove)

    def list(self, prefix: str, done: ListCallback) -> None:
        """The keys that begin with `prefix`, in order."""
        self._soon(lambda: done(sorted(key for key in self.objects if key.startswith(prefix))))
