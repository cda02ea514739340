"""The last offset of each key in a log: what ``check.expected.offsets.scope=key`` compares with.

The key offsets cover the log up to some offset, and a check reads the rest of the log first. So a
log that checks no keys has none, and a follower pays nothing, while a new leader reads once what it
has not read yet. A leader that checked an append has decoded its records already and adds their
keys.

There is an entry for each key that has a record between the log start and that offset. Entries are
in the order of their offsets, so that those before a new log start are dropped at once. A key whose
last record was a tombstone is dropped when compaction removes it; any other record that compaction
removes has a later one of its key. After a truncation the earlier last records are unknown: all
entries are dropped, and the log is read again.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from operator import itemgetter
from typing import Protocol

from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import BatchHeader, InvalidRecords
from fencepost.storage.log.leader_epoch_cache import LeaderEpochCache


class LatestKeyOffsets:
    """Keys and the offsets of their last records.

    Records without a key have no entry, nor have markers of transactions, nor the records of a
    batch that do not parse, as compaction takes it too.

    :param offsets: The entries, in the order of the offsets.
    :ivar until: Everything before this offset (exclusive) is counted in. It is where a batch
        begins or may begin, never within one.
    """

    __slots__ = ("_offsets", "until")

    def __init__(self, until: int, offsets: Mapping[bytes, int] | None = None) -> None:
        self.until = until
        self._offsets = OrderedDict(offsets or {})

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def offsets(self) -> Mapping[bytes, int]:
        """All of them, in the order of the offsets."""
        return self._offsets

    def last_offset(self, key: bytes) -> int | None:
        """The offset of the key's last record; None where the log has none."""
        return self._offsets.get(key)

    def add_appended(self, offsets: Iterable[tuple[bytes, int]], until: int) -> None:
        """Take note of what was appended since, without a look at the log.

        :param offsets: Each key there and its last offset, in any order.
        :param until: The log end now.
        """
        for key, offset in sorted(offsets, key=itemgetter(1)):
            self._note(key, offset)
        self.until = until

    def catch_up(self, batches: Iterable[tuple[Buffer, BatchHeader]], until: int) -> None:
        """Read what is not known yet.

        :param batches: All of the log that end behind `self.until`.
        :param until: The log end now.
        """
        for batch, header in batches:
            if not header.is_control:
                self._read(batch)
            self.until = header.next_offset
        self.until = until

    def _read(self, batch: Buffer) -> None:
        first = self.until  # of a batch that the log start lies in, a part counts
        with suppress(InvalidRecords):
            for record in list(iter_records(batch)):
                if record.key is not None and record.offset >= first:
                    self._note(record.key, record.offset)

    def _note(self, key: bytes, offset: int) -> None:
        self._offsets[key] = offset
        self._offsets.move_to_end(key)

    def drop_before(self, offset: int) -> None:
        """Lose the keys whose last record lies before the log start."""
        offsets = self._offsets
        while offsets and next(iter(offsets.values())) < offset:
            offsets.popitem(last=False)
        self.until = max(self.until, offset)

    def drop_removed(self, removed: Mapping[bytes, int]) -> None:
        """Lose the keys whose last record was removed.

        :param removed: Of each key the offset of a removed record, the last one that compaction
            could see.
        """
        for key, offset in removed.items():
            if self._offsets.get(key) == offset:
                del self._offsets[key]


class KeyOffsetStore(Protocol):
    """Where a log's key offsets outlive the process; in memory they do not."""

    def read(self, log_start_offset: int) -> LatestKeyOffsets | None:
        """The key offsets that were written last; None where none are usable."""

    def write(
        self,
        keys: LatestKeyOffsets,
        log_start_offset: int,
        epochs: LeaderEpochCache,
        *,
        sync: bool = False,
    ) -> None:
        """Write them, unless the same ones are stored."""

    def write_if_grown(
        self, keys: LatestKeyOffsets, log_start_offset: int, epochs: LeaderEpochCache
    ) -> None:
        """Write them if enough records were added since they were written last."""

    def discard_from(self, offset: int) -> None:
        """Remove, durably, key offsets that count in records from `offset` on."""


class KeyOffsetsTracker:
    """The key offsets of one log: loaded when they are first needed, kept right, dropped.

    :param store: Where they outlive the process.
    :ivar loaded: None while nothing has needed them.
    """

    __slots__ = ("_store", "loaded")

    def __init__(self, store: KeyOffsetStore) -> None:
        self._store = store
        self.loaded: LatestKeyOffsets | None = None

    def up_to(
        self,
        log_end_offset: int,
        log_start_offset: int,
        scan: Callable[[int], Iterable[tuple[Buffer, BatchHeader]]],
    ) -> LatestKeyOffsets:
        """The last offset of each key in the whole log.

        :param scan: The log's batches from the one that holds an offset on.
        """
        keys = self.loaded
        if keys is None:
            stored = self._store.read(log_start_offset)
            keys = LatestKeyOffsets(log_start_offset) if stored is None else stored
            self.loaded = keys
        if keys.until < log_end_offset:
            keys.catch_up(scan(keys.until), log_end_offset)
        return keys

    def add_appended(self, offsets: Mapping[bytes, int], first: int, log_end_offset: int) -> None:
        """Add the keys of an append, so that it need not be read, if all before it is counted in.

        :param offsets: The last offset of each key in it. Empty where its keys were not parsed:
            then nothing is added.
        :param first: Where the append begins; it ends at the log end.
        """
        if offsets and self.loaded is not None and self.loaded.until == first:
            self.loaded.add_appended(offsets.items(), log_end_offset)

    def drop_unless(self, *, used: bool) -> None:
        """Free the memory where the log's config does not compare keys any more."""
        if not used:
            self.loaded = None

    def before_truncation(self, offset: int) -> None:
        """Drop what will be wrong when the records from `offset` on are gone."""
        if self.loaded is not None and self.loaded.until > offset:
            self.loaded = None
        self._store.discard_from(offset)

    def before_swap(self, expired: Mapping[bytes, int]) -> None:
        """Drop what will be wrong when the cleaned segments are in place.

        :param expired: As for `LatestKeyOffsets.drop_removed`.
        """
        if self.loaded is not None:
            self.loaded.drop_removed(expired)
        if expired:
            self._store.discard_from(min(expired.values()))

    def drop_before(self, log_start_offset: int) -> None:
        """Drop the keys whose last record lies before the log start."""
        if self.loaded is not None:
            self.loaded.drop_before(log_start_offset)

    def checkpoint(self, log_start_offset: int, epochs: LeaderEpochCache, *, sync: bool) -> None:
        """Write them to the store."""
        if self.loaded is not None:
            self._store.write(self.loaded, log_start_offset, epochs, sync=sync)

    def checkpoint_if_grown(self, log_start_offset: int, epochs: LeaderEpochCache) -> None:
        """Write them to the store if enough records were added."""
        if self.loaded is not None:
            self._store.write_if_grown(self.loaded, log_start_offset, epochs)
