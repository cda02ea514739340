"""A cluster in memory at its limit: Produce is refused with a reason until something is freed."""

from __future__ import annotations

from fencepost.broker.core.events import Event, Kind
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.harness.driver import Driver, content
from tests.harness.driver_requests import create, fetch, produce

VALUE = bytes(200_000)
LIMIT = 20_000_000


def filled(**configs: str) -> tuple[Driver, list[Event]]:
    """A cluster whose topic has been produced to until it was refused."""
    driver = Driver(3, max_log_bytes=LIMIT)
    events: list[Event] = []
    driver.cluster.events.listeners += (events.append,)
    create(driver, "t", [(1, 2, 3)], segment_bytes="1048576", **configs)
    for _ in range(1000):
        answer = produce(driver, "t", VALUE)
        if answer.error_code:
            break
    assert answer.error_code == ErrorCode.POLICY_VIOLATION
    assert answer.error_message is not None
    assert "--max-memory" in answer.error_message
    return driver, [each for each in events if each.kind is Kind.MEMORY_FULL]


def accepts(driver: Driver, topic: str = "t") -> bool:
    return produce(driver, topic, VALUE).error_code == ErrorCode.NONE


def test_three_replicas_share_what_counts() -> None:
    driver, _ = filled()
    held = driver.leader("t").log.size_bytes
    assert held > 0.9 * LIMIT
    assert driver.cluster.log_memory.used <= LIMIT + len(VALUE)
    assert len(content(driver.replica(3, "t"))) == driver.leader("t").log.log_end_offset


def test_all_else_goes_on() -> None:
    driver, _ = filled()
    assert fetch(driver, "t", 0).error_code == ErrorCode.NONE
    create(driver, "another")
    assert not accepts(driver, "another")


def test_one_event_says_so_and_not_one_for_each_request() -> None:
    driver, events = filled()
    for _ in range(20):
        assert not accepts(driver)
    (event,) = events
    assert event.details["limit_bytes"] == LIMIT
    assert isinstance(used := event.details["used_bytes"], int)
    assert LIMIT - 2 * len(VALUE) < used <= LIMIT + len(VALUE)


def test_a_deleted_topic_makes_room() -> None:
    driver, _ = filled()
    driver.cluster.controller.delete_topics(["t"])
    driver.cluster.scheduler.run_due()
    create(driver, "other", [(1, 2, 3)])
    assert accepts(driver, "other")


def test_delete_records_makes_room() -> None:
    driver, _ = filled()
    end = driver.leader("t").log.log_end_offset
    partition = DeleteRecordsPartition(partition_index=0, offset=end - 5)
    topic = DeleteRecordsTopic(name="t", partitions=(partition,))
    driver.send(1, "delete_records", 2, DeleteRecordsRequest(topics=(topic,), timeout_ms=1000))
    assert accepts(driver)


def test_retention_makes_room() -> None:
    driver, _ = filled(retention_bytes="1000000")
    driver.advance(400_000)
    assert accepts(driver)


def test_a_reset_makes_room() -> None:
    driver, _ = filled()
    driver.cluster.reset()
    create(driver, "t", [(1, 2, 3)])
    assert accepts(driver)


def test_a_log_of_a_broker_that_is_down_counts() -> None:
    driver, _ = filled()
    used = driver.cluster.log_memory.used
    driver.broker(3).stop(crash=False)
    driver.cluster.scheduler.run_due()
    assert driver.cluster.log_memory.used == used


def test_the_tier_in_memory_counts() -> None:
    driver = Driver(1, {"remote.log.storage.system.enable": "true"}, max_log_bytes=LIMIT)
    create(
        driver,
        "t",
        [(1,)],
        segment_bytes="1048576",
        remote_storage_enable="true",
        local_retention_bytes="1000000",
    )
    for _ in range(1000):
        answer = produce(driver, "t", VALUE)
        if answer.error_code:
            break
        driver.advance(40_000)
    assert answer.error_code == ErrorCode.POLICY_VIOLATION
    assert driver.leader("t").log.size_bytes < LIMIT / 4
