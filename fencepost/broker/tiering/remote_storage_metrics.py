"""What brokers ask of the remote tier, counted as Kafka's metrics do: a segment at a time."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from fencepost.protocol.byte_utils import Buffer
from fencepost.storage.tier.object_store import (
    DoneCallback,
    ListCallback,
    ObjectKind,
    ObjectStore,
    ReadCallback,
    TierError,
)


class RemoteStorageMetrics(Struct):
    """Numbers that only rise, for as long as the process lives.

    ``copy`` is a segment's records on their way up, ``fetch`` the reading of any of its objects,
    ``delete`` the end of a segment: Kafka's RemoteCopy, RemoteFetch and RemoteDelete. Bytes are
    those of records that went up and of whatever came down.
    """

    copy_requests: int = 0
    copy_bytes: int = 0
    copy_errors: int = 0
    fetch_requests: int = 0
    fetch_bytes: int = 0
    fetch_errors: int = 0
    delete_requests: int = 0
    delete_errors: int = 0


class CountedObjectStore:
    """An `ObjectStore` whose operations are counted; those on metadata are not."""

    def __init__(self, store: ObjectStore, counts: RemoteStorageMetrics) -> None:
        self._store = store
        self._counts = counts

    def put(self, key: str, buffers: Iterable[Buffer], done: DoneCallback) -> None:
        """Write an object; a segment's records are a copy."""
        if not key.endswith(ObjectKind.LOG):
            self._store.put(key, buffers, done)
            return
        counts, records = self._counts, _CountedBuffers(buffers)
        counts.copy_requests += 1

        def count(error: TierError | None) -> None:
            if error is None:
                counts.copy_bytes += records.size
            else:
                counts.copy_errors += 1
            done(error)

        self._store.put(key, records, count)

    def get(self, key: str, start: int, end: int | None, done: ReadCallback) -> None:
        """Read an object; all but metadata is a fetch."""
        if key.endswith(ObjectKind.METADATA):
            self._store.get(key, start, end, done)
            return
        counts = self._counts
        counts.fetch_requests += 1

        def count(answer: bytes | TierError) -> None:
            if isinstance(answer, TierError):
                counts.fetch_errors += 1
            else:
                counts.fetch_bytes += len(answer)
            done(answer)

        self._store.get(key, start, end, count)

    def delete(self, keys: Sequence[str], done: DoneCallback) -> None:
        """Delete objects; a delete where there are more than metadata."""
        if all(key.endswith(ObjectKind.METADATA) for key in keys):
            self._store.delete(keys, done)
            return
        counts = self._counts
        counts.delete_requests += 1

        def count(error: TierError | None) -> None:
            counts.delete_errors += error is not None
            done(error)

        self._store.delete(keys, count)

    def list(self, prefix: str, done: ListCallback) -> None:
        """List keys, which is not counted."""
        self._store.list(prefix, done)


class _CountedBuffers:
    """Buffers that are measured while they are taken, perhaps by another thread."""

    __slots__ = ("_buffers", "size")

    def __init__(self, buffers: Iterable[Buffer]) -> None:
        self._buffers = buffers
        self.size = 0

    def __iter__(self) -> Iterator[Buffer]:
        self.size = 0
        for buffer in self._buffers:
            self.size += len(buffer)
            yield buffer
