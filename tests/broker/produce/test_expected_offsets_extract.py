"""What a produce request expects is noted as it came, where it is compared with the log's end."""

from __future__ import annotations

import pytest

from fencepost.broker.produce.expected_offsets import IN_HEADERS, extract_expected_offsets
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.harness.driver import Driver
from tests.harness.driver_requests import create
from tests.harness.records import batch


def at(base_offset: int) -> bytearray:
    return batch((5, None, b"v"), base_offset=base_offset)


def data(*records: Buffer | None) -> tuple[PartitionProduceData, ...]:
    return tuple(PartitionProduceData(index=i, records=each) for i, each in enumerate(records))


@pytest.mark.parametrize("by_id", [False, True], ids=["by name", "by id"])
def test_each_partition_has_what_its_topic_compares(by_id: bool) -> None:
    driver = Driver(1)
    ids = {
        "plain": create(driver, "plain"),
        "batch": create(driver, "batch", check_expected_offsets="true"),
        "header": create(
            driver,
            "header",
            check_expected_offsets="true",
            check_expected_offsets_source="header",
        ),
        "key": create(
            driver, "key", check_expected_offsets="true", check_expected_offsets_scope="key"
        ),
    }
    topics = tuple(
        TopicProduceData(
            name="" if by_id else name,
            topic_id=topic_id if by_id else None,
            partition_data=data(at(7) + at(-1) + at(9), None),
        )
        for name, topic_id in ids.items()
    )
    stated = extract_expected_offsets(driver.broker(1), ProduceRequest(topic_data=topics))
    assert stated == (None, None, (7, -1, 9), None, IN_HEADERS, None, None, None)


@pytest.mark.parametrize(
    ("records", "stated"),
    [
        (b"", ()),
        (at(7)[:11], ()),
        (at(7)[:-1], (7,)),
        (at(7) + at(8)[:11], (7,)),
        (at(7) + bytes(100), (7, 0)),
        (at(7) + b"\xff" * 100, (7, -1)),
    ],
    ids=["none", "no length", "cut off", "cut off later", "zeros", "a negative length"],
)
def test_it_goes_as_far_as_there_are_batches(records: bytes, stated: tuple[int, ...]) -> None:
    driver = Driver(1)
    create(driver, "t", check_expected_offsets="true")
    topic = TopicProduceData(name="t", partition_data=data(records))
    assert extract_expected_offsets(driver.broker(1), ProduceRequest(topic_data=(topic,))) == (
        stated,
    )
