"""``min.insync.replicas`` is the cluster's while there are eligible leader replicas (KIP-966)."""

from __future__ import annotations

import pytest

from fencepost.broker.configs.config_layers import ConfigSource
from fencepost.broker.metadata.features import ELR_VERSION
from fencepost.protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from fencepost.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from fencepost.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from tests.broker.handlers.test_incremental_alter_configs import BROKER, DELETE, SET, resource
from tests.harness.driver import NEWEST, Driver
from tests.harness.driver_requests import create
from tests.harness.durable_driver import DurableDriver

MIN_ISR = "min.insync.replicas"
TOPIC = 2
BY_STATIC = {MIN_ISR: "2"}


def refusal(driver: Driver, broker: str, operation: int, text: str | None = None) -> str | None:
    """Alter it; the message of the error, None where there is none."""
    request = IncrementalAlterConfigsRequest(
        resources=(resource(BROKER, broker, (MIN_ISR, operation, text)),)
    )
    (response,) = driver.ask(1, "incremental_alter_configs", NEWEST, request).responses
    message = response.error_message
    assert message is None or isinstance(message, str)
    return message


def described(driver: Driver, kind: int, name: str) -> tuple[str, int]:
    asked = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=(MIN_ISR,)
    )
    answer = driver.ask(1, "describe_configs", NEWEST, DescribeConfigsRequest(resources=(asked,)))
    (entry,) = answer.results[0].configs
    return entry.value, entry.config_source


@pytest.mark.parametrize("configs", [{}, BY_STATIC])
def test_a_new_cluster_keeps_it_for_all_brokers_and_topics(configs: dict[str, str]) -> None:
    driver = Driver(1, configs)
    create(driver, "t")
    shown = (configs.get(MIN_ISR, "1"), ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
    assert [described(driver, *each) for each in ((BROKER, ""), (BROKER, "1"), (TOPIC, "t"))] == [
        shown,
        shown,
        shown,
    ]


def test_it_may_be_changed_and_not_removed_nor_set_for_one_broker() -> None:
    driver = Driver(1)
    create(driver, "t")
    assert refusal(driver, "", SET, "2") is None
    assert driver.broker(1).configs.min_insync_replicas("t") == 2
    removal = "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
    assert refusal(driver, "", DELETE) == removal
    assert driver.broker(1).configs.min_insync_replicas("t") == 2
    alone = "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
    assert refusal(driver, "1", SET, "2") == alone
    assert refusal(driver, "1", DELETE) == alone


def test_alter_configs_that_leave_it_out_would_remove_it() -> None:
    driver = Driver(1)
    other = AlterableConfig(name="log.retention.ms", value="5000")
    kept = AlterableConfig(name=MIN_ISR, value="1")

    def codes(*configs: AlterableConfig) -> list[int]:
        asked = AlterConfigsResource(resource_type=BROKER, resource_name="", configs=configs)
        request = AlterConfigsRequest(resources=(asked,))
        return [r.error_code for r in driver.ask(1, "alter_configs", NEWEST, request).responses]

    assert (codes(other), codes(other, kept)) == ([40], [0])


def test_without_the_feature_it_is_like_any_other_until_the_feature_comes() -> None:
    driver = Driver(1, BY_STATIC)
    create(driver, "t")
    controller = driver.cluster.controller
    controller.update_features({ELR_VERSION: 0})
    assert refusal(driver, "1", SET, "3") is None
    assert refusal(driver, "", DELETE) is None
    assert driver.broker(1).configs.min_insync_replicas("t") == 3
    controller.update_features({ELR_VERSION: 1})
    assert controller.image.broker_configs == {1: {}, None: BY_STATIC}
    assert driver.broker(1).configs.min_insync_replicas("t") == 2


def test_a_reset_has_it_as_at_the_start() -> None:
    driver = Driver(1, BY_STATIC)
    assert refusal(driver, "", SET, "3") is None
    driver.cluster.reset()
    assert described(driver, BROKER, "") == ("2", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)


def test_it_is_kept_with_the_data_whatever_the_next_process_is_given() -> None:
    lasting = DurableDriver(min_insync_replicas="2")
    assert refusal(lasting.driver, "", SET, "3") is None
    lasting.kill()
    assert described(lasting.begin(), BROKER, "")[0] == "3"
