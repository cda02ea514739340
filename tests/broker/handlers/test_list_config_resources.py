"""ListConfigResources, beyond Apache Kafka's recorded answers (tests/broker/configs)."""

from __future__ import annotations

import pytest

from fencepost.broker.core.outcomes import SLICE
from fencepost.broker.core.waits import Wait
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.list_config_resources import ListConfigResourcesRequest
from tests.broker.handlers.test_request_limits import first_turn
from tests.harness.driver import Driver
from tests.harness.driver_requests import create

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


def listed(driver: Driver, version: int, *types: int) -> list[tuple[int, str]]:
    request = ListConfigResourcesRequest(resource_types=types)
    response = driver.ask(1, "list_config_resources", version, request)
    assert response.error_code == ErrorCode.NONE
    return [(each.resource_type, each.resource_name) for each in response.config_resources]


def test_lists_what_has_configs_in_kafkas_order() -> None:
    driver = Driver(2)
    create(driver, "t")
    driver.cluster.controller.set_group_configs("g", {"share.isolation.level": "read_committed"})
    driver.cluster.controller.set_client_metrics_configs("s", {"metrics": "*"})
    everything = [
        (GROUP, "g"),
        (CLIENT_METRICS, "s"),
        *((LOGGER, "1"), (LOGGER, "2")),
        *((BROKER, "1"), (BROKER, "2")),
        (TOPIC, "t"),
    ]
    assert listed(driver, 1) == everything
    assert listed(driver, 1, TOPIC, GROUP, GROUP) == [(GROUP, "g"), (TOPIC, "t")]
    assert listed(driver, 0) == [(CLIENT_METRICS, "s")]


def test_a_fenced_broker_is_not_listed() -> None:
    driver = Driver(2)
    driver.cluster.controller.fence(2)
    assert listed(driver, 1, BROKER) == [(BROKER, "1")]


@pytest.mark.parametrize("unknown", [0, 3, 64, -1])
def test_an_unknown_kind_is_refused(unknown: int) -> None:
    request = ListConfigResourcesRequest(resource_types=(TOPIC, unknown))
    response = Driver(1).ask(1, "list_config_resources", 1, request)
    assert (response.error_code, response.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, ())


def test_many_kinds_are_read_in_several_turns() -> None:
    driver = Driver(1)
    request = ListConfigResourcesRequest(resource_types=(BROKER,) * 3 * SLICE)
    answer = first_turn(driver, BY_NAME["list_config_resources"], 1, request)
    assert isinstance(answer, Wait)
    driver.cluster.scheduler.run_due()
    assert answer.done
