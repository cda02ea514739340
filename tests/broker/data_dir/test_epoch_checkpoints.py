"""When the leader epochs of a log are written to its files."""

from __future__ import annotations

from pathlib import PurePath
from typing import Final

from fencepost.storage.formats.checkpoints import decode_epochs
from fencepost.storage.formats.file_names import LEADER_EPOCHS
from fencepost.storage.log.leader_epoch_cache import EpochEntry
from tests.harness.crash_model import Operation
from tests.harness.driver_requests import create, produce
from tests.harness.durable_driver import DIR, ENDS, DurableDriver, End
from tests.harness.records import batch

IDLE: Final = 40


def epochs_file(index: int) -> PurePath:
    return DIR / "broker-2" / f"t-{index}" / LEADER_EPOCHS


def written(lasting: DurableDriver) -> list[EpochEntry]:
    return list(decode_epochs(lasting.files.read(epochs_file(0))))


def elected() -> DurableDriver:
    """Broker 2 leads in epoch 1 from offset 1 on, and the turn of its election has not ended."""
    lasting = DurableDriver()
    create(lasting.driver, "t", [(1, 2, 3)])
    produce(lasting.driver, "t", b"a")
    lasting.driver.cluster.controller.elect("t", 0, 2)
    return lasting


def test_an_epoch_without_a_record_is_written_in_a_later_turn() -> None:
    lasting = elected()
    assert written(lasting) == [EpochEntry(0, 0)]
    lasting.driver.cluster.scheduler.run_due()
    assert written(lasting) == [EpochEntry(0, 0), EpochEntry(1, 1)]


def test_an_epoch_is_written_with_its_first_record() -> None:
    lasting = elected()
    replica = lasting.driver.replica(2, "t")
    replica.append(batch(b"b"), now_ms=lasting.driver.cluster.scheduler.now_ms())
    assert written(lasting) == [EpochEntry(0, 0), EpochEntry(1, 1)]


@ENDS
def test_a_process_may_end_before_an_epoch_without_a_record_is_written(end: End) -> None:
    lasting = elected()
    lasting.driver.replica(2, "t").log.roll(lasting.driver.cluster.scheduler.now_ms())
    lasting.log_dir(2).checkpoints.write_log_starts()  # and the inventory
    end(lasting)
    driver = lasting.begin()
    epoch = driver.partition("t").leader_epoch
    assert epoch > 1
    assert driver.leader("t").log.epoch_entries() == (EpochEntry(0, 0), EpochEntry(epoch, 1))
    assert not [report.rebuilt for _, report in lasting.log_dir(2).recoveries if report.rebuilt]
    produce(driver, "t", b"b")
    assert written(lasting) == [EpochEntry(0, 0), EpochEntry(epoch, 1)]


def test_a_log_whose_epochs_can_not_be_written_later_goes_offline() -> None:
    lasting = elected()
    lasting.files.fail(Operation.OPEN, under=epochs_file(0).parent, times=None)
    lasting.driver.cluster.scheduler.run_due()
    assert lasting.driver.partition("t").failed == (2,)


def test_a_start_does_not_write_the_epochs_of_idle_partitions() -> None:
    lasting = DurableDriver()
    create(lasting.driver, "t", [(2,)] * IDLE)
    lasting.kill()
    before = [lasting.files.read(epochs_file(index)) for index in range(IDLE)]
    lasting.begin()
    after = [lasting.files.read(epochs_file(index)) for index in range(IDLE)]
    changed = [index for index in range(IDLE) if before[index] != after[index]]
    assert len(changed) < IDLE // 2, "the first ones are, in the turn that ends the start"
