"""What an unclean election loses, whether the old leader is up or down."""

from __future__ import annotations

import pytest

from fencepost.broker.core.events import Event, Kind
from fencepost.broker.node import operator_actions
from fencepost.broker.node.unclean_elections import LostRecords, lost_records
from tests.harness.driver import Driver
from tests.harness.driver_requests import create, produce


def lagging(*, unclean_leader_election_enable: str = "false", **topic_configs: str) -> Driver:
    """Broker 3 has the first two of four records, and is out of the ISR."""
    driver = Driver(3, {"unclean.leader.election.enable": unclean_leader_election_enable})
    create(driver, "t", [(1, 2, 3)], **topic_configs)
    produce(driver, "t", b"a", b"b")
    operator_actions.hold(driver.cluster, "t", 0, 3, leave_isr=True)
    produce(driver, "t", b"c", b"d")
    return driver


def told(driver: Driver) -> list[Event]:
    """Elections and what they lost, in order."""
    kinds = (Kind.LEADER_CHANGED, Kind.RECORDS_LOST)
    return [event for event in driver.cluster.events.since(0) if event.kind in kinds]


def test_a_leader_that_is_up_has_what_is_lost() -> None:
    driver = lagging()
    lost = operator_actions.elect(driver.cluster, "t", 0, 3, unclean=True)
    assert lost == LostRecords(
        broker=1, start_offset=2, end_offset=4, records=2, committed_records=2
    )


def test_without_a_leader_the_replica_that_went_farthest_has_it() -> None:
    driver = lagging()
    operator_actions.kill(driver.cluster, 1)
    operator_actions.kill(driver.cluster, 2)
    lost = operator_actions.elect(driver.cluster, "t", 0, 3, unclean=True)
    assert lost == LostRecords(
        broker=2, start_offset=2, end_offset=4, records=2, committed_records=2
    )


def test_what_was_not_committed_is_counted_apart() -> None:
    driver = lagging()
    operator_actions.hold(driver.cluster, "t", 0, 2)
    produce(driver, "t", b"e", acks=1)
    lost = operator_actions.elect(driver.cluster, "t", 0, 3, unclean=True)
    assert lost is not None
    assert (lost.records, lost.committed_records) == (3, 2)


def test_logs_in_an_old_message_format_have_no_epochs_and_are_compared_by_batches() -> None:
    driver = lagging(message_format_version="0.10.2")
    lost = operator_actions.elect(driver.cluster, "t", 0, 3, unclean=True)
    assert lost == LostRecords(
        broker=1, start_offset=2, end_offset=4, records=2, committed_records=2
    )
    produce(driver, "t", b"e")
    assert operator_actions.elect(driver.cluster, "t", 0, 1, unclean=True) is None


def test_a_log_in_an_old_message_format_that_went_another_way_loses_what_is_its_own() -> None:
    driver = lagging(message_format_version="0.10.2")
    for broker_id in (1, 2):
        operator_actions.kill(driver.cluster, broker_id)
    operator_actions.elect(driver.cluster, "t", 0, 3, unclean=True)
    produce(driver, "t", b"C", b"D", acks=1)
    lost = lost_records(driver.cluster.brokers, driver.partition("t"), "t", 0, 1)
    assert lost is not None
    assert (lost.broker, lost.start_offset, lost.end_offset) == (3, 2, 4)


def test_a_log_without_a_record_loses_all() -> None:
    driver = lagging()
    operator_actions.wipe(driver.cluster, "t", 0, 3)
    lost = lost_records(driver.cluster.brokers, driver.partition("t"), "t", 0, 3)
    assert lost is not None
    assert (lost.start_offset, lost.end_offset) == (0, 4)


@pytest.mark.parametrize("leader", [1, 2])
def test_a_replica_that_has_everything_loses_nothing(leader: int) -> None:
    driver = lagging()
    assert operator_actions.elect(driver.cluster, "t", 0, leader, unclean=True) is None


def test_an_election_that_the_config_allows_tells_what_it_lost() -> None:
    driver = lagging(unclean_leader_election_enable="true")
    operator_actions.kill(driver.cluster, 2)
    operator_actions.kill(driver.cluster, 1)
    election, lost = told(driver)[-2:]
    assert election.details["unclean"]
    assert lost.kind == Kind.RECORDS_LOST
    assert lost.details == {
        "start_offset": 2,
        "end_offset": 4,
        "records": 2,
        "committed_records": 2,
    }
    assert (lost.topic, lost.partition, lost.broker) == ("t", 0, 1)


def test_an_election_that_the_config_comes_to_allow_tells_it_too() -> None:
    driver = lagging()
    operator_actions.kill(driver.cluster, 2)
    operator_actions.kill(driver.cluster, 1)
    driver.cluster.controller.set_topic_configs("t", {"unclean.leader.election.enable": "true"})
    assert [event.kind for event in told(driver)[-2:]] == [Kind.LEADER_CHANGED, Kind.RECORDS_LOST]


@pytest.mark.parametrize("leader", [2, 3])
def test_the_verb_tells_it_once(leader: int) -> None:
    driver = lagging()
    operator_actions.hold(driver.cluster, "t", 0, 2)
    produce(driver, "t", b"e", acks=1)
    operator_actions.elect(driver.cluster, "t", 0, leader, unclean=True)
    assert [event.kind for event in told(driver)] == [Kind.LEADER_CHANGED, Kind.RECORDS_LOST]
