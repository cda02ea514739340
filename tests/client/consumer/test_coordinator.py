from __future__ import annotations

import pytest
from msgspec.structs import replace

from fencepost.broker.node import operator_actions
from fencepost.client.consumer.errors import RequestRefused
from fencepost.client.consumer.model import OffsetAndMetadata
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.find_coordinator import FindCoordinatorResponse
from tests.client.consumer.driven import TP, DrivenConsumer, cluster
from tests.harness.driver import Driver, versions
from tests.harness.driver_requests import create

AT = OffsetAndMetadata(offset=3)


def member(driver: Driver) -> DrivenConsumer:
    return DrivenConsumer(driver, group_id="g")


@pytest.mark.parametrize("version", versions("find_coordinator"))
def test_every_version_of_find_coordinator_will_do(version: int) -> None:
    driver = Driver(3, api_max={"find_coordinator": version})
    create(driver, "t", ((1, 2, 3),))
    consumer = member(driver)
    consumer.result(consumer.core.commit({TP: AT}))
    assert consumer.requests("find_coordinator")[-1].version == version
    assert consumer.result(consumer.core.committed([TP])) == {TP: AT}
    asked = len(consumer.requests("find_coordinator"))
    consumer.result(consumer.core.committed([TP]))
    assert len(consumer.requests("find_coordinator")) == asked, "it is known"


def test_another_coordinator_is_found_when_the_broker_ends() -> None:
    driver = cluster()
    consumer = member(driver)
    consumer.result(consumer.core.commit({TP: AT}))
    coordinator = consumer.requests("offset_commit")[-1].broker
    operator_actions.kill(driver.cluster, coordinator)
    assert consumer.result(consumer.core.committed([TP])) == {TP: AT}
    assert consumer.requests("offset_fetch")[-1].broker != coordinator


def test_lost_questions_are_repeated() -> None:
    consumer = member(cluster())
    consumer.loses = {"find_coordinator"}
    operation = consumer.core.committed([TP])
    consumer.run(lambda: len(consumer.requests("find_coordinator")) == 3)
    consumer.loses = set()
    assert consumer.result(operation) == {TP: None}


def test_a_group_that_is_forbidden_is_an_error() -> None:
    consumer = member(cluster())

    def forbid(response: FindCoordinatorResponse) -> object:
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        found = replace(response.coordinators[0], error_code=code)
        return replace(response, coordinators=(found,))

    consumer.alters = [("find_coordinator", forbid)]
    operation = consumer.core.committed([TP])
    with pytest.raises(RequestRefused, match="FindCoordinator of g: GROUP_AUTHORIZATION_FAILED"):
        consumer.poll()
    assert consumer.result(operation) == {TP: None}, "it is asked for again"
