"""A broker's inventory of its logs: the file, and when it is written."""

from __future__ import annotations

from contextlib import suppress
from uuid import UUID

import pytest
from msgspec.structs import replace

from fencepost.broker.data_dir.log_inventory import (
    VERSION,
    ClusterPosition,
    CorruptInventory,
    InventoryFile,
    InventoryRow,
)
from fencepost.broker.data_dir.metadata_log import encode_line
from fencepost.broker.node import operator_actions
from fencepost.storage.files.inventory import LogInventory, SegmentEntry
from fencepost.storage.log.leader_epoch_cache import EpochEntry
from tests.harness.crash_model import Operation, PowerOff
from tests.harness.driver import content
from tests.harness.driver_requests import create, produce
from tests.harness.durable_driver import DIR, DurableDriver
from tests.harness.faulty_file_system import FaultyFileSystem
from tests.harness.logs import T

PATH = DIR / "broker-1.inventory"
ROW = InventoryRow(
    UUID(int=7),
    LogInventory(
        segments=(SegmentEntry(0, 100, 5), SegmentEntry(10, 50, None)),
        log_start_offset=2,
        log_end_offset=15,
        high_watermark=14,
        recovery_point=10,
        cleaned_until=3,
        epochs=(EpochEntry(0, 0), EpochEntry(2, 12)),
        checksums={"a.index": 9},
    ),
)
GROWN = ROW._replace(
    inventory=replace(
        ROW.inventory,
        segments=(SegmentEntry(0, 100, 5), SegmentEntry(10, 80, 6), SegmentEntry(20, 0, None)),
        log_end_offset=20,
        checksums={"a.index": 9, "b.index": 10},
    )
)


def inventory(files: FaultyFileSystem, *, cluster_id: str = "c") -> InventoryFile:
    return InventoryFile(
        files,
        PATH,
        broker_id=1,
        cluster_id=lambda: cluster_id,
        position=ClusterPosition(starts=3, version=8),
        sync=False,
    )


@pytest.fixture
def files() -> FaultyFileSystem:
    files = FaultyFileSystem()
    files.make_dirs(DIR)
    return files


def reread(files: FaultyFileSystem) -> InventoryFile:
    files.end_process()
    file = inventory(files)
    file.read()
    return file


def test_rows_are_there_again_and_say_only_what_is_new(files: FaultyFileSystem) -> None:
    file = inventory(files)
    file.begin()
    file.put(("t", 0), ROW)
    file.flush()
    before = files.size(PATH)
    file.put(("t", 0), GROWN)
    file.flush()
    added = files.read(PATH)[before:]
    assert b'[[10,80,6],[20,0,null]],{"b.index":10}' in added
    assert b"a.index" not in added
    file.put(("t", 0), GROWN)
    file.flush()
    assert files.size(PATH) == before + len(added), "nothing is new"
    again = reread(files)
    assert again.rows == {("t", 0): GROWN}
    assert (again.found.starts, again.found.version) == (3, 8)


def test_what_goes_is_written_before_it_does(files: FaultyFileSystem) -> None:
    file = inventory(files)
    file.begin()
    file.put(("t", 0), ROW)
    file.put(("u", 1), ROW)
    file.before_loss(("t", 0), [0])
    file.remove(("u", 1))
    again = reread(files)
    assert again.rows.keys() == {("t", 0)}
    assert again.rows["t", 0].inventory.segments == (SegmentEntry(10, 50, None),)


def test_a_rewritten_file_still_says_which_segments_were_about_to_go(
    files: FaultyFileSystem,
) -> None:
    file = inventory(files)
    file.begin()
    file.put(("t", 0), ROW)
    file.before_loss(("t", 0), [0])
    lost = reread(files).rows
    file.rewrite()
    assert reread(files).rows == lost
    assert lost["t", 0].inventory.unsettled == (0,)
    file.put(("t", 0), ROW)
    file.flush()
    assert reread(files).rows == {("t", 0): ROW}, "it is settled"


def test_a_log_is_closed_until_the_broker_starts(files: FaultyFileSystem) -> None:
    file = inventory(files)
    file.put(("t", 0), ROW._replace(is_closed=True))
    file.rewrite()
    again = reread(files)
    assert again.rows["t", 0].is_closed
    again.begin()
    assert not reread(files).rows["t", 0].is_closed


def test_a_line_that_is_not_whole_at_the_end_is_left_out(files: FaultyFileSystem) -> None:
    file = inventory(files)
    file.begin()
    file.put(("t", 0), ROW)
    file.flush()
    file.put(("t", 0), GROWN)
    file.flush()
    files.write_atomic(PATH, files.read(PATH)[:-1], sync=True)
    again = reread(files)
    assert again.rows == {("t", 0): ROW}
    again.begin()
    assert reread(files).rows == {("t", 0): ROW}, "what comes next is on a line of its own"


HEAD = encode_line([["inventory", VERSION, "c", 1]])


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "no whole line"),
        (b"nonsense\n", "no whole line"),
        (encode_line([["begun"]]), "does not begin with the version"),
        (encode_line([["inventory", 99, "c", 1]]), "has version 99, and 1 is the one"),
        (encode_line([["inventory", VERSION, "d", 1]]), "is of broker 1 of cluster d"),
        (encode_line([["inventory", VERSION, "c", 2]]), "is of broker 2"),
        (HEAD + b"damaged\n" + HEAD, "line 2 is damaged"),
        (HEAD + encode_line([["nonsense"]]), "no record that is known"),
        (HEAD + encode_line([["log", "t", 0, "x", 0, 1, [], [], [], {}]]), "no record that is"),
        (HEAD + encode_line([["log", "t", 0, "0" * 32, 0, 1, [-1] * 5, [], [], {}]]), "no record"),
        (HEAD + encode_line([["losing", "t", 0, [1]]]), "no record that is known"),
        (HEAD + encode_line([["at", "x", 1]]), "no record that is known"),
    ],
)
def test_what_is_no_inventory_is_found_out(
    files: FaultyFileSystem, data: bytes, problem: str
) -> None:
    files.write_atomic(PATH, data, sync=True)
    with pytest.raises(CorruptInventory, match=problem):
        inventory(files).read()


def test_a_failing_disk_is_told_and_all_is_written_later(files: FaultyFileSystem) -> None:
    file, told = inventory(files), list[str]()
    file.report_problem = told.append
    file.begin()
    files.fail(Operation.WRITE, under=PATH)
    file.put(("t", 0), ROW)
    file.flush()
    assert len(told) == 1
    file.put(("u", 0), ROW)
    file.flush()
    assert reread(files).rows.keys() == {("t", 0), ("u", 0)}


def test_produce_alone_writes_nothing_until_a_checkpoint_is_due() -> None:
    lasting = DurableDriver(1)
    create(lasting.driver, "t", [(1,)])
    begun = lasting.files.size(PATH)
    produce(lasting.driver, "t", b"a")
    before = lasting.files.size(PATH)
    assert before > begun, "a segment is known by its first batch"
    for _ in range(10):
        produce(lasting.driver, "t", b"a")
    assert lasting.files.size(PATH) == before
    lasting.driver.advance(5_000)
    written = lasting.files.read(PATH)[before:]
    assert written.count(b"\n") == 1
    lasting.driver.advance(5_000)
    assert lasting.files.size(PATH) == before + len(written)
    operator_actions.roll(lasting.driver.cluster, "t", 0)
    lasting.driver.cluster.scheduler.run_due()
    assert lasting.files.read(PATH)[before + len(written) :].count(b"\n") == 1


def test_retention_is_no_loss_at_whatever_moment_the_process_ends() -> None:
    for operations in range(12):
        lasting = DurableDriver(1)
        create(lasting.driver, "t", [(1,)], retention_bytes="1")
        for value in (b"a", b"b", b"c"):
            produce(lasting.driver, "t", value)
            operator_actions.roll(lasting.driver.cluster, "t", 0)
        lasting.driver.advance(5_000)
        lasting.files.fail(Operation.CHANGE, after=operations, times=None, under=DIR / "broker-1")
        log = lasting.driver.leader("t").log
        try:
            log.delete_expired(lasting.driver.clock.now_ms(), 3)
        except Exception as error:  # noqa: BLE001
            assert "t-0" in str(error)
        lasting.files.heal()
        lasting.kill()
        driver = lasting.begin()
        kinds = [event.kind for event in driver.cluster.events.at_start]
        assert "records_missing" not in kinds
        assert driver.partition("t").leader == 1


def test_compaction_is_no_loss_at_whatever_moment_the_process_ends() -> None:
    operations, dropped = 0, 0
    while not dropped:
        lasting = DurableDriver(1)
        create(lasting.driver, "t", [(1,)], cleanup_policy="compact")
        for value in (b"a", b"b", b"c"):  # of one key
            produce(lasting.driver, "t", value)
            operator_actions.roll(lasting.driver.cluster, "t", 0)
        lasting.driver.advance(5_000)
        lasting.files.power_off_after(operations)
        with suppress(PowerOff):
            dropped = lasting.driver.leader("t").log.compact(T, 3, at_once=True)
        lasting.kill()
        driver = lasting.begin()
        kinds = [event.kind for event in driver.cluster.events.at_start]
        assert "records_missing" not in kinds, operations
        left = [value for _, _, value in content(driver.replica(1, "t"))]
        assert left in ([b"a", b"b", b"c"], [b"c"]), operations
        operations += 1
    assert operations > 10
