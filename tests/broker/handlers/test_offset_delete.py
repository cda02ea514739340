"""OffsetDelete: the answer's entries. What is deleted stands in the conversations with groups."""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.find_coordinator import FindCoordinatorRequest
from fencepost.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from fencepost.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.harness.driver import Driver
from tests.harness.driver_requests import create

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def delete(driver: Driver, *topics: tuple[str, int]) -> list[tuple[str, list[tuple[int, int]]]]:
    asked = tuple(
        OffsetDeleteRequestTopic(
            name=name, partitions=(OffsetDeleteRequestPartition(partition_index=index),)
        )
        for name, index in topics
    )
    request = OffsetDeleteRequest(group_id="g", topics=asked)
    return [
        (topic.name, [(each.partition_index, each.error_code) for each in topic.partitions])
        for topic in driver.ask(1, "offset_delete", 0, request).topics
    ]


def test_a_topic_that_is_named_twice_is_answered_twice_where_no_partition_is_refused() -> None:
    driver = Driver(1)
    create(driver, "t", [[1], [1]])
    driver.ask(1, "find_coordinator", 1, FindCoordinatorRequest(key="g"))
    committed = OffsetCommitRequestTopic(name="t", partitions=(OffsetCommitRequestPartition(),))
    driver.ask(1, "offset_commit", 2, OffsetCommitRequest(group_id="g", topics=(committed,)))
    assert delete(driver, ("t", 0), ("t", 1)) == [("t", [(0, 0)]), ("t", [(1, 0)])]
    assert delete(driver, ("t", 0), ("t", 7)) == [("t", [(7, UNKNOWN), (0, 0)])]
