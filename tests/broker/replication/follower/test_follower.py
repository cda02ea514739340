"""Followers: how logs become the same again, whatever parted them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from msgspec.structs import replace

from fencepost.broker.controller import Fence
from fencepost.broker.handlers.context import Context
from fencepost.broker.network.links import BrokerId, OnResponse
from fencepost.broker.node.operator_actions import elect, hold, isolate, rejoin, release, step
from fencepost.broker.replication.follower.follower import BATCHES_AT_ONCE
from fencepost.broker.replication.replica import Replica
from fencepost.protocol.apis import Api
from fencepost.protocol.errors import ErrorCode
from fencepost.storage.log.leader_epoch_cache import EpochEntry
from tests.harness.driver import Driver, ManualTransport, Message, assert_same, content
from tests.harness.driver_requests import create, produce, send_produce
from tests.harness.garbage import without_collector


def come_back_for_an_election(driver: Driver, *held: int, leader: int) -> None:
    """Brokers that were held fetch again, and have fetched nothing, when one is elected."""
    driver.elect("t", 0, leader)
    driver.release(*held)


def with_a_held_follower_behind_the_log_start() -> Driver:
    """The leader has 6 and 7, and broker 2 the records up to 2."""
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    for n in range(3):
        produce(driver, "t", b"%d" % n)
    hold(driver.cluster, "t", 0, 2, leave_isr=True)
    for n in range(3, 8):
        produce(driver, "t", b"%d" % n)
    driver.leader("t").delete_records(6)
    return driver


def test_what_the_leader_appends_is_everywhere_in_the_same_turn() -> None:
    driver = Driver(3)
    create(driver, "t", [(2, 1, 3)])
    produce(driver, "t", b"a", b"b")
    produce(driver, "t", b"c")
    assert_same(driver)
    assert [value for _, _, value in content(driver.replica(3, "t"))] == [b"a", b"b", b"c"]


def test_a_follower_keeps_the_very_buffers_of_its_leader() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    produce(driver, "t", b"x" * 5000)

    def buffer(broker_id: int) -> object:
        log = driver.replica(broker_id, "t").log
        read = log.read(0, max_bytes=1 << 20, upper_bound=1, min_one_batch=True)
        return read.buffers[0]

    assert buffer(1) is buffer(2)


def test_one_fetch_takes_many_appends_of_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    driver.hold(2)
    for n in range(20):
        produce(driver, "t", b"%d" % n, acks=1)
    calls: list[int] = []
    follower = driver.replica(2, "t")
    append_fetched = Replica.append_fetched

    def counted(self: Replica, batches: list[bytes], *, now_ms: int) -> None:
        calls.append(len(batches))
        append_fetched(self, batches, now_ms=now_ms)

    monkeypatch.setattr(Replica, "append_fetched", counted)
    driver.release(2)
    assert follower.log.log_end_offset == 20
    assert len(calls) == 1
    assert_same(driver)


def test_a_log_larger_than_one_answer_comes_in_several() -> None:
    driver = Driver(2, {"replica.fetch.max.bytes": "3000"})
    create(driver, "t", [(1, 2)])
    driver.hold(2)
    for n in range(10):
        produce(driver, "t", b"%d" % n * 1000, acks=1)
    driver.release(2)
    assert_same(driver)


def far_behind(driver: Driver) -> Replica:
    """A follower that is held, of a partition with very many batches."""
    create(driver, "t", [(1, 2)])
    driver.hold(2)
    for _ in range(2 * BATCHES_AT_ONCE + 1):
        produce(driver, "t", b"a", acks=1)
    return driver.replica(2, "t")


def test_very_many_batches_are_appended_in_several_turns() -> None:
    driver = Driver(2)
    follower = far_behind(driver)
    driver.broker(2).replica_manager.release("t", 0)
    ends = [0]
    while driver.cluster.scheduler.run_turn(lambda: True):
        ends.append(follower.log.log_end_offset)
    assert max(end - start for start, end in pairwise(ends)) == BATCHES_AT_ONCE
    assert_same(driver)


def test_a_step_takes_all_batches_of_an_answer() -> None:
    driver = Driver(2)
    far_behind(driver)
    (taken,) = step(driver.cluster, "t", 0, 2)
    assert taken.appended == 2 * BATCHES_AT_ONCE + 1


def test_records_that_only_the_old_leader_had_are_cut_off() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)])
    produce(driver, "t", b"committed")
    driver.hold(2, 3)
    for _ in range(3):
        produce(driver, "t", b"lost", acks=1)
    lost = driver.replica(1, "t")
    assert lost.log.log_end_offset == 4
    come_back_for_an_election(driver, 2, 3, leader=2)
    assert_same(driver)
    assert produce(driver, "t", b"new").base_offset == 1
    assert_same(driver)
    assert content(lost) == [(0, 0, b"committed"), (1, 1, b"new")]


def test_diverging_logs_agree_after_several_elections() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    produce(driver, "t", b"a")
    for _ in range(3):
        leader = driver.leader("t").broker_id
        other = 3 - leader
        driver.hold(other)
        produce(driver, "t", b"only here", b"and this", acks=1)
        come_back_for_an_election(driver, other, leader=other)
        assert_same(driver)
        produce(driver, "t", b"after %d" % leader)
        assert_same(driver)
    values = [value for _, _, value in content(driver.leader("t"))]
    assert values == [b"a", b"after 1", b"after 2", b"after 1"]


def test_a_follower_behind_the_log_start_starts_over_there() -> None:
    driver = with_a_held_follower_behind_the_log_start()
    assert driver.replica(2, "t").log.log_end_offset == 3
    driver.release(2)
    assert_same(driver)
    assert driver.replica(2, "t").log.log_start_offset == 6


def test_a_follower_ahead_of_its_leader_cuts_to_its_end() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    for n in range(4):
        produce(driver, "t", b"%d" % n)
    driver.leader("t").log.truncate_to(2)
    driver.leader("t").high_watermark = 2
    driver.broker(2).wake_follower("t", 0)
    driver.cluster.scheduler.run_due()
    assert content(driver.replica(2, "t")) == content(driver.replica(1, "t"))


def test_a_follower_without_epochs_asks_where_its_leader_ends() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    produce(driver, "t", b"a", b"b")
    log = driver.replica(2, "t").log
    log.truncate_fully_and_start_at(4, now_ms=driver.clock.now_ms())
    driver.broker(2).wake_follower("t", 0)
    driver.cluster.scheduler.run_due()
    assert log.log_end_offset == 2


def test_an_empty_log_that_leads_knows_where_its_epoch_begins() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    produce(driver, "t", b"a")
    hold(driver.cluster, "t", 0, 2, leave_isr=True)
    for _ in range(4):
        produce(driver, "t", b"b")
    driver.leader("t").delete_records(5)
    driver.release(2)
    empty = driver.replica(2, "t").log
    assert (empty.log_start_offset, empty.epoch_entries()) == (5, ())
    driver.elect("t", 0, 2)
    assert empty.epoch_entries() == (EpochEntry(1, 5),)
    produce(driver, "t", b"new")
    assert content(driver.replica(1, "t")) == content(driver.leader("t")) == [(5, 1, b"new")]


def test_a_leader_that_refuses_what_nothing_can_be_done_about_is_left_alone() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    produce(driver, "t", b"a", b"b")
    driver.elect("t", 0, 1)
    leader = driver.leader("t").log
    leader.truncate_fully_and_start_at(2, now_ms=driver.clock.now_ms())
    driver.broker(2).wake_follower("t", 0)
    driver.cluster.scheduler.run_due()
    assert driver.replica(2, "t").log.log_end_offset == 2


def test_a_held_follower_holds_acks_all_and_catches_up_on_its_return() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)])
    driver.hold(3)
    asked = [send_produce(driver, "t", b"%d" % n) for n in range(5)]
    assert driver.leader("t").high_watermark == 0
    assert driver.replica(2, "t").log.log_end_offset == 5
    driver.release(3)
    assert all(a.done for a in asked)
    assert_same(driver)


def test_a_partition_without_a_leader_is_left_alone() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    topic = driver.cluster.controller.image.topics["t"]
    headless = replace(topic.partitions[0], leader=-1, leader_epoch=1, partition_epoch=1)
    driver.cluster.controller.update_topics([replace(topic, partitions=(headless,))])
    driver.cluster.scheduler.run_due()
    assert driver.cluster.scheduler.next_deadline_ms() != driver.clock.now_ms()
    assert not driver.replica(1, "t").is_leader


def test_a_topics_successor_is_replicated_from_its_own_beginning() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    for _ in range(3):
        produce(driver, "t", b"old")
    driver.cluster.controller.delete_topics(["t"])
    create(driver, "t", [(2, 1)])
    produce(driver, "t", b"new")
    assert_same(driver)
    assert content(driver.replica(1, "t")) == [(0, 0, b"new")]


def test_what_a_test_has_stepped_is_freed_with_its_topic_without_the_garbage_collector() -> None:
    with without_collector(Replica) as left:
        driver = with_a_held_follower_behind_the_log_start()
        reports = step(driver.cluster, "t", 0, 2, 4)  # it starts at the log start
        assert [each.log_end_offset for each in reports] == [3, 3, 6, 8]
        driver.cluster.controller.delete_topics(["t"])
        driver.advance(0)
        assert left() == []


# -- a leader whose Fetch can't tell where the logs part ----------------------------------------


def test_behind_an_old_fetch_it_asks_where_its_epoch_ends_before_it_fetches() -> None:
    driver = Driver(3, api_max={"fetch": 11})
    create(driver, "t", [(1, 2, 3)])
    produce(driver, "t", b"a")
    hold(driver.cluster, "t", 0, 2, leave_isr=True)
    produce(driver, "t", b"lost", b"lost too")
    hold(driver.cluster, "t", 0, 3)
    elect(driver.cluster, "t", 0, 2, unclean=True)
    asked, fetched = step(driver.cluster, "t", 0, 3, fetches=2)
    assert (asked.api, asked.truncated_to) == ("OffsetForLeaderEpoch", 1)
    assert (fetched.api, fetched.fetch_offset) == ("Fetch", 1)
    release(driver.cluster, "t", 0, 3)
    produce(driver, "t", b"b")
    assert_same(driver)


@pytest.mark.parametrize("api_max", [{}, {"fetch": 11}], ids=["diverging epoch", "epoch end"])
def test_logs_that_parted_twice_agree_again(api_max: dict[str, int]) -> None:
    """KIP-279's case: the newest epochs of the two logs are none that the other has."""
    driver = Driver(2, api_max=api_max)
    create(driver, "t", [(1, 2)])
    produce(driver, "t", b"both")
    hold(driver.cluster, "t", 0, 2, leave_isr=True)
    for value in (b"1 alone", b"1 alone too"):
        produce(driver, "t", value)
    isolate(driver.cluster, 1, brokers=[2])
    elect(driver.cluster, "t", 0, 2, unclean=True)
    for value in (b"2 alone", b"2 alone too", b"2 once more"):
        produce(driver, "t", value)
    elect(driver.cluster, "t", 0, 1, unclean=True)
    produce(driver, "t", b"1 again")
    rejoin(driver.cluster, 1)
    release(driver.cluster, "t", 0, 2)
    assert_same(driver)
    assert [value for _, _, value in content(driver.replica(2, "t"))] == [
        b"both",
        b"1 alone",
        b"1 alone too",
        b"1 again",
    ]


def test_it_asks_on_until_both_logs_know_the_same_epoch() -> None:
    """KIP-279: the leader's answer is an epoch that the follower never had."""
    driver = Driver(3, api_max={"fetch": 11})
    create(driver, "t", [(1, 2, 3)])
    cluster = driver.cluster
    produce(driver, "t", b"both", b"both too")
    for broker_id in (2, 3):
        hold(cluster, "t", 0, broker_id, leave_isr=True)
    produce(driver, "t", b"1 alone", b"1 alone too")
    isolate(cluster, 1, brokers=[2, 3])
    elect(cluster, "t", 0, 2, unclean=True)
    produce(driver, "t", b"2 alone")
    elect(cluster, "t", 0, 1, unclean=True)
    produce(driver, "t", b"1 again", b"1 again too")
    hold(cluster, "t", 0, 1)
    elect(cluster, "t", 0, 2, unclean=True)
    rejoin(cluster, 1)
    steps = step(cluster, "t", 0, 1, fetches=3)
    assert [(each.api, each.truncated_to) for each in steps] == [
        ("OffsetForLeaderEpoch", 3),
        ("OffsetForLeaderEpoch", 2),
        ("Fetch", None),
    ]
    assert content(driver.replica(1, "t")) == content(driver.leader("t"))


def test_it_does_not_fetch_before_it_was_told_where_its_epoch_ends() -> None:
    driver = Driver(3, api_max={"fetch": 11})
    create(driver, "t", [(1, 2, 3)])
    cluster = driver.cluster
    produce(driver, "t", b"a")
    hold(cluster, "t", 0, 2, leave_isr=True)
    produce(driver, "t", b"lost")
    hold(cluster, "t", 0, 3)
    isolate(cluster, 3, brokers=[2])
    elect(cluster, "t", 0, 2, unclean=True)
    produce(driver, "t", b"new")
    step(cluster, "t", 0, 3)
    rejoin(cluster, 3)
    release(cluster, "t", 0, 3)
    assert content(driver.replica(3, "t")) == content(driver.leader("t"))


def test_behind_a_fetch_without_epochs_a_zombie_gets_on_as_it_did_before_kip_320() -> None:
    driver = Driver(3, api_max={"fetch": 8})
    create(driver, "t", [(1, 2, 3)])
    isolate(driver.cluster, 3, from_controller=True)
    elect(driver.cluster, "t", 0, 2)
    elect(driver.cluster, "t", 0, 1)
    produce(driver, "t", b"a")
    assert driver.replica(3, "t").log.log_end_offset == 1


def test_without_any_epoch_it_cuts_to_the_high_watermark() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)], message_format_version="0.10.2")
    produce(driver, "t", b"a")
    hold(driver.cluster, "t", 0, 2)
    send_produce(driver, "t", b"lost", acks=1)
    hold(driver.cluster, "t", 0, 3)
    assert driver.replica(3, "t").log.log_end_offset == 2
    elect(driver.cluster, "t", 0, 2)
    produce(driver, "t", b"b", acks=1)
    release(driver.cluster, "t", 0, 3)
    assert [value for _, _, value in content(driver.replica(3, "t"))] == [b"a", b"b"]


def test_it_tries_again_after_the_backoff_when_nobody_answers() -> None:
    driver = Driver(2, {"replica.fetch.backoff.ms": "300"})
    create(driver, "t", [(1, 2)])
    driver.cluster.network.cut_link(BrokerId(1), BrokerId(2))
    send_produce(driver, "t", b"a", acks=1)
    driver.broker(2).wake_follower("t", 0)
    driver.advance(0)
    driver.cluster.network.restore_link(BrokerId(1), BrokerId(2))
    driver.advance(299)
    assert driver.replica(2, "t").log.log_end_offset == 0
    driver.advance(1)
    assert driver.replica(2, "t").log.log_end_offset == 1


@pytest.mark.parametrize(
    ("api_max", "asked"), [({}, "Fetch"), ({"fetch": 11}, "OffsetForLeaderEpoch")]
)
def test_a_leader_that_has_not_heard_of_its_epoch_changes_no_log_and_is_asked_again(
    api_max: dict[str, int], asked: str
) -> None:
    """KIP-320: by the log of a leader in another epoch no follower truncates."""
    driver = Driver(3, api_max=api_max)
    create(driver, "t", [(1, 2, 3)])
    produce(driver, "t", b"a")
    hold(driver.cluster, "t", 0, 2)
    send_produce(driver, "t", b"on 1 and 3", acks=1)
    hold(driver.cluster, "t", 0, 3)
    isolate(driver.cluster, 2, from_controller=True, fence=Fence.NEVER)
    elect(driver.cluster, "t", 0, 2)
    (refused,) = step(driver.cluster, "t", 0, 3)
    assert (refused.api, refused.leader, refused.leader_epoch) == (asked, 2, 1)
    assert refused.error == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert (refused.truncated_to, refused.log_end_offset) == (None, 2)
    rejoin(driver.cluster, 2)
    driver.release(2, 3)
    produce(driver, "t", b"b")
    assert_same(driver)
    assert [value for _, _, value in content(driver.replica(3, "t"))] == [b"a", b"b"]


def test_who_is_fenced_asks_again_until_it_has_heard_of_the_election() -> None:
    driver = Driver(3, {"replica.fetch.backoff.ms": "300"})
    create(driver, "t", [(1, 2, 3)])
    epochs: list[int] = []

    def observe(api: Api, ctx: Context, message: Message) -> OnResponse:
        if api.title == "Fetch" and message.replica_state.replica_id == 3:
            epochs.append(message.topics[0].partitions[0].current_leader_epoch)
        return lambda _answer: None

    isolate(driver.cluster, 3, from_controller=True, fence=Fence.NEVER)
    elect(driver.cluster, "t", 0, 2)
    send_produce(driver, "t", b"a", acks=1)
    driver.cluster.network.observe = observe
    driver.broker(3).wake_follower("t", 0)
    for _ in range(3):
        driver.advance(300)
    assert set(epochs) == {0}
    assert len(epochs) >= 3
    assert driver.replica(3, "t").log.log_end_offset == 0
    rejoin(driver.cluster, 3)
    assert epochs[-1] == 1
    assert_same(driver)


def start_late(post: ManualTransport) -> Driver:
    """Broker 2 has asked broker 1 for a record; the answer is on its way."""
    driver = Driver(3, carry=post)
    create(driver, "t", [(1, 2, 3)])
    hold(driver.cluster, "t", 0, 2)
    send_produce(driver, "t", b"a", acks=1)
    hold(driver.cluster, "t", 0, 3)
    send_produce(driver, "t", b"only 1 has it", acks=1)
    post.keeps = True
    step(driver.cluster, "t", 0, 2)
    post.deliver()
    return driver


def test_an_answer_of_an_earlier_epoch_is_worthless() -> None:
    post = ManualTransport()
    driver = start_late(post)
    ((_, answer),) = post.kept
    post.kept.clear()
    post.keeps = False
    elect(driver.cluster, "t", 0, 3)
    answer()
    driver.cluster.scheduler.run_due()
    assert driver.replica(2, "t").log.log_end_offset == 0
    release(driver.cluster, "t", 0, 2)
    assert_same(driver)


def test_of_two_requests_only_the_answer_of_the_last_counts() -> None:
    post = ManualTransport()
    driver = start_late(post)
    step(driver.cluster, "t", 0, 2)
    while post.kept:
        post.deliver()
    post.keeps = False
    assert driver.replica(2, "t").log.log_end_offset == 2
    release(driver.cluster, "t", 0, 2)
    assert driver.replica(2, "t").log.log_end_offset == 2


def test_a_follower_deletes_nothing_that_is_not_committed_whatever_its_leader_says() -> None:
    driver = Driver()
    create(driver, "t", [(1, 2, 3)])
    produce(driver, "t", b"a", b"b", b"c")
    driver.hold(2)
    produce(driver, "t", b"d", acks=1)
    driver.leader("t").log.advance_log_start(4)
    produce(driver, "t", b"e", acks=1)
    follower = driver.replica(3, "t")
    assert (follower.high_watermark, follower.log.log_end_offset) == (3, 5)
    assert follower.log.log_start_offset == 3
