"""Timestamps follow a machine's clock that is set; what waits does not notice."""

from __future__ import annotations

from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.core.events import Kind
from fencepost.broker.server.event_loop import SystemClock
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.produce import PartitionProduceResponse
from tests.harness.driver import Driver, SettableClock
from tests.harness.driver_requests import create, fetch, produce, send_produce
from tests.harness.in_process_server import asked_by_clients, running, sockets
from tests.harness.records import batch
from tests.harness.typed_client import kafka
from tests.harness.typed_requests import fetch_request, from_offset, produce_request, produced

TEN_DAYS_MS = 10 * 24 * 3_600_000


def behind(brokers: int = 1) -> tuple[Driver, SettableClock]:
    """A cluster whose clock is ten days behind."""
    clock = SettableClock()
    clock.ahead_ms = -TEN_DAYS_MS
    return Driver(brokers, clock=clock), clock


def produce_now(driver: Driver, *, seconds_ago: int = 0) -> PartitionProduceResponse:
    """A record that a client stamps, whose clock is right."""
    timestamp = driver.clock.now_ms() - seconds_ago * 1000
    request = produce_request(("t", 0, batch((timestamp, b"k", b"v"))))
    return produced(driver.ask(1, "produce", 12, request))


def test_current_timestamps_are_taken_once_the_clock_is_right() -> None:
    driver, clock = behind()
    create(driver, "t")
    assert produce_now(driver).error_code == ErrorCode.INVALID_TIMESTAMP
    clock.ahead_ms = 0
    assert produce_now(driver).error_code == 0


def test_records_are_stamped_by_the_clock_as_it_is_set() -> None:
    driver, clock = behind()
    create(driver, "t", message_timestamp_type="LogAppendTime")
    assert produce(driver, "t", b"a").log_append_time_ms == clock.now_ms() - TEN_DAYS_MS
    clock.ahead_ms = 5000
    assert produce(driver, "t", b"b").log_append_time_ms == clock.now_ms() + 5000


def test_records_are_kept_as_long_as_the_clock_says() -> None:
    driver, clock = behind()
    create(driver, "t", retention_ms="60000", message_timestamp_after_max_ms=str(2**62))
    produce_now(driver)
    driver.advance(600_000)
    assert fetch(driver, "t", 0).log_start_offset == 0, "for the clock it is not made yet"
    clock.ahead_ms = 0
    driver.advance(600_000)
    assert fetch(driver, "t", 1).log_start_offset == 1


def test_no_wait_ends_early_or_late_because_the_clock_was_set() -> None:
    driver, clock = behind()
    create(driver, "t")
    request = fetch_request(("t", from_offset(0)), max_wait_ms=500, min_bytes=1)
    poll = driver.send(1, "fetch", 12, request)
    driver.advance(250)
    for ahead_ms in (0, -2 * TEN_DAYS_MS):
        clock.ahead_ms = ahead_ms
        driver.advance(100)
        assert not poll.done
    driver.advance(50)
    assert poll.done


def test_no_follower_lags_because_the_clock_was_set() -> None:
    driver, clock = behind(3)
    create(driver, "t", [[1, 2, 3]])
    produce(driver, "t", b"a")
    driver.hold(3)
    send_produce(driver, "t", b"b")
    clock.ahead_ms = 0
    driver.advance(20_000)
    assert set(driver.partition("t").isr) == {1, 2, 3}


def test_events_have_the_time_of_day() -> None:
    driver, clock = behind()
    times: dict[Kind, int] = {}
    driver.cluster.events.listeners.append(lambda e: times.update({e.kind: e.time_ms}))
    create(driver, "t")
    assert times[Kind.TOPIC_CREATED] == clock.now_ms() - TEN_DAYS_MS


async def test_a_served_cluster_follows_the_clock_of_its_machine() -> None:
    behind_ns = [TEN_DAYS_MS * 1_000_000]
    real = SystemClock()
    clock = SystemClock(lambda: real.wall_ms() * 1_000_000 - behind_ns[0])
    async with (
        running(sockets(1), topics=(NewTopic(name="t", configs={}),), clock=clock) as server,
        kafka(server, 1) as client,
    ):

        async def produce_now() -> int:
            request = produce_request(("t", 0, batch((real.wall_ms(), b"k", b"v"))))
            return produced(await client.ask("produce", 12, request)).error_code

        assert await produce_now() == ErrorCode.INVALID_TIMESTAMP
        behind_ns[0] = 0
        assert await produce_now() == 0
        newest, oldest = asked_by_clients(server)
        assert newest.time_ms - oldest.time_ms >= TEN_DAYS_MS
        assert newest.answered_ms is not None
        assert real.wall_ms() >= newest.answered_ms >= newest.time_ms
