"""What of the tier belongs to a log: by example, and against a model that knows every record."""

from __future__ import annotations

from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.storage.log.leader_epoch_cache import EpochEntry, LeaderEpochCache
from fencepost.storage.tier.lineage import RemoteSegments, valid_end
from fencepost.storage.tier.segment_metadata import RemoteLogSegmentState, RemoteSegment
from tests.storage.tier.segments import lineage, segment

LINEAGE = lineage((1, 0), (3, 40))


@pytest.mark.parametrize(
    ("tiered", "end"),
    [
        (segment(0, 29, (1, 0)), 29),
        (segment(30, 49, (1, 30)), 39),
        (segment(50, 59, (1, 50)), None),
        (segment(30, 59, (1, 30), (2, 40)), 39),
        (segment(30, 59, (1, 30), (2, 45)), 39),
        (segment(30, 59, (1, 30), (2, 35)), 34),
        (segment(30, 59, (1, 30), (3, 40)), 59),
        (segment(30, 59, (1, 30), (3, 40), (4, 50)), 49),
        (segment(0, 9, (2, 0)), None),
        (segment(60, 69, (4, 60)), None),
    ],
)
def test_of_a_segment_belongs_what_comes_before_the_logs_part(
    tiered: RemoteSegment, end: int | None
) -> None:
    assert valid_end(tiered, LINEAGE) == end


def test_a_lineage_that_begins_later_does_not_judge_what_is_before() -> None:
    assert valid_end(segment(0, 60, (0, 0), (1, 20), (3, 40)), lineage((1, 30), (3, 40))) == 60
    assert valid_end(segment(0, 60, (0, 0), (1, 20)), lineage((1, 30), (3, 40))) == 39
    assert valid_end(segment(0, 19, (0, 0)), lineage((1, 30))) is None


def test_without_a_lineage_nothing_belongs() -> None:
    assert valid_end(segment(0, 9), ()) is None


def test_what_is_not_whole_is_not_served() -> None:
    segments = RemoteSegments()
    for start, state in enumerate(RemoteLogSegmentState):
        segments.put(segment(start * 10, start * 10 + 9, (0, start * 10), state=state))
    assert [each.start_offset for each in segments.ranges(lineage((0, 0)))] == [10]
    assert segments.range_for(lineage((0, 0)), 5) is None
    assert segments.segment_for(0, 5) is None
    assert segments.highest_offset(0) == 19
    assert len(segments) == 4


def test_a_new_state_counts_from_then_on() -> None:
    segments = RemoteSegments()
    copied = segment(0, 9)
    segments.put(copied)
    assert segments.highest_tiered(lineage((0, 0)), 100) == 9
    segments.put(
        copied.with_state(RemoteLogSegmentState.DELETE_SEGMENT_STARTED, broker_id=1, now_ms=1)
    )
    assert segments.highest_tiered(lineage((0, 0)), 100) == -1
    segments.drop(copied.id)
    segments.drop(copied.id)
    assert list(segments) == []


def test_of_several_segments_with_an_offset_the_one_that_begins_last_is_read() -> None:
    segments = RemoteSegments()
    for start, end in ((0, 20), (10, 30), (15, 17), (31, 40)):
        segments.put(segment(start, end, (0, start)))
    found = {offset: segments.range_for(lineage((0, 0)), offset) for offset in (9, 16, 18, 30, 41)}
    starts = {offset: each and each.start_offset for offset, each in found.items()}
    assert starts == {9: 0, 16: 15, 18: 10, 30: 10, 41: None}


def test_by_epoch_and_offset_the_record_is_found_that_was_written_then() -> None:
    segments = RemoteSegments()
    first, other = segment(0, 20, (0, 0), (1, 10)), segment(5, 25, (0, 5), (2, 15))
    segments.put(first)
    segments.put(other)
    assert segments.segment_for(1, 15) == first
    assert segments.segment_for(2, 15) == other
    assert segments.segment_for(3, 15) is None
    assert segments.segment_for(1, 21) is None
    assert [segments.highest_offset(epoch) for epoch in range(4)] == [14, 20, 25, None]


def test_a_log_that_ends_earlier_has_no_more_than_that_in_the_tier() -> None:
    segments = RemoteSegments()
    segments.put(segment(0, 20))
    assert segments.highest_tiered(lineage((0, 0)), 10) == 9
    assert segments.highest_tiered(lineage((0, 0)), 0) == -1


def test_the_first_offset_of_the_tier_is_not_before_the_log_start() -> None:
    segments = RemoteSegments()
    assert segments.first_offset(lineage((0, 0)), 0) is None
    segments.put(segment(0, 9))
    segments.put(segment(15, 19, (0, 15)))
    firsts = [segments.first_offset(lineage((0, 0)), start) for start in (0, 5, 10, 15, 19, 20)]
    assert firsts == [0, 5, 15, 15, 19, None]


# Against a model: histories in which leaders come and go, and lose what they had.

Record: TypeAlias = tuple[int, int]
"""Leader epoch, and a number that no other record has."""
ROUNDS = st.lists(
    st.tuples(
        st.integers(0, 2),  # who is elected
        st.integers(0, 6),  # how much it writes
        st.integers(0, 6),  # how far another one follows
        st.integers(0, 2),  # which one
        st.integers(0, 9),  # from where on a segment is tiered, by the leader
        st.integers(1, 6),  # and how long it is
    ),
    max_size=8,
)


class Histories:
    """Three replicas, of which any may be elected, and what they put into the tier."""

    def __init__(self) -> None:
        self.logs: list[list[Record]] = [[], [], []]
        self.caches = [LeaderEpochCache() for _ in range(3)]
        self.segments = RemoteSegments()
        self.contents: dict[object, list[Record]] = {}
        self._written = 0

    def take(self, rounds: list[tuple[int, int, int, int, int, int]]) -> None:
        for epoch, (leader, writes, reach, follower, start, length) in enumerate(rounds):
            log = self.logs[leader]
            self.caches[leader].assign(epoch, len(log))
            for _ in range(writes):
                self._written += 1
                log.append((epoch, self._written))
            if follower != leader:
                self._follow(leader, follower, reach)
            self._tier(leader, start, length)

    def _follow(self, leader: int, follower: int, reach: int) -> None:
        """As KIP-101 has it: what differs goes, then `reach` records come."""
        theirs, ours = self.logs[leader], self.logs[follower]
        same = 0
        while same < min(len(theirs), len(ours)) and theirs[same] == ours[same]:
            same += 1
        del ours[same:]
        ours += theirs[same : same + reach]
        cache = self.caches[follower]
        cache.truncate_from_end(same)
        for offset in range(same, len(ours)):
            if cache.latest != ours[offset][0]:
                cache.assign(ours[offset][0], offset)

    def _tier(self, leader: int, start: int, length: int) -> None:
        records = self.logs[leader][start : start + length]
        if not records:
            return
        epochs: list[EpochEntry] = []
        for offset, (epoch, _) in enumerate(records, start):
            if not epochs or epochs[-1].epoch != epoch:
                epochs.append(EpochEntry(epoch, offset))
        tiered = segment(start, start + len(records) - 1, *epochs, number=len(self.contents) + 1)
        self.segments.put(tiered)
        self.contents[tiered.id] = records


@given(ROUNDS)
def test_what_is_served_to_a_replica_is_what_it_has_or_had(
    rounds: list[tuple[int, int, int, int, int, int]],
) -> None:
    histories = Histories()
    histories.take(rounds)
    for log, cache in zip(histories.logs, histories.caches, strict=True):
        _check_ranges(histories, log, cache)


def _check_ranges(histories: Histories, log: list[Record], cache: LeaderEpochCache) -> None:
    entries = cache.entries()
    ends = {each.segment.id: each.end_offset for each in histories.segments.ranges(entries)}
    for tiered in histories.segments:
        records = histories.contents[tiered.id]
        # What lies behind the log's end is of its last epoch, as far as it can know.
        belongs = [
            offset
            for offset, record in enumerate(records, tiered.start_offset)
            if (offset < len(log) and log[offset] == record)
        ]
        end = min(ends.get(tiered.id, -1), len(log) - 1)
        assert belongs == list(range(tiered.start_offset, end + 1))
    have = {o for each in histories.segments.ranges(entries) for o in range(each[0], each[1] + 1)}
    expected = max((o for o in have if o < len(log)), default=-1)
    assert histories.segments.highest_tiered(entries, len(log)) == expected
    for offset in range(len(log)):
        found = histories.segments.range_for(entries, offset)
        assert (found is not None) == (offset in have)
        if found is not None:
            kept = histories.contents[found.segment.id]
            assert kept[offset - found.start_offset] == log[offset]
