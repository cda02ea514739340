"""One broker's life in its files: how it ends and starts, and what it writes meanwhile."""

from __future__ import annotations

from collections.abc import Callable

from fencepost.broker.node import operator_actions
from fencepost.storage.files.file_log import FileLog
from tests.harness.crash_model import Operation
from tests.harness.driver_requests import create, produce
from tests.harness.durable_driver import DIR, DurableDriver, content


def test_a_broker_that_stops_writes_everything_and_looks_at_nothing_when_it_starts() -> None:
    lasting = DurableDriver()
    create(lasting.driver, "t", [(1, 2, 3)])
    produce(lasting.driver, "t", b"a", b"b")
    operator_actions.stop(lasting.driver.cluster, 2)
    home = DIR / "broker-2"
    assert lasting.files.exists(home / ".kafka_cleanshutdown")
    for name in ("recovery-point", "replication"):
        text = lasting.files.read(home / f"{name}-offset-checkpoint").decode()
        assert text == "0\n1\nt 0 2\n", name
    look = lasting.driver.broker(2).storage.peek_log("t", 0)
    assert look is not None
    assert look.log_end_offset == 2
    operator_actions.start(lasting.driver.cluster, 2)
    assert not lasting.files.exists(home / ".kafka_cleanshutdown"), "the next end is to come"
    assert lasting.log_dir(2).clean
    assert lasting.log_dir(2).recoveries == []
    assert set(lasting.driver.partition("t").isr) == {1, 2, 3}


def test_after_an_orderly_end_no_closed_segment_is_looked_at() -> None:
    lasting = DurableDriver(1)
    create(lasting.driver, "t", [(1,)])
    for value in (b"a", b"b", b"c"):
        produce(lasting.driver, "t", value)
        operator_actions.roll(lasting.driver.cluster, "t", 0)
    lasting.stop()
    for offset in (0, 1, 2):
        log = lasting.path(1, "t") / f"{offset:020d}.log"
        lasting.files.fail(Operation.READ, times=None, under=log)
    driver = lasting.begin()
    assert driver.leader("t").high_watermark == 3
    produce(driver, "t", b"d")
    lasting.files.heal()
    assert content(driver)[:1] == [b"a"]


def test_what_was_closed_in_order_outlives_the_machine() -> None:
    lasting = DurableDriver()
    create(lasting.driver, "t", [(1, 2, 3)])
    produce(lasting.driver, "t", b"a", b"b")
    lasting.driver.cluster.close()
    lasting.lose_power(3)
    driver = lasting.begin()
    assert content(driver) == [b"a", b"b"]
    assert lasting.persistence.recovery_report is not None
    assert lasting.persistence.recovery_report.clean


def test_a_broker_that_is_killed_recovers_its_logs() -> None:
    lasting = DurableDriver()
    create(lasting.driver, "t", [(1, 2, 3)])
    produce(lasting.driver, "t", b"a", b"b")
    operator_actions.kill(lasting.driver.cluster, 2)
    assert not lasting.files.exists(DIR / "broker-2" / ".kafka_cleanshutdown")
    log = lasting.path(2, "t") / f"{0:020d}.log"
    file = lasting.files.open(log)
    whole = file.size
    file.append([b"torn"])
    file.close()
    operator_actions.start(lasting.driver.cluster, 2)
    ((name, recovery),) = lasting.log_dir(2).recoveries
    assert name == "t-0"
    assert [(cut.position, cut.size, cut.offset) for cut in recovery.cut] == [(whole, 4, 2)]
    assert set(lasting.driver.partition("t").isr) == {1, 2, 3}
    produce(lasting.driver, "t", b"c")
    assert lasting.driver.replica(2, "t").log.log_end_offset == 3


def test_checkpoints_are_written_as_often_as_configs_say() -> None:
    lasting = DurableDriver(
        replica_high_watermark_checkpoint_interval_ms="1000",
        log_flush_offset_checkpoint_interval_ms="3000",
        log_flush_start_offset_checkpoint_interval_ms="2000",
    )
    driver = lasting.driver
    create(driver, "t", [(1, 2, 3)], flush_messages="1")
    produce(driver, "t", b"a", b"b")
    driver.leader("t").delete_records(1)
    driver.cluster.scheduler.run_due()

    def said(name: str) -> str | None:
        path = DIR / "broker-1" / f"{name}-offset-checkpoint"
        return lasting.files.read(path).decode() if lasting.files.exists(path) else None

    driver.advance(999)
    assert said("replication") is None
    driver.advance(1)
    assert said("replication") == "0\n1\nt 0 2\n"
    assert said("log-start") is None
    driver.advance(1000)
    assert said("log-start") == "0\n1\nt 0 1\n"
    assert said("recovery-point") is None
    driver.advance(1000)
    assert said("recovery-point") == "0\n1\nt 0 2\n"
    lasting.kill()
    assert lasting.begin().leader("t").log.log_start_offset == 1


def test_a_checkpoint_that_says_nothing_new_is_not_written() -> None:
    lasting = DurableDriver(1, replica_high_watermark_checkpoint_interval_ms="1000")
    create(lasting.driver, "t", [(1,)])
    produce(lasting.driver, "t", b"a")
    lasting.driver.advance(1000)
    path = DIR / "broker-1" / "replication-offset-checkpoint"
    lasting.files.remove(path)
    lasting.driver.advance(5000)
    assert not lasting.files.exists(path)
    produce(lasting.driver, "t", b"b")
    lasting.driver.advance(1000)
    assert lasting.files.read(path).decode() == "0\n1\nt 0 2\n"


def test_records_are_flushed_when_they_have_waited() -> None:
    lasting = DurableDriver(1, log_flush_scheduler_interval_ms="100", log_flush_interval_ms="1000")
    create(lasting.driver, "t", [(1,)])
    produce(lasting.driver, "t", b"a")
    log = lasting.driver.replica(1, "t").log
    assert isinstance(log, FileLog)
    lasting.driver.advance(900)
    assert log.recovery_point == 0
    lasting.driver.advance(200)
    assert log.recovery_point == 1


def test_closed_segments_are_synced_and_need_no_recovery() -> None:
    lasting = DurableDriver(1, log_flush_offset_checkpoint_interval_ms="1000")
    driver = lasting.driver
    create(driver, "t", [(1,)])
    for value in (b"a", b"b", b"c"):
        produce(driver, "t", value)
        if value != b"c":
            operator_actions.roll(driver.cluster, "t", 0)
    first, *others = [each.size_bytes for each in driver.replica(1, "t").log.segments()]
    driver.advance(1000)
    path = DIR / "broker-1" / "recovery-point-offset-checkpoint"
    assert lasting.files.read(path).decode() == "0\n1\nt 0 2\n"
    lasting.kill()
    lasting.begin()
    ((_, recovery),) = lasting.log_dir(1).recoveries
    assert first > 0
    assert recovery.checked_bytes == sum(others), "the one before is looked at for its indexes"
    assert lasting.driver.replica(1, "t").log.log_end_offset == 3


def test_what_is_synced_elsewhere_counts_when_it_is_done() -> None:
    lasting = DurableDriver(1, log_flush_offset_checkpoint_interval_ms="1000")
    driver = lasting.driver
    create(driver, "t", [(1,)])
    log = driver.replica(1, "t").log
    assert isinstance(log, FileLog)
    waiting: list[tuple[Callable[[], None], Callable[[OSError | None], None]]] = []
    lasting.log_dir(1).checkpoints.run_sync = lambda work, then: waiting.append((work, then))
    produce(driver, "t", b"a")
    operator_actions.roll(driver.cluster, "t", 0)
    driver.advance(3000)
    ((work, then),) = waiting  # one at a time
    work()
    assert log.recovery_point == 0
    then(None)
    assert log.recovery_point == 1
    produce(driver, "t", b"b")
    operator_actions.roll(driver.cluster, "t", 0)
    driver.advance(1000)
    waiting[1][1](OSError(5, "Input/output error"))
    assert ("t", 0) in driver.cluster.brokers[1].offline


def test_a_recovery_point_that_falls_is_written_at_once() -> None:
    lasting = DurableDriver(log_flush_offset_checkpoint_interval_ms="1000")
    driver = lasting.driver
    create(driver, "t", [(1, 2, 3)], flush_messages="1")
    driver.hold(2, 3)
    produce(driver, "t", b"a", b"b", acks=1)
    driver.advance(1000)
    path = DIR / "broker-1" / "recovery-point-offset-checkpoint"
    assert lasting.files.read(path).decode() == "0\n1\nt 0 2\n"
    driver.cluster.controller.elect("t", 0, 2)
    driver.cluster.scheduler.run_due()
    assert driver.replica(1, "t").log.log_end_offset == 0, "it was truncated"
    assert lasting.files.read(path).decode() == "0\n1\nt 0 0\n"


def test_a_recovery_point_behind_what_is_left_of_the_log_is_written_at_the_start() -> None:
    lasting = DurableDriver(1, log_flush_offset_checkpoint_interval_ms="1000")
    create(lasting.driver, "t", [(1,)], flush_messages="1")
    produce(lasting.driver, "t", b"a", b"b")
    lasting.driver.advance(1000)
    path = DIR / "broker-1" / "recovery-point-offset-checkpoint"
    assert lasting.files.read(path).decode() == "0\n1\nt 0 2\n"
    lasting.kill()
    # With its inventory the log would be known to miss records, and stay offline.
    lasting.files.remove(DIR / "broker-1.inventory")
    log = lasting.files.open(lasting.path(1, "t") / f"{0:020d}.log")
    log.truncate(0)
    log.close()
    lasting.begin()
    assert lasting.driver.replica(1, "t").log.log_end_offset == 0
    assert lasting.files.read(path).decode() == "0\n1\nt 0 0\n"
