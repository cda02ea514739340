"""``file.delete.delay.ms`` and its broker config: how long deleted files stay."""

from __future__ import annotations

from typing import Final

from fencepost.broker.data_dir.directory import open_data_dir
from fencepost.broker.node.cluster import Conformance
from tests.harness.driver import Driver
from tests.harness.driver_requests import create, produce
from tests.harness.durable_driver import DIR, DurableDriver
from tests.harness.faulty_file_system import FaultyFileSystem

BROKER: Final = DIR / "broker-1"
DELAY: Final = "5000"


def folders(files: FaultyFileSystem) -> list[str]:
    """The directories of logs: ``t-0``, and ``t-0.ID-delete`` without its id."""
    found = [name for name in files.names(BROKER) if name.startswith("t-")]
    return sorted(name.partition(".")[0] + name[-7:] * ("delete" in name) for name in found)


def deleted(files: FaultyFileSystem) -> list[str]:
    return sorted(name for name in files.names(BROKER / "t-0") if name.endswith(".deleted"))


def three_segments(lasting: DurableDriver, **configs: str) -> Driver:
    """A topic of three segments, of which retention takes two when the clock moves on."""
    driver = lasting.driver
    create(driver, "t", ((1,),), retention_bytes="1", **configs)
    log = driver.cluster.brokers[1].replicas["t", 0].log
    for _ in range(2):
        produce(driver, "t", b"v")
        log.roll(driver.clock.now_ms())
    produce(driver, "t", b"v")
    return driver


def test_a_deleted_topics_directory_stays_for_the_brokers_delay() -> None:
    lasting = DurableDriver(1, log_segment_delete_delay_ms=DELAY)
    driver = lasting.driver
    create(driver, "t")
    produce(driver, "t", b"v")
    driver.cluster.controller.delete_topics(["t"])
    driver.advance(4999)
    assert folders(lasting.files) == ["t-0-delete"]
    create(driver, "t")
    assert folders(lasting.files) == ["t-0", "t-0-delete"]
    driver.advance(1)
    assert folders(lasting.files) == ["t-0"]


def test_deleted_segments_stay_for_the_topics_delay() -> None:
    lasting = DurableDriver(1, log_retention_check_interval_ms="1000")
    driver = three_segments(lasting, file_delete_delay_ms=DELAY)
    driver.advance(1000)
    names = deleted(lasting.files)
    assert "00000000000000000000.log.deleted" in names
    assert "00000000000000000001.index.deleted" in names
    assert "00000000000000000002.log" in lasting.files.names(BROKER / "t-0")
    driver.advance(4999)
    assert deleted(lasting.files) == names
    driver.advance(1)
    assert deleted(lasting.files) == []


def test_without_a_delay_files_go_at_once() -> None:
    lasting = DurableDriver(1, log_retention_check_interval_ms="1000")
    driver = three_segments(lasting)
    driver.advance(1000)
    assert deleted(lasting.files) == []
    driver.cluster.controller.delete_topics(["t"])
    driver.cluster.scheduler.run_due()
    assert folders(lasting.files) == []


def test_a_start_removes_what_the_delay_had_left() -> None:
    for end in (DurableDriver.stop, DurableDriver.kill):
        lasting = DurableDriver(1, log_retention_check_interval_ms="1000")
        driver = three_segments(lasting, file_delete_delay_ms=DELAY)
        driver.advance(1000)
        end(lasting)
        assert deleted(lasting.files)
        lasting.begin()
        assert deleted(lasting.files) == []


def test_with_conformance_apache_the_delay_is_kafkas() -> None:
    files = FaultyFileSystem()
    data_dir = open_data_dir(files, DIR, broker_ids=[1], sync=False)
    driver = Driver(1, {}, Conformance.APACHE, data_dir=data_dir)
    create(driver, "t")
    driver.cluster.controller.delete_topics(["t"])
    driver.advance(59_999)
    assert folders(files) == ["t-0-delete"]
    driver.advance(1)
    assert folders(files) == []
