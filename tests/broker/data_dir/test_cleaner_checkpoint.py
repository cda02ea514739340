"""When a data directory says up to where compaction has been."""

from __future__ import annotations

from fencepost.storage.formats.checkpoints import decode_offsets
from fencepost.storage.formats.file_names import CLEANER_OFFSETS
from tests.harness.driver_requests import create
from tests.harness.durable_driver import DIR, DurableDriver
from tests.harness.records import batch


def test_it_is_written_when_a_log_has_been_cleaned() -> None:
    """As Kafka's log cleaner does: a process that is killed a moment later leaves it."""
    lasting = DurableDriver()
    driver = lasting.driver
    create(driver, "t", [(1,)], cleanup_policy="compact", min_cleanable_dirty_ratio="0.01")
    log = driver.replica(1, "t").log
    for value in (b"a", b"b"):
        driver.replica(1, "t").append(batch(value), now_ms=driver.cluster.scheduler.wall_ms())
        log.roll(driver.cluster.scheduler.now_ms())
    driver.cluster.scheduler.run_due()
    log.compact(driver.cluster.scheduler.wall_ms(), driver.replica(1, "t").high_watermark)
    driver.cluster.scheduler.run_due()
    lasting.kill()
    written = decode_offsets(lasting.files.read(DIR / "broker-1" / CLEANER_OFFSETS))
    assert written == {("t", 0): 2}
