"""The simulated wires: in order on each link, in any order among them."""

from collections.abc import Callable
from functools import partial

import pytest

from fencepost.broker.network.links import CONTROLLER, Arrive, Link
from fencepost.simulation.environment import SimulatedNetwork, node_of, reached_brokers

ONE, OTHER = Link(node_of(1), node_of(2)), Link(node_of(2), node_of(1))


def message(content: Callable[[], object]) -> Arrive:
    """A message that arrives."""

    def arrive() -> bool:
        content()
        return True

    return arrive


def nothing() -> None:
    """Of no interest."""


def test_messages_of_a_link_arrive_in_order_when_they_are_let() -> None:
    links, arrived = SimulatedNetwork(), list[str]()
    for name, link in [("a", ONE), ("b", OTHER), ("c", ONE)]:
        links.send(link, message(partial(arrived.append, name)))
    assert arrived == []
    assert list(links) == [ONE, OTHER]
    assert links.deliver(OTHER)
    assert links.deliver(ONE)
    assert links.first() == ONE
    assert links.deliver(ONE)
    assert arrived == ["b", "a", "c"]
    assert links.deliver(ONE) is None
    assert (len(links), links.first()) == (0, None)


def test_a_message_may_send_the_next() -> None:
    links, arrived = SimulatedNetwork(), list[str]()
    answer = message(lambda: arrived.append("answer"))
    links.send(ONE, message(lambda: links.send(ONE, answer)))
    assert links.deliver(ONE)
    assert arrived == []
    assert links.deliver(ONE)
    assert arrived == ["answer"]


def test_the_controller_is_heard_when_it_speaks() -> None:
    links, heard = SimulatedNetwork(), list[int]()
    links.on_controller_send = lambda: heard.append(1)
    links.send(ONE, message(nothing))
    links.send(Link(CONTROLLER, node_of(1)), message(nothing))
    assert heard == [1]


@pytest.mark.parametrize("has_arrived", [True, False])
def test_it_says_whether_a_message_has_arrived_or_was_lost(has_arrived: bool) -> None:
    links = SimulatedNetwork()
    links.send(ONE, lambda: has_arrived)
    assert links.deliver(ONE) is has_arrived


def test_who_sent_a_message_may_know_that_it_was_lost() -> None:
    assert reached_brokers(OTHER, has_arrived=True) == [1]
    assert reached_brokers(OTHER, has_arrived=False) == [1, 2]
    assert reached_brokers(Link(CONTROLLER, node_of(2)), has_arrived=False) == [2]
    assert reached_brokers(Link(node_of(2), CONTROLLER), has_arrived=True) == []
