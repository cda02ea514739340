"""The inventory of a log: what `examine` finds missing, and what a log says of itself."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fencepost.storage.files.file_log import FileLog
from fencepost.storage.files.inventory import (
    Examination,
    LogInventory,
    MissingRecords,
    SegmentEntry,
    describe_missing,
    examine,
)
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.leader_epoch_cache import EpochEntry
from tests.harness.faulty_file_system import FaultyFileSystem
from tests.harness.logs import NOW, append
from tests.harness.records import batch
from tests.storage.files.mirror import DIRECTORY, reopen

CONFIG = LogConfig(index_interval_bytes=200)
FIRST, SECOND = (f"{base:020d}.log" for base in (0, 10))


class Rig:
    """Two segments of ten records each, and the inventory."""

    def __init__(self) -> None:
        self.files = FaultyFileSystem()
        self.log: FileLog = reopen(self.files, CONFIG, clean=True, now_ms=NOW).log
        for number in range(20):
            if number == 10:
                self.log.roll(NOW)
            append(self.log, batch(b"%02d" % number, producer=(4, 0, number)), epoch=number // 12)
        self.inventory = self.log.inventory(18)
        self.size = self.files.size(DIRECTORY / SECOND) // 10

    def examine(self, *, exact: bool = True, every_head: bool = False) -> Examination:
        return examine(self.files, DIRECTORY, self.inventory, exact=exact, every_head=every_head)

    def cut(self, name: str, size: int) -> None:
        file = self.files.open(DIRECTORY / name)
        file.truncate(size)
        file.close()


@pytest.fixture
def rig() -> Rig:
    return Rig()


def ranges(missing: Sequence[MissingRecords]) -> list[tuple[int, int]]:
    return [(each.start, each.end) for each in missing]


def test_a_log_says_what_is_there_of_it(rig: Rig) -> None:
    inventory = rig.inventory
    assert [entry[:2] for entry in inventory.segments] == [(0, 10 * rig.size), (10, 10 * rig.size)]
    assert (inventory.log_start_offset, inventory.log_end_offset) == (0, 20)
    assert (inventory.high_watermark, inventory.recovery_point, inventory.safe_until) == (18, 0, 18)
    assert inventory.epochs == (EpochEntry(0, 0), EpochEntry(1, 12))
    assert inventory.checksums.keys() == {
        f"{0:020d}.index",
        f"{0:020d}.timeindex",
        f"{10:020d}.snapshot",
    }
    assert not rig.examine()
    assert not rig.examine(every_head=True)


def test_a_segment_that_is_gone_misses_all_of_its_records(rig: Rig) -> None:
    rig.files.remove(DIRECTORY / FIRST)
    found = rig.examine()
    assert ranges(found.missing) == [(0, 10)]
    assert describe_missing(found.missing) == (
        f"offsets 0 to 9 are missing: {DIRECTORY / FIRST} is not there"
    )


@pytest.mark.parametrize(("batches", "start"), [(0, 10), (1, 11), (9, 19)])
def test_a_shorter_segment_misses_what_comes_behind_its_last_whole_batch(
    rig: Rig, batches: int, start: int
) -> None:
    for more in (0, 5):
        rig.cut(SECOND, batches * rig.size + 5 - more)
        assert ranges(rig.examine(exact=False).missing) == [(start, 20)]


def test_a_segment_may_have_grown_only_if_it_was_the_last(rig: Rig) -> None:
    append(rig.log, batch(b"more"))
    assert not rig.examine(exact=False)
    assert rig.examine(exact=True).grown == (10,)
    rig.log.roll(NOW)
    assert rig.examine(exact=False) == Examination()
    assert rig.examine(exact=True).surplus == (21,)


def test_a_segment_between_others_that_nobody_knows_is_surplus(rig: Rig) -> None:
    rig.files.write_atomic(DIRECTORY / f"{5:020d}.log", b"", sync=True)
    assert rig.examine(exact=False).surplus == (5,)


def test_a_segment_that_begins_with_another_batch_is_another_one(rig: Rig) -> None:
    one, other = (rig.files.read(DIRECTORY / name) for name in (FIRST, SECOND))
    rig.files.write_atomic(DIRECTORY / FIRST, other, sync=True)
    assert not rig.examine(), "a closed one is looked at when it is used"
    assert ranges(rig.examine(every_head=True).missing) == [(0, 10)]
    rig.files.write_atomic(DIRECTORY / SECOND, one, sync=True)
    found = rig.examine()
    assert ranges(found.missing) == [(10, 20)]
    assert found.foreign == (10,)


def test_before_segments_go_nothing_is_said_of_them() -> None:
    inventory = LogInventory(
        segments=(SegmentEntry(0, 9, 1), SegmentEntry(10, 9, 2), SegmentEntry(20, 9, 3)),
        log_start_offset=3,
        log_end_offset=30,
        high_watermark=28,
        recovery_point=20,
        cleaned_until=10,
    )
    kept = inventory.without([0, 10])
    assert kept.segments == (SegmentEntry(20, 9, 3),)
    assert (kept.log_end_offset, kept.high_watermark) == (30, 28)
    cut = inventory.without([20])
    assert (cut.log_end_offset, cut.high_watermark, cut.recovery_point) == (20, 20, 20)
    assert inventory.without([0, 10, 20]).log_end_offset == 0


def test_a_log_whose_segments_were_all_to_go_misses_nothing() -> None:
    """As a kill leaves it between the removal of the segments and the next line."""
    files = FaultyFileSystem()
    reopen(files, CONFIG, clean=True, now_ms=NOW)
    gone = LogInventory(segments=(SegmentEntry(0, 9, 1),), log_end_offset=9).without([0])
    for exact in (True, False):
        assert not examine(files, DIRECTORY, gone, exact=exact).missing
    assert not examine(files, DIRECTORY, gone, exact=False).surplus


def test_a_log_tells_before_it_loses_segments_and_when_segments_or_epochs_are_new(
    rig: Rig,
) -> None:
    told: list[object] = []

    def before_loss(bases: Sequence[int]) -> None:
        told.append((list(bases), rig.files.exists(DIRECTORY / FIRST)))

    rig.log.watch_files(before_loss, lambda: told.append("change"))
    rig.log.roll(NOW)
    rig.log.advance_log_start(12)
    rig.log.truncate_to(15)
    assert told == ["change", ([0], True), "change", ([20], False), ([10], False)]


@pytest.mark.parametrize("name", [f"{0:020d}.index", f"{0:020d}.timeindex"])
def test_an_index_that_is_not_as_it_was_written_is_rebuilt(rig: Rig, name: str) -> None:
    rig.log.close()
    inventory = rig.log.inventory(20)
    data = bytearray(rig.files.read(DIRECTORY / name))
    data[3] ^= 1
    rig.files.write_atomic(DIRECTORY / name, bytes(data), sync=True)
    rig.files.end_process()
    log = reopen(rig.files, CONFIG, clean=True, inventory=inventory).log
    assert log.read(7, max_bytes=1, upper_bound=20, min_one_batch=True).first_offset == 7
    assert name in log.rebuilt
