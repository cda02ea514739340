"""Every answer that names a broker names it as the client's own listener advertises it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import pytest

from fencepost.broker.faults.kinds import StaleMetadata
from fencepost.broker.metadata.image import Address
from fencepost.broker.node import operator_actions
from fencepost.protocol.messages.describe_cluster import DescribeClusterRequest
from fencepost.protocol.messages.fetch import FetchRequest, FetchTopic
from fencepost.protocol.messages.find_coordinator import FindCoordinatorRequest
from fencepost.protocol.messages.metadata import MetadataRequest
from tests.broker.faults.faulty import set_fault
from tests.harness.driver import Driver
from tests.harness.driver_requests import create, send_produce
from tests.harness.typed_requests import from_offset

OUTSIDE: Final = "OUTSIDE"
REACHED: Final = "HERE"
INSIDE_ADDRESSES: Final = {n: (f"broker-{n}", 9091 + n) for n in (1, 2, 3)}
OUTSIDE_ADDRESSES: Final = {n: ("kafka.test", 31191 + n) for n in (1, 2, 3)}
REACHED_ADDRESSES: Final = {n: ("203.0.113.7", 9291 + n) for n in (1, 2, 3)}


@pytest.fixture
def driver() -> Driver:
    outside = [
        Address(
            listener=OUTSIDE,
            host="0.0.0.0",
            port=9191 + n,
            advertised_host="kafka.test",
            advertised_port=31191 + n,
        )
        for n in (1, 2, 3)
    ]
    reached = [
        Address(listener=REACHED, host="0.0.0.0", port=9291 + n, advertised_host="")
        for n in (1, 2, 3)
    ]
    made = Driver(3, other_addresses=[outside, reached])
    create(made, "t", [(2, 3)])
    return made


def named(brokers: Iterable[Any]) -> dict[int, tuple[str, int]]:
    """The addresses of brokers in an answer, which call their ids differently."""
    return {
        each.broker_id if hasattr(each, "broker_id") else each.node_id: (each.host, each.port)
        for each in brokers
    }


def metadata(driver: Driver) -> dict[int, tuple[str, int]]:
    return named(driver.ask(1, "metadata", 12, MetadataRequest(topics=None)).brokers)


def stale_metadata(driver: Driver) -> dict[int, tuple[str, int]]:
    """A leader that is gone is named all the same."""
    if driver.partition("t").leader == 2:
        operator_actions.kill(driver.cluster, 2)
    set_fault(driver, "metadata", StaleMetadata(0))
    return metadata(driver)


def describe_cluster(driver: Driver) -> dict[int, tuple[str, int]]:
    return named(driver.ask(1, "describe_cluster", 2, DescribeClusterRequest()).brokers)


def coordinators(driver: Driver) -> dict[int, tuple[str, int]]:
    request = FindCoordinatorRequest(coordinator_keys=tuple(map(str, range(20))))
    return named(driver.ask(1, "find_coordinator", 6, request).coordinators)


def single_coordinators(driver: Driver) -> dict[int, tuple[str, int]]:
    requests = [FindCoordinatorRequest(key=str(n)) for n in range(20)]
    return named(driver.ask(1, "find_coordinator", 3, request) for request in requests)


def produce_hint(driver: Driver) -> dict[int, tuple[str, int]]:
    return named(send_produce(driver, "t", b"a", broker_id=1, version=10).response.node_endpoints)


def fetch_hint(driver: Driver) -> dict[int, tuple[str, int]]:
    topic_id = driver.broker(1).view.topics["t"].topic_id
    topic = FetchTopic(topic_id=topic_id, partitions=(from_offset(0),))
    request = FetchRequest(session_epoch=-1, topics=(topic,))
    return named(driver.ask(1, "fetch", 16, request).node_endpoints)


@pytest.mark.parametrize(
    ("ask", "ids"),
    [
        (metadata, {1, 2, 3}),
        (stale_metadata, {1, 2, 3}),
        (describe_cluster, {1, 2, 3}),
        (coordinators, {1, 2, 3}),
        (single_coordinators, {1, 2, 3}),
        (produce_hint, {2}),
        (fetch_hint, {2}),
    ],
)
def test_a_client_is_told_the_addresses_of_the_listener_that_it_reached(
    ask: Callable[[Driver], dict[int, tuple[str, int]]], ids: set[int], driver: Driver
) -> None:
    for listener, addresses in (
        ("PLAINTEXT", INSIDE_ADDRESSES),
        (OUTSIDE, OUTSIDE_ADDRESSES),
        (REACHED, REACHED_ADDRESSES),
    ):
        driver.listener = listener
        assert ask(driver) == {n: addresses[n] for n in ids}, listener
