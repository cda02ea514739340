"""Very many new partitions: their replicas are opened in several turns, and the answer waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

import pytest

from fencepost.broker.core.context import Context, Peer
from fencepost.broker.core.waits import Wait
from fencepost.broker.node import operator_actions
from fencepost.broker.replication.replica_manager import NEW_AT_ONCE, OPENED_IN_A_TURN
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from fencepost.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from fencepost.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.harness.driver import Driver, Message
from tests.harness.driver_requests import count_fetches, create, produce

MANY: Final = NEW_AT_ONCE + 2 * OPENED_IN_A_TURN


def start() -> Driver:
    return Driver(broker_ids=(1, 2, 3))


def ask(driver: Driver, api: str, request: Message) -> object:
    """Ask broker 1, and run nothing that is due."""
    broker = driver.broker(1)
    ctx = Context(
        broker=broker,
        version=BY_NAME[api].max_version,
        client_id="c1",
        peer=Peer(connection_id="c1", host="192.0.2.1"),
        now_ms=driver.clock.now_ms(),
        wall_ms=driver.clock.wall_ms(),
    )
    return broker.handle(BY_NAME[api], ctx, request)


def create_many(driver: Driver, timeout_ms: int = 1000) -> Wait[CreateTopicsResponse]:
    topic = CreatableTopic(name="t", num_partitions=MANY, replication_factor=3)
    request = CreateTopicsRequest(topics=(topic,), timeout_ms=timeout_ms, validate_only=False)
    answer = ask(driver, "create_topics", request)
    assert isinstance(answer, Wait)
    return cast(Wait[CreateTopicsResponse], answer)


def opened(driver: Driver) -> Sequence[int]:
    """How many replicas each broker has."""
    return [len(broker.replicas) for broker in driver.cluster.brokers.values()]


def assert_whole(driver: Driver, partitions: int = MANY) -> None:
    image = driver.cluster.controller.image.topics["t"].partitions
    assert len(image) == partitions
    for index, partition in enumerate(image):
        assert len(partition.isr) == 3
        for broker_id in partition.replicas:
            replica = driver.replica(broker_id, "t", index)
            assert replica.is_leader == (partition.leader == broker_id)
            assert replica.leader_epoch == partition.leader_epoch


def test_they_are_opened_in_several_turns_and_the_answer_waits_for_the_last() -> None:
    driver = start()
    answer = create_many(driver)
    turns = [opened(driver)]
    while driver.cluster.scheduler.run_turn():
        turns.append(opened(driver))
        if opened(driver) != [MANY] * 3:
            assert not answer.done
    assert turns[0] == [NEW_AT_ONCE] * 3
    assert all(
        after - before <= OPENED_IN_A_TURN
        for before, after in zip(map(sum, turns), map(sum, turns[1:]), strict=False)
    )
    assert answer.done
    assert answer.result is not None
    assert answer.result.topics[0].error_code == ErrorCode.NONE
    assert_whole(driver)


def test_metadata_shows_all_of_a_topic_or_nothing() -> None:
    driver = start()
    create_many(driver)
    goes_on = True
    while goes_on:
        answer = cast(MetadataResponse, ask(driver, "metadata", MetadataRequest(topics=None)))
        (topic,) = answer.topics
        assert len(topic.partitions) == MANY
        assert all(each.leader_id > 0 for each in topic.partitions)
        goes_on = driver.cluster.scheduler.run_turn()


def test_each_follower_fetches_once() -> None:
    driver = start()
    sent = count_fetches(driver)
    create_many(driver)
    driver.cluster.scheduler.run_due()
    assert sum(sent.values()) == 2 * MANY


def test_one_that_takes_longer_than_its_timeout_is_answered_so_and_yet_carried_out() -> None:
    driver = start()
    answer = create_many(driver, timeout_ms=0)
    driver.cluster.scheduler.run_due()
    assert answer.result is not None
    assert answer.result.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    assert_whole(driver)


def test_partitions_that_are_added_are_opened_so_as_well() -> None:
    driver = start()
    create(driver, "t", [(1, 2, 3)])
    added = CreatePartitionsTopic(name="t", count=MANY + 1, assignments=None)
    request = CreatePartitionsRequest(topics=(added,), timeout_ms=1000, validate_only=False)
    answer = cast(Wait[CreatePartitionsResponse], ask(driver, "create_partitions", request))
    assert not answer.done
    assert opened(driver) == [NEW_AT_ONCE + 1] * 3
    driver.cluster.scheduler.run_due()
    assert answer.result is not None
    assert answer.result.results[0].error_code == ErrorCode.NONE
    assert_whole(driver, MANY + 1)


def test_a_topic_that_is_deleted_and_made_again_meanwhile_has_only_its_own_replicas() -> None:
    driver = start()
    create_many(driver)
    driver.cluster.controller.delete_topics(["t"])
    assert opened(driver) == [0, 0, 0]
    create(driver, "t", [(1, 2, 3)])
    assert opened(driver) == [1, 1, 1]
    produce(driver, "t", b"a")
    assert_whole(driver, 1)


@pytest.mark.parametrize("crash", [True, False])
def test_a_broker_goes_and_comes_while_they_are_opened(crash: bool) -> None:
    driver = start()
    answer = create_many(driver)
    if crash:
        operator_actions.kill(driver.cluster, 2)
    else:
        operator_actions.stop(driver.cluster, 2)
    assert answer.done
    operator_actions.start(driver.cluster, 2)
    assert_whole(driver)


def test_an_election_meanwhile_holds() -> None:
    driver = start()
    create_many(driver)
    partition = driver.partition("t", MANY - 1)
    driver.cluster.controller.elect("t", MANY - 1, partition.replicas[1])
    driver.cluster.scheduler.run_due()
    assert driver.partition("t", MANY - 1).leader == partition.replicas[1]
    assert_whole(driver)
