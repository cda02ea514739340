"""Where the logs of a leader and a client part, by the epoch that the client fetched last."""

from __future__ import annotations

import pytest

from fencepost.broker.fetch.partition_answers import NOT_DIVERGING, diverging_epoch, error_answer
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import EpochEndOffset, FetchPartition
from tests.harness.driver import Driver
from tests.harness.driver_requests import create, produce


@pytest.mark.parametrize(
    ("fetch_offset", "epoch", "expected"),
    [
        (2, 0, None),
        (1, 0, None),
        (9, -1, None),
        (3, 0, EpochEndOffset(epoch=0, end_offset=2)),
        (2, 7, ErrorCode.OFFSET_OUT_OF_RANGE),
    ],
    ids=["at the end", "before it", "no epoch", "beyond it", "an epoch that never was"],
)
def test_divergence(
    fetch_offset: int, epoch: int, expected: EpochEndOffset | ErrorCode | None
) -> None:
    driver = Driver(1)
    create(driver, "t")
    produce(driver, "t", b"a", b"b")
    asked = FetchPartition(fetch_offset=fetch_offset, last_fetched_epoch=epoch)
    assert diverging_epoch(driver.leader("t"), asked) == expected


def test_an_error_has_no_records_and_knows_no_watermark() -> None:
    answer = error_answer(3, ErrorCode.UNKNOWN_TOPIC_ID)
    assert (answer.partition_index, answer.error_code) == (3, ErrorCode.UNKNOWN_TOPIC_ID)
    assert (answer.high_watermark, answer.records) == (-1, ())
    assert answer.diverging_epoch == NOT_DIVERGING
