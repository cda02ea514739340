"""Followers that leave to the remote tier what is there (KIP-405, KIP-1023), request by request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import pytest

from fencepost.broker.context import Context
from fencepost.broker.events import Kind
from fencepost.broker.features import METADATA_VERSION
from fencepost.broker.follower_start import Target
from fencepost.broker.follower_steps import State
from fencepost.broker.network import Answered
from fencepost.broker.replica import Replica
from fencepost.broker.steering import elect, hold, release, roll, step, stop, wipe
from fencepost.protocol.apis import Api
from fencepost.protocol.errors import ErrorCode
from fencepost.storage.epochs import EpochEntry
from tests.broker.talk import list_offset
from tests.broker.test_follower import content
from tests.broker.tiering.tier import Tier

FEATURE: Final = "follower.fetch.last.tiered.offset.enable"
MOVED: Final = ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE
OUT_OF_RANGE: Final = ErrorCode.OFFSET_OUT_OF_RANGE
NONE: Final = ErrorCode.NONE
BACKOFF: Final = 1000
"""Kafka's default of replica.fetch.backoff.ms."""
Asked: TypeAlias = tuple[str, str | None, int | None]
"""API, what ListOffsets was for, and the error that was answered."""

BEGIN: Final = ("Fetch", None, MOVED)
START: Final = ("ListOffsets", "earliest", NONE)
LOCAL: Final = ("ListOffsets", "earliest_local", NONE)
PENDING: Final = ("ListOffsets", "earliest_pending_upload", NONE)
END: Final = ("ListOffsets", "latest", NONE)
TRACE: Final = ("OffsetForLeaderEpoch", None, NONE)
BUILD: Final = ("Tier", None, NONE)
GO_ON: Final = ("Fetch", None, NONE)


class Start(Tier):
    """Broker 1 leads ``t``; broker 2 is to follow, is held, and has nothing.

    Segments are closed by hand.
    """

    def __init__(self, *, enabled: bool = True, brokers: int = 2, **configs: str) -> None:
        super().__init__(brokers, tiered=False)
        if enabled:
            self.enable()
        self.create("t", internal_segment_bytes="1000000", **configs)
        for broker_id in range(2, brokers + 1):
            hold(self.cluster, "t", 0, broker_id, leave_isr=True)
        self.sent: list[tuple[Api, int, Any]] = []
        """What brokers asked each other: API, version and request."""
        self.cluster.network.observe = self._observe

    def _observe(self, api: Api, ctx: Context, message: object) -> Answered:
        self.sent.append((api, ctx.version, message))
        return lambda _answer: None

    def enable(self) -> None:
        self.cluster.controller.set_broker_configs(None, {FEATURE: "true"})

    def segment(self, count: int) -> None:
        """So many records in a segment of their own."""
        self.append(count)
        roll(self.cluster, "t", 0)

    def tier_away(self, count: int, *, local: int = 0) -> None:
        """Segments of ten records, so many in the tier alone, and so many here as well."""
        for _ in range(count):
            self.segment(10)
        assert self.run() is None
        self.manager.delete_local(self.leader("t"))
        for _ in range(local):
            self.segment(10)
        if local:
            assert self.run() is None

    @property
    def new(self) -> Replica:
        return self.replica(2, "t")

    def step(self, count: int) -> list[Asked]:
        steps = step(self.cluster, "t", 0, 2, count)
        return [(each.api, each.asked, each.error) for each in steps]

    @property
    def state(self) -> State:
        follower = self.broker(2).follower("t", 0)
        assert follower is not None
        return follower.state

    def release(self, *broker_ids: int) -> None:
        release(self.cluster, "t", 0, 2)

    def delete_records(self, offset: int) -> None:
        self.leader("t").delete_records(offset)
        self.cluster.scheduler.run_due()

    def assert_caught_up(self, *, start: int, local: int) -> None:
        """The new follower has all that the leader has from an offset on, and knows the rest."""
        leader, new = self.leader("t").log, self.new.log
        assert (new.log_start_offset, new.local_log_start_offset) == (start, local)
        assert new.log_end_offset == leader.log_end_offset
        assert self.new.high_watermark == self.leader("t").high_watermark
        assert local_content(self.new) == [
            r for r in local_content(self.leader("t")) if r[0] >= local
        ]
        assert new.epoch_entries() == leader.epoch_entries()
        assert new.producers() == leader.producers()


def local_content(replica: Replica) -> list[tuple[int, int, bytes | None]]:
    return content(replica, replica.log.local_log_start_offset)


# -- the rows of the table ----------------------------------------------------------------------


def test_row_1_without_the_feature_it_takes_all_that_its_leader_has_here() -> None:
    driver = Start(enabled=False)
    driver.tier_away(3, local=2)
    driver.append(5)
    assert driver.step(4) == [BEGIN, START, LOCAL, BUILD]
    assert driver.new.log.log_end_offset == 30
    driver.release()
    driver.assert_caught_up(start=0, local=30)


def test_row_2_with_the_feature_it_takes_what_waits_to_be_tiered() -> None:
    driver = Start()
    driver.tier_away(3, local=2)
    driver.append(5)
    assert driver.step(4) == [BEGIN, START, PENDING, BUILD]
    assert driver.new.log.log_end_offset == driver.new.high_watermark == 50
    driver.release()
    driver.assert_caught_up(start=0, local=50)


def test_row_3_where_nothing_is_tiered_yet_it_takes_all_of_it() -> None:
    driver = Start()
    driver.append(9)
    driver.delete_records(4)
    assert driver.run() is None
    assert driver.step(5) == [("Fetch", None, OUT_OF_RANGE), START, PENDING, LOCAL, GO_ON]
    driver.release()
    assert (driver.new.log.log_start_offset, driver.new.log.log_end_offset) == (4, 9)


def test_row_4_where_the_leader_does_not_know_yet_it_waits_and_tries_again() -> None:
    driver = Start()
    driver.tier_away(3)
    driver.append(2)
    driver.manager.forget(driver.leader("t"), lambda _: None)
    assert list_offset(driver, "t", Target.EARLIEST_PENDING_UPLOAD, replica_id=2).offset == -1
    driver.release()
    asked = [api.title for api, _, _ in driver.sent]
    assert asked == ["Fetch", "ListOffsets", "ListOffsets", "ListOffsets"]
    assert driver.state is State.BACKING_OFF
    driver.append(1)  # its leader's ring is not what it waits for
    driver.advance(BACKOFF - 1)
    assert len(driver.sent) == len(asked)
    driver.advance(1)
    assert len(driver.sent) == 2 * len(asked)
    assert driver.run() is None
    driver.advance(BACKOFF)
    driver.assert_caught_up(start=0, local=30)


def test_row_5_where_the_tier_ends_before_the_log_start_it_is_left_alone() -> None:
    driver = Start()
    driver.segment(10)
    assert driver.run() is None
    driver.append(10)
    driver.delete_records(15)
    driver.objects.asked.clear()
    assert driver.step(4) == [("Fetch", None, OUT_OF_RANGE), START, PENDING, GO_ON]
    assert driver.objects.asked == []
    driver.release()
    assert (driver.new.log.log_start_offset, driver.new.log.log_end_offset) == (15, 20)


# -- the cases of the old protocol --------------------------------------------------------------


@pytest.mark.parametrize("enabled", [False, True])
def test_case_1_what_the_leader_still_has_is_fetched_from_it(enabled: bool) -> None:
    driver = Start(enabled=enabled)
    driver.segment(10)
    driver.append(5)
    assert driver.run() is None
    assert driver.manager.highest_tiered(driver.leader("t")) == 9
    assert driver.step(2) == [GO_ON, GO_ON]
    driver.assert_caught_up(start=0, local=0)


def test_case_2_1_below_the_log_start_it_goes_to_the_log_start() -> None:
    driver = Start(enabled=False)
    driver.append(10)
    driver.delete_records(6)
    assert driver.step(4) == [("Fetch", None, OUT_OF_RANGE), END, START, GO_ON]
    driver.release()
    driver.assert_caught_up(start=6, local=6)


def test_case_2_1_leads_to_case_2_2_where_the_log_start_is_tiered() -> None:
    driver = Start(enabled=False)
    driver.tier_away(3)
    driver.append(5)
    driver.delete_records(12)
    refused = ("Fetch", None, OUT_OF_RANGE)
    assert driver.step(7) == [refused, END, START, BEGIN, START, LOCAL, BUILD]
    driver.release()
    driver.assert_caught_up(start=12, local=30)


def test_case_2_1_with_the_feature_goes_at_once_behind_what_is_tiered() -> None:
    driver = Start()
    driver.tier_away(3, local=1)
    driver.append(5)
    driver.delete_records(12)
    assert driver.step(4) == [("Fetch", None, OUT_OF_RANGE), START, PENDING, BUILD]
    driver.release()
    driver.assert_caught_up(start=12, local=40)


def test_case_2_2_takes_a_follower_that_fell_behind_with_the_feature_as_without() -> None:
    driver = Start()
    driver.append(4)
    driver.release()
    assert driver.new.log.log_end_offset == 4
    hold(driver.cluster, "t", 0, 2, leave_isr=True)
    driver.tier_away(3, local=2)
    assert driver.step(4) == [BEGIN, START, LOCAL, BUILD]
    driver.release()
    driver.assert_caught_up(start=0, local=34)


def test_what_moved_while_it_was_asked_about_is_refused_once_more() -> None:
    driver = Start(enabled=False)
    driver.tier_away(1, local=1)
    driver.append(3)
    assert driver.step(4)[-1] == BUILD
    driver.manager.delete_local(driver.leader("t"))
    assert driver.step(1) == [BEGIN]
    driver.release()
    driver.assert_caught_up(start=0, local=20)


# -- the example of the KIP ---------------------------------------------------------------------


def example() -> Start:
    """Step 1 of "Follower Fetch Scenarios": the leader has 3 to 7, the tier 0 to 5."""
    driver = Start()
    driver.segment(3)
    assert driver.run() is None
    assert driver.manager.delete_local(driver.leader("t")) == 1
    elect(driver.cluster, "t", 0, 1)
    driver.append(2)
    elect(driver.cluster, "t", 0, 1)
    driver.append(1)
    roll(driver.cluster, "t", 0)
    driver.append(1)
    elect(driver.cluster, "t", 0, 1)
    driver.append(1)
    assert driver.run() is None
    return driver


def test_the_worked_example_step_1_builds_the_leader_epochs_from_the_tier() -> None:
    driver = example()
    leader = driver.leader("t")
    assert driver.tiered() == [(0, 2), (3, 5)]
    epochs = {start: segment.epochs for start, segment in driver.metadata().items()}
    assert epochs == {0: (EpochEntry(0, 0),), 3: (EpochEntry(1, 3), EpochEntry(2, 5))}
    assert [(offset, epoch) for offset, epoch, _ in local_content(leader)] == [
        (3, 1),
        (4, 1),
        (5, 2),
        (6, 2),
        (7, 3),
    ]
    assert leader.high_watermark == 8
    local = list_offset(driver, "t", Target.EARLIEST_LOCAL)
    assert (local.offset, local.leader_epoch) == (3, 1)
    pending = list_offset(driver, "t", Target.EARLIEST_PENDING_UPLOAD)
    assert (pending.offset, pending.leader_epoch) == (6, 2)

    assert driver.step(5) == [BEGIN, START, PENDING, TRACE, BUILD]
    assert driver.new.log.epoch_entries() == (EpochEntry(0, 0), EpochEntry(1, 3), EpochEntry(2, 5))
    assert (driver.new.log.log_start_offset, driver.new.log.log_end_offset) == (0, 6)
    assert local_content(driver.new) == []


def test_the_worked_example_step_2_fetches_from_there_to_the_high_watermark() -> None:
    driver = example()
    driver.step(5)
    assert driver.step(1) == [GO_ON]
    assert [(offset, epoch) for offset, epoch, _ in local_content(driver.new)] == [(6, 2), (7, 3)]
    expected = (EpochEntry(0, 0), EpochEntry(1, 3), EpochEntry(2, 5), EpochEntry(3, 7))
    assert driver.new.log.epoch_entries() == driver.leader("t").log.epoch_entries() == expected
    driver.release()
    driver.assert_caught_up(start=0, local=6)


# -- the requests -------------------------------------------------------------------------------


def test_it_asks_as_a_replica_in_its_leaders_epoch() -> None:
    driver = example()
    driver.release()
    epoch = driver.leader("t").leader_epoch
    lists = [(v, m) for api, v, m in driver.sent if api.title == "ListOffsets"]
    assert [(v, m.replica_id) for v, m in lists] == [(11, 2), (11, 2)]
    partitions = [m.topics[0].partitions[0] for _, m in lists]
    assert [(p.timestamp, p.current_leader_epoch) for p in partitions] == [
        (Target.EARLIEST, epoch),
        (Target.EARLIEST_PENDING_UPLOAD, epoch),
    ]
    ((traced, partition),) = (
        (m, m.topics[0].partitions[0])
        for api, _, m in driver.sent
        if api.title == "OffsetForLeaderEpoch"
    )
    assert traced.replica_id == 2
    assert (partition.current_leader_epoch, partition.leader_epoch) == (epoch, 1)


def test_the_epoch_before_is_that_of_the_last_record_that_is_left() -> None:
    """Kafka's own example: an epoch in which nothing was written leaves a gap."""
    driver = Start()
    driver.append(5)
    elect(driver.cluster, "t", 0, 1)
    elect(driver.cluster, "t", 0, 1)
    driver.tier_away(1)
    elect(driver.cluster, "t", 0, 1)
    elect(driver.cluster, "t", 0, 1)
    driver.append(3)
    assert driver.leader("t").leader_epoch == 4
    assert list_offset(driver, "t", Target.EARLIEST_PENDING_UPLOAD).leader_epoch == 4
    driver.release()
    driver.assert_caught_up(start=0, local=15)


@pytest.mark.parametrize("level", [28, 29])
def test_below_its_level_the_feature_is_set_and_has_no_effect(level: int) -> None:
    driver = Start()
    driver.cluster.controller.update_features({METADATA_VERSION: level})
    driver.broker(1).ceilings = {}  # as Apache Kafka, which serves more than brokers use
    driver.tier_away(3, local=2)
    driver.append(5)
    expected = [BEGIN, START, PENDING, BUILD] if level == 29 else [BEGIN, START, LOCAL, BUILD]
    assert driver.step(4) == expected
    versions = {version for api, version, _ in driver.sent if api.title == "ListOffsets"}
    assert versions == ({11} if level == 29 else {10})


def test_a_leader_that_is_too_old_is_not_asked_what_it_does_not_know() -> None:
    driver = Start()
    driver.broker(1).ceilings = {"list_offsets": 10}
    driver.tier_away(3, local=2)
    assert driver.step(3) == [BEGIN, START, LOCAL]


def test_the_feature_can_be_turned_on_while_brokers_run() -> None:
    driver = Start(enabled=False)
    driver.tier_away(3, local=2)
    assert driver.step(3) == [BEGIN, START, LOCAL]
    driver.enable()
    wipe(driver.cluster, "t", 0, 2)
    assert driver.step(3) == [BEGIN, START, PENDING]


def test_a_topic_without_a_tier_knows_the_old_protocol_alone() -> None:
    driver = Start(remote_storage_enable="false")
    driver.append(9)
    driver.delete_records(4)
    assert driver.step(3) == [("Fetch", None, OUT_OF_RANGE), END, START]


# -- the tier fails, and others come between ----------------------------------------------------


def test_a_tier_that_fails_is_asked_again_from_the_beginning() -> None:
    driver = Start()
    driver.tier_away(3)
    driver.append(2)
    driver.objects.fails = lambda op, _key: op == "list"
    assert driver.step(4) == [BEGIN, START, PENDING, ("Tier", None, ErrorCode.KAFKA_STORAGE_ERROR)]
    assert driver.state is State.BACKING_OFF
    driver.release()
    assert (driver.new.log.log_end_offset, driver.new.log.epoch_entries()) == (0, ())
    driver.advance(BACKOFF)
    assert driver.state is State.BACKING_OFF
    driver.objects.fails = lambda _op, _key: False
    driver.advance(BACKOFF)
    driver.assert_caught_up(start=0, local=30)


@pytest.mark.parametrize("suffix", [".json", ".leader-epoch-checkpoint", ".snapshot"])
def test_nothing_is_half_built(suffix: str) -> None:
    driver = Start()
    driver.tier_away(3)
    key = max(key for key in driver.objects.objects if key.endswith(suffix))
    kept, driver.objects.objects[key] = driver.objects.objects[key], b"broken"
    driver.release()
    assert (driver.state, driver.new.log.log_end_offset) == (State.BACKING_OFF, 0)
    driver.objects.objects[key] = kept
    driver.advance(BACKOFF)
    driver.assert_caught_up(start=0, local=30)


def held_while_building() -> Start:
    """Three brokers; 2 builds, and the tier takes its time. Broker 3 has all that 1 has."""
    driver = Start(brokers=3)
    release(driver.cluster, "t", 0, 3)
    driver.tier_away(3)
    driver.append(4)
    driver.objects.holds = lambda op, key: op == "get" and key.endswith("-checkpoint")
    driver.release()
    assert driver.state is State.BUILDING
    return driver


def test_a_new_leader_makes_what_is_built_worthless() -> None:
    driver = held_while_building()
    elect(driver.cluster, "t", 0, 3)
    asked = len(driver.sent)
    driver.objects.release()
    driver.cluster.scheduler.run_due()
    assert [api.title for api, _, _ in driver.sent[asked:]] == []
    assert not [o for o, key in driver.objects.asked if o == "get" and key.endswith(".snapshot")]
    driver.append(1)
    driver.advance(BACKOFF)
    driver.assert_caught_up(start=0, local=driver.new.log.local_log_start_offset)
    assert driver.new.leader == 3


def test_a_truncated_leader_is_asked_anew() -> None:
    """What is tiered is on none of the others: the new leader's log is shorter than the tier."""
    driver = Start(brokers=3)
    driver.append(5)
    release(driver.cluster, "t", 0, 3)
    hold(driver.cluster, "t", 0, 3, leave_isr=True)
    driver.tier_away(2)
    driver.append(4)
    driver.objects.holds = lambda op, key: op == "get" and key.endswith(".snapshot")
    driver.release()
    assert driver.state is State.BUILDING
    elect(driver.cluster, "t", 0, 3, unclean=True)
    driver.objects.release()
    driver.append(1)
    driver.advance(BACKOFF)
    assert content(driver.new) == content(driver.leader("t"))
    assert driver.new.log.epoch_entries() == driver.leader("t").log.epoch_entries()


def test_one_that_left_more_to_the_tier_than_a_new_leader_has_starts_anew() -> None:
    driver = Start(brokers=3)
    driver.append(5)
    release(driver.cluster, "t", 0, 3)
    hold(driver.cluster, "t", 0, 3, leave_isr=True)
    driver.tier_away(2)
    driver.append(4)
    driver.release()
    assert driver.new.log.local_log_start_offset == 25
    elect(driver.cluster, "t", 0, 3, unclean=True)
    driver.append(1)
    driver.advance(BACKOFF)
    assert content(driver.new) == content(driver.leader("t"))
    assert driver.new.log.epoch_entries() == driver.leader("t").log.epoch_entries()


@pytest.mark.parametrize("undo", ["stop", "wipe", "elect"])
def test_who_is_gone_or_leads_builds_no_more(undo: str) -> None:
    driver = held_while_building()
    before = driver.new
    actions: dict[str, Callable[[], None]] = {
        "stop": lambda: stop(driver.cluster, 2),
        "wipe": lambda: wipe(driver.cluster, "t", 0, 2),
        "elect": lambda: elect(driver.cluster, "t", 0, 2, unclean=True),
    }
    actions[undo]()
    driver.objects.holds = lambda _op, _key: False
    held, driver.objects.held = driver.objects.held, []
    held[0]()
    driver.cluster.scheduler.run_due()
    assert before.log.log_start_offset == before.log.local_log_start_offset
    assert before.log.log_end_offset == 0


def test_a_held_follower_builds_nothing_by_itself() -> None:
    driver = Start()
    driver.tier_away(3)
    states = []
    for _ in range(5):
        (done,) = step(driver.cluster, "t", 0, 2)
        states.append(done.state)
        driver.append(1)
        driver.advance(10)
    assert states == [
        State.LOST,
        State.LOST,
        State.BUILDING,
        State.FETCHING,
        State.FETCHING,
    ]


def test_it_is_told_of() -> None:
    driver = Start()
    driver.tier_away(3)
    driver.release()
    (event,) = driver.told(Kind.LOG_STARTED_FROM_TIER)
    assert (event.topic, event.partition, event.broker) == ("t", 0, 2)
    assert event.details == {"offset": 30, "log_start_offset": 0, "previous_offset": 0}
    assert driver.told(Kind.LOG_TRUNCATED) == []


# -- what it is good for ------------------------------------------------------------------------


def test_it_joins_the_isr_with_a_small_part_of_the_data() -> None:
    driver = Start()
    driver.tier_away(6, local=3)
    driver.append(10)
    driver.release()
    assert set(driver.partition("t").isr) == {1, 2}
    here = sum(segment.size_bytes for segment in driver.new.log.segments())
    tiered = sum(segment.size_bytes for segment in driver.metadata().values())
    assert here / (here + tiered) == pytest.approx(0.1)
