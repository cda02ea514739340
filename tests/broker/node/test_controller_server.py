"""The controller behind a listener of its own: what tools with --bootstrap-controller ask of it."""

from __future__ import annotations

import pytest

from fencepost.broker.core.context import Context, Peer
from fencepost.broker.core.events import Event, Kind
from fencepost.broker.metadata.image import Address
from fencepost.broker.node.controller_server import LISTENER_APIS, ControllerServer
from fencepost.protocol.apis import APIS, BY_NAME
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.api_versions import ApiVersionsRequest
from fencepost.protocol.messages.describe_cluster import DescribeClusterRequest
from fencepost.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from fencepost.protocol.messages.describe_quorum import Listener
from fencepost.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from fencepost.protocol.messages.sasl_handshake import SaslHandshakeRequest
from fencepost.protocol.messages.unregister_broker import UnregisterBrokerRequest
from tests.broker.handlers.test_describe_quorum import describe
from tests.harness.driver import Driver, Message

ADDRESS = Address(listener="CONTROLLER", host="127.0.0.1", port=9093, advertised_host="")
BROKER = 4
"""A type of configs' resources."""


def served(brokers: int = 2) -> tuple[Driver, ControllerServer]:
    driver = Driver(brokers, controller_ids=[3000], controller_address=ADDRESS)
    server = driver.cluster.controller_server
    assert server is not None
    return driver, server


def ask(
    server: ControllerServer, name: str, request: object, version: int | None = None
) -> Message:
    api = BY_NAME[name]
    peer = Peer(connection_id="c", host="192.0.2.1", listener_host="203.0.113.7")
    version = api.max_version if version is None else version
    ctx = Context(server, version, "c", peer, 0, 0)
    return server.handle(api, ctx, request)


def alter(server: ControllerServer, name: str, connections: str) -> None:
    entry = AlterableConfig(name="max.connections", config_operation=0, value=connections)
    resource = AlterConfigsResource(resource_type=BROKER, resource_name=name, configs=(entry,))
    request = IncrementalAlterConfigsRequest(resources=(resource,))
    (altered,) = ask(server, "incremental_alter_configs", request).responses
    assert altered.error_code == ErrorCode.NONE, altered


def configs(server: ControllerServer, name: str) -> Message:
    resource = DescribeConfigsResource(resource_type=BROKER, resource_name=name)
    answer = ask(server, "describe_configs", DescribeConfigsRequest(resources=(resource,)))
    (result,) = answer.results
    return result


def test_it_serves_the_apis_of_a_controller_and_no_others() -> None:
    _, server = served()
    request = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    answer = ask(server, "api_versions", request)
    assert [key.api_key for key in answer.api_keys] == [
        api.key for api in APIS if api.name in LISTENER_APIS
    ]
    assert not server.serves(BY_NAME["metadata"])
    assert {f.name for f in answer.finalized_features} >= {"metadata.version", "kraft.version"}


def test_it_tells_of_itself() -> None:
    driver, server = served()
    answer = ask(server, "describe_cluster", DescribeClusterRequest(endpoint_type=2))
    assert (answer.error_code, answer.endpoint_type, answer.controller_id) == (0, 2, 3000)
    (node,) = answer.brokers
    assert (node.broker_id, node.host, node.port) == (3000, "203.0.113.7", 9093)
    assert answer.cluster_id == driver.cluster.controller.image.cluster_id


@pytest.mark.parametrize(
    ("wanted", "version", "code", "message"),
    [
        (1, 2, ErrorCode.MISMATCHED_ENDPOINT_TYPE, "of type CONTROLLER, but we wanted an endpoint"),
        (1, 0, ErrorCode.INVALID_REQUEST, "of type CONTROLLER, but we wanted an endpoint"),
        (3, 1, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, "Unsupported endpoint type 3"),
    ],
)
def test_it_is_no_broker(wanted: int, version: int, code: ErrorCode, message: str) -> None:
    _, server = served()
    request = DescribeClusterRequest(endpoint_type=wanted)
    answer = ask(server, "describe_cluster", request, version)
    assert (answer.error_code, answer.controller_id, answer.brokers) == (code, -1, ())
    assert message in answer.error_message


def test_what_the_controller_does_it_does_at_once() -> None:
    driver, server = served()
    answer = ask(server, "unregister_broker", UnregisterBrokerRequest(broker_id=2))
    assert answer.error_code == ErrorCode.NONE
    assert list(driver.broker(1).view.brokers) == [1]


def test_its_configs_are_those_of_its_own_node() -> None:
    driver, server = served()
    values = {entry.name: entry.value for entry in configs(server, "3000").configs}
    assert (values["node.id"], values["process.roles"]) == ("3000", "controller")
    refused = configs(server, "1")
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert refused.error_message == (
        "Unexpected broker id, expected 3000 or empty string, but received 1"
    )
    alter(server, "3000", "1000")
    values = {entry.name: entry.value for entry in configs(server, "3000").configs}
    assert values["max.connections"] == "1000"
    assert driver.broker(1).configs.max_connections != 1000


def test_it_alters_the_configs_of_every_node() -> None:
    driver, server = served()
    alter(server, "2", "1001")
    assert driver.broker(2).configs.max_connections == 1001
    assert driver.broker(1).configs.max_connections != 1001


def test_describe_quorum_says_where_it_listens() -> None:
    driver, _ = served()
    (node,) = describe(driver, ("__cluster_metadata", (0,))).nodes
    assert node.node_id == 3000
    (listener,) = node.listeners
    assert listener == Listener(name="CONTROLLER", host=listener.host, port=9093)


def test_without_an_address_there_is_none() -> None:
    assert Driver(1).cluster.controller_server is None


def test_a_client_that_begins_to_authenticate_is_told_of() -> None:
    driver, server = served()
    events: list[Event] = []
    driver.cluster.events.listeners += (events.append,)
    answer = ask(server, "sasl_handshake", SaslHandshakeRequest(mechanism="PLAIN"))
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert [(e.kind, e.broker, e.details["protocol"]) for e in events] == [
        (Kind.OTHER_PROTOCOL, 3000, "sasl_handshake")
    ]
