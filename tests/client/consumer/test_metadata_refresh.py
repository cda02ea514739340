from __future__ import annotations

import pytest
from msgspec.structs import replace

from fencepost.broker.node import operator_actions
from fencepost.client.consumer.errors import RequestRefused
from fencepost.client.model import Partition
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.metadata import MetadataResponse
from tests.client.consumer.driven import TP, DrivenConsumer, cluster, start, values, write
from tests.harness.driver import Driver, versions
from tests.harness.driver_requests import create, produce


@pytest.mark.parametrize("version", versions("metadata"))
def test_every_version_of_metadata_will_do(version: int) -> None:
    driver = Driver(3, api_max={"metadata": version})
    create(driver, "t", ((1, 2, 3),))
    write(driver, "a", 1)
    consumer = start(driver)
    assert values(consumer.poll()) == [b"a0"]
    (request,) = consumer.requests("metadata")
    assert request.version == version
    assert not request.message.allow_auto_topic_creation
    assert consumer.partitions("fetch")[0].current_leader_epoch == (0 if version >= 7 else -1)


def test_nothing_is_asked_before_anything_is_wanted() -> None:
    consumer = DrivenConsumer(cluster())
    assert consumer.step() is None
    assert consumer.sent == []


def test_new_topics_are_asked_about_at_once() -> None:
    driver = cluster()
    create(driver, "u")
    produce(driver, "u", b"u")
    consumer = start(driver)
    consumer.nothing(50)
    consumer.core.assign([TP, Partition(topic="u", index=0)])
    consumer.core.seek(Partition(topic="u", index=0), consumer.position())
    begun = consumer.now
    assert values(consumer.poll()) == [b"u"]
    assert consumer.now - begun < 50


def test_metadata_is_refreshed_when_it_is_old() -> None:
    consumer = start(cluster(), metadata_max_age_ms=200)
    consumer.nothing(1_000)
    assert 4 <= len(consumer.requests("metadata")) <= 6
    assert {each.broker for each in consumer.requests("metadata")} == {1, 2, 3}


def test_a_topic_that_does_not_exist_yet_is_waited_for() -> None:
    driver = Driver(3)
    consumer = start(driver)
    consumer.nothing(2_000)
    assert 3 <= len(consumer.requests("metadata")) <= 7, "with pauses that grow"
    create(driver, "t", ((1, 2, 3),))
    write(driver, "a", 1)
    assert values(consumer.poll()) == [b"a0"]


def test_a_partition_without_a_leader_is_waited_for() -> None:
    driver = cluster()
    write(driver, "a", 1)
    for broker in (2, 3, 1):
        operator_actions.kill(driver.cluster, broker)
    operator_actions.start(driver.cluster, 2)  # it is not in the ISR
    consumer = start(driver)
    consumer.nothing(1_000)
    assert consumer.requests("fetch") == []
    operator_actions.start(driver.cluster, 1)
    assert values(consumer.poll()) == [b"a0"]


def test_a_zombies_metadata_does_not_lead_back_to_it() -> None:
    driver = cluster()
    write(driver, "a", 1)
    consumer = start(driver, metadata_max_age_ms=100)
    consumer.read(1)
    operator_actions.isolate(driver.cluster, 1, from_controller=True)
    write(driver, "b", 1)
    assert driver.partition("t").leader_epoch == 1
    consumer.run(lambda: consumer.core._metadata.leader(TP).epoch == 1)
    asked = len(consumer.requests("metadata"))
    assert values(consumer.poll()) == [b"b0"]
    consumer.nothing(1_000)
    later = consumer.requests("metadata")[asked:]
    assert 1 in {each.broker for each in later}, "the zombie was asked, and not believed"
    assert {each.broker for each in consumer.requests("fetch")[-3:]} == {2}


def test_a_topic_that_is_forbidden_is_an_error() -> None:
    consumer = start(cluster())

    def forbid(response: MetadataResponse) -> object:
        topic = replace(
            response.topics[0],
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            partitions=(),
        )
        return replace(response, topics=(topic,))

    consumer.alters = [("metadata", forbid)]
    with pytest.raises(RequestRefused, match="Metadata of t: TOPIC_AUTHORIZATION_FAILED"):
        consumer.poll()


def test_lost_requests_are_sent_to_another_broker() -> None:
    driver = cluster()
    write(driver, "a", 1)
    consumer = start(driver)
    consumer.unreachable = {1}
    consumer.run(lambda: consumer.core._metadata.leader(TP).leader)
    assert consumer.requests("metadata")[-1].broker == 2
    consumer.unreachable = set()
    assert values(consumer.poll()) == [b"a0"]
