"""A replica's rules: high and low watermarks, roles, what leaders know of followers."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.broker.core.waits import Wait, WatchList
from fencepost.broker.metadata.image import PartitionImage
from fencepost.broker.replication.replica import Replica
from fencepost.storage.log.append_result import AppendResult
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.leader_epoch_cache import EpochEntry
from fencepost.storage.memory import memory_log
from tests.harness.records import TIMESTAMP, batch

NOW_MS = TIMESTAMP + 1_000


@dataclass
class Subject:
    """The replica of broker 1, and whom it rang."""

    replica: Replica
    rung: list[int] = field(default_factory=list)

    def append(self, *values: bytes) -> None:
        assert isinstance(self.replica.append(batch(*values), now_ms=NOW_MS), AppendResult)

    def fetched(self, broker_id: int, offset: int, start: int = 0, now_ms: int = NOW_MS) -> None:
        self.replica.record_fetch(
            broker_id, fetch_offset=offset, log_start_offset=start, now_ms=now_ms
        )


def subject() -> Subject:
    rung: list[int] = []
    replica = Replica(
        topic="t",
        topic_id=UUID(int=1),
        index=0,
        broker_id=1,
        log=memory_log("t-0", LogConfig()),
        notify_follower=lambda broker_id, _topic, _index: rung.append(broker_id),
        maybe_expand_isr=lambda _replica, _follower: None,
    )
    return Subject(replica, rung)


def image(
    leader: int = 1,
    epoch: int = 0,
    partition_epoch: int = 0,
    isr: tuple[int, ...] = (1, 2, 3),
    replicas: tuple[int, ...] = (1, 2, 3),
) -> PartitionImage:
    return PartitionImage(
        replicas=replicas,
        isr=isr,
        leader=leader,
        leader_epoch=epoch,
        partition_epoch=partition_epoch,
    )


def leader(isr: tuple[int, ...] = (1, 2, 3)) -> Subject:
    made = subject()
    made.replica.make_leader(image(isr=isr), now_ms=NOW_MS)
    return made


def notices(watched: WatchList) -> list[int]:
    """Grows by one at each notice."""
    seen: list[int] = []
    wait: Wait[int] = Wait()
    wait.watch([watched], lambda: seen.append(1))
    return seen


def test_the_high_watermark_is_the_lowest_end_of_the_isr() -> None:
    at = leader()
    at.append(b"a", b"b", b"c")
    assert at.replica.high_watermark == 0
    at.fetched(2, 3)
    assert at.replica.high_watermark == 0
    at.fetched(3, 2)
    assert at.replica.high_watermark == 2
    at.fetched(3, 3)
    assert at.replica.high_watermark == 3


def test_who_is_not_in_the_isr_does_not_hold_the_watermark_back() -> None:
    at = leader(isr=(1, 2))
    at.append(b"a")
    at.fetched(2, 1)
    assert at.replica.high_watermark == 1


def test_a_leader_alone_commits_what_it_appends() -> None:
    at = leader(isr=(1,))
    at.append(b"a")
    assert at.replica.high_watermark == 1


def test_a_shrunk_isr_lets_the_watermark_rise_within_the_epoch() -> None:
    at = leader()
    at.append(b"a")
    at.fetched(2, 1)
    heard = notices(at.replica.watermark_watch)
    at.replica.make_leader(image(isr=(1, 2), partition_epoch=1), now_ms=NOW_MS)
    assert (at.replica.high_watermark, len(heard)) == (1, 1)
    assert at.replica.epoch_start_offset == 0


def test_a_stranger_changes_nothing() -> None:
    at = leader(isr=(1, 2))
    at.append(b"a")
    at.fetched(9, 1)
    assert 9 not in at.replica.followers
    assert at.replica.high_watermark == 0


@settings(database=None)
@given(st.lists(st.tuples(st.sampled_from([1, 2, 3]), st.integers(0, 20)), max_size=40))
def test_the_watermark_never_falls_and_never_passes_the_isr(steps: list[tuple[int, int]]) -> None:
    at = leader()
    ends = {2: 0, 3: 0}
    for broker_id, offset in steps:
        before = at.replica.high_watermark
        if broker_id == 1:
            at.append(b"v")
        else:
            ends[broker_id] = min(offset, at.replica.log.log_end_offset)
            at.fetched(broker_id, ends[broker_id])
            assert at.replica.high_watermark == max(before, min(ends.values()))
        assert before <= at.replica.high_watermark <= at.replica.log.log_end_offset


def test_an_election_begins_an_epoch_at_once_and_forgets_what_followers_said() -> None:
    at = leader()
    at.append(b"a", b"b")
    at.fetched(2, 2)
    at.replica.make_leader(image(epoch=4), now_ms=NOW_MS)
    assert at.replica.epoch_start_offset == 2
    assert at.replica.end_offset_for_epoch(0) == (0, 2)
    assert at.replica.end_offset_for_epoch(3) == (0, 2)
    assert at.replica.end_offset_for_epoch(4) == (4, 2)
    assert at.replica.log.epoch_entries() == (EpochEntry(0, 0), EpochEntry(4, 2))
    assert {p.log_end_offset for p in at.replica.followers.values()} == {-1}


def test_a_follower_takes_the_leaders_watermark_as_far_as_it_has_records() -> None:
    made = subject()
    made.replica.make_follower(image(leader=2))
    heard = notices(made.replica.watermark_watch)
    stamped = batch(b"a", b"b")
    made.replica.append_fetched([stamped], now_ms=NOW_MS)
    made.replica.update_high_watermark(9)
    assert (made.replica.high_watermark, len(heard)) == (2, 1)
    made.replica.update_high_watermark(1)
    assert (made.replica.high_watermark, len(heard)) == (2, 1)


def test_every_change_of_role_is_told_to_who_waits() -> None:
    made = subject()
    heard = notices(made.replica.watermark_watch)
    made.replica.make_leader(image(), now_ms=NOW_MS)
    made.replica.make_follower(image(leader=2, epoch=1))
    made.replica.make_follower(image(leader=3, epoch=2))
    assert len(heard) == 3
    made.replica.make_follower(image(leader=3, epoch=2, isr=(3, 1)))
    assert (len(heard), made.replica.isr) == (3, (3, 1))
    made.replica.resign()
    assert (len(heard), made.replica.leader, made.replica.is_leader) == (4, -1, False)


def test_followers_are_rung_for_records_and_for_a_watermark_they_do_not_know() -> None:
    at = leader()
    at.rung.clear()
    at.append(b"a")
    assert sorted(at.rung) == [2, 3]
    at.rung.clear()
    at.fetched(2, 1)
    at.replica.record_fetch_response(2)
    assert at.rung == []
    at.fetched(3, 1)
    assert at.rung == [2], "3 is being answered, and hears of the watermark so"


def test_progress_says_when_a_follower_last_had_everything() -> None:
    at = leader()
    at.append(b"a")
    at.fetched(2, 0, now_ms=NOW_MS + 5)
    assert at.replica.followers[2].last_fetch_ms == NOW_MS + 5
    assert at.replica.followers[2].last_caught_up_ms == NOW_MS, "in sync at the election"
    at.append(b"b")
    at.fetched(2, 1, now_ms=NOW_MS + 8)
    assert at.replica.followers[2].last_caught_up_ms == NOW_MS + 5, "it has what there was then"
    at.fetched(2, 2, now_ms=NOW_MS + 9)
    assert at.replica.followers[2].last_caught_up_ms == NOW_MS + 9


def test_a_laggard_is_who_lacks_records_for_too_long() -> None:
    at = leader()
    at.fetched(3, 0)
    assert at.replica.out_of_sync_followers(NOW_MS + 1) == {2}, "3 has all that there is"
    at.append(b"a")
    at.fetched(2, 1)
    assert at.replica.out_of_sync_followers(NOW_MS) == set()
    assert at.replica.out_of_sync_followers(NOW_MS + 1) == {3}


def test_the_watermark_stands_still_while_the_isr_is_too_small() -> None:
    at = leader(isr=(1,))
    at.replica.min_insync_replicas = 2
    at.append(b"a")
    assert at.replica.high_watermark == 0
    at.replica.make_leader(image(isr=(1, 2), partition_epoch=1), now_ms=NOW_MS)
    at.fetched(2, 1)
    assert at.replica.high_watermark == 1


def test_a_proposed_isr_holds_the_watermark_back_until_its_fate_is_known() -> None:
    at = leader(isr=(1,))
    at.replica.pending_isr = (1, 2)
    at.append(b"a")
    assert at.replica.high_watermark == 0
    at.replica.withdraw_proposal()
    assert at.replica.high_watermark == 1


def test_a_duplicate_is_not_news() -> None:
    at = leader(isr=(1,))
    at.replica.append(batch(b"a", producer=(1, 0, 0)), now_ms=NOW_MS)
    heard = notices(at.replica.end_watch)
    at.replica.append(batch(b"a", producer=(1, 0, 0)), now_ms=NOW_MS)
    assert heard == []
    at.replica.append(batch(b"b", producer=(1, 0, 1)), now_ms=NOW_MS)
    assert len(heard) == 1


def test_the_low_watermark_is_the_least_log_start_of_those_alive() -> None:
    at = leader()
    for _ in range(5):
        at.append(b"v")
    everyone, two = {1, 2, 3}, {1, 2}
    assert at.replica.low_watermark(everyone) == -1
    at.fetched(2, 5)
    at.fetched(3, 5)
    assert at.replica.low_watermark(everyone) == 0
    at.rung.clear()
    heard = notices(at.replica.watermark_watch)
    at.replica.delete_records(4)
    assert (sorted(at.rung), len(heard)) == ([2, 3], 1)
    at.fetched(2, 5, start=4)
    assert at.replica.low_watermark(everyone) == 0
    assert at.replica.low_watermark(two) == 4
    assert len(heard) == 2
    at.rung.clear()
    at.replica.delete_records(4)
    assert at.rung == []


@pytest.mark.parametrize(
    ("isr", "minimum", "replicas", "enough"),
    [
        ((1, 2), 2, (1, 2, 3), True),
        ((1,), 2, (1, 2, 3), False),
        ((1,), 2, (1,), True),
        ((1, 2, 3), 9, (1, 2, 3), True),
        ((1, 2), 9, (1, 2, 3), False),
    ],
)
def test_enough_replicas(
    isr: tuple[int, ...], minimum: int, replicas: tuple[int, ...], enough: bool
) -> None:
    made = subject()
    made.replica.make_leader(image(isr=isr, replicas=replicas), now_ms=NOW_MS)
    made.replica.min_insync_replicas = minimum
    assert made.replica.has_min_isr() is enough


def test_a_follower_whose_batches_are_all_deleted_begins_where_its_leader_does() -> None:
    replica = subject().replica
    replica.make_follower(image(leader=2))
    records = batch(b"a", b"b", b"c", producer=(7, 0, 0), transactional=True)
    replica.append_fetched([records], now_ms=NOW_MS)
    replica.update_high_watermark(1)
    replica.truncate_to(1)
    assert (replica.log.log_end_offset, replica.ends_after_gap) == (1, True)
    assert replica.start_over_if_deleted(1, now_ms=NOW_MS)
    assert not replica.start_over_if_deleted(1, now_ms=NOW_MS)
    replica.make_leader(image(epoch=1), now_ms=NOW_MS)
    assert (replica.log.log_start_offset, replica.log.log_end_offset) == (1, 1)
    assert (replica.high_watermark, replica.last_stable_offset) == (1, 1)
