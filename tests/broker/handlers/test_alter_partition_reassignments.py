"""AlterPartitionReassignments: partitions move while they are written, or say why not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import pytest

from fencepost.broker.controller import Fence
from fencepost.broker.node import operator_actions
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from fencepost.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tests.harness.driver import NEWEST, Driver, Message, versions
from tests.harness.driver_requests import create, fetch, produce
from tests.harness.typed_requests import fetch_request, fetched, from_offset, values

Result = tuple[str, int, ErrorCode, str | None]
Ongoing = tuple[str, int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""Topic, partition, and its replicas: all, those that come, those that go."""
Target: TypeAlias = tuple[int, Sequence[int] | None]
"""Partition and replicas."""

DONE: Final = (ErrorCode.NONE, None)
WRONG: Final = ErrorCode.INVALID_REPLICA_ASSIGNMENT


def ask(
    driver: Driver,
    *asked: tuple[str, Sequence[Target]],
    version: int = NEWEST,
    allow: bool = True,
    broker_id: int = 1,
) -> Message:
    request = AlterPartitionReassignmentsRequest(
        allow_replication_factor_change=allow,
        topics=tuple(
            ReassignableTopic(
                name=name,
                partitions=tuple(
                    ReassignablePartition(
                        partition_index=index,
                        replicas=None if replicas is None else tuple(replicas),
                    )
                    for index, replicas in targets
                ),
            )
            for name, targets in asked
        ),
    )
    return driver.ask(broker_id, "alter_partition_reassignments", version, request)


def alter(
    driver: Driver,
    *asked: tuple[str, Sequence[Target]],
    version: int = NEWEST,
    allow: bool = True,
) -> list[Result]:
    return results(ask(driver, *asked, version=version, allow=allow))


def results(response: Message) -> list[Result]:
    return [
        (topic.name, p.partition_index, ErrorCode(p.error_code), p.error_message)
        for topic in response.responses
        for p in topic.partitions
    ]


def ongoing(driver: Driver, *asked: tuple[str, Sequence[int]], broker_id: int = 1) -> list[Ongoing]:
    """The reassignments in progress, of all partitions where none is named."""
    topics = tuple(
        ListPartitionReassignmentsTopics(name=name, partition_indexes=tuple(indexes))
        for name, indexes in asked
    )
    request = ListPartitionReassignmentsRequest(topics=topics or None)
    response = driver.ask(broker_id, "list_partition_reassignments", NEWEST, request)
    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
    return [
        (t.name, p.partition_index, p.replicas, p.adding_replicas, p.removing_replicas)
        for t in response.topics
        for p in t.partitions
    ]


# -- moving -------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions("alter_partition_reassignments"))
def test_a_partition_moves_with_all_that_it_has(version: int) -> None:
    driver = Driver(4)
    create(driver, "t", [(1, 2)])
    produce(driver, "t", b"a", b"b")
    assert alter(driver, ("t", [(0, [3, 4])]), version=version) == [("t", 0, *DONE)]
    found = driver.partition("t")
    assert (found.replicas, set(found.isr), found.leader) == ((3, 4), {3, 4}, 3)
    assert (found.adding, found.removing, ongoing(driver)) == ((), (), [])
    assert values(fetch(driver, "t", 0)) == [b"a", b"b"]
    assert produce(driver, "t", b"c").base_offset == 2
    for gone in (1, 2):
        assert ("t", 0) not in driver.broker(gone).replicas
    assert driver.replica(4, "t").log.log_end_offset == 3


def test_until_those_who_come_have_caught_up_those_who_go_serve_on() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2)])
    produce(driver, "t", b"a")
    driver.broker(3).replica_manager.hold("t", 0, None)
    assert alter(driver, ("t", [(0, [3, 2])])) == [("t", 0, *DONE)]
    assert ongoing(driver, broker_id=2) == [("t", 0, (3, 2, 1), (3,), (1,))]
    assert driver.partition("t").leader == 1
    assert produce(driver, "t", b"b").error_code == ErrorCode.NONE, "3 is not waited for"
    before = driver.partition("t")
    operator_actions.release(driver.cluster, "t", 0, 3)
    after = driver.partition("t")
    assert (after.replicas, after.leader, ongoing(driver)) == ((3, 2), 3, [])
    assert after.leader_epoch == before.leader_epoch + 1
    assert values(fetch(driver, "t", 0)) == [b"a", b"b"]


def test_the_epoch_ends_when_a_follower_is_one_no_more() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2)])
    alter(driver, ("t", [(0, [1])]))
    found = driver.partition("t")
    assert (found.replicas, found.isr, found.leader, found.leader_epoch) == ((1,), (1,), 1, 1)
    alter(driver, ("t", [(0, [1, 3])]))
    found = driver.partition("t")
    assert (found.replicas, set(found.isr), found.leader_epoch) == ((1, 3), {1, 3}, 1)


def test_another_order_changes_who_is_preferred_and_nothing_else() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)])
    alter(driver, ("t", [(0, [3, 1, 2])]))
    found = driver.partition("t")
    assert (found.replicas, found.leader, found.leader_epoch) == ((3, 1, 2), 1, 0)


def test_what_is_so_already_changes_nothing() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    before = driver.cluster.controller.image
    assert alter(driver, ("t", [(0, [1, 2])])) == [("t", 0, *DONE)]
    assert driver.cluster.controller.image is before


def test_a_reassignment_waits_for_a_broker_that_is_offline() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2)])
    operator_actions.kill(driver.cluster, 3)
    alter(driver, ("t", [(0, [1, 3])]))
    assert ongoing(driver) == [("t", 0, (1, 3, 2), (3,), (2,))]
    produce(driver, "t", b"a")
    operator_actions.start(driver.cluster, 3)
    assert ongoing(driver) == []
    assert driver.partition("t").replicas == (1, 3)
    assert driver.replica(3, "t").log.log_end_offset == 1


def test_an_acknowledged_record_survives_the_move_and_the_loss_of_the_old_brokers() -> None:
    driver = Driver(4)
    create(driver, "t", [(1, 2)], min_insync_replicas="2")
    produce(driver, "t", b"acknowledged", acks=-1)
    alter(driver, ("t", [(0, [3, 4])]))
    operator_actions.kill(driver.cluster, 1)
    operator_actions.kill(driver.cluster, 2)
    request = fetch_request(("t", from_offset(0)))
    leader = driver.partition("t").leader
    assert values(fetched(driver.ask(leader, "fetch", 12, request))) == [b"acknowledged"]


# -- another target, and the way back -----------------------------------------------------------


def waiting(driver: Driver, target: Sequence[int] = (1, 3)) -> None:
    """A partition of brokers 1 and 2 that waits for broker 3."""
    create(driver, "t", [(1, 2)])
    driver.broker(3).replica_manager.hold("t", 0, None)
    alter(driver, ("t", [(0, target)]))


def test_a_reassignment_can_be_taken_back() -> None:
    driver = Driver(3)
    waiting(driver)
    assert alter(driver, ("t", [(0, None)])) == [("t", 0, *DONE)]
    found = driver.partition("t")
    assert (found.replicas, found.isr, found.leader_epoch) == ((1, 2), (1, 2), 1)
    assert ongoing(driver) == []
    assert ("t", 0) not in driver.broker(3).replicas
    assert alter(driver, ("t", [(0, None)])) == [
        ("t", 0, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None)
    ]


def test_another_target_takes_the_place_of_the_first() -> None:
    driver = Driver(4)
    waiting(driver)
    alter(driver, ("t", [(0, [1, 4])]))
    found = driver.partition("t")
    assert (found.replicas, set(found.isr)) == ((1, 4), {1, 4})


def test_to_ask_for_the_old_replicas_again_is_no_way_back() -> None:
    driver = Driver(3)
    waiting(driver)
    alter(driver, ("t", [(0, [1, 2])]))
    assert ongoing(driver) == [("t", 0, (1, 2, 3), (3,), (3,))]
    alter(driver, ("t", [(0, None)]))
    assert driver.partition("t").replicas == (1, 2)


@pytest.mark.parametrize("unclean", ["false", "true"])
def test_only_an_unclean_leader_takes_back_what_nobody_else_has(unclean: str) -> None:
    driver = Driver(4)
    create(driver, "t", [(1, 2)], unclean_leader_election_enable=unclean)
    produce(driver, "t", b"gone")
    driver.broker(4).replica_manager.hold("t", 0, None)
    alter(driver, ("t", [(0, [3, 4])]))
    operator_actions.kill(driver.cluster, 2)
    operator_actions.kill(driver.cluster, 1)
    operator_actions.start(driver.cluster, 2)
    operator_actions.hold(driver.cluster, "t", 0, 2, leave_isr=True)
    assert driver.partition("t").isr == (3,)
    answer = results(ask(driver, ("t", [(0, None)]), broker_id=3))
    if unclean == "false":
        message = (
            "Unable to revert partition assignment for t:0 because it would require an unclean "
            "leader election."
        )
        assert answer == [("t", 0, WRONG, message)]
        assert driver.partition("t").leader == 3
    else:
        assert answer == [("t", 0, *DONE)]
        found = driver.partition("t")
        assert (found.replicas, found.isr, found.leader) == ((1, 2), (2,), 2)


def test_a_reassignment_is_taken_back_to_the_first_replica_where_nobody_is_in_sync() -> None:
    driver = Driver(4)
    configs = {"unclean_leader_election_enable": "true", "min_insync_replicas": "2"}
    create(driver, "t", [(1, 2)], **configs)
    produce(driver, "t", b"kept")
    driver.broker(4).replica_manager.hold("t", 0, None)
    alter(driver, ("t", [(0, [3, 4])]))
    for broker_id in (1, 2):
        operator_actions.hold(driver.cluster, "t", 0, broker_id)
        operator_actions.kill(driver.cluster, broker_id)
        operator_actions.start(driver.cluster, broker_id)
    assert (driver.partition("t").isr, driver.partition("t").elr) == ((3,), (2,))
    assert results(ask(driver, ("t", [(0, None)]), broker_id=3)) == [("t", 0, *DONE)]
    found = driver.partition("t")
    assert (found.replicas, found.isr, found.leader, found.elr) == ((1, 2), (1,), 1, (2,))


# -- what cannot be -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ([], "an empty replica list."),
        ([9, 1], "broker 9, but no such broker is registered."),
        ([-1], "broker -1, but no such broker is registered."),
        ([1, 2, 1], "the broker 1 more than once."),
        ([1, 9, 1], "the broker 1 more than once."),
        ([0, 1, 1], "broker 0, but no such broker is registered."),
    ],
)
def test_a_target_names_brokers_that_there_are_and_each_once(
    target: list[int], message: str
) -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)])
    before = driver.cluster.controller.image
    message = f"The manual partition assignment includes {message}"
    for allow in (True, False):
        assert alter(driver, ("t", [(0, target)]), allow=allow) == [("t", 0, WRONG, message)]
    assert driver.cluster.controller.image is before


def test_what_is_not_there_cannot_move() -> None:
    driver = Driver(1)
    create(driver, "t")
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert alter(driver, ("t", [(1, [1]), (-1, None)]), ("nope", [(0, [1]), (1, None)])) == [
        ("t", 1, unknown, "Unable to find partition t:1."),
        ("t", -1, unknown, "Unable to find partition t:-1."),
        ("nope", 0, unknown, "Unable to find a topic named nope."),
        ("nope", 1, unknown, "Unable to find a topic named nope."),
    ]


def test_the_number_of_replicas_can_be_made_to_stay() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2)])
    code = ErrorCode.INVALID_REPLICATION_FACTOR
    refused = ask(driver, ("t", [(0, [1]), (0, [1, 2, 3])]), allow=False)
    assert not refused.allow_replication_factor_change
    assert results(refused) == [
        ("t", 0, code, "The replication factor is changed from 2 to 1"),
        ("t", 0, code, "The replication factor is changed from 2 to 3"),
    ]
    assert ask(driver, ("t", [(0, [1, 2, 3])])).allow_replication_factor_change
    assert len(driver.partition("t").replicas) == 3
    assert ask(driver, allow=False).allow_replication_factor_change  # without any topic


def test_replicas_that_are_to_go_do_not_count() -> None:
    driver = Driver(3)
    waiting(driver)
    assert len(driver.partition("t").replicas) == 3
    assert alter(driver, ("t", [(0, [1, 2, 3])]), allow=False) == [
        (
            "t",
            0,
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "The replication factor is changed from 2 to 3",
        )
    ]


def test_each_partition_is_answered_by_itself_and_all_change_in_one_view() -> None:
    driver = Driver(3)
    create(driver, "t", [(1,), (1,), (1,)])
    before = driver.cluster.controller.image.version
    codes = [r[2] for r in alter(driver, ("t", [(0, [1]), (1, []), (2, [9]), (7, [1])]))]
    assert codes == [ErrorCode.NONE, WRONG, WRONG, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert driver.cluster.controller.image.version == before
    for broker_id in (1, 2, 3):
        for index in range(3):
            driver.broker(broker_id).replica_manager.hold("t", index, None)
    alter(driver, ("t", [(0, [2]), (2, [3])]))
    assert driver.cluster.controller.image.version == before + 1
    assert [each[:2] for each in ongoing(driver)] == [("t", 0), ("t", 2)]


def test_a_request_for_nothing_is_answered_so() -> None:
    response = ask(Driver(1))
    assert (response.error_code, response.error_message, response.responses) == (0, "", ())


def test_a_broker_that_does_not_reach_the_controller_moves_nothing() -> None:
    driver = Driver(2)
    create(driver, "t", [(1,)])
    operator_actions.isolate(driver.cluster, 1, from_controller=True, fence=Fence.NEVER)
    response = ask(driver, ("t", [(0, [2])]))
    assert response.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert results(response) == [("t", 0, ErrorCode.REQUEST_TIMED_OUT, None)]
    assert driver.partition("t").replicas == (1,)


# -- the list -----------------------------------------------------------------------------------


def test_the_list_names_what_is_in_progress_of_what_was_asked() -> None:
    driver = Driver(3)
    waiting(driver)
    create(driver, "other", [(1,)])
    found = ("t", 0, (1, 3, 2), (3,), (2,))
    assert ongoing(driver) == [found]
    assert ongoing(driver, ("other", [0]), ("t", [0, 5, -1]), ("nope", [0])) == [found]
    assert ongoing(driver, ("other", [0]), ("nope", [0])) == []


def test_the_list_is_the_controllers_and_not_that_of_a_broker_without_it() -> None:
    driver = Driver(3)
    waiting(driver)
    operator_actions.isolate(driver.cluster, 1, from_controller=True, fence=Fence.NEVER)
    request = ListPartitionReassignmentsRequest(
        topics=(ListPartitionReassignmentsTopics(name="t", partition_indexes=(0,)),)
    )
    refused = driver.ask(1, "list_partition_reassignments", NEWEST, request)
    assert refused.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert len(ongoing(driver, broker_id=2)) == 1
