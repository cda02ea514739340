"""Brokers marked offline, or fetching in an older registration, join no ISR however they fetch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from fencepost.broker.controller import Fence
from fencepost.broker.node import operator_actions
from fencepost.broker.node.cluster import Cluster
from fencepost.protocol.errors import ErrorCode
from tests.broker.replication.foreign_follower import (
    CLAIMED,
    ELSEWHERE,
    FIRST_WITH_STATE,
    LAG_MS,
    OK,
    ForeignFollower,
    Post,
    is_answered,
    isr,
    registration,
    start,
    start_with_post,
)
from tests.harness.driver import Driver
from tests.harness.driver_requests import create, send_produce
from tests.harness.typed_requests import values

# -- broker epochs (KIP-903) ------------------------------------------------------------------


def start_registered(version: int) -> tuple[Driver, ForeignFollower]:
    """The claimed broker has registered for the third time, and is out of the ISR."""
    driver, foreign = start(version, records=2)
    for _ in range(2):
        operator_actions.kill(driver.cluster, CLAIMED)
        operator_actions.start(driver.cluster, CLAIMED)
    assert (registration(driver), isr(driver)) == (3, {1, 2})
    return driver, foreign


@pytest.mark.parametrize("version", [15, 16, 17, 18])
@pytest.mark.parametrize(
    ("broker_epoch", "code", "joins"),
    [
        (-1, OK, True),
        (0, ELSEWHERE, False),
        (2, ELSEWHERE, False),
        (3, OK, True),
        (4, OK, False),
    ],
)
def test_who_fetches_in_an_older_registration_is_refused_and_in_an_unknown_one_does_not_join(
    version: int, broker_epoch: int, code: ErrorCode, joins: bool
) -> None:
    driver, foreign = start_registered(version)
    foreign.broker_epoch = broker_epoch
    assert foreign.code(2, epoch=0) == code
    assert isr(driver) == ({1, 2, CLAIMED} if joins else {1, 2})


@pytest.mark.parametrize("version", [4, 9, 14])
def test_before_v15_nobody_says_in_which_registration_it_fetches(version: int) -> None:
    driver, foreign = start_registered(version)
    foreign.broker_epoch = 1
    assert foreign.code(2, epoch=0) == OK
    assert isr(driver) == {1, 2, CLAIMED}


def test_an_older_registration_than_the_controllers_is_refused_by_the_controller() -> None:
    """The leader has not heard of the new registration yet; its proposal names the old one."""
    driver, foreign, post = start_with_post()
    operator_actions.kill(driver.cluster, CLAIMED)
    foreign.broker_epoch = registration(driver)
    post.keep_for(1)
    operator_actions.start(driver.cluster, CLAIMED)
    assert registration(driver) == foreign.broker_epoch + 1
    assert foreign.code(1) == OK
    assert isr(driver) == {1, 2}
    post.let_go()
    assert foreign.code(1) == ELSEWHERE
    assert isr(driver) == {1, 2}


# -- marked offline ---------------------------------------------------------------------------


def kill(cluster: Cluster) -> None:
    operator_actions.kill(cluster, CLAIMED)


def stop(cluster: Cluster) -> None:
    operator_actions.stop(cluster, CLAIMED)


def isolate(cluster: Cluster) -> None:
    operator_actions.isolate(cluster, CLAIMED, from_controller=True)


def start_again(cluster: Cluster) -> None:
    operator_actions.start(cluster, CLAIMED)


def rejoin(cluster: Cluster) -> None:
    operator_actions.rejoin(cluster, CLAIMED)


Verb = Callable[[Cluster], None]
OFFLINE: Final = pytest.mark.parametrize(
    ("leaves", "returns"), [(kill, start_again), (stop, start_again), (isolate, rejoin)]
)


@OFFLINE
@pytest.mark.parametrize("version", [4, 9, 14, 15, 18])
@pytest.mark.parametrize("tells_registration", [False, True])
def test_who_is_marked_offline_never_joins_however_well_it_fetches(
    leaves: Verb, returns: Verb, version: int, tells_registration: bool
) -> None:
    driver, foreign = start(version)
    leaves(driver.cluster)
    assert isr(driver) == {1, 2}
    if tells_registration:
        foreign.broker_epoch = registration(driver)
    for n in range(5):
        assert send_produce(driver, "t", b"%d" % n).done, "acks=all does not wait for it"
        assert values(foreign.fetch(n, epoch=0)) == [b"%d" % n]
        assert foreign.code(n + 1, epoch=0) == OK
        assert isr(driver) == {1, 2}
        driver.advance(LAG_MS)
        assert isr(driver) == {1, 2}
    returns(driver.cluster)
    assert isr(driver) == {1, 2}
    if tells_registration and version >= FIRST_WITH_STATE:
        assert foreign.code(5, epoch=0) == ELSEWHERE
        foreign.broker_epoch = registration(driver)
    assert foreign.code(5, epoch=0) == OK
    assert isr(driver) == {1, 2, CLAIMED}


@OFFLINE
def test_acks_all_does_not_count_who_is_marked_offline(leaves: Verb, returns: Verb) -> None:
    """What it has is no help: with too few others in sync, acks=all is refused."""
    driver, foreign = start(min_insync=2)
    leaves(driver.cluster)
    operator_actions.kill(driver.cluster, 2)
    assert isr(driver) == {1}
    assert foreign.code(0, epoch=0) == OK
    refused = send_produce(driver, "t", b"a").response.responses[0].partition_responses[0]
    assert refused.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    send_produce(driver, "t", b"b", acks=1)
    assert foreign.fetch(1, epoch=0).high_watermark == 0
    returns(driver.cluster)
    assert foreign.fetch(1, epoch=0).error_code == OK
    assert isr(driver) == {1, CLAIMED}
    assert driver.leader("t").high_watermark == 1
    send_produce(driver, "t", b"c")
    assert foreign.fetch(2, epoch=0).high_watermark == 2


def test_offline_after_the_session_timeout_and_in_sync_until_then() -> None:
    driver, foreign = start()
    operator_actions.kill(driver.cluster, CLAIMED, Fence.TIMEOUT)
    asked = send_produce(driver, "t", b"a")
    assert foreign.code(0) == OK
    assert not is_answered(asked)
    assert isr(driver) == {1, 2, CLAIMED}
    driver.advance(driver.broker(1).configs.broker_session_timeout_ms)
    assert isr(driver) == {1, 2}
    assert is_answered(asked)
    assert foreign.code(1) == OK
    assert isr(driver) == {1, 2}


@pytest.mark.parametrize("down", [True, False])
def test_whom_the_controller_goes_on_believing_in_counts(down: bool) -> None:
    driver, foreign = start(joins=False)
    if down:
        operator_actions.kill(driver.cluster, CLAIMED, Fence.NEVER)
    else:
        operator_actions.isolate(driver.cluster, CLAIMED, from_controller=True, fence=Fence.NEVER)
    assert foreign.code(0) == OK
    assert isr(driver) == {1, 2, CLAIMED}
    asked = send_produce(driver, "t", b"a")
    assert not is_answered(asked)
    assert foreign.code(1) == OK
    assert is_answered(asked)


def test_a_cut_between_the_brokers_is_none_for_a_foreign_follower() -> None:
    driver, foreign = start(joins=False)
    operator_actions.isolate(driver.cluster, CLAIMED, brokers=[1, 2])
    assert foreign.code(0) == OK
    assert isr(driver) == {1, 2, CLAIMED}


def test_a_leader_without_the_controller_admits_nobody_until_it_is_back() -> None:
    driver, foreign = start(joins=False)
    operator_actions.isolate(driver.cluster, 1, from_controller=True, fence=Fence.NEVER)
    assert foreign.code(0) == OK
    assert isr(driver) == {1, 2}
    asked = send_produce(driver, "t", b"a", broker_id=1)
    assert not is_answered(asked), "it may have been admitted: acks=all waits for it as well"
    operator_actions.rejoin(driver.cluster, 1)
    assert isr(driver) == {1, 2, CLAIMED}
    assert not is_answered(asked)
    assert foreign.code(1) == OK
    assert is_answered(asked)


def test_where_the_leader_has_not_heard_yet_the_controller_refuses() -> None:
    driver, foreign, post = start_with_post()
    post.keep_for(1)
    operator_actions.kill(driver.cluster, CLAIMED)
    assert not driver.broker(1).view.brokers[CLAIMED].fenced
    assert foreign.code(1) == OK
    assert isr(driver) == {1, 2}
    post.let_go()
    assert driver.broker(1).view.brokers[CLAIMED].fenced
    assert foreign.code(1) == OK
    assert isr(driver) == {1, 2}
    assert send_produce(driver, "t", b"b").done


@pytest.mark.parametrize("version", [14, 15])
def test_what_was_fetched_while_offline_says_nothing_of_the_log_that_comes_back(
    version: int,
) -> None:
    driver, foreign = start(version, records=2)
    operator_actions.kill(driver.cluster, CLAIMED)
    assert foreign.code(2, epoch=0) == OK
    operator_actions.wipe(driver.cluster, "t", 0, CLAIMED)
    operator_actions.start(driver.cluster, CLAIMED)
    assert isr(driver) == {1, 2}, "its disk is empty"
    assert foreign.code(0, epoch=0) == OK
    assert isr(driver) == {1, 2}
    operator_actions.release(driver.cluster, "t", 0, CLAIMED)
    assert driver.replica(CLAIMED, "t").log.log_end_offset == 2
    assert isr(driver) == {1, 2, CLAIMED}


@pytest.mark.parametrize("fetch", [14, 18])
def test_who_fetches_before_its_leader_hears_of_its_return_joins_all_the_same(fetch: int) -> None:
    post = Post()
    driver = Driver(3, api_max={"fetch": fetch}, carry=post)
    create(driver, "t", [(1, 2, CLAIMED)])
    operator_actions.kill(driver.cluster, CLAIMED)
    post.keep_for(1)
    operator_actions.start(driver.cluster, CLAIMED)
    assert isr(driver) == {1, 2}
    post.let_go()
    driver.cluster.scheduler.run_due()
    assert isr(driver) == {1, 2, CLAIMED}
