"""A served cluster with two listeners: what it says of them, and brokers that come and go."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Final

import pytest

from fencepost.broker.server.addresses import bind_all
from fencepost.broker.server.listener import PortUnavailable, bind
from fencepost.protocol.listener_text import ListenerSpec
from fencepost.testing import Cluster
from fencepost.verbs.serving import ClusterBody, Serving, start
from tests.harness.wire import Connection

CONTROLLER: Final = "controller.test:19093"
LISTENERS: Final = (
    "INSIDE://127.0.0.1:0",
    "OUTSIDE://127.0.0.1:0,advertised=localhost",
    f"CONTROLLER://127.0.0.1:0,advertised={CONTROLLER}",
)
HOSTS: Final = {"INSIDE": "127.0.0.1", "OUTSIDE": "localhost"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    body = ClusterBody(brokers=2, listeners=LISTENERS)
    with start(body, tmp_path_factory.mktemp("served") / "log") as serving:
        yield serving


@pytest.fixture
def cluster(served: Serving) -> Iterator[Cluster]:
    made = Cluster(served.bootstrap, served.control, listeners=served.listeners)
    yield made
    made.remote.close()


def addresses(bootstrap: str) -> list[tuple[str, int]]:
    pairs = (each.rpartition(":") for each in bootstrap.split(","))
    return [(host, int(port)) for host, _, port in pairs]


def accepts(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, timeout=10).close()
    except ConnectionRefusedError:
        return False
    return True


def test_the_ready_line_has_every_listener_and_the_first_is_the_bootstrap(served: Serving) -> None:
    assert list(served.listeners) == ["INSIDE", "OUTSIDE"]
    assert served.bootstrap == served.listeners["INSIDE"]
    for name, bootstrap in served.listeners.items():
        assert [host for host, _ in addresses(bootstrap)] == [HOSTS[name]] * 2


def test_the_controllers_listener_advertises_its_host_and_port(
    served: Serving, cluster: Cluster
) -> None:
    assert served.controller == CONTROLLER
    assert cluster.cluster().controller_listener == CONTROLLER


def test_the_cluster_shows_every_listener_of_a_broker(cluster: Cluster) -> None:
    for index, broker in enumerate(cluster.cluster().brokers):
        own = {name: text.split(",")[index] for name, text in cluster.listeners.items()}
        assert broker.listeners == own
        assert f"{broker.host}:{broker.port}" == own["INSIDE"]


@pytest.mark.parametrize("name", HOSTS)
def test_a_client_is_told_the_addresses_of_its_listener(name: str, cluster: Cluster) -> None:
    mine = addresses(cluster.listeners[name])
    for address in mine:
        with Connection(address) as connection:
            answer = connection.call("Metadata", 12, {"Topics": []})
        assert [(each["Host"], each["Port"]) for each in answer["Brokers"]] == mine


@pytest.mark.parametrize("way", ["stop_broker", "kill_broker"])
def test_a_broker_that_is_down_refuses_on_every_listener_until_it_is_up(
    way: str, cluster: Cluster
) -> None:
    of_broker_2 = [addresses(each)[1] for each in cluster.listeners.values()]
    getattr(cluster, way)(2)
    assert [accepts(each) for each in of_broker_2] == [False, False]
    assert all(accepts(addresses(each)[0]) for each in cluster.listeners.values())
    cluster.start_broker(2)
    assert [accepts(each) for each in of_broker_2] == [True, True]
    getattr(cluster, way)(2)
    cluster.reset()
    assert [accepts(each) for each in of_broker_2] == [True, True]


def test_the_limit_of_connections_holds_for_all_listeners_together(cluster: Cluster) -> None:
    entity = {"Name": "max.connections", "ConfigOperation": 0, "Value": "2"}
    request = {
        "Resources": [{"ResourceType": 4, "ResourceName": "1", "Configs": [entity]}],
        "ValidateOnly": False,
    }
    inside, outside = (addresses(each)[0] for each in cluster.listeners.values())
    with Connection(inside) as first, Connection(outside) as second:
        first.call("IncrementalAlterConfigs", 1, request)
        with Connection(outside) as third, pytest.raises(ConnectionError):
            third.call("Metadata", 12, {"Topics": []})
        assert second.call("Metadata", 12, {"Topics": []})["Brokers"]
    cluster.reset()


def test_where_a_port_is_in_use_no_socket_stays_open() -> None:
    with bind("127.0.0.1", 0, 1) as taken, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        listeners = (ListenerSpec(port=port), ListenerSpec(port=taken.getsockname()[1]))
        with pytest.raises(PortUnavailable, match="address already in use"):
            bind_all(listeners, brokers=1, controller=None, control=("127.0.0.1", 0))
        bind("127.0.0.1", port, 1).close()


def test_the_log_names_no_problem(served: Serving) -> None:
    lines = [json.loads(line) for line in served.log.read_text().splitlines()]
    assert [line for line in lines if line["level"] == "error"] == []
