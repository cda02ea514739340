"""Where a log can't be what a consumer has fetched, by the earlier draft of KIP-320."""

from __future__ import annotations

import pytest

from fencepost.broker.fetch.kip_320_draft import find_truncation, is_above_log_end
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import FetchPartition
from fencepost.storage.log.leader_epoch_cache import EpochEntry
from tests.harness.driver import Driver
from tests.harness.driver_requests import create, produce

TRUNCATED, UNKNOWN = ErrorCode.LOG_TRUNCATION, ErrorCode.UNKNOWN_LEADER_EPOCH
END = 6


@pytest.fixture(scope="module")
def driver() -> Driver:
    """Broker 1 leads a log of the epochs 0, 2 and 4, which begin at 0, 2 and 5, and end at 6."""
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    create(driver, "old", [(1, 2)], message_format_version="0.10.2")
    for topic in ("t", "old"):
        for values in ((b"a", b"b"), (b"c", b"d", b"e"), (b"f",)):
            produce(driver, topic, *values)
            driver.elect(topic, 0, 2)
            driver.elect(topic, 0, 1)
    return driver


def asked(offset: int, epoch: int) -> FetchPartition:
    return FetchPartition(fetch_offset=offset, last_fetched_epoch=epoch)


def test_the_log_is_as_described(driver: Driver) -> None:
    log = driver.leader("t").log
    entries = log.epoch_entries()
    assert entries[:3] == (EpochEntry(0, 0), EpochEntry(2, 2), EpochEntry(4, 5))
    assert entries[3:] == (EpochEntry(6, END),), "that of the present leader, which wrote nothing"
    assert log.log_end_offset == END


@pytest.mark.parametrize(
    ("offset", "epoch", "expected"),
    [
        (1, 0, None),
        (2, 0, None),
        (3, 0, TRUNCATED),
        (2, 1, None),
        (3, 1, TRUNCATED),
        (5, 2, None),
        (6, 2, TRUNCATED),
        (5, 3, None),
        (6, 4, None),
        (6, 6, None),
        (0, 6, None),
        (7, 6, TRUNCATED),
        (7, 5, TRUNCATED),
        (99, 0, TRUNCATED),
        (6, 7, UNKNOWN),
        (0, 7, UNKNOWN),
        (99, 7, UNKNOWN),
        (6, -1, None),
        (99, -1, None),
        (99, -2, None),
    ],
)
def test_truncation(driver: Driver, offset: int, epoch: int, expected: ErrorCode | None) -> None:
    assert find_truncation(driver.leader("t"), asked(offset, epoch)) == expected


@pytest.mark.parametrize(("offset", "epoch"), [(3, 0), (0, 7), (99, 0)])
def test_a_topic_of_the_old_message_format_has_no_epochs_to_check(
    driver: Driver, offset: int, epoch: int
) -> None:
    assert find_truncation(driver.leader("old"), asked(offset, epoch)) is None


@pytest.mark.parametrize(("offset", "is_above"), [(END - 1, False), (END, False), (END + 1, True)])
def test_the_log_end_itself_is_not_above_it(driver: Driver, offset: int, *, is_above: bool) -> None:
    assert is_above_log_end(driver.leader("t"), asked(offset, -1)) is is_above
