"""Topics declared in a message format from before leader epochs (KIP-320, compatibility).

Every epoch that the APIs show of such a topic is -1, and no check for truncation is made.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fencepost.broker.node import operator_actions
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from fencepost.protocol.messages.fetch import FetchTopic
from fencepost.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from fencepost.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from fencepost.protocol.records import iter_headers
from tests.harness.driver import NEWEST, Driver
from tests.harness.driver_requests import create, fetch, list_offset, produce, send_produce
from tests.harness.records import TIMESTAMP
from tests.harness.typed_requests import fetch_request, fetched, from_offset, produced, values

OLD = {"message.format.version": "0.10.2"}


def after_two_elections(version: str = "0.10.2") -> Driver:
    """A topic whose leader epoch is 2, with a record of epoch 0 and one of epoch 2."""
    driver = Driver(3)
    create(driver, "t", [(1, 2)], message_format_version=version)
    produce(driver, "t", b"a")
    driver.elect("t", 0, 2)
    driver.elect("t", 0, 1)
    produce(driver, "t", b"b")
    return driver


def metadata_epoch(driver: Driver) -> int:
    request = MetadataRequest(topics=(MetadataRequestTopic(name="t"),))
    (topic,) = driver.ask(1, "metadata", NEWEST, request).topics
    return int(topic.partitions[0].leader_epoch)


def described_epoch(driver: Driver) -> int:
    request = DescribeTopicPartitionsRequest(topics=(TopicRequest(name="t"),))
    (topic,) = driver.ask(1, "describe_topic_partitions", 0, request).topics
    return int(topic.partitions[0].leader_epoch)


def end_of_epoch(driver: Driver, epoch: int) -> tuple[int, int, int]:
    """Error, epoch and end offset."""
    asked = OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(
        topics=(OffsetForLeaderTopic(topic="t", partitions=(asked,)),)
    )
    (topic,) = driver.ask(1, "offset_for_leader_epoch", 4, request).topics
    (found,) = topic.partitions
    return found.error_code, found.leader_epoch, found.end_offset


def batch_epochs(driver: Driver) -> list[int]:
    partition = fetch(driver, "t", 0)
    return [
        header.partition_leader_epoch
        for buffer in partition.records or ()
        for _, header in iter_headers(buffer)
    ]


def shown(driver: Driver) -> list[int]:
    """Every epoch that the APIs show."""
    lookups = (-1, -2, -3, -4, TIMESTAMP)
    return [
        metadata_epoch(driver),
        described_epoch(driver),
        *(list_offset(driver, "t", timestamp).leader_epoch for timestamp in lookups),
        *batch_epochs(driver),
    ]


@pytest.mark.parametrize("version", ["0.8.0", "0.10.2", "0.10.2.1", "0.10.2-IV0"])
def test_every_epoch_is_shown_as_unknown(version: str) -> None:
    driver = after_two_elections(version)
    assert set(shown(driver)) == {-1}
    for epoch in (0, 1, 2, 3):
        assert end_of_epoch(driver, epoch) == (ErrorCode.NONE, -1, -1)


@pytest.mark.parametrize("version", ["0.11.0", "1.0", "2.8.1", "4.3"])
def test_since_0_11_there_are_epochs(version: str) -> None:
    driver = after_two_elections(version)
    assert shown(driver) == [2, 2, 2, 0, 0, 0, 0, 0, 2]
    assert end_of_epoch(driver, 0) == (ErrorCode.NONE, 0, 1)


def test_a_fetch_from_a_diverged_log_is_not_answered_with_the_diverging_epoch() -> None:
    driver = after_two_elections()
    asked = replace(from_offset(1), last_fetched_epoch=7)
    answer = fetched(driver.ask(1, "fetch", 12, fetch_request(("t", asked))))
    assert (answer.error_code, answer.diverging_epoch.epoch) == (ErrorCode.NONE, -1)
    assert values(answer) == [b"b"]


def test_leader_hints_have_no_epoch() -> None:
    driver = after_two_elections()
    topic_id = driver.cluster.controller.image.topics["t"].topic_id
    asked = replace(
        fetch_request(), topics=(FetchTopic(topic_id=topic_id, partitions=(from_offset(0),)),)
    )
    hint = fetched(driver.ask(3, "fetch", 16, asked)).current_leader
    assert (hint.leader_id, hint.leader_epoch) == (1, -1)
    refused = produced(send_produce(driver, "t", b"c", broker_id=2).response)
    assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (refused.current_leader.leader_id, refused.current_leader.leader_epoch) == (1, -1)


def test_a_lost_suffix_goes_unseen_and_replicas_agree_on_what_is_committed() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)], message_format_version="0.10.2")
    produce(driver, "t", b"a")
    operator_actions.hold(driver.cluster, "t", 0, 2, leave_isr=True)
    produce(driver, "t", b"lost", acks=1)
    operator_actions.elect(driver.cluster, "t", 0, 2, unclean=True)
    produce(driver, "t", b"instead", acks=1)
    driver.release(2)
    for broker_id in (1, 2):
        assert values(fetch(driver, "t", 0, broker_id=broker_id)) == [b"a", b"instead"]


def test_a_change_at_run_time_holds_from_then_on() -> None:
    driver = after_two_elections("4.3")
    controller = driver.cluster.controller
    controller.set_topic_configs("t", OLD)
    driver.cluster.scheduler.run_due()
    produce(driver, "t", b"c")
    assert set(shown(driver)[:7]) == {-1}
    assert batch_epochs(driver) == [0, 2, -1]
    controller.set_topic_configs("t", {})
    driver.cluster.scheduler.run_due()
    produce(driver, "t", b"d")
    assert metadata_epoch(driver) == list_offset(driver, "t", -1).leader_epoch == 2
    assert batch_epochs(driver) == [0, 2, -1, 2]
    # The epoch cache begins after the batches without epochs.
    assert end_of_epoch(driver, 2) == (ErrorCode.NONE, 2, 4)
    assert end_of_epoch(driver, 0) == (ErrorCode.NONE, 0, 3)
