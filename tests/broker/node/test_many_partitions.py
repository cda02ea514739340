"""A broker of very many partitions comes and goes: in several turns, between which others act."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

import pytest
from msgspec.structs import replace

from fencepost.broker.controller import Fence
from fencepost.broker.controller.evaluations import PARTITIONS_IN_A_TURN
from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.groups.group_coordinator import OFFSETS_TOPIC
from fencepost.broker.node import operator_actions
from fencepost.broker.replication.replica import Replica
from fencepost.broker.replication.replica_manager import (
    CLOSED_IN_A_TURN,
    LEADERS_IN_A_TURN,
    RESIGNED_IN_A_TURN,
)
from fencepost.protocol.errors import ErrorCode
from tests.harness.driver import Driver
from tests.harness.driver_requests import count_fetches, create, produce, send_produce
from tests.harness.in_process_server import running
from tests.harness.typed_requests import produced

MANY: Final = 12 * PARTITIONS_IN_A_TURN
REPLICAS: Final = ((1, 2, 3), (2, 3, 1), (3, 1, 2))


def start(partitions: int = MANY) -> Driver:
    """Three brokers, each with a replica of every partition; a third of them is led by each."""
    driver = Driver(broker_ids=(1, 2, 3))
    create(driver, "t", [REPLICAS[index % 3] for index in range(partitions)])
    return driver


def led_by(driver: Driver, broker_id: int) -> int:
    partitions = driver.cluster.controller.image.topics["t"].partitions
    return sum(partition.leader == broker_id for partition in partitions)


def assert_in_sync(driver: Driver) -> None:
    partitions = driver.cluster.controller.image.topics["t"].partitions
    assert all(len(partition.isr) == 3 for partition in partitions)
    for broker in driver.cluster.brokers.values():
        assert broker.view is driver.cluster.controller.image
        for replica in [each for each in broker.replicas.values() if each.topic == "t"]:
            partition = partitions[replica.index]
            assert replica.is_leader == (partition.leader == broker.broker_id)
            assert replica.leader_epoch == partition.leader_epoch


def test_a_broker_that_goes_leaves_its_partitions_in_several_images() -> None:
    driver = start()
    steps = operator_actions.killing(driver.cluster, 1, Fence.NOW)
    next(steps)
    assert not driver.cluster.controller.is_online(1)
    assert 0 < led_by(driver, 1) < MANY // 3
    driver.cluster.scheduler.run_due()
    assert led_by(driver, 1) == 0
    partitions = driver.cluster.controller.image.topics["t"].partitions
    assert all(1 not in partition.isr for partition in partitions)
    assert all(partition.leader_epoch <= 1 for partition in partitions)


def test_a_broker_that_comes_back_leads_nothing_that_it_led_before() -> None:
    driver = start()
    operator_actions.kill(driver.cluster, 1)
    operator_actions.start(driver.cluster, 1)
    assert led_by(driver, 1) == 0
    assert_in_sync(driver)


def test_one_that_comes_back_while_it_still_goes_does_not_lead_in_an_epoch_that_ended() -> None:
    driver = start()
    next(operator_actions.killing(driver.cluster, 1, Fence.NOW))
    assert led_by(driver, 1)
    steps = operator_actions.starting(driver.cluster, 1)
    next(steps)
    assert not any(replica.is_leader for replica in driver.broker(1).replicas.values())
    for _ in steps:
        driver.cluster.scheduler.run_due()
    assert_in_sync(driver)


def test_a_broker_goes_while_another_still_goes() -> None:
    driver = start()
    next(operator_actions.killing(driver.cluster, 2, Fence.NOW))
    operator_actions.kill(driver.cluster, 1)
    partitions = driver.cluster.controller.image.topics["t"].partitions
    assert {partition.leader for partition in partitions} == {3}
    assert {partition.isr for partition in partitions} == {(3,)}


def test_what_changes_while_a_broker_starts_holds_for_it_too() -> None:
    driver = start()
    create(driver, "deleted", [(1, 2, 3)])
    operator_actions.kill(driver.cluster, 1)
    steps = operator_actions.starting(driver.cluster, 1)
    next(steps)
    assert 0 < len(driver.broker(1).replicas) < MANY
    create(driver, "made", [(1, 2, 3)])
    driver.cluster.controller.delete_topics(["deleted"])
    driver.elect("t", MANY - 1, 2)
    for _ in steps:
        driver.cluster.scheduler.run_due()
    assert_in_sync(driver)
    assert ("deleted", 0) not in driver.broker(1).replicas
    produce(driver, "made", b"a")
    assert driver.replica(1, "made").log.log_end_offset == 1


def test_followers_whose_leader_stays_fetch_nothing_when_a_broker_goes() -> None:
    driver = start()
    sent = count_fetches(driver)
    operator_actions.kill(driver.cluster, 1)
    assert sum(sent.values()) == MANY // 3


def test_each_follower_of_a_broker_that_comes_back_fetches_once_and_no_other() -> None:
    driver = start()
    operator_actions.kill(driver.cluster, 1)
    sent = count_fetches(driver)
    operator_actions.start(driver.cluster, 1)
    assert_in_sync(driver)
    assert sent == {1: MANY}


VERY_MANY: Final = 3 * CLOSED_IN_A_TURN


@pytest.mark.parametrize("crash", [True, False])
def test_a_broker_closes_some_logs_in_a_turn_and_acts_no_more_from_the_first_on(
    crash: bool,
) -> None:
    driver = start(VERY_MANY)
    broker = driver.broker(1)
    logs = {index: driver.replica(1, "t", index).log for index in range(VERY_MANY)}
    open_logs = []
    for _ in broker.stopping(crash=crash):
        open_logs.append(len(broker.replicas))
        assert not broker.running
        assert not broker.replica_manager.followers
        for (topic, index), replica in broker.replicas.items():
            assert replica.log is logs[index]
            assert broker.storage.peek_log(topic, index) is None
    assert open_logs == [2 * CLOSED_IN_A_TURN, CLOSED_IN_A_TURN, 0]
    assert not broker.replicas
    assert all(broker.storage.peek_log("t", index) is log for index, log in logs.items())


def test_a_broker_that_is_killed_coordinates_no_group_while_its_logs_are_closed() -> None:
    driver = start(VERY_MANY)
    create(driver, OFFSETS_TOPIC, [(1, 2, 3)])
    assert driver.broker(1).coordinator.runtime.shards
    next(driver.broker(1).stopping(crash=True))
    assert (OFFSETS_TOPIC, 0) in driver.broker(1).replicas
    assert not driver.broker(1).coordinator.runtime.shards


def test_leaders_look_at_a_broker_that_registers_in_several_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver = Driver(broker_ids=(1, 2, 3))
    create(driver, "t", [(1, 2, 3)] * (2 * LEADERS_IN_A_TURN + 1))
    cluster, looks = driver.cluster, 0
    reevaluate = Replica.reevaluate_followers

    def count(replica: Replica, broker_ids: Iterable[int]) -> None:
        nonlocal looks
        looks += 1
        reevaluate(replica, broker_ids)

    monkeypatch.setattr(Replica, "reevaluate_followers", count)
    broker = cluster.controller.image.brokers[3]
    cluster.controller.register(replace(broker, rack="r"))
    turns = [looks]
    while cluster.scheduler.run_turn():
        turns.append(looks)
    assert turns[0] == LEADERS_IN_A_TURN
    assert looks == 2 * LEADERS_IN_A_TURN + 1
    cluster.controller.register(replace(broker, rack="s"))
    cluster.controller.register(replace(broker, rack="t"))
    assert looks == 2 * (2 * LEADERS_IN_A_TURN + 1) + LEADERS_IN_A_TURN


def test_a_reset_of_very_many_replicas_answers_what_waits_at_them_in_several_turns() -> None:
    driver = start(3 * RESIGNED_IN_A_TURN)
    indexes = (0, 3 * RESIGNED_IN_A_TURN - 3)  # both are led by broker 1
    driver.hold(2, 3)
    waiting = [send_produce(driver, "t", b"a", index=index, timeout_ms=60_000) for index in indexes]
    driver.cluster.reset()
    assert all(not broker.replicas for broker in driver.cluster.brokers.values())
    assert [asked.done for asked in waiting] == [True, False]
    driver.cluster.scheduler.run_due()
    for asked in waiting:
        assert produced(asked.response).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    create(driver, "t", [(1, 2, 3)])
    produce(driver, "t", b"a")
    assert_in_sync(driver)


@pytest.mark.asyncio
@pytest.mark.parametrize("verb", ["kill", "stop"])
async def test_a_server_goes_on_while_a_broker_of_very_many_partitions_goes_and_comes(
    verb: str,
) -> None:
    topic = NewTopic(name="t", partitions=MANY, replication_factor=3, configs={})
    async with running(topics=(topic,)) as server:
        turns = 0
        ended = False

        async def count() -> None:
            nonlocal turns
            while not ended:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.ensure_future(count())
        if verb == "kill":
            await server.kill_broker(2, Fence.NOW)
        else:
            await server.stop_broker(2)
        to_go, turns = turns, 0
        await server.start_broker(2)
        ended = True
        await counting
        assert to_go > MANY // PARTITIONS_IN_A_TURN
        assert turns > MANY // PARTITIONS_IN_A_TURN
        image = server.cluster.controller.image
        assert all(len(partition.isr) == 3 for partition in image.topics["t"].partitions)
