"""What a log holds, and all that goes from it: by truncation, retention, compaction, to the tier.

What comes to it, and what is asked of it, is in `fencepost.storage.log.segmented_log`.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from fencepost.storage.log import compaction, retention
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.interface import OffsetOutOfRange, SegmentCopy
from fencepost.storage.log.key_offsets import LatestKeyOffsets
from fencepost.storage.log.leader_epoch_cache import EpochEntry
from fencepost.storage.log.producer_state import ProducerStateEntry
from fencepost.storage.log.segments import InitialLogState, LogSegment, LogSegments, SegmentStore


class BoundedLog:
    """The segments, leader epochs and producers of a log, kept in step when something goes.

    The contract of each method stands in `fencepost.storage.log.interface.Log`.

    :param store: Where its segments live, and new ones come from.
    """

    __slots__ = (
        "_cleaned_until",
        "_end",
        "_epochs",
        "_keys",
        "_name",
        "_producers",
        "_segments",
        "_start",
        "_store",
        "config",
    )

    def __init__(
        self, name: str, config: LogConfig, store: SegmentStore, contents: InitialLogState
    ) -> None:
        self.config = config
        self._name = name
        self._store = store
        self._epochs = contents.epochs
        self._producers = contents.producers
        self._start = contents.log_start_offset
        self._end = contents.log_end_offset
        self._cleaned_until = contents.cleaned_until
        self._segments = LogSegments(store, contents.segments)
        self._keys: LatestKeyOffsets | None = None

    @property
    def name(self) -> str:
        """Topic and partition: ``topic-0``."""
        return self._name

    @property
    def log_start_offset(self) -> int:
        """The first offset that may be read."""
        return self._start

    @property
    def local_log_start_offset(self) -> int:
        """The first offset held here."""
        return max(self._start, self._segments.first_offset)

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""
        return self._end

    @property
    def batches_end_offset(self) -> int:
        """The offset behind the last batch held."""
        return self._segments.active.next_offset

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments."""
        return self._segments.size_bytes

    def _roll(self, now_ms: int, base_offset: int) -> LogSegment:
        self._drop_keys_if_unchecked()
        return self._segments.roll(base_offset, now_ms, self._producers.snapshot())

    # Keys.

    def _last_offsets(self) -> LatestKeyOffsets:
        """The last offset of each key in the whole log.

        It is to be had again after each append and each change of the log, not kept.
        """
        keys = self._keys
        if keys is None:
            keys = self._keys = self._initial_last_offsets()
        if keys.until < self._end:
            start = self._segments.index_of(keys.until)
            segments = self._segments.all[start:]
            found = chain.from_iterable(each.scan(offset=keys.until) for each in segments)
            keys.catch_up(found, self._end)
        return keys

    def _add_appended_keys(self, offsets: Mapping[bytes, int], first: int) -> None:
        """Spare reading again what has just been appended, if everything before it is known.

        :param offsets: Of each key in it the last offset. Without any it may not have been looked
            for keys, and nothing is learnt.
        :param first: Where it begins; it ends at the log end.
        """
        if offsets and self._keys is not None and self._keys.until == first:
            self._keys.add_appended(offsets.items(), self._end)

    def _initial_last_offsets(self) -> LatestKeyOffsets:
        """What to begin with: what is not in there is read from the log."""
        return LatestKeyOffsets(self._start)

    def _before_cut(self, offset: int) -> None:
        """Let go of what will not be right when everything from `offset` on is gone."""
        if self._keys is not None and self._keys.until > offset:
            self._keys = None

    def _before_swap(self, expired: Mapping[bytes, int]) -> None:
        """Let go of what will not be right when compaction's segments are in place."""
        if self._keys is not None:
            self._keys.drop_removed(expired)

    def _drop_keys_if_unchecked(self) -> None:
        if not self.config.checks_keys:
            self._keys = None

    # Truncating.

    def truncate_to(self, offset: int) -> bool:
        """Drop everything from `offset` on, and of the batch that holds it all."""
        self._epochs.truncate_from_end(offset)
        if offset >= self._end:
            return False
        self._before_cut(offset)
        if offset < self._segments.first_offset:
            self.truncate_fully_and_start_at(offset, now_ms=self._segments.active.created_ms)
            return True
        self._segments.truncate(offset)
        self._end = offset
        self._start = min(self._start, offset)
        self._cleaned_until = min(self._cleaned_until, self._segments.active.base_offset)
        if len(self._producers) and self._producers.wrote_at_or_after(offset):
            self._rebuild_producers()
        return True

    def _rebuild_producers(self) -> None:
        """Know the producers again as of the log end, from the last segment's snapshot on."""
        last = self._segments.active
        self._producers.restore(last.producer_snapshot)
        for _, header in last.scan():
            if header.has_producer_id:
                self._producers.update(header)

    def truncate_fully_and_start_at(
        self, offset: int, *, now_ms: int, log_start_offset: int | None = None
    ) -> None:
        """Drop everything, epochs and producers too; the next record gets `offset`."""
        self._start_over(offset, offset if log_start_offset is None else log_start_offset, now_ms)

    def _start_over(
        self,
        offset: int,
        log_start_offset: int,
        now_ms: int,
        producers: tuple[ProducerStateEntry, ...] | None = None,
    ) -> None:
        self._before_cut(-1)
        self._segments.reset(offset, now_ms, producers)
        self._end = offset
        self._start = log_start_offset
        self._cleaned_until = offset
        self._epochs.clear()
        self._producers.restore(producers or ())

    # Retention.

    def advance_log_start(self, offset: int) -> bool:
        """Move the log start forward, and drop the segments that lie before it."""
        if offset > self._end:
            raise OffsetOutOfRange(f"log start {offset} of {self._name}, which ends at {self._end}")
        if offset <= self._start:
            return False
        self._start = offset
        self._epochs.truncate_from_start(offset)
        self._segments.drop_before(offset)
        if self._keys is not None:
            self._keys.drop_before(offset)
        return True

    def delete_expired(self, now_ms: int, high_watermark: int) -> int:
        """Drop the oldest segments by retention.ms and retention.bytes."""
        self._drop_keys_if_unchecked()
        dropped = self._segments.drop_before(self._start)
        if self.config.is_copied or not self.config.is_deleted:
            return dropped
        count = retention.expired_segments(
            self._segments.all,
            self.config,
            now_ms=now_ms,
            high_watermark=high_watermark,
            log_end_offset=self._end,
        )
        if count:
            if count == len(self._segments):
                self._roll(now_ms, self._end)
            self.advance_log_start(self._segments.all[count].base_offset)
            # The log start may have been there before, at the end of what was the active one.
            self._segments.drop_before(self._start)
        return dropped + count

    # The tier.

    def segment_to_upload(self, offset: int, upper_bound: int) -> SegmentCopy | None:
        """The closed segment that holds `offset`, to be copied to the tier."""
        segments, index = self._segments.all, self._segments.index_of(offset)
        if offset < self._segments.first_offset or index + 1 >= len(segments):
            return None
        segment, following = segments[index], segments[index + 1]
        end = following.base_offset
        if end > upper_bound:
            return None
        return SegmentCopy(
            base_offset=segment.base_offset,
            end_offset=end - 1,
            size_bytes=segment.size,
            max_timestamp=segment.max_timestamp,
            records=segment.copy(),
            epochs=tuple(e for e in self._epochs.entries() if e.start_offset < end),
            producers=following.producer_snapshot,
        )

    def delete_local(self, tiered_until: int, *, now_ms: int | None) -> int:
        """Drop segments of which the tier has everything; the log start stays."""
        segments = self._segments.all
        count = retention.tiered_segments(segments, tiered_until)
        if now_ms is not None:
            count = retention.locally_expired_segments(segments, self.config, now_ms, count)
        return self._segments.drop_before(segments[count].base_offset)

    def start_from_tier(
        self,
        offset: int,
        *,
        log_start_offset: int,
        epochs: Sequence[EpochEntry],
        producers: Sequence[ProducerStateEntry],
        now_ms: int,
    ) -> None:
        """Drop everything and go on at `offset`; what lies before is in the tier."""
        self._start_over(offset, log_start_offset, now_ms, tuple(producers))
        for entry in epochs:
            self._epochs.assign(entry.epoch, entry.start_offset)

    # Compaction.

    def compact(self, now_ms: int, high_watermark: int, *, at_once: bool = False) -> int:
        """Clean the closed segments below the high watermark, if they are dirty enough."""
        if not self.config.is_compacted:
            return 0
        unstable = self._producers.first_unstable_offset
        cleanable = compaction.find_cleanable(
            self._segments.all,
            self.config,
            now_ms=now_ms,
            cleaned_until=self._cleaned_until,
            upper_bound=high_watermark if unstable is None else min(high_watermark, unstable),
            at_once=at_once,
        )
        if cleanable is None:
            return 0
        before = sum(segment.records for segment in cleanable.segments)
        cleaned, expired = compaction.clean(
            cleanable,
            self.config,
            now_ms=now_ms,
            producer_offsets=self._producers.last_offsets(),
            create=self._store.create_cleaned,
        )
        self._before_swap(expired)
        self._segments.swap(cleaned, len(cleanable.segments))
        self._cleaned_until = cleanable.end
        return before - sum(segment.records for segment in cleaned)

    def dismantle(self) -> Iterator[None]:
        """Free what is held, a little before each step; nobody may use the log any more."""
        for segment in self._segments:
            while segment.free_some():
                yield
