"""ElectLeaders: who leads afterwards, and the answer for each partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest

from fencepost.broker.controller import Fence
from fencepost.broker.node import operator_actions
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from tests.harness.driver import NEWEST, Driver, Message, versions
from tests.harness.driver_requests import create, produce

Result = tuple[str, int, ErrorCode, str | None]

PREFERRED: Final = 0
UNCLEAN: Final = 1
NOT_NEEDED: Final = (
    ErrorCode.ELECTION_NOT_NEEDED,
    "Leader election not needed for topic partition.",
)
NO_PREFERRED: Final = (
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    "The preferred leader was not available.",
)
NO_LEADER: Final = (
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
    "Eligible topic partition leaders are not available.",
)
DONE: Final = (ErrorCode.NONE, None)


def ask(
    driver: Driver,
    asked: Sequence[tuple[str, Sequence[int]]] | None,
    election: int = PREFERRED,
    *,
    version: int = NEWEST,
    broker_id: int = 1,
) -> Message:
    topics = None
    if asked is not None:
        topics = tuple(TopicPartitions(topic=t, partitions=tuple(p)) for t, p in asked)
    request = ElectLeadersRequest(topic_partitions=topics, election_type=election)
    return driver.ask(broker_id, "elect_leaders", version, request)


def elect(
    driver: Driver,
    asked: Sequence[tuple[str, Sequence[int]]] | None,
    election: int = PREFERRED,
    version: int = NEWEST,
) -> list[Result]:
    return results(ask(driver, asked, election, version=version))


def results(response: Message) -> list[Result]:
    return [
        (topic.topic, p.partition_id, ErrorCode(p.error_code), p.error_message)
        for topic in response.replica_election_results
        for p in topic.partition_result
    ]


@pytest.mark.parametrize("version", versions("elect_leaders"))
def test_the_preferred_replica_leads_again(version: int) -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3), (2, 3, 1)])
    driver.elect("t", 0, 2)
    epoch = driver.partition("t").leader_epoch
    assert elect(driver, [("t", [0, 1])], version=version) == [
        ("t", 0, *DONE),
        ("t", 1, *NOT_NEEDED),
    ]
    assert driver.partition("t").leader == 1
    assert driver.partition("t").leader_epoch == epoch + 1
    assert produce(driver, "t", b"on").error_code == ErrorCode.NONE
    assert driver.replica(1, "t").is_leader


def test_nobody_leads_again_unless_it_is_told_to() -> None:
    driver = Driver(3, {"leader.imbalance.check.interval.seconds": "1"})
    create(driver, "t", [(1, 2, 3)])
    driver.elect("t", 0, 2)
    driver.advance(600_000)
    assert driver.partition("t").leader == 2


def test_any_broker_holds_elections() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2)])
    driver.elect("t", 0, 2)
    assert results(ask(driver, [("t", [0])], broker_id=3)) == [("t", 0, *DONE)]
    assert driver.broker(2).view.topics["t"].partitions[0].leader == 1


def test_a_preferred_replica_that_is_not_in_sync_does_not_lead() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)])
    operator_actions.kill(driver.cluster, 1)
    operator_actions.start(driver.cluster, 1)
    operator_actions.hold(driver.cluster, "t", 0, 1, leave_isr=True)
    assert elect(driver, [("t", [0])]) == [("t", 0, *NO_PREFERRED)]
    assert driver.partition("t").leader == 2
    operator_actions.release(driver.cluster, "t", 0, 1)
    assert elect(driver, [("t", [0])]) == [("t", 0, *DONE)]


def test_a_preferred_replica_that_is_offline_does_not_lead() -> None:
    driver = Driver(2)
    create(driver, "a", [(2, 1)])
    create(driver, "b", [(2,)])
    operator_actions.kill(driver.cluster, 2)
    assert elect(driver, [("a", [0]), ("b", [0])]) == [
        ("a", 0, *NO_PREFERRED),
        ("b", 0, *NO_PREFERRED),
    ]
    assert (driver.partition("a").leader, driver.partition("b").leader) == (1, -1)


def test_an_unclean_election_is_for_who_has_no_leader() -> None:
    driver = Driver(3)
    create(driver, "t", [(2, 3)])
    operator_actions.hold(driver.cluster, "t", 0, 3, leave_isr=True)
    produce(driver, "t", b"only 2 has it", acks=1)
    assert elect(driver, [("t", [0])], UNCLEAN) == [("t", 0, *NOT_NEEDED)]
    operator_actions.kill(driver.cluster, 2)
    assert driver.partition("t").leader == -1
    assert elect(driver, [("t", [0])]) == [("t", 0, *NO_PREFERRED)]
    assert elect(driver, [("t", [0])], UNCLEAN) == [("t", 0, *DONE)]
    found = driver.partition("t")
    assert (found.leader, found.isr) == (3, (3,))
    assert driver.leader("t").log.log_end_offset == 0


def test_an_unclean_election_needs_a_replica_that_is_online() -> None:
    driver = Driver(2)
    create(driver, "t", [(2,)])
    operator_actions.kill(driver.cluster, 2)
    assert elect(driver, [("t", [0])], UNCLEAN) == [("t", 0, *NO_LEADER)]


def test_what_is_not_there_is_said_to_be_unknown() -> None:
    driver = Driver(1)
    create(driver, "t")
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert elect(driver, [("t", [1, -1]), ("nope", [0])]) == [
        ("t", 1, unknown, "No such partition as t-1"),
        ("t", -1, unknown, "No such partition as t--1"),
        ("nope", 0, unknown, "No such topic as nope"),
    ]


def test_null_is_every_partition_but_only_those_that_need_it_are_answered() -> None:
    driver = Driver(3)
    create(driver, "a", [(1, 2), (2, 1)])
    create(driver, "b", [(1, 2), (3, 1)])
    create(driver, "c", [(2,)])
    driver.elect("a", 1, 1)
    operator_actions.kill(driver.cluster, 3)
    response = ask(driver, None)
    assert response.error_code == ErrorCode.NONE
    assert results(response) == [("a", 1, *DONE), ("b", 1, *NO_PREFERRED)]
    assert [topic.topic for topic in response.replica_election_results] == ["a", "b", "c"]
    assert driver.partition("a", 1).leader == 2


def test_all_leaders_change_in_one_new_view() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2), (1, 2), (1, 2)])
    for index in range(3):
        driver.elect("t", index, 2)
    before = driver.cluster.controller.image.version
    elect(driver, [("t", [0, 1, 2])])
    assert driver.cluster.controller.image.version == before + 1
    elect(driver, [("t", [0, 1, 2])])
    assert driver.cluster.controller.image.version == before + 1, "nothing was to be done"


def test_what_is_asked_twice_is_answered_twice() -> None:
    driver = Driver(1)
    create(driver, "t")
    assert elect(driver, [("t", [0, 0]), ("t", [0])]) == [("t", 0, *NOT_NEEDED)] * 3
    assert elect(driver, []) == []


@pytest.mark.parametrize("asked", [[("t", [0])], None])
def test_an_unknown_election_type_is_refused(asked: list[tuple[str, list[int]]] | None) -> None:
    driver = Driver(1)
    create(driver, "t")
    response = ask(driver, asked, 5)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    expected = [("t", 0, ErrorCode.INVALID_REQUEST, "Unknown election type 5")]
    assert results(response) == (expected if asked else [])


def test_a_broker_that_does_not_reach_the_controller_holds_no_elections() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    driver.elect("t", 0, 2)
    operator_actions.isolate(driver.cluster, 1, from_controller=True, fence=Fence.NEVER)
    response = ask(driver, [("t", [0])])
    assert response.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert results(response) == [("t", 0, ErrorCode.REQUEST_TIMED_OUT, None)]
    assert driver.partition("t").leader == 2
