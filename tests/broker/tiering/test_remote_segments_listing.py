from __future__ import annotations

from collections import deque
from collections.abc import Callable
from uuid import UUID

from fencepost.broker.core.async_tasks import AsyncTask
from fencepost.broker.tiering.remote_segments import list_metadata
from fencepost.storage.tier.lineage import RemoteSegments
from fencepost.storage.tier.object_store import (
    MemoryObjectStore,
    ObjectKind,
    TierError,
    object_key,
    partition_prefix,
)
from fencepost.storage.tier.segment_metadata import (
    CorruptMetadata,
    RemoteLogSegmentState,
    RemoteSegment,
)
from tests.storage.tier.segments import PARTITION, segment


class Reader(MemoryObjectStore):
    """Notes which keys are read."""

    def __init__(self) -> None:
        self.turns: deque[Callable[[], None]] = deque()
        super().__init__(self.turns.append)
        self.read: list[str] = []
        self.fails = False
        self.corrupt: list[str] = []

    def get(
        self, key: str, start: int, end: int | None, done: Callable[[bytes | TierError], None]
    ) -> None:
        self.read.append(key)
        if self.fails:
            self._soon(lambda: done(TierError(key, "no")))
        else:
            super().get(key, start, end, done)

    def put_segments(self, *segments: RemoteSegment) -> None:
        for each in segments:
            self.objects[object_key(each, ObjectKind.METADATA)] = each.to_json()
            self.objects[object_key(each, ObjectKind.LOG)] = b""

    def learn(self, known: RemoteSegments, *, reread: bool = False) -> frozenset[str] | TierError:
        told: list[frozenset[str] | TierError] = []
        self.read.clear()

        def note(key: str, _error: CorruptMetadata) -> None:
            self.corrupt.append(key)

        AsyncTask(
            list_metadata(self, PARTITION, known, reread=reread, corrupt=note), told.append
        ).start()
        while self.turns:
            self.turns.popleft()()
        (answer,) = told
        return answer


def test_what_is_new_and_what_was_not_finished_is_read() -> None:
    tier, known = Reader(), RemoteSegments()
    done = segment(0, 9)
    going = segment(10, 19, state=RemoteLogSegmentState.COPY_SEGMENT_STARTED)
    tier.put_segments(done, going)
    assert tier.learn(known) == frozenset()
    assert list(known) == [done, going]
    finished = going.with_state(RemoteLogSegmentState.COPY_SEGMENT_FINISHED, broker_id=1, now_ms=1)
    more = segment(20, 29)
    tier.put_segments(finished, more)
    tier.learn(known)
    assert list(known) == [done, finished, more]
    assert tier.read == [object_key(each, ObjectKind.METADATA) for each in (finished, more)]


def test_what_is_gone_is_forgotten() -> None:
    tier, known = Reader(), RemoteSegments()
    tier.put_segments(segment(0, 9), segment(10, 19))
    tier.learn(known)
    del tier.objects[object_key(segment(0, 9), ObjectKind.METADATA)]
    tier.learn(known)
    assert list(known) == [segment(10, 19)]


def test_a_deletion_that_another_began_is_seen_by_who_reads_anew() -> None:
    tier, known = Reader(), RemoteSegments()
    done = segment(0, 9)
    tier.put_segments(done)
    tier.learn(known)
    going = done.with_state(RemoteLogSegmentState.DELETE_SEGMENT_STARTED, broker_id=2, now_ms=1)
    tier.put_segments(going)
    tier.learn(known)
    assert (list(known), tier.read) == ([done], [])
    tier.learn(known, reread=True)
    assert list(known) == [going]


def test_a_copy_whose_records_are_lost_counts_for_nothing() -> None:
    tier, known = Reader(), RemoteSegments()
    tier.put_segments(segment(0, 9), segment(10, 19))
    del tier.objects[object_key(segment(0, 9), ObjectKind.LOG)]
    tier.learn(known)
    assert list(known) == [segment(10, 19)]
    del tier.objects[object_key(segment(10, 19), ObjectKind.LOG)]
    tier.learn(known)
    assert list(known) == []


def test_what_can_not_be_read_changes_nothing() -> None:
    tier, known = Reader(), RemoteSegments()
    tier.put_segments(segment(0, 9), segment(20, 29))
    tier.learn(known)
    del tier.objects[object_key(segment(0, 9), ObjectKind.METADATA)]
    tier.put_segments(segment(30, 39))
    tier.fails = True
    assert isinstance(tier.learn(known), TierError)
    assert list(known) == [segment(0, 9), segment(20, 29)]


def test_objects_without_metadata_are_named() -> None:
    tier, known = Reader(), RemoteSegments()
    tier.put_segments(segment(0, 9))
    stray = object_key(segment(10, 19), ObjectKind.TIME_INDEX)
    tier.objects[stray] = b""
    assert tier.learn(known) == frozenset({stray})


def test_other_objects_and_other_partitions_are_left_alone() -> None:
    tier, known = Reader(), RemoteSegments()
    prefix = partition_prefix(PARTITION)
    for name in ("README", "1.log", f"{'0' * 20}-x.json", f"{'0' * 20}-{'A' * 22}"):
        tier.objects[prefix + name] = b"{}"
    tier.objects[prefix.removesuffix("0/") + "01/" + "x.json"] = b"{}"
    assert tier.learn(known) == frozenset()
    assert len(known) == 0
    assert tier.read == []


def test_metadata_that_are_none_count_for_nothing() -> None:
    tier, known = Reader(), RemoteSegments()
    tier.put_segments(segment(0, 9))
    key = object_key(segment(10, 19, number=UUID(int=99).int), ObjectKind.METADATA)
    tier.objects[key] = b"nothing"
    assert tier.learn(known) == frozenset()
    assert list(known) == [segment(0, 9)]
    assert tier.corrupt == [key]
