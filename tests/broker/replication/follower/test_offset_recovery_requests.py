"""What a follower that leaves records to the tier asks, of which leader, and at which level."""

from __future__ import annotations

import pytest

from fencepost.broker.metadata.features import METADATA_VERSION
from fencepost.broker.node.operator_actions import elect, wipe
from fencepost.broker.replication.follower.start_offset import SpecialTimestamp
from tests.broker.replication.follower.remote_bootstrap import (
    BEGIN,
    BUILD,
    END,
    LOCAL,
    OUT_OF_RANGE,
    PENDING,
    START,
    Start,
    example,
)
from tests.harness.driver_requests import list_offset


def test_it_asks_as_a_replica_in_its_leaders_epoch() -> None:
    driver = example()
    driver.release()
    epoch = driver.leader("t").leader_epoch
    lists = [(v, m) for api, v, m in driver.sent if api.title == "ListOffsets"]
    assert [(v, m.replica_id) for v, m in lists] == [(11, 2), (11, 2)]
    partitions = [m.topics[0].partitions[0] for _, m in lists]
    assert [(p.timestamp, p.current_leader_epoch) for p in partitions] == [
        (SpecialTimestamp.EARLIEST, epoch),
        (SpecialTimestamp.EARLIEST_PENDING_UPLOAD, epoch),
    ]
    ((traced, partition),) = (
        (m, m.topics[0].partitions[0])
        for api, _, m in driver.sent
        if api.title == "OffsetForLeaderEpoch"
    )
    assert traced.replica_id == 2
    assert (partition.current_leader_epoch, partition.leader_epoch) == (epoch, 1)


def test_the_epoch_before_is_that_of_the_last_record_that_is_left() -> None:
    """Kafka's own example: an epoch in which nothing was written leaves a gap."""
    driver = Start()
    driver.append(5)
    elect(driver.cluster, "t", 0, 1)
    elect(driver.cluster, "t", 0, 1)
    driver.tier_away(1)
    elect(driver.cluster, "t", 0, 1)
    elect(driver.cluster, "t", 0, 1)
    driver.append(3)
    assert driver.leader("t").leader_epoch == 4
    assert list_offset(driver, "t", SpecialTimestamp.EARLIEST_PENDING_UPLOAD).leader_epoch == 4
    driver.release()
    driver.assert_caught_up(start=0, local=15)


@pytest.mark.parametrize("level", [28, 29])
def test_below_its_level_the_feature_is_set_and_has_no_effect(level: int) -> None:
    driver = Start()
    driver.cluster.controller.update_features({METADATA_VERSION: level})
    driver.broker(1).version_limits = {}  # as Apache Kafka, which serves more than brokers use
    driver.tier_away(3, local=2)
    driver.append(5)
    expected = [BEGIN, START, PENDING, BUILD] if level == 29 else [BEGIN, START, LOCAL, BUILD]
    assert driver.step(4) == expected
    versions = {version for api, version, _ in driver.sent if api.title == "ListOffsets"}
    assert versions == ({11} if level == 29 else {10})


def test_a_leader_that_is_too_old_is_not_asked_what_it_does_not_know() -> None:
    driver = Start()
    driver.broker(1).version_limits = {"list_offsets": 10}
    driver.tier_away(3, local=2)
    assert driver.step(3) == [BEGIN, START, LOCAL]


def test_the_feature_can_be_turned_on_while_brokers_run() -> None:
    driver = Start(enabled=False)
    driver.tier_away(3, local=2)
    assert driver.step(3) == [BEGIN, START, LOCAL]
    driver.enable()
    wipe(driver.cluster, "t", 0, 2)
    assert driver.step(3) == [BEGIN, START, PENDING]


def test_a_topic_without_a_tier_knows_the_old_protocol_alone() -> None:
    driver = Start(remote_storage_enable="false")
    driver.append(9)
    driver.delete_records(4)
    assert driver.step(3) == [("Fetch", None, OUT_OF_RANGE), END, START]
