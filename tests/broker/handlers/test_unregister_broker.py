"""UnregisterBroker: what is left of a broker whose registration an administrator ends."""

from __future__ import annotations

from typing import Final

from fencepost.broker.controller import Fence
from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.core.events import Event, Kind
from fencepost.broker.node import operator_actions
from fencepost.control.cluster_state import broker_state
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.describe_cluster import DescribeClusterRequest
from fencepost.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from tests.harness.driver import NEWEST, Driver
from tests.harness.driver_requests import create, produce, send_produce
from tests.harness.typed_requests import produced

GONE: Final = 2


def unregister(driver: Driver, broker_id: int, *, at: int = 1) -> UnregisterBrokerResponse:
    request = UnregisterBrokerRequest(broker_id=broker_id)
    response = driver.ask(at, "unregister_broker", 0, request)
    assert isinstance(response, UnregisterBrokerResponse)
    return response


def named(driver: Driver, at: int = 1) -> list[int]:
    """The brokers that a broker names, the fenced ones too."""
    request = DescribeClusterRequest(include_fenced_brokers=True)
    return [b.broker_id for b in driver.ask(at, "describe_cluster", NEWEST, request).brokers]


def test_only_a_registered_broker_is_unregistered() -> None:
    driver = Driver(3)
    for broker_id in (4, -1):
        answer = unregister(driver, broker_id)
        assert answer.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
        assert answer.error_message == f"Broker ID {broker_id} is not currently registered"
    assert unregister(driver, GONE) == UnregisterBrokerResponse(error_message="")
    assert unregister(driver, GONE).error_code == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_a_broker_that_runs_leads_nothing_more_and_is_told_so() -> None:
    driver = Driver(3)
    create(driver, "t", [(GONE, 1)])
    create(driver, "alone", [(GONE,)])
    unregister(driver, GONE)
    topics = driver.cluster.controller.image.topics
    (shared,), (alone,) = topics["t"].partitions, topics["alone"].partitions
    assert (shared.replicas, shared.leader, shared.isr) == ((GONE, 1), 1, (1,))
    assert alone.leader == -1
    assert named(driver) == named(driver, at=GONE) == [1, 3]
    assert driver.broker(GONE).view is driver.cluster.controller.image
    refused = send_produce(driver, "t", b"a", broker_id=GONE)
    assert produced(refused.response).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_its_replica_follows_and_does_not_return_to_the_isr() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, GONE)])
    unregister(driver, GONE)
    assert produce(driver, "t", b"a").error_code == ErrorCode.NONE
    driver.advance(60_000)
    assert driver.broker(GONE).replicas["t", 0].log.log_end_offset == 1
    assert driver.cluster.controller.image.topics["t"].partitions[0].isr == (1,)


def test_it_registers_when_it_starts() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, GONE)])
    epoch = driver.broker(GONE).epoch
    operator_actions.kill(driver.cluster, GONE)
    unregister(driver, GONE)
    operator_actions.start(driver.cluster, GONE)
    driver.cluster.scheduler.run_due()
    assert named(driver) == [1, GONE]
    assert driver.broker(GONE).epoch == epoch + 1
    assert set(driver.cluster.controller.image.topics["t"].partitions[0].isr) == {1, GONE}


def test_it_may_stop_while_it_is_unregistered() -> None:
    driver = Driver(2)
    unregister(driver, GONE)
    operator_actions.stop(driver.cluster, GONE)
    assert named(driver) == [1]
    operator_actions.start(driver.cluster, GONE)
    assert named(driver) == [1, GONE]


def test_a_killed_one_is_not_fenced_a_second_time_when_its_session_ends() -> None:
    driver = Driver(2)
    operator_actions.kill(driver.cluster, GONE, Fence.TIMEOUT)
    unregister(driver, GONE)
    driver.advance(60_000)
    assert named(driver) == [1]


def test_an_isolated_one_stays_unregistered_when_it_rejoins() -> None:
    driver = Driver(2)
    operator_actions.isolate(driver.cluster, GONE, from_controller=True)
    unregister(driver, GONE)
    assert named(driver, at=GONE) == [1, GONE]
    operator_actions.rejoin(driver.cluster, GONE)
    assert named(driver, at=GONE) == [1]


def test_no_replica_is_placed_on_it() -> None:
    driver = Driver(3)
    unregister(driver, GONE)
    topic = NewTopic(name="t", partitions=8, replication_factor=2, configs={})
    partitions = driver.cluster.controller.create_topic(topic).partitions
    assert {b for each in partitions for b in each.replicas} == {1, 3}


def test_events_tell_when_it_goes_and_comes() -> None:
    driver = Driver(2)
    seen: list[Event] = []
    driver.cluster.events.listeners += (seen.append,)
    unregister(driver, GONE)
    operator_actions.stop(driver.cluster, GONE)
    operator_actions.start(driver.cluster, GONE)
    states = [e.details["state"] for e in seen if e.kind is Kind.BROKER_CHANGED]
    assert states == ["unregistered", "stopped", "running", "unfenced"]


def test_the_state_of_the_cluster_tells_of_it_until_a_reset() -> None:
    driver = Driver(2)
    unregister(driver, GONE)
    state = broker_state(driver.cluster, GONE, reached_host="h")
    assert (state.state, state.registered, state.fenced) == ("running", False, True)
    operator_actions.restore(driver.cluster)
    state = broker_state(driver.cluster, GONE, reached_host="h")
    assert (state.registered, state.fenced) == (True, False)
    assert named(driver) == [1, GONE]
