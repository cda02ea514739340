"""Reading from the tier gives what the log itself would, by ranges, and of its lineage alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, TypeAlias, TypeVar
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fencepost.broker.core.async_tasks import AsyncTask
from fencepost.broker.replication.replica import Replica
from fencepost.broker.tiering.remote_log_manager import RemoteLogManager
from fencepost.broker.tiering.remote_reader import RemoteReader
from fencepost.broker.tiering.remote_segments import copy_segment, start_copy
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import Record, iter_headers
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.interface import Log, ReadResult, SegmentCopy
from fencepost.storage.log.timestamp_lookup import TimestampAndOffset
from fencepost.storage.tier.lineage import RemoteSegments
from fencepost.storage.tier.object_store import MemoryObjectStore, ObjectKind, TierError, object_key
from fencepost.storage.tier.segment_metadata import RemoteSegment, TopicIdPartition
from tests.harness.logs import NOW, T, append, new_log, records_of
from tests.harness.records import Row, batch

V = TypeVar("V")
Read: TypeAlias = tuple[Buffer, ...] | ErrorCode
Found: TypeAlias = TimestampAndOffset | ErrorCode | None

TOPIC_ID: Final = UUID(int=7)
PARTITION: Final = TopicIdPartition(topic="t", topic_id=TOPIC_ID, index=0)
MAX: Final = 1 << 30


class Objects(MemoryObjectStore):
    """Counts what is read of segments' records."""

    def __init__(self, soon: Callable[[Callable[[], None]], None]) -> None:
        super().__init__(soon)
        self.read: list[tuple[str, int, int | None]] = []

    def get(
        self, key: str, start: int, end: int | None, done: Callable[[bytes | TierError], None]
    ) -> None:
        self.read.append((key, start, end))
        super().get(key, start, end, done)

    def ranges(self, part: ObjectKind = ObjectKind.LOG) -> list[tuple[int, int]]:
        found = [(start, end) for key, start, end in self.read if key.endswith(part)]
        return [(start, MAX if end is None else end) for start, end in found]


class Tier(RemoteLogManager):
    """A partition's tier, and a replica whose log knows the same offsets."""

    def __init__(self, log: Log, *, interval: int = 200, limit: int = MAX) -> None:
        self.turns: deque[Callable[[], None]] = deque()
        self.store = self.objects = Objects(self.turns.append)
        self.known: RemoteSegments | TierError = RemoteSegments()
        self.replica = Replica(
            topic="t",
            topic_id=TOPIC_ID,
            index=0,
            broker_id=1,
            log=log,
            notify_follower=lambda *_: None,
            maybe_expand_isr=lambda *_: None,
        )
        self.interval = interval
        self.limit = limit
        self.reader = RemoteReader(self, lambda: self.limit)
        self.uploads = 0

    @property
    def log(self) -> Log:
        return self.replica.log

    def segments(
        self, replica: Replica, then: Callable[[RemoteSegments | TierError], None]
    ) -> None:
        assert replica is self.replica
        then(self.known)

    def upload(self, log: Log | None = None) -> list[RemoteSegment]:
        """All closed segments of a log, its own by default."""
        source = log or self.log
        found: list[RemoteSegment] = []
        offset = source.log_start_offset
        while (copy := source.segment_to_upload(offset, source.log_end_offset)) is not None:
            found.append(self.upload_copy(copy))
            offset = copy.end_offset + 1
        return found

    def upload_copy(self, copy: SegmentCopy) -> RemoteSegment:
        assert isinstance(self.known, RemoteSegments)
        self.uploads += 1
        started = start_copy(
            copy,
            PARTITION,
            segment_id=UUID(int=self.uploads),
            broker_id=1,
            leader_epoch=0,
            now_ms=NOW,
        )
        steps = copy_segment(
            self.store,
            self.known,
            started,
            copy,
            index_interval_bytes=self.interval,
            now_ms=lambda: NOW,
        )
        finished: list[RemoteSegment | TierError] = []
        AsyncTask(steps, finished.append).start()
        self.run()
        self.store.read.clear()
        (segment,) = finished
        assert isinstance(segment, RemoteSegment)
        return segment

    def run(self) -> None:
        while self.turns:
            self.turns.popleft()()

    def answer(self, ask: Callable[[Callable[[V], None]], None]) -> V:
        told: list[V] = []
        ask(told.append)
        self.run()
        assert len(told) == 1
        return told[0]

    def read(
        self,
        offset: int,
        max_bytes: int = MAX,
        upper_bound: int = MAX,
        *,
        min_one_batch: bool = True,
    ) -> Read:
        def ask(then: Callable[[Read], None]) -> None:
            self.reader.read(
                self.replica,
                offset,
                max_bytes=max_bytes,
                upper_bound=upper_bound,
                min_one_batch=min_one_batch,
                then=then,
            )

        return self.answer(ask)

    def lookup(self, timestamp: int) -> Found:
        def ask(then: Callable[[Found], None]) -> None:
            self.reader.lookup(self.replica, timestamp, then)

        return self.answer(ask)

    def latest(self, timestamp: int = 0) -> Found:
        def ask(then: Callable[[Found], None]) -> None:
            self.reader.latest(self.replica, timestamp, then)

        return self.answer(ask)


def filled(sizes: list[int], rolls: set[int], times: list[int] | None = None) -> Log:
    """A log of batches of so many records; before some of them a new segment begins."""
    log = new_log(LogConfig(remote_storage_enable=True))
    for number, size in enumerate(sizes):
        if number in rolls:
            log.roll(NOW)
        late = times[number] if times else number
        append(log, batch(*((T + late + i, None, b"v" * 40) for i in range(size))))
    log.roll(NOW)
    return log


@pytest.fixture
def tier() -> Tier:
    """Batches of 1, 2 and 3 records again and again, offsets 0 to 59; segments of 10 batches."""
    made = Tier(filled([1, 2, 3] * 10, {10, 20}))
    made.upload()
    return made


def joined(found: Read) -> bytes:
    assert not isinstance(found, ErrorCode), found
    return b"".join(found)


def offsets(found: Read) -> list[int]:
    """Base offsets of the whole batches."""
    return [header.base_offset for _, header in iter_headers(joined(found))] if found else []


# Records by offset.

SIZES: Final = st.lists(st.integers(1, 12), min_size=2, max_size=30)


@given(
    sizes=SIZES,
    rolls=st.sets(st.integers(1, 29)),
    interval=st.sampled_from([0, 100, 700, 5000]),
    asked=st.tuples(st.floats(0, 1), st.integers(0, 3000), st.floats(0, 1.2), st.booleans()),
)
def test_it_reads_what_the_log_reads(
    sizes: list[int],
    rolls: set[int],
    interval: int,
    asked: tuple[float, int, float, bool],
) -> None:
    tier = Tier(filled(sizes, rolls), interval=interval)
    tier.upload()
    end = tier.log.log_end_offset
    offset, max_bytes, bound, min_one = (
        int(asked[0] * (end - 1)),
        asked[1],
        int(asked[2] * end),
        asked[3],
    )
    want: ReadResult = tier.log.read(
        offset, max_bytes=max_bytes, upper_bound=bound, min_one_batch=min_one
    )
    got = tier.read(offset, max_bytes, bound, min_one_batch=min_one)
    if max_bytes and bound <= end - 1 and len(joined(got)) < want.size:
        # Of a batch cut so short that its header is not there one can't tell where it ends.
        assert joined(got) == b"".join(want.buffers)[: len(joined(got))]
        assert want.size - len(joined(got)) < 61
    else:
        assert joined(got) == b"".join(want.buffers)


def test_the_batch_that_holds_the_offset_comes_first_and_whole(tier: Tier) -> None:
    assert offsets(tier.read(4))[0] == 3
    assert offsets(tier.read(4, max_bytes=1)) == [3]
    assert len(joined(tier.read(4, max_bytes=1))) == len(joined(tier.read(3, max_bytes=1)))
    assert tier.read(4, max_bytes=1, min_one_batch=False) == ()


def test_it_ends_with_the_segment(tier: Tier) -> None:
    assert offsets(tier.read(15)) == [15, 18]
    assert offsets(tier.read(19))[0] == 19


def test_nothing_behind_the_bound(tier: Tier) -> None:
    assert offsets(tier.read(3, upper_bound=6)) == [3]
    assert offsets(tier.read(3, upper_bound=5)) == []
    assert tier.read(3, upper_bound=3) == ()


def test_what_the_tier_does_not_have(tier: Tier) -> None:
    assert tier.read(60) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert tier.read(1000) is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_small_part_of_a_large_segment_is_read() -> None:
    tier = Tier(filled([10] * 2000, set()), interval=4096)
    (segment,) = tier.upload()
    assert segment.size_bytes > 1_000_000
    tier.read(15_004, max_bytes=5000)
    ((start, end),) = tier.store.ranges()
    assert end - start < 5000 + 4096 + 2 * 600
    assert len(tier.store.read) == 2
    tier.read(15_104, max_bytes=5000)
    assert len(tier.store.read) == 3, "the index is read once"


def test_a_batch_larger_than_what_is_asked_for_takes_one_request_more_at_most() -> None:
    log = new_log(LogConfig(remote_storage_enable=True))
    for _ in range(3):
        append(log, batch((T, None, b"v" * 500_000)))
    log.roll(NOW)
    tier = Tier(log, interval=4096)
    tier.upload()
    for offset in range(3):
        tier.store.read.clear()
        want = log.read(offset, max_bytes=100, upper_bound=MAX, min_one_batch=True)
        assert joined(tier.read(offset, max_bytes=100)) == b"".join(want.buffers)
        assert len(tier.store.ranges()) == (2 if offset == 2 else 1)


def test_indexes_give_way_to_those_used_later() -> None:
    tier = Tier(filled([5] * 40, {10, 20, 30}), limit=1300)
    tier.upload()
    for offset in (0, 50, 0, 100, 0, 50):
        tier.read(offset)
    assert len(tier.store.ranges(ObjectKind.OFFSET_INDEX)) == 4
    assert tier.reader.indexes.size_bytes <= 1300
    tier.reader.indexes.clear()
    assert tier.reader.indexes.size_bytes == 0
    tier.read(0)
    assert len(tier.store.ranges(ObjectKind.OFFSET_INDEX)) == 5


def test_a_hole_that_compaction_left_is_read_over() -> None:
    config = LogConfig(remote_storage_enable=True)
    log, later = new_log(config), new_log(config, start_offset=30)
    for each, batches in ((log, [made(0, 3), made(10, 2)]), (later, [made(30, 2)])):
        each.append_as_follower(batches, now_ms=NOW)
        each.roll(NOW)
    tier = Tier(log)
    copy = log.segment_to_upload(0, MAX)
    assert copy is not None
    tier.upload_copy(replace(copy, end_offset=29))
    tier.upload(later)
    assert offsets(tier.read(5)) == [10]
    assert offsets(tier.read(12)) == [30]
    assert offsets(tier.read(29, upper_bound=30)) == []


def made(base: int, count: int, *, epoch: int = 0) -> bytes:
    rows: list[Row] = [(T + base + i, None, b"v" * 40) for i in range(count)]
    return bytes(batch(*rows, base_offset=base, leader_epoch=epoch))


# What belongs to the log.


def branches() -> tuple[Tier, Log]:
    """A log of 0 to 14 in epoch 1 that goes on in epoch 2, to 29; another went on in epoch 1."""
    config = LogConfig(remote_storage_enable=True)
    log, other = new_log(config), new_log(config)
    for each in (log, other):
        for _ in range(3):
            append(each, batch(*((T, None, b"both") for _ in range(5))), epoch=1)
    for number in range(3):
        append(log, batch(*((T + 5, None, b"right") for _ in range(5))), epoch=2)
        append(other, batch(*((T + 9, None, b"wrong") for _ in range(5))), epoch=1)
        log.roll(NOW)
        if number:
            other.roll(NOW)
    return Tier(log), other


def test_what_was_truncated_is_not_read() -> None:
    tier, other = branches()
    tier.upload(other)
    assert offsets(tier.read(0)) == [0, 5, 10]
    assert offsets(tier.read(12, max_bytes=200)) == [10]
    for offset in (15, 25, 29):
        assert tier.read(offset) is ErrorCode.OFFSET_OUT_OF_RANGE


def test_what_replaced_it_is() -> None:
    tier, other = branches()
    tier.upload(other)
    tier.upload()
    for offset, base in ((0, 0), (14, 10), (15, 15), (24, 20), (25, 25)):
        found = tier.read(offset)
        assert offsets(found)[0] == base
        assert b"wrong" not in joined(found)


def test_times_of_what_was_truncated_do_not_count() -> None:
    tier, other = branches()
    tier.upload(other)
    assert tier.lookup(T) == (T, 0, 1)
    assert tier.lookup(T + 1) is None
    assert tier.latest() == (T, 0, 1)
    tier.upload()
    assert tier.lookup(T + 1) == (T + 5, 15, 2)
    assert tier.latest() == (T + 5, 15, 2)


# Records by time.


@given(
    sizes=SIZES,
    rolls=st.sets(st.integers(1, 29)),
    times=st.lists(st.integers(0, 60), min_size=30, max_size=30),
    interval=st.sampled_from([0, 100, 700, 5000]),
    timestamp=st.integers(-5, 80),
    start=st.floats(0, 1),
)
def test_it_finds_what_the_log_finds(
    sizes: list[int],
    rolls: set[int],
    times: list[int],
    interval: int,
    timestamp: int,
    start: float,
) -> None:
    log = filled(sizes, rolls, times)
    tier = Tier(log, interval=interval)
    tier.upload()
    # Only the log start moves; the tier keeps what lies before it a while longer.
    log.advance_log_start(int(start * (log.log_end_offset - 1)))
    assert tier.lookup(T + timestamp) == log.offset_for_timestamp(T + timestamp)
    records = [
        TimestampAndOffset(record.timestamp, record.offset, 0)
        for record in records_from(log, log.log_start_offset)
    ]
    latest = max(records, key=lambda each: (each.timestamp, -each.offset))
    assert tier.latest() == latest
    assert tier.latest(latest.timestamp) == latest
    assert tier.latest(latest.timestamp + 1) is None


def records_from(log: Log, start: int) -> list[Record]:
    return [each for each in records_of(log) if each.offset >= start]


def test_a_lookup_begins_where_the_indexes_say() -> None:
    tier = Tier(filled([10] * 2000, set(), list(range(2000))), interval=4096)
    tier.upload()
    assert tier.lookup(T + 1500) == (T + 1500, 14_919, 0)
    ((start, end),) = tier.store.ranges()
    assert start > 500_000
    assert end - start <= 64 << 10


# When the tier fails.


def test_a_tier_that_cannot_be_looked_at(tier: Tier) -> None:
    tier.known = TierError("t", "not now")
    assert tier.read(0) is ErrorCode.REPLICA_NOT_AVAILABLE
    assert tier.lookup(T) is ErrorCode.REPLICA_NOT_AVAILABLE


@pytest.mark.parametrize("part", [ObjectKind.LOG, ObjectKind.OFFSET_INDEX])
def test_objects_that_are_gone(tier: Tier, part: ObjectKind) -> None:
    assert isinstance(tier.known, RemoteSegments)
    for segment in tier.known:
        del tier.store.objects[object_key(segment, part)]
    assert tier.read(0) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert tier.lookup(T) is ErrorCode.UNKNOWN_SERVER_ERROR
    tier.log.advance_log_start(30)
    assert tier.read(0) is ErrorCode.OFFSET_OUT_OF_RANGE, "retention was quicker"


@pytest.mark.parametrize(
    ("part", "data"),
    [
        (ObjectKind.LOG, b""),
        (ObjectKind.LOG, b"abc"),
        (ObjectKind.LOG, b"\xff" * 100_000),
        (ObjectKind.OFFSET_INDEX, b"abc"),
        (ObjectKind.OFFSET_INDEX, b"\xff" * 1000),
    ],
)
def test_objects_that_are_not_what_they_should_be(
    tier: Tier, part: ObjectKind, data: bytes
) -> None:
    assert isinstance(tier.known, RemoteSegments)
    for segment in tier.known:
        tier.store.objects[object_key(segment, part)] = data
    assert tier.read(0) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_an_object_that_was_cut_short(tier: Tier) -> None:
    assert isinstance(tier.known, RemoteSegments)
    for segment in tier.known:
        key = object_key(segment, ObjectKind.LOG)
        tier.store.objects[key] = tier.store.objects[key][:100]
    assert tier.read(0) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_no_tier_at_all(tier: Tier) -> None:
    tier.objects = None
    assert tier.read(0) is ErrorCode.REPLICA_NOT_AVAILABLE
