"""Messages between nodes: what arrives, what is lost, and who learns of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TypeVar, cast

import pytest

from fencepost.broker.controller import Fence
from fencepost.broker.controller.requests import AllocateProducerIds
from fencepost.broker.network.links import (
    CONTROLLER,
    BrokerId,
    ControllerRequest,
    Link,
    Network,
    NodeId,
)
from fencepost.broker.node import operator_actions
from fencepost.broker.node.broker import Broker
from fencepost.protocol.apis import BY_NAME
from tests.harness.driver import Driver, ManualTransport
from tests.harness.driver_requests import create, produce

API_VERSIONS = BY_NAME["api_versions"]
R = TypeVar("R")
ONE, TWO, THREE = BrokerId(1), BrokerId(2), BrokerId(3)


def start(brokers: int = 3) -> tuple[Driver, ManualTransport]:
    post = ManualTransport()
    driver = Driver(brokers, carry=post)
    return driver, post


def send(driver: Driver, source: NodeId, target: NodeId, told: list[str]) -> None:
    driver.cluster.network.send(
        source, target, lambda: told.append("arrived"), lost=lambda: told.append("lost")
    )


def test_a_message_arrives_once() -> None:
    driver, post = start()
    told: list[str] = []
    post.keeps = True
    send(driver, ONE, TWO, told)
    assert told == []
    assert post.deliver() == [Link(ONE, TWO)]
    assert told == ["arrived"]


@pytest.mark.parametrize(
    ("source", "target"), [(ONE, TWO), (TWO, ONE), (ONE, CONTROLLER), (CONTROLLER, ONE)]
)
def test_a_cut_link_loses_both_ways_what_was_on_the_way(source: NodeId, target: NodeId) -> None:
    driver, post = start()
    told: list[str] = []
    post.keeps = True
    send(driver, source, target, told)
    driver.cluster.network.cut_link(target, source)
    post.deliver()
    assert told == ["lost"]
    driver.cluster.network.restore_link(source, target)
    send(driver, source, target, told)
    post.deliver()
    assert told == ["lost", "arrived"]


def test_a_cut_touches_no_other_link() -> None:
    driver, _ = start()
    driver.cluster.network.cut_link(ONE, TWO)
    told: list[str] = []
    send(driver, ONE, THREE, told)
    send(driver, THREE, TWO, told)
    assert told == ["arrived", "arrived"]
    assert list(driver.cluster.network.unreachable_nodes(ONE)) == [2]
    assert list(driver.cluster.network.unreachable_nodes(THREE)) == []


def test_a_message_to_an_earlier_life_is_lost() -> None:
    driver, post = start()
    told: list[str] = []
    post.keeps = True
    send(driver, ONE, TWO, told)
    post.keeps = False
    operator_actions.kill(driver.cluster, 2)
    operator_actions.start(driver.cluster, 2)
    post.deliver()
    assert told == ["lost"]


def test_who_went_down_learns_nothing_of_what_it_had_sent() -> None:
    driver, post = start()
    told: list[str] = []
    post.keeps = True
    send(driver, ONE, TWO, told)
    post.keeps = False
    operator_actions.kill(driver.cluster, 1)
    operator_actions.start(driver.cluster, 1)
    post.deliver()
    assert told == []


def test_an_answer_that_gets_lost_is_told_to_who_asked() -> None:
    driver, post = start()
    network, told = driver.cluster.network, []
    post.keeps = True
    network.ask_controller(
        ONE,
        AllocateProducerIds(count=7),
        lambda ids: told.append(str(ids)),
        lambda: told.append("lost"),
    )
    assert post.deliver() == [Link(ONE, CONTROLLER)]
    network.cut_link(ONE, CONTROLLER)
    assert post.deliver() == [Link(CONTROLLER, ONE)]
    assert told == ["lost"]


class Echo:
    """A controller that answers with what it is asked."""

    def handle(self, request: ControllerRequest[R]) -> R:
        return cast(R, request)


def test_a_broker_with_the_id_0_is_not_the_controller() -> None:
    network, told, zero = Network(), list[str](), BrokerId(0)
    network.attach_controller(Echo())
    network.attach(cast(Broker, SimpleNamespace(broker_id=zero, host="127.0.0.1")))

    def ask(broker_id: BrokerId) -> None:
        network.ask_controller(
            broker_id,
            AllocateProducerIds(count=1),
            lambda _answer: told.append(f"answered {broker_id}"),
            lambda: told.append(f"lost {broker_id}"),
        )

    network.cut_link(zero, ONE)
    assert (network.reaches(ONE, zero), network.reaches(ONE, CONTROLLER)) == (False, True)
    ask(zero)
    ask(ONE)
    network.cut_link(ONE, CONTROLLER)
    assert list(network.unreachable_nodes(ONE)) == [CONTROLLER, zero]
    ask(zero)
    ask(ONE)
    network.on_broker_down(zero)
    network.restore_link(ONE, CONTROLLER)
    ask(zero)
    ask(ONE)
    assert told == ["answered 0", "answered 1", "answered 0", "lost 1", "lost 0", "answered 1"]


def test_a_request_to_a_broker_that_there_is_not_is_lost_at_once() -> None:
    driver, _ = start()
    told: list[str] = []
    driver.cluster.network.request(
        ONE,
        9,
        API_VERSIONS,
        0,
        None,
        lambda _answer: told.append("answered"),
        lambda: told.append("lost"),
    )
    assert told == ["lost"]


def test_a_view_that_is_late_holds_one_broker_back_and_no_other() -> None:
    driver, post = start()
    create(driver, "t", [(1, 2, 3)])
    post.keeps = True
    operator_actions.elect(driver.cluster, "t", 0, 2)
    assert [driver.broker(b).view.version for b in (1, 2, 3)] == [2, 2, 2]
    post.deliver(2)
    assert not driver.replica(1, "t").is_leader
    assert driver.replica(2, "t").is_leader
    assert driver.replica(3, "t").leader == 1


def test_views_that_were_lost_are_made_up_for_by_the_next() -> None:
    driver = Driver(3)
    create(driver, "a", [(1, 2, 3)])
    create(driver, "b", [(1, 2, 3)])
    operator_actions.isolate(driver.cluster, 3, from_controller=True, fence=Fence.NEVER)
    operator_actions.elect(driver.cluster, "a", 0, 2)
    driver.cluster.controller.delete_topics(["b"])
    create(driver, "c", [(2, 3)])
    assert sorted(t for t, _ in driver.broker(3).replicas) == ["a", "b"]
    operator_actions.rejoin(driver.cluster, 3)
    assert sorted(t for t, _ in driver.broker(3).replicas) == ["a", "c"]
    assert driver.replica(3, "a").leader == 2
    produce(driver, "a", b"1")
    produce(driver, "c", b"2")
    assert driver.replica(3, "a").log.log_end_offset == 1
    assert driver.replica(3, "c").log.log_end_offset == 1
