"""Kafka's tools with --bootstrap-controller, and a raw client, on the controller's own listener."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from fencepost.verbs.methods import Verbs
from fencepost.verbs.remote import Remote
from tests.harness.kafka_tools import kafka_tool
from tests.harness.served_cluster import Cluster, serving
from tests.harness.wire import Connection

TOOLS = "org.apache.kafka.tools"
OPTIONS = ("--controller-port", "0", "--controller-ids", "3000")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    log = tmp_path_factory.mktemp("controller") / "log"
    with serving(log, *OPTIONS, brokers=2) as cluster:
        yield cluster


@pytest.fixture
def controller(served: Cluster) -> str:
    """``host:port``."""
    assert served.controller is not None
    return served.controller


def test_a_request_for_a_broker_closes_the_connection(controller: str) -> None:
    host, port = controller.rsplit(":", 1)
    with Connection((host, int(port))) as connection:
        described = connection.call("DescribeCluster", 2, {"EndpointType": 2})
        assert [each["Port"] for each in described["Brokers"]] == [int(port)]
        with pytest.raises(ConnectionError):
            connection.call("Metadata", 12, {"Topics": []})


def test_the_control_api_says_where_it_is(served: Cluster, controller: str) -> None:
    assert served.control is not None
    with closing(Remote(served.control)) as remote:
        assert Verbs(remote).cluster().controller_listener == controller


def test_the_quorum_is_described(controller: str) -> None:
    tool = f"{TOOLS}.MetadataQuorumCommand"
    status = kafka_tool(tool, "--bootstrap-controller", controller, "describe", "--status").out
    assert "LeaderId:               3000" in status
    assert f'"endpoints": ["CONTROLLER://{controller}"]' in status
    table = kafka_tool(
        tool, "--bootstrap-controller", controller, "describe", "--replication"
    ).lines
    assert [line.split()[0] for line in table[1:]] == ["3000", "1", "2"]


def test_endpoints_are_listed(controller: str) -> None:
    tool = f"{TOOLS}.ClusterTool"
    listed = kafka_tool(tool, "list-endpoints", "--bootstrap-controller", controller).lines
    assert listed[1].split()[::4] == ["3000", "controller"]


def test_features_are_described(controller: str) -> None:
    lines = kafka_tool(
        f"{TOOLS}.FeatureCommand", "--bootstrap-controller", controller, "describe"
    ).lines
    assert [line.split()[1] for line in lines] == [
        "eligible.leader.replicas.version",
        "kraft.version",
        "metadata.version",
        "transaction.version",
    ]


def test_its_configs_are_altered(controller: str) -> None:
    command = ["--bootstrap-controller", controller, "--entity-type", "brokers"]
    command += ["--entity-name", "3000"]
    tool = "kafka.admin.ConfigCommand"
    kafka_tool(tool, *command, "--alter", "--add-config", "max.connections=1000")
    described = kafka_tool(tool, *command, "--describe").out
    assert "max.connections=1000 sensitive=false" in described
