"""Brokers whose ids are chosen: 0 is an id like any other, and so is the highest."""

from __future__ import annotations

import pytest

from fencepost.broker.node import operator_actions
from fencepost.broker.node.cluster import Conformance
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.describe_cluster import DescribeClusterRequest
from fencepost.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from fencepost.protocol.messages.find_coordinator import FindCoordinatorRequest
from fencepost.protocol.messages.init_producer_id import InitProducerIdRequest
from fencepost.protocol.messages.metadata import MetadataRequest
from tests.harness.driver import NEWEST, Driver, assert_same, content
from tests.harness.driver_requests import create, produce
from tests.harness.records import batch
from tests.harness.typed_requests import produce_request, produced

HIGHEST = (1 << 31) - 1
OF_BROKERS = 4
IDS = pytest.mark.parametrize("ids", [(0, 1, 2), (0, 7, HIGHEST)], ids=str)


@IDS
def test_metadata_and_describe_cluster_name_them(ids: tuple[int, ...]) -> None:
    driver = Driver(broker_ids=ids)
    metadata = driver.ask(ids[1], "metadata", NEWEST, MetadataRequest(topics=()))
    assert tuple(broker.node_id for broker in metadata.brokers) == ids
    assert metadata.controller_id == 0
    described = driver.ask(ids[2], "describe_cluster", NEWEST, DescribeClusterRequest())
    assert {(b.broker_id, b.host) for b in described.brokers} == {(i, f"broker-{i}") for i in ids}


@IDS
@pytest.mark.parametrize("conformance", Conformance)
def test_a_producer_gets_its_id_where_a_neighbour_is_down(
    ids: tuple[int, ...], conformance: Conformance
) -> None:
    for down in ids:
        driver = Driver(broker_ids=ids, conformance=conformance)
        operator_actions.kill(driver.cluster, down)
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        for up in set(ids) - {down}:
            answer = driver.ask(up, "init_producer_id", NEWEST, request)
            if conformance is Conformance.APACHE:  # as of a real one, the first is too early
                assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
                answer = driver.ask(up, "init_producer_id", NEWEST, request)
            assert answer.error_code == ErrorCode.NONE
            create(driver, f"t{up}", [[up]])
            sent = produce_request((f"t{up}", 0, batch(b"a", producer=(answer.producer_id, 0, 0))))
            assert produced(driver.ask(up, "produce", 12, sent)).error_code == ErrorCode.NONE


@IDS
def test_any_of_them_leads_follows_and_comes_back(ids: tuple[int, ...]) -> None:
    driver = Driver(broker_ids=ids)
    create(driver, "t", [ids], min_insync_replicas="2")
    for leader in (*ids, ids[0]):
        driver.elect("t", 0, leader)
        produce(driver, "t", b"of %d" % leader)
        assert set(driver.partition("t").isr) == set(ids)
        assert_same(driver)
        operator_actions.kill(driver.cluster, leader)
        successor = driver.partition("t").leader
        assert successor in set(ids) - {leader}
        produce(driver, "t", b"after %d" % leader)
        operator_actions.start(driver.cluster, leader)
        driver.advance(1000)
        assert set(driver.partition("t").isr) == set(ids)
        assert_same(driver)
    values = [value for _, _, value in content(driver.leader("t"))]
    assert len(values) == 8
    assert driver.leader("t").high_watermark == 8


def test_the_last_leader_leads_again_also_where_it_is_broker_0() -> None:
    driver = Driver(broker_ids=(0, 1))
    create(driver, "t", [(0, 1)])
    operator_actions.kill(driver.cluster, 1)
    produce(driver, "t", b"a")
    operator_actions.kill(driver.cluster, 0)
    assert (driver.partition("t").leader, driver.partition("t").elr) == (-1, (0,))
    operator_actions.start(driver.cluster, 1)
    assert driver.partition("t").leader == -1
    operator_actions.start(driver.cluster, 0)
    assert (driver.partition("t").leader, driver.partition("t").isr) == (0, (0, 1))


def test_broker_0_is_cut_off_and_fenced_like_any_other() -> None:
    driver = Driver(broker_ids=(0, 1, 2))
    create(driver, "t", [(0, 1, 2)])
    operator_actions.isolate(driver.cluster, 0, from_controller=True)
    assert driver.cluster.controller.image.brokers[0].fenced
    assert driver.partition("t").leader == 1
    assert driver.broker(0).view.partition("t", 0) != driver.partition("t"), "a zombie"
    operator_actions.rejoin(driver.cluster, 0)
    driver.advance(1000)
    assert set(driver.partition("t").isr) == {0, 1, 2}
    operator_actions.isolate(driver.cluster, 1, brokers=[0])
    assert list(driver.cluster.network.unreachable_nodes(driver.broker(1).broker_id)) == [0]


def test_groups_are_coordinated_by_broker_0_where_it_leads_their_partition() -> None:
    driver = Driver(1, broker_ids=(0,))
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=("g",))
    (coordinator,) = driver.ask(0, "find_coordinator", NEWEST, request).coordinators
    assert (coordinator.error_code, coordinator.node_id) == (ErrorCode.NONE, 0)


@IDS
def test_broker_configs_are_described_by_id(ids: tuple[int, ...]) -> None:
    driver = Driver(broker_ids=ids)
    for broker_id in ids:
        resource = DescribeConfigsResource(
            resource_type=OF_BROKERS,
            resource_name=str(broker_id),
            configuration_keys=("node.id", "broker.id"),
        )
        request = DescribeConfigsRequest(resources=(resource,))
        (result,) = driver.ask(broker_id, "describe_configs", NEWEST, request).results
        assert result.error_code == ErrorCode.NONE
        assert {config.value for config in result.configs} == {str(broker_id)}


def test_racks_are_given_in_the_order_of_ids() -> None:
    driver = Driver(broker_ids=(0, 5, 9), racks=("a", "b"))
    brokers = driver.cluster.controller.image.brokers
    assert [broker.rack for broker in brokers.values()] == ["a", "b", "a"]
    assert driver.broker(5).configs.layers.value("broker.rack") == "b"
