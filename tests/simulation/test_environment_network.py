"""The simulated wires: in order on each link, in any order among them."""

from functools import partial

from fencepost.broker.network.links import CONTROLLER, Link
from fencepost.simulation.environment import SimulatedNetwork, node_of

ONE, OTHER = Link(node_of(1), node_of(2)), Link(node_of(2), node_of(1))


def test_messages_of_a_link_arrive_in_order_when_they_are_let() -> None:
    links, arrived = SimulatedNetwork(), list[str]()
    for name, link in [("a", ONE), ("b", OTHER), ("c", ONE)]:
        links.send(link, partial(arrived.append, name))
    assert arrived == []
    assert list(links) == [ONE, OTHER]
    assert links.deliver(OTHER)
    assert links.deliver(ONE)
    assert links.first() == ONE
    assert links.deliver(ONE)
    assert arrived == ["b", "a", "c"]
    assert not links.deliver(ONE)
    assert (len(links), links.first()) == (0, None)


def test_a_message_may_send_the_next() -> None:
    links, arrived = SimulatedNetwork(), list[str]()
    links.send(ONE, lambda: links.send(ONE, lambda: arrived.append("answer")))
    assert links.deliver(ONE)
    assert arrived == []
    assert links.deliver(ONE)
    assert arrived == ["answer"]


def test_the_controller_is_heard_when_it_speaks() -> None:
    links, heard = SimulatedNetwork(), list[int]()
    links.on_controller_send = lambda: heard.append(1)
    links.send(ONE, lambda: None)
    links.send(Link(CONTROLLER, node_of(1)), lambda: None)
    assert heard == [1]
