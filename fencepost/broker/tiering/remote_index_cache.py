"""The indexes of segments in the tier, kept for a while once they were read (KIP-405)."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, TypeAlias, TypeVar
from uuid import UUID

from fencepost.broker.core.async_tasks import AsyncSteps, get
from fencepost.storage.formats.indexes import (
    OFFSET_ENTRY_SIZE,
    TIME_ENTRY_SIZE,
    TRANSACTION_ENTRY_SIZE,
    CorruptIndex,
    OffsetIndex,
    TimeIndex,
    decode_transactions,
)
from fencepost.storage.log.transactions import AbortedTransaction
from fencepost.storage.tier.object_store import ObjectKind, ObjectStore, TierError, object_key
from fencepost.storage.tier.segment_metadata import RemoteSegment

AnyIndex: TypeAlias = OffsetIndex | TimeIndex | list[AbortedTransaction]
Index = TypeVar("Index", OffsetIndex, TimeIndex, list[AbortedTransaction])

_ENTRY_SIZES: Final = {
    OffsetIndex: OFFSET_ENTRY_SIZE,
    TimeIndex: TIME_ENTRY_SIZE,
    list: TRANSACTION_ENTRY_SIZE,
}
_OVERHEAD: Final = 500
"""About what an index takes besides its entries, in bytes."""


class RemoteIndexCache:
    """Those of one broker. What was not used for longest goes first.

    :param limit: The bytes that they may take, asked each time.
    """

    def __init__(self, limit: Callable[[], int]) -> None:
        self._limit = limit
        self._cached: OrderedDict[tuple[UUID, ObjectKind], AnyIndex] = OrderedDict()
        self.size_bytes = 0
        """About what they take now."""

    def offsets(self, objects: ObjectStore, segment: RemoteSegment) -> AsyncSteps[OffsetIndex]:
        """A segment's offset index.

        :raises TierError: When it can't be had.
        """
        found = yield from self._find(objects, segment, ObjectKind.OFFSET_INDEX, OffsetIndex.decode)
        return found

    def times(self, objects: ObjectStore, segment: RemoteSegment) -> AsyncSteps[TimeIndex]:
        """A segment's time index.

        :raises TierError: When it can't be had.
        """
        found = yield from self._find(objects, segment, ObjectKind.TIME_INDEX, TimeIndex.decode)
        return found

    def transactions(
        self, objects: ObjectStore, segment: RemoteSegment
    ) -> AsyncSteps[list[AbortedTransaction]]:
        """A segment's aborted transactions, in order of their markers.

        :raises TierError: When they can't be had.
        """
        if segment.txn_index_empty:
            return []
        found = yield from self._find(
            objects, segment, ObjectKind.TRANSACTION_INDEX, decode_transactions
        )
        return found

    def clear(self) -> None:
        """Forget all."""
        self._cached.clear()
        self.size_bytes = 0

    def _find(
        self,
        objects: ObjectStore,
        segment: RemoteSegment,
        part: ObjectKind,
        read: Callable[[bytes, int], Index],
    ) -> AsyncSteps[Index]:
        name = (segment.id, part)
        kept = self._cached.get(name)
        if kept is not None:
            self._cached.move_to_end(name)
            return kept  # type: ignore[return-value]  # what was kept under this part
        key = object_key(segment, part)
        data = yield from get(objects, key)
        try:
            index = read(data, segment.start_offset)
        except CorruptIndex as error:
            raise TierError(key, str(error)) from error
        self._cache(name, index)
        return index

    def _cache(self, name: tuple[UUID, ObjectKind], index: AnyIndex) -> None:
        if name not in self._cached:  # another read may have brought it meanwhile
            self._cached[name] = index
            self.size_bytes += _size(index)
        while self.size_bytes > self._limit():
            _, oldest = self._cached.popitem(last=False)
            self.size_bytes -= _size(oldest)


def _size(index: AnyIndex) -> int:
    return len(index) * _ENTRY_SIZES[type(index)] + _OVERHEAD
