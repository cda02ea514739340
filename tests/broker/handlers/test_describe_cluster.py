"""DescribeCluster: brokers, fenced ones on request, and no controllers."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fencepost.broker.security import authorizer
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from tests.harness.driver import Driver, versions


def describe(
    driver: Driver,
    version: int = 2,
    *,
    endpoint_type: int = 1,
    operations: bool = False,
    fenced: bool = False,
) -> DescribeClusterResponse:
    request = DescribeClusterRequest(
        include_cluster_authorized_operations=operations,
        endpoint_type=endpoint_type,
        include_fenced_brokers=fenced,
    )
    response = driver.ask(1, "describe_cluster", version, request)
    assert isinstance(response, DescribeClusterResponse)
    return response


@pytest.mark.parametrize("version", versions("describe_cluster"))
def test_every_broker_with_its_advertised_address(version: int) -> None:
    driver = Driver(3, {"broker.rack": "r1"})
    answer = describe(driver, version)
    assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None)
    assert answer.cluster_id == driver.broker(1).view.cluster_id
    assert answer.controller_id == 1
    assert [(b.broker_id, b.host, b.port, b.rack) for b in answer.brokers] == [
        (n, f"broker-{n}", 9091 + n, "r1") for n in (1, 2, 3)
    ]
    assert answer.endpoint_type == 1


def test_a_broker_without_an_advertised_address_is_where_the_client_reached_this_one() -> None:
    driver = Driver(1)
    driver.cluster.controller.register(replace(driver.broker(1).view.brokers[1], host=""))
    assert [b.host for b in describe(driver).brokers] == ["203.0.113.7"]


def test_fenced_brokers_are_only_shown_to_who_asks_for_them() -> None:
    driver = Driver(2)
    driver.cluster.controller.register(replace(driver.broker(1).view.brokers[2], fenced=True))
    assert [b.broker_id for b in describe(driver).brokers] == [1]
    shown = describe(driver, fenced=True)
    assert [(b.broker_id, b.is_fenced) for b in shown.brokers] == [(1, False), (2, True)]


def test_operations_are_answered_when_asked_for() -> None:
    driver = Driver(1)
    assert describe(driver).cluster_authorized_operations == authorizer.NOT_REQUESTED
    asked = describe(driver, operations=True)
    assert asked.cluster_authorized_operations == 8096


@pytest.mark.parametrize(
    ("endpoint_type", "code", "message"),
    [
        (
            2,
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            (
                "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of "
                "type CONTROLLER"
            ),
        ),
        (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, "Unsupported endpoint type 0"),
        (-1, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, "Unsupported endpoint type -1"),
    ],
)
def test_only_brokers_are_served(endpoint_type: int, code: ErrorCode, message: str) -> None:
    answer = describe(Driver(1), 1, endpoint_type=endpoint_type)
    assert (answer.error_code, answer.error_message) == (code, message)
    assert (answer.cluster_id, answer.controller_id, answer.brokers) == ("", -1, ())
