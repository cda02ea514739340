"""To which replica a leader sends a consumer (KIP-392)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fencepost.broker.fetch.fetch_source import RACK_AWARE
from fencepost.broker.node import operator_actions
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import FetchRequest, PartitionData
from tests.harness.driver import Driver
from tests.harness.driver_requests import create, produce
from tests.harness.typed_requests import fetch_request, fetched, from_offset, values

SELECTOR = "replica.selector.class"
LEADER_ALONE = "org.apache.kafka.common.replica.LeaderSelector"
NEVER_MS = 60_000
HERE = -1


def three(racks: str = "abc", selector: str | None = RACK_AWARE) -> Driver:
    """A partition on three brokers, one rack each; broker 1 leads, and one record is everywhere."""
    configs = {} if selector is None else {SELECTOR: selector}
    driver = Driver(3, configs, racks=racks)
    create(driver, "t", [(1, 2, 3)])
    produce(driver, "t", b"a")
    return driver


def ask(
    driver: Driver, rack: str, offset: int = 0, *, broker_id: int = 1, version: int = 12
) -> PartitionData:
    request = replace(fetch_request(("t", from_offset(offset))), rack_id=rack)
    return fetched(driver.ask(broker_id, "fetch", version, request))


def preferred(driver: Driver, rack: str, offset: int = 0) -> int:
    answer = ask(driver, rack, offset)
    assert answer.error_code == ErrorCode.NONE
    return answer.preferred_read_replica


# -- who ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rack", "broker_id"), [("a", HERE), ("b", 2), ("c", 3), ("d", HERE), ("", HERE), ("B", HERE)]
)
def test_a_consumer_is_sent_to_a_replica_in_its_rack(rack: str, broker_id: int) -> None:
    assert preferred(three(), rack) == broker_id


@pytest.mark.parametrize("selector", [None, LEADER_ALONE])
def test_without_the_selector_it_stays(selector: str | None) -> None:
    answer = ask(three(selector=selector), "b")
    assert (answer.preferred_read_replica, values(answer)) == (HERE, [b"a"])


def test_it_stays_with_the_leader_in_its_rack_whoever_else_is_there() -> None:
    assert preferred(three("bbb"), "b") == HERE


def test_brokers_without_a_rack_are_in_nobodys() -> None:
    driver = Driver(2, {SELECTOR: RACK_AWARE})
    create(driver, "t", [(1, 2)])
    assert preferred(driver, "a") == HERE


def test_of_several_the_one_that_has_most() -> None:
    driver = three("abb")
    assert preferred(driver, "b") == 3
    driver.hold(3)
    produce(driver, "t", b"b", acks=1)
    assert preferred(driver, "b") == 2
    driver.release(3)
    driver.hold(2)
    produce(driver, "t", b"c", acks=1)
    assert preferred(driver, "b") == 3


def test_of_equals_the_one_that_had_all_more_recently() -> None:
    driver = three("abb")
    driver.hold(3)
    driver.advance(5)
    operator_actions.step(driver.cluster, "t", 0, 2)
    assert preferred(driver, "b") == 2


def test_not_one_that_has_less_than_is_asked_for() -> None:
    driver = three()
    driver.hold(2)
    produce(driver, "t", b"b", acks=1)
    assert preferred(driver, "b", 1) == 2
    assert preferred(driver, "b", 2) == HERE


def test_not_one_whose_log_starts_later() -> None:
    driver = three()
    driver.replica(2, "t").log.advance_log_start(1)
    operator_actions.step(driver.cluster, "t", 0, 2)
    assert preferred(driver, "b", 0) == HERE
    assert preferred(driver, "b", 1) == 2


def test_not_one_that_is_out_of_sync() -> None:
    driver = three()
    operator_actions.hold(driver.cluster, "t", 0, 2, leave_isr=True)
    assert preferred(driver, "b") == HERE
    driver.release(2)
    assert preferred(driver, "b") == 2


def test_not_one_that_the_leader_takes_for_offline() -> None:
    driver = three()
    leader = driver.broker(1)
    fenced = replace(leader.view.brokers[2], fenced=True)
    leader.view = replace(leader.view, brokers={**leader.view.brokers, 2: fenced})
    assert preferred(driver, "b") == HERE


# -- how it is answered ---------------------------------------------------------------------------


def test_the_answer_has_everything_but_records() -> None:
    answer = ask(three(), "b")
    assert answer.preferred_read_replica == 2
    assert sum(map(len, answer.records or ())) == 0
    assert (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset) == (1, 1, 0)
    assert answer.aborted_transactions is None


def test_it_is_answered_without_waiting() -> None:
    request = fetch_request(("t", from_offset(1)), max_wait_ms=NEVER_MS)
    assert three().send(1, "fetch", 12, replace(request, rack_id="b")).done


def test_whoever_follows_sends_nobody_away() -> None:
    driver = three()
    assert values(ask(driver, "b", broker_id=2)) == [b"a"]
    assert values(ask(driver, "c", broker_id=2)) == [b"a"]


def test_a_follower_is_not_sent_away() -> None:
    request = replace(fetch_request(("t", from_offset(0))), rack_id="b", replica_id=2)
    answer = fetched(three().ask(1, "fetch", 12, request))
    assert (answer.preferred_read_replica, values(answer)) == (HERE, [b"a"])


@pytest.mark.parametrize("version", [10, 11])
def test_racks_are_named_from_v11(version: int) -> None:
    request = fetch_request(("t", from_offset(0)))
    if version >= 11:
        request = replace(request, rack_id="b")
    answer = fetched(three().ask(1, "fetch", version, request))
    assert answer.preferred_read_replica == (2 if version >= 11 else HERE)


def test_the_epoch_is_checked_first_and_the_offset_is_the_replicas_affair() -> None:
    driver = three()
    driver.elect("t", 0, 1)
    stale = replace(from_offset(0), current_leader_epoch=0)
    answer = fetched(driver.ask(1, "fetch", 12, replace(fetch_request(("t", stale)), rack_id="b")))
    assert answer.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert ask(driver, "b", 5).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_within_a_session_it_is_told_again_and_again() -> None:
    driver = three()
    request = replace(fetch_request(("t", from_offset(0)), session=(0, 0)), rack_id="b")
    session_id = driver.ask(1, "fetch", 12, request).session_id
    for epoch in (1, 2):
        again = FetchRequest(session_id=session_id, session_epoch=epoch, rack_id="b")
        assert fetched(driver.ask(1, "fetch", 12, again)).preferred_read_replica == 2
