"""DescribeLogDirs: what this broker holds, in its one directory."""

from __future__ import annotations

import pytest

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResult,
)
from tests.harness.driver import Driver
from tests.harness.driver_requests import create, produce
from tests.harness.records import batch
from tests.harness.typed_requests import produce_request


def describe(
    driver: Driver, broker_id: int, topics: dict[str, tuple[int, ...]] | None, version: int = 5
) -> DescribeLogDirsResult:
    asked = None
    if topics is not None:
        asked = tuple(
            DescribableLogDirTopic(topic=name, partitions=partitions)
            for name, partitions in topics.items()
        )
    request = DescribeLogDirsRequest(topics=asked)
    response = driver.ask(broker_id, "describe_log_dirs", version, request)
    assert response.error_code == ErrorCode.NONE
    (directory,) = response.results
    assert isinstance(directory, DescribeLogDirsResult)
    return directory


def sizes(directory: DescribeLogDirsResult) -> dict[tuple[str, int], int]:
    return {
        (topic.name, partition.partition_index): partition.partition_size
        for topic in directory.topics
        for partition in topic.partitions
    }


def test_null_asks_for_all_replicas_of_this_broker_and_their_sizes() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2), (2, 3)])
    create(driver, "u", [(2, 1)])
    records = batch(b"some", b"bytes")
    driver.ask(1, "produce", 12, produce_request(("t", 0, records)))
    assert sizes(describe(driver, 1, None)) == {("t", 0): len(records), ("u", 0): 0}
    assert sizes(describe(driver, 2, None)) == {
        ("t", 0): len(records),
        ("t", 1): 0,
        ("u", 0): 0,
    }


@pytest.mark.parametrize("version", [1, 2, 4, 5])
def test_of_those_asked_for_the_ones_that_are_here(version: int) -> None:
    driver = Driver(2)
    create(driver, "t", [(1,), (2,), (1,)])
    directory = describe(driver, 1, {"t": (2, 1, 0, 9), "nope": (0,)}, version)
    assert list(sizes(directory)) == [("t", 2), ("t", 0)]
    assert describe(driver, 1, {"t": (), "nope": (0,)}, version).topics == ()


def test_the_directory_is_the_one_that_configs_name() -> None:
    directory = describe(Driver(1), 1, None)
    assert directory.log_dir == "/tmp/kafka-logs"
    assert (directory.total_bytes, directory.usable_bytes) == (-1, -1)
    assert directory.is_cordoned is False


def test_sizes_follow_what_is_deleted() -> None:
    driver = Driver(1)
    create(driver, "t", segment_bytes="1048576")
    for _ in range(3):
        produce(driver, "t", b"x" * 700_000)
    before = sizes(describe(driver, 1, None))["t", 0]
    driver.replica(1, "t").delete_records(1)
    assert sizes(describe(driver, 1, None))["t", 0] == pytest.approx(before * 2 / 3, rel=0.01)
