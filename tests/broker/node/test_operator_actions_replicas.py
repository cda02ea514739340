"""The verbs on replicas: holds, steps, wiped disks, new segments."""

from __future__ import annotations

from fencepost.broker.node import operator_actions
from fencepost.protocol.errors import ErrorCode
from tests.broker.node.driven import log_end, start
from tests.harness.driver import assert_same
from tests.harness.driver_requests import list_offset, produce, send_produce


def test_held_at_an_offset_it_has_just_the_batches_up_to_there() -> None:
    driver = start()
    operator_actions.hold(driver.cluster, "t", 0, 3, at=5)
    for batch in ((b"0", b"1"), (b"2", b"3", b"4"), (b"5",)):
        send_produce(driver, "t", *batch, acks=1)
    assert (log_end(driver, 2), log_end(driver, 3)) == (6, 5)
    assert driver.leader("t").high_watermark == 5


def test_no_batch_is_torn_to_hold_it() -> None:
    driver = start()
    operator_actions.hold(driver.cluster, "t", 0, 3, at=4)
    send_produce(driver, "t", b"0", b"1", acks=1)
    send_produce(driver, "t", b"2", b"3", b"4", acks=1)
    assert log_end(driver, 3) == 2
    assert driver.leader("t").high_watermark == 2


def test_a_hold_is_for_the_replica_whoever_leads() -> None:
    driver = start()
    operator_actions.hold(driver.cluster, "t", 0, 3)
    operator_actions.elect(driver.cluster, "t", 0, 2)
    send_produce(driver, "t", b"a", acks=1)
    assert log_end(driver, 3) == 0
    operator_actions.elect(driver.cluster, "t", 0, 3)
    operator_actions.elect(driver.cluster, "t", 0, 1)
    send_produce(driver, "t", b"b", acks=1)
    assert log_end(driver, 3) == 0
    operator_actions.release(driver.cluster, "t", 0, 3)
    assert_same(driver)


def test_a_hold_outlives_a_restart() -> None:
    driver = start()
    operator_actions.hold(driver.cluster, "t", 0, 3)
    operator_actions.kill(driver.cluster, 3)
    operator_actions.start(driver.cluster, 3)
    produce(driver, "t", b"a")
    assert log_end(driver, 3) == 0


def test_a_step_is_one_request_and_says_what_it_did() -> None:
    driver = start(replica_fetch_max_bytes="1")
    operator_actions.hold(driver.cluster, "t", 0, 3, leave_isr=True)
    produce(driver, "t", b"a", b"b")
    produce(driver, "t", b"c")
    first, second, third = operator_actions.step(driver.cluster, "t", 0, 3, fetches=3)
    assert (first.api, first.fetch_offset, first.appended, first.log_end_offset) == (
        "Fetch",
        0,
        2,
        2,
    )
    assert (second.appended, second.log_end_offset, second.high_watermark) == (1, 3, 3)
    assert (third.appended, third.error, driver.partition("t").isr) == (
        0,
        ErrorCode.NONE,
        (1, 2, 3),
    )


def test_a_step_of_an_unclean_end_shows_the_truncation() -> None:
    driver = start()
    produce(driver, "t", b"a")
    operator_actions.hold(driver.cluster, "t", 0, 2, leave_isr=True)
    produce(driver, "t", b"lost", b"lost too")
    operator_actions.hold(driver.cluster, "t", 0, 3)
    operator_actions.elect(driver.cluster, "t", 0, 2, unclean=True)
    assert driver.partition("t").isr == (2, 1), "1 has cut its log and joined again"
    steps = operator_actions.step(driver.cluster, "t", 0, 3, fetches=2)
    assert [step.truncated_to for step in steps] == [1, None]
    assert_same(driver)


def test_a_step_that_nobody_answers_says_so() -> None:
    driver = start()
    operator_actions.isolate(driver.cluster, 3, brokers=[1])
    (step,) = operator_actions.step(driver.cluster, "t", 0, 3)
    assert (step.error, step.leader) == (None, 1)


def test_a_wiped_follower_fetches_everything_again() -> None:
    driver = start()
    for n in range(5):
        produce(driver, "t", b"%d" % n)
    operator_actions.hold(driver.cluster, "t", 0, 3)
    operator_actions.wipe(driver.cluster, "t", 0, 3)
    assert log_end(driver, 3) == 0
    assert driver.partition("t").isr == (1, 2)
    operator_actions.release(driver.cluster, "t", 0, 3)
    assert driver.partition("t").isr == (1, 2, 3)
    assert_same(driver)


def test_a_wiped_leader_is_replaced_and_follows() -> None:
    driver = start()
    produce(driver, "t", b"a")
    operator_actions.wipe(driver.cluster, "t", 0, 1)
    partition = driver.partition("t")
    assert (partition.leader, partition.leader_epoch, partition.isr) == (2, 1, (2, 3, 1))
    assert_same(driver)


def test_the_only_replica_loses_its_records_and_leads_again() -> None:
    driver = start(1)
    produce(driver, "t", b"a")
    operator_actions.wipe(driver.cluster, "t", 0, 1)
    partition = driver.partition("t")
    assert (partition.leader, partition.leader_epoch) == (1, 1)
    assert list_offset(driver, "t", -1).offset == 0
    assert produce(driver, "t", b"b").base_offset == 0


def test_a_broker_that_is_down_may_lose_its_disk_too() -> None:
    driver = start()
    produce(driver, "t", b"a")
    for broker_id in (2, 3, 1):
        operator_actions.stop(driver.cluster, broker_id)
    assert driver.partition("t").elr == (1,)
    operator_actions.wipe(driver.cluster, "t", 0, 1)
    assert driver.partition("t").elr == ()
    operator_actions.start(driver.cluster, 1)
    assert log_end(driver, 1) == 0


def test_every_replica_begins_a_new_segment() -> None:
    driver = start()
    produce(driver, "t", b"a")
    operator_actions.roll(driver.cluster, "t", 0)
    for broker_id in (1, 2, 3):
        segments = driver.replica(broker_id, "t").log.segments()
        assert [segment.base_offset for segment in segments] == [0, 1]
