"""The verbs on brokers and their links, what all verbs refuse, and their events."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fencepost.broker.controller import Fence
from fencepost.broker.core.errors import ControllerError
from fencepost.broker.core.events import Event, Kind
from fencepost.broker.node import operator_actions
from fencepost.broker.node.cluster import Cluster
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.create_topics import CreateTopicsRequest
from tests.broker.node.driven import all_holds, log_end, start
from tests.harness.driver import Driver, assert_same, content
from tests.harness.driver_requests import create, fetch, list_offset, produce, send_produce
from tests.harness.typed_requests import creatable, produced, values

# -- brokers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [operator_actions.stop, operator_actions.kill])
def test_who_goes_down_leads_nothing_and_comes_back_in_sync(
    end: Callable[[Cluster, int], None],
) -> None:
    driver = start()
    produce(driver, "t", b"a")
    end(driver.cluster, 1)
    partition = driver.partition("t")
    assert (partition.leader, partition.leader_epoch, partition.isr) == (2, 1, (2, 3))
    assert not driver.cluster.controller.is_online(1)
    assert driver.broker(1).replicas == {}
    produce(driver, "t", b"b")
    operator_actions.start(driver.cluster, 1)
    assert driver.partition("t").isr == (2, 3, 1)
    assert driver.cluster.controller.is_online(1)
    assert_same(driver)


def test_a_stop_hands_over_before_it_ends() -> None:
    """A producer that waits for acks=all has to find the new leader."""
    driver = start()
    operator_actions.hold(driver.cluster, "t", 0, 3)
    asked = send_produce(driver, "t", b"a")
    still_up: list[bool] = []

    def listen(event: Event) -> None:
        if event.kind is Kind.LEADER_CHANGED:
            still_up.append(driver.broker(1).running)

    driver.cluster.events.listeners.append(listen)
    operator_actions.stop(driver.cluster, 1)
    assert still_up == [True]
    assert produced(asked.response).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_the_last_one_standing_is_eligible_still_and_nobody_else_leads() -> None:
    driver = start()
    produce(driver, "t", b"a")
    for broker_id in (3, 2, 1):
        operator_actions.kill(driver.cluster, broker_id)
    partition = driver.partition("t")
    assert (partition.leader, partition.isr, partition.elr) == (-1, (), (1,))
    operator_actions.start(driver.cluster, 2)
    assert driver.partition("t").leader == -1
    operator_actions.start(driver.cluster, 1)
    assert driver.partition("t").leader == 1
    assert driver.partition("t").isr == (1, 2)
    assert_same_on(driver, 1, 2)


def assert_same_on(driver: Driver, *broker_ids: int) -> None:
    found = [content(driver.replica(b, "t")) for b in broker_ids]
    assert all(each == found[0] for each in found)


def test_unclean_elections_are_held_at_once_where_the_config_allows_them() -> None:
    driver = start(unclean_leader_election_enable="true")
    operator_actions.hold(driver.cluster, "t", 0, 2, leave_isr=True)
    operator_actions.hold(driver.cluster, "t", 0, 3, leave_isr=True)
    produce(driver, "t", b"lost")
    operator_actions.kill(driver.cluster, 1)
    partition = driver.partition("t")
    assert (partition.leader, partition.isr) == (2, (2,))
    assert list_offset(driver, "t", -1).offset == 0
    operator_actions.start(driver.cluster, 1)
    operator_actions.release(driver.cluster, "t", 0, 3)
    assert log_end(driver, 1) == 0
    assert_same(driver)


def test_they_are_held_when_the_config_comes_to_allow_them() -> None:
    driver = start()
    operator_actions.hold(driver.cluster, "t", 0, 2, leave_isr=True)
    operator_actions.hold(driver.cluster, "t", 0, 3, leave_isr=True)
    operator_actions.kill(driver.cluster, 1)
    assert driver.partition("t").leader == -1
    driver.cluster.controller.set_topic_configs("t", {"unclean.leader.election.enable": "true"})
    assert driver.partition("t").leader == 2


def test_a_kill_may_be_noticed_after_the_session_timeout() -> None:
    driver = start(broker_session_timeout_ms="5000")
    operator_actions.kill(driver.cluster, 1, Fence.TIMEOUT)
    driver.advance(4_999)
    assert driver.partition("t").leader == 1
    driver.advance(1)
    assert driver.partition("t").leader == 2


def test_who_is_back_before_the_timeout_is_not_fenced_by_it() -> None:
    driver = start(broker_session_timeout_ms="5000")
    operator_actions.kill(driver.cluster, 1, Fence.TIMEOUT)
    operator_actions.start(driver.cluster, 1)
    assert driver.partition("t").leader == 2, "the earlier registration is over"
    driver.advance(5_000)
    assert driver.partition("t").isr == (2, 3, 1)


@pytest.mark.parametrize(
    ("end", "watermark"), [(operator_actions.stop, 2), (operator_actions.kill, 1)]
)
def test_a_crash_leaves_the_high_watermark_of_the_checkpoint(
    end: Callable[[Cluster, int], None], watermark: int
) -> None:
    driver = start(replica_high_watermark_checkpoint_interval_ms="1000")
    produce(driver, "t", b"a")
    driver.advance(1_000)
    produce(driver, "t", b"b")
    operator_actions.hold(driver.cluster, "t", 0, 3)
    end(driver.cluster, 3)
    operator_actions.start(driver.cluster, 3)
    assert (log_end(driver, 3), driver.replica(3, "t").high_watermark) == (2, watermark)


def test_the_zombie_of_kafka_6880() -> None:
    """Away from the controller it fetches on, and is fenced as soon as there is a new leader."""
    driver = start()
    produce(driver, "t", b"a")
    operator_actions.isolate(driver.cluster, 3, from_controller=True)
    produce(driver, "t", b"b")
    assert log_end(driver, 3) == 2
    operator_actions.elect(driver.cluster, "t", 0, 2)
    produce(driver, "t", b"c")
    assert fetch(driver, "t", 2, broker_id=1, current_leader_epoch=0).error_code == (
        ErrorCode.FENCED_LEADER_EPOCH
    )
    operator_actions.elect(driver.cluster, "t", 0, 1)
    produce(driver, "t", b"d")
    assert driver.partition("t").leader == 1, "whom the zombie takes for the leader"
    assert log_end(driver, 3) == 2, "and yet it gets nothing: its epoch is an old one"
    (step,) = operator_actions.step(driver.cluster, "t", 0, 3)
    assert (step.leader, step.leader_epoch) == (1, 0)
    assert step.error is ErrorCode.FENCED_LEADER_EPOCH
    assert driver.partition("t").isr == (1, 2)
    operator_actions.rejoin(driver.cluster, 3)
    assert driver.partition("t").isr == (1, 2, 3)
    assert_same(driver)


def test_a_leader_away_from_the_controller_serves_on_and_commits_nothing() -> None:
    driver = start()
    produce(driver, "t", b"a")
    operator_actions.isolate(driver.cluster, 1, from_controller=True)
    assert driver.partition("t").leader == 2
    stale = send_produce(driver, "t", b"stale", broker_id=1, timeout_ms=500)
    assert send_produce(driver, "t", b"mine", broker_id=1, acks=1).done
    assert values(fetch(driver, "t", 0, broker_id=1)) == [b"a"]
    produce(driver, "t", b"b")
    driver.advance(500)
    assert produced(stale.response).error_code == ErrorCode.REQUEST_TIMED_OUT
    operator_actions.rejoin(driver.cluster, 1)
    assert [value for _, _, value in content(driver.replica(1, "t"))] == [b"a", b"b"]
    assert_same(driver)


def test_who_is_cut_off_from_its_leader_lags_and_leaves() -> None:
    driver = start(replica_lag_time_max_ms="1000")
    operator_actions.isolate(driver.cluster, 3, brokers=[1])
    asked = send_produce(driver, "t", b"a")
    assert not asked.done
    driver.advance(1_500)
    assert driver.partition("t").isr == (1, 2)
    operator_actions.elect(driver.cluster, "t", 0, 2)
    assert driver.partition("t").isr == (1, 2, 3), "2 it reaches"
    assert log_end(driver, 3) == 1
    operator_actions.rejoin(driver.cluster, 3)
    operator_actions.elect(driver.cluster, "t", 0, 1)
    produce(driver, "t", b"b")
    assert_same(driver)


def test_with_the_link_the_fetching_is_back() -> None:
    driver = start()
    operator_actions.isolate(driver.cluster, 3, brokers=[1])
    send_produce(driver, "t", b"a", acks=1)
    assert log_end(driver, 3) == 0
    operator_actions.rejoin(driver.cluster, 3)
    assert log_end(driver, 3) == 1


def test_a_broker_away_from_the_controller_changes_nothing_for_its_clients() -> None:
    driver = start()
    operator_actions.isolate(driver.cluster, 1, from_controller=True, fence=Fence.NEVER)
    request = CreateTopicsRequest(topics=(creatable("u"),), timeout_ms=1000)
    (answer,) = driver.ask(1, "create_topics", 7, request).topics
    assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert "u" not in driver.cluster.controller.image.topics
    operator_actions.rejoin(driver.cluster, 1)
    (answer,) = driver.ask(1, "create_topics", 7, request).topics
    assert answer.error_code == ErrorCode.NONE


def test_restore_makes_everything_whole() -> None:
    driver = start()
    produce(driver, "t", b"a")
    operator_actions.hold(driver.cluster, "t", 0, 2)
    operator_actions.isolate(driver.cluster, 2, brokers=[1])
    operator_actions.isolate(driver.cluster, 1, from_controller=True)
    operator_actions.kill(driver.cluster, 1)
    operator_actions.stop(driver.cluster, 3)
    operator_actions.restore(driver.cluster)
    assert sorted(driver.partition("t").isr) == [1, 2, 3]
    produce(driver, "t", b"b")
    assert_same(driver)


def test_a_topic_that_was_deleted_meanwhile_is_gone_from_the_disk() -> None:
    driver = start()
    produce(driver, "t", b"a")
    create(driver, "u", [(1, 2, 3)])
    operator_actions.stop(driver.cluster, 1)
    driver.cluster.controller.delete_topics(["t", "u"])
    create(driver, "t", [(1, 2, 3)])
    assert driver.broker(1).storage.peek_log("u", 0) is not None
    operator_actions.start(driver.cluster, 1)
    assert driver.broker(1).storage.peek_log("u", 0) is None
    assert driver.partition("t").leader == 2
    assert log_end(driver, 1) == 0


# -- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "code", "words"),
    [
        (lambda c: operator_actions.stop(c, 9), "BROKER_ID_NOT_REGISTERED", "there is no broker 9"),
        (lambda c: operator_actions.start(c, 1), "INVALID_REQUEST", "broker 1 runs already"),
        (lambda c: operator_actions.kill(c, 4), "INVALID_REQUEST", "broker 4 is not running"),
        (
            lambda c: operator_actions.isolate(c, 4, brokers=[1]),
            "INVALID_REQUEST",
            "is not running",
        ),
        (lambda c: operator_actions.isolate(c, 1, brokers=[1]), "INVALID_REQUEST", "from itself"),
        (
            lambda c: operator_actions.isolate(c, 1, brokers=[8]),
            "BROKER_ID_NOT_REGISTERED",
            "broker 8",
        ),
        (lambda c: operator_actions.start(c, 5), "INVALID_REQUEST", "rejoin it first"),
        (lambda c: operator_actions.wipe(c, "t", 0, 6), "REQUEST_TIMED_OUT", "does not reach"),
        (lambda c: operator_actions.hold(c, "t", 0, 2, at=0), "INVALID_REQUEST", "up to 1 already"),
        (
            lambda c: operator_actions.hold(c, "t", 0, 1, leave_isr=True),
            "INVALID_REQUEST",
            "leads t-0",
        ),
        (lambda c: operator_actions.hold(c, "t", 1, 1), "UNKNOWN_TOPIC_OR_PARTITION", "t-1"),
        (
            lambda c: operator_actions.hold(c, "one", 0, 2),
            "REPLICA_NOT_AVAILABLE",
            "no replica of one-0",
        ),
        (lambda c: operator_actions.step(c, "t", 0, 1), "INVALID_REQUEST", "broker 1 leads"),
        (
            lambda c: operator_actions.step(c, "t", 0, 4),
            "INVALID_REQUEST",
            "broker 4 is not running",
        ),
        (lambda c: operator_actions.elect(c, "t", 0, 3), "ELIGIBLE_LEADERS_NOT_AVAILABLE", "ISR"),
        (
            lambda c: operator_actions.elect(c, "t", 0, 4),
            "ELIGIBLE_LEADERS_NOT_AVAILABLE",
            "is offline",
        ),
        (
            lambda c: operator_actions.elect(c, "one", 0, 2, unclean=True),
            "ELIGIBLE_LEADERS_NOT_AVAILABLE",
            "has no replica",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(
    verb: Callable[[Cluster], None], code: str, words: str
) -> None:
    driver = Driver(6)
    create(driver, "t", [(1, 2, 3, 4, 6)])
    create(driver, "one", [(1,)])
    produce(driver, "t", b"a")
    operator_actions.hold(driver.cluster, "t", 0, 3, leave_isr=True)
    operator_actions.kill(driver.cluster, 4)
    operator_actions.isolate(driver.cluster, 5, from_controller=True)
    operator_actions.kill(driver.cluster, 5)
    operator_actions.isolate(driver.cluster, 6, from_controller=True, fence=Fence.NEVER)
    produce_elsewhere(driver)
    before = driver.cluster.controller.image
    holds = all_holds(driver)
    with pytest.raises(ControllerError) as refused:
        verb(driver.cluster)
    assert (refused.value.code.name, words in refused.value.message) == (code, True), refused.value
    assert driver.cluster.controller.image is before
    assert holds == all_holds(driver)


def produce_elsewhere(driver: Driver) -> None:
    """So that broker 6, which is cut off, has not heard of the newest image."""
    driver.cluster.controller.set_topic_configs("one", {"segment.ms": "5000"})


# -- events -------------------------------------------------------------------------------------


def test_whoever_listens_hears_of_every_change_in_order() -> None:
    driver = start()
    heard: list[Event] = []
    driver.cluster.events.listeners.append(heard.append)
    produce(driver, "t", b"a")
    operator_actions.hold(driver.cluster, "t", 0, 2, leave_isr=True)
    produce(driver, "t", b"b")
    operator_actions.elect(driver.cluster, "t", 0, 2, unclean=True)
    operator_actions.release(driver.cluster, "t", 0, 2)
    operator_actions.stop(driver.cluster, 3)
    kinds = [event.kind for event in heard]
    assert kinds[:4] == [
        Kind.REPLICA_HELD,
        Kind.ISR_CHANGED,
        Kind.LEADER_CHANGED,
        Kind.ISR_CHANGED,
    ]
    cut = next(event for event in heard if event.kind is Kind.LOG_TRUNCATED)
    assert (cut.topic, cut.partition, cut.details) == ("t", 0, {"offset": 1, "previous_offset": 2})
    assert (heard[-1].kind, heard[-1].broker) == (Kind.BROKER_CHANGED, 3)
    assert heard[-1].details["state"] == "stopped"


def test_a_wiped_disk_says_whether_another_has_what_it_lost() -> None:
    driver = start(2)
    heard: list[Event] = []
    driver.cluster.events.listeners.append(heard.append)
    operator_actions.wipe(driver.cluster, "t", 0, 1)  # 2 has all
    operator_actions.hold(driver.cluster, "t", 0, 1, leave_isr=True)
    operator_actions.stop(driver.cluster, 2)
    assert driver.partition("t").elr == (2,)
    operator_actions.wipe(driver.cluster, "t", 0, 1)  # likewise, though it is down
    operator_actions.wipe(driver.cluster, "t", 0, 2)
    assert (driver.partition("t").isr, driver.partition("t").elr) == ((), ())
    operator_actions.wipe(driver.cluster, "t", 0, 1)  # no replica has
    wiped = [event for event in heard if event.kind is Kind.REPLICA_WIPED]
    assert [(event.broker, event.details["alone"]) for event in wiped] == [
        (1, False),
        (1, False),
        (2, True),
        (1, True),
    ]
