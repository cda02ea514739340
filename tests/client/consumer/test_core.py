from __future__ import annotations

import pytest

from fencepost.client.consumer.model import OffsetAndMetadata
from fencepost.client.consumer.reset_policy import Target
from fencepost.client.errors import NotServed
from fencepost.client.model import Partition
from tests.client.consumer.driven import TP, DrivenConsumer, cluster, start, values, write
from tests.harness.driver import Driver
from tests.harness.driver_requests import create

OTHER = Partition(topic="t", index=1)


def test_partitions_that_stay_assigned_keep_their_positions() -> None:
    driver = cluster()
    write(driver, "a", 3)
    consumer = start(driver, 2)
    consumer.read(1)
    consumer.core.assign([TP, OTHER])
    assert consumer.core.assignment == {TP, OTHER}
    assert consumer.position().offset == 3
    consumer.core.assign([OTHER])
    consumer.core.assign([TP])
    assert consumer.core.position(TP) is None


def test_topic_ids_of_partitions_are_not_needed() -> None:
    driver = Driver(3)
    topic_id = create(driver, "t", ((1, 2, 3),))
    write(driver, "a", 1)
    consumer = DrivenConsumer(driver)
    named = Partition(topic="t", index=0, topic_id=topic_id)
    consumer.core.assign([named])
    consumer.core.seek(named, OffsetAndMetadata(offset=0))
    assert values(consumer.poll()) == [b"a0"]
    assert consumer.core.assignment == {TP}


def test_only_assigned_partitions_have_positions() -> None:
    core = start(cluster()).core
    at = OffsetAndMetadata(offset=0)
    with pytest.raises(ValueError, match="t-1 is not assigned"):
        core.seek(OTHER, at)
    with pytest.raises(ValueError, match="t-1 is not assigned"):
        core.reset(OTHER, Target.LOG_END)
    with pytest.raises(ValueError, match="t-1 is not assigned"):
        core.pause(OTHER, paused=True)
    with pytest.raises(ValueError, match="t-1 is not assigned"):
        core.position(OTHER)


def test_there_are_no_negative_offsets() -> None:
    with pytest.raises(ValueError, match="there is no offset -1"):
        start(cluster()).core.seek(TP, OffsetAndMetadata(offset=-1))


def test_a_consumer_subscribes_or_is_assigned() -> None:
    driver = cluster()
    consumer = start(driver, group_id="g")
    with pytest.raises(ValueError, match="either subscribes to topics or is assigned"):
        consumer.core.subscribe(["t"])
    consumer.core.assign([])
    consumer.core.subscribe(["t"])
    with pytest.raises(ValueError, match="either subscribes to topics or is assigned"):
        consumer.core.assign([TP])


@pytest.mark.parametrize("topics", [[], "t"])
def test_a_subscription_is_a_list_of_topics(topics: list[str] | str) -> None:
    consumer = DrivenConsumer(cluster(), group_id="g")
    with pytest.raises(ValueError, match="topics are a list of one name or more"):
        consumer.core.subscribe(topics)


def test_a_broker_that_can_not_be_fetched_from_is_an_error() -> None:
    driver = Driver(3, api_max={"fetch": 3})
    create(driver, "t", ((1, 2, 3),))
    consumer = start(driver)
    with pytest.raises(NotServed, match="serves no version of Fetch"):
        consumer.poll()


def test_the_same_story_sends_the_same_requests() -> None:
    def story() -> list[object]:
        driver = cluster()
        write(driver, "a", 3)
        consumer = start(driver, None, group_id="g", auto_offset_reset="earliest")
        consumer.read(3)
        consumer.result(consumer.core.commit())
        driver.elect("t", 0, 2)
        write(driver, "b", 2)
        consumer.read(2)
        return [(each.broker, each.api, each.version) for each in consumer.sent]

    assert story() == story()
