"""ListOffsets: what elections, followers and deletions do to the answers."""

from __future__ import annotations

import pytest

from fencepost.broker.core import outcomes
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.harness.crash_model import Operation
from tests.harness.driver import Driver, versions
from tests.harness.driver_requests import create, list_offset, produce
from tests.harness.durable_driver import DurableDriver
from tests.harness.records import TIMESTAMP, batch
from tests.harness.typed_requests import produce_request

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL = -1, -2, -3, -4
DEBUGGING = -2
Place = tuple[int, int, int]


def place(driver: Driver, timestamp: int) -> Place:
    """Offset, epoch and timestamp."""
    found = list_offset(driver, "t", timestamp)
    assert found.error_code == ErrorCode.NONE
    return found.offset, found.leader_epoch, found.timestamp


def append(driver: Driver, timestamp: int) -> None:
    leader = driver.leader("t").broker_id
    request = produce_request(("t", 0, batch(b"v", timestamp=timestamp)))
    driver.ask(leader, "produce", 12, request)


def test_epochs_are_those_of_the_offsets_and_of_latest_the_current_one() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)])
    append(driver, TIMESTAMP + 5)
    driver.elect("t", 0, 2)
    append(driver, TIMESTAMP + 9)
    append(driver, TIMESTAMP + 7)
    driver.elect("t", 0, 3)
    assert place(driver, LATEST) == (3, 2, -1)
    assert place(driver, EARLIEST) == place(driver, EARLIEST_LOCAL) == (0, 0, -1)
    assert place(driver, MAX_TIMESTAMP) == (1, 1, TIMESTAMP + 9)
    assert place(driver, TIMESTAMP) == (0, 0, TIMESTAMP + 5)
    assert place(driver, TIMESTAMP + 6) == (1, 1, TIMESTAMP + 9)
    assert place(driver, TIMESTAMP + 10) == (-1, -1, -1)


def test_earliest_follows_the_log_start() -> None:
    driver = Driver(1)
    create(driver, "t")
    for n in range(3):
        append(driver, TIMESTAMP + n)
    driver.leader("t").delete_records(2)
    assert place(driver, EARLIEST) == (2, 0, -1)
    assert place(driver, TIMESTAMP)[0] == 2


def test_latest_is_the_high_watermark_but_for_replicas_and_debuggers() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    produce(driver, "t", b"a")
    driver.hold(2)
    produce(driver, "t", b"b", acks=1)
    assert list_offset(driver, "t", LATEST).offset == 1
    assert list_offset(driver, "t", LATEST, replica_id=2).offset == 2
    assert list_offset(driver, "t", LATEST, replica_id=DEBUGGING).offset == 2


def test_a_record_that_is_not_committed_is_not_found_by_time() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    append(driver, TIMESTAMP)
    driver.hold(2)
    request = produce_request(("t", 0, batch(b"v", timestamp=TIMESTAMP + 1)), acks=1)
    driver.ask(1, "produce", 12, request)
    assert driver.leader("t").log.log_end_offset == 2
    assert place(driver, TIMESTAMP) == (0, 0, TIMESTAMP)
    assert place(driver, TIMESTAMP + 1) == (-1, -1, -1)


def test_only_debuggers_ask_followers() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2)])
    produce(driver, "t", b"a")
    follower = list_offset(driver, "t", LATEST, broker_id=2)
    assert follower.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    debugger = list_offset(driver, "t", LATEST, broker_id=2, replica_id=DEBUGGING)
    assert (debugger.error_code, debugger.offset) == (ErrorCode.NONE, 1)
    stranger = list_offset(driver, "t", LATEST, broker_id=3)
    assert stranger.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("broker_id", [1, 2])
@pytest.mark.parametrize(
    ("epoch", "code"),
    [(0, ErrorCode.FENCED_LEADER_EPOCH), (2, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_a_wrong_epoch_comes_before_the_leader(broker_id: int, epoch: int, code: ErrorCode) -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    driver.elect("t", 0, 1)
    asked = list_offset(driver, "t", LATEST, broker_id=broker_id, current_leader_epoch=epoch)
    assert asked.error_code == code


def test_below_v4_epochs_are_neither_asked_nor_told() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    driver.elect("t", 0, 2)
    found = list_offset(driver, "t", LATEST, version=3, current_leader_epoch=0)
    assert (found.error_code, found.leader_epoch) == (ErrorCode.NONE, -1)


@pytest.mark.parametrize(("target", "first"), [(-3, 7), (-4, 8), (-5, 9), (-6, 11)])
def test_a_target_is_not_known_below_its_version(target: int, first: int) -> None:
    driver = Driver(1)
    create(driver, "t")
    for version in versions("list_offsets"):
        found = list_offset(driver, "t", target, version=version)
        expected = ErrorCode.UNSUPPORTED_VERSION if version < first else ErrorCode.NONE
        assert found.error_code == expected, f"v{version}"


@pytest.mark.parametrize("turn", [1, outcomes.SLICE])
def test_a_log_that_cannot_be_read_is_an_error_of_its_partition(
    monkeypatch: pytest.MonkeyPatch, turn: int
) -> None:
    """In the first turn, and in a later one, when the handler has returned."""
    lasting = DurableDriver(1)
    create(lasting.driver, "t", [(1,), (1,), (1,)])
    for index in range(3):
        produce(lasting.driver, "t", b"v", index=index)
    lasting.stop()
    driver = lasting.begin()
    lasting.files.fail(Operation.READ, times=None, under=lasting.path(1, "t", 1))
    asked = tuple(ListOffsetsPartition(partition_index=at, timestamp=0) for at in range(3))
    request = ListOffsetsRequest(
        replica_id=-1, topics=(ListOffsetsTopic(name="t", partitions=asked),)
    )
    monkeypatch.setattr(outcomes, "_TURN", range(turn))
    (topic,) = driver.ask(1, "list_offsets", 5, request).topics
    assert [(p.error_code, p.offset) for p in topic.partitions] == [
        (ErrorCode.NONE, 0),
        (ErrorCode.KAFKA_STORAGE_ERROR, -1),
        (ErrorCode.NONE, 0),
    ]
    assert driver.partition("t", 1).failed == (1,)
