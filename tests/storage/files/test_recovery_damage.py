"""Damage to the files of a log, and its recovery."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from fencepost.storage.files.file_system import StorageFailure
from fencepost.storage.files.process_limits import ProcessLimits
from fencepost.storage.files.recovery import LogRecoveryReport, TruncatedSegment
from fencepost.storage.log.config import LogConfig
from tests.harness.faulty_file_system import FaultyFileSystem
from tests.harness.logs import NOW, T, append, records_of
from tests.harness.records import batch
from tests.storage.files.mirror import DIRECTORY, all_records, reopen

CONFIG = LogConfig(index_interval_bytes=200)
SIZE = len(batch((T, b"key", b"v" * 30)))
FIRST = "00000000000000000000"
SECOND = "00000000000000000010"


class Rig:
    """A log of twenty batches of one record in two segments, ten each."""

    def __init__(self) -> None:
        self.files = FaultyFileSystem()
        self.log, _ = reopen(self.files, CONFIG, clean=True, now_ms=NOW)
        for n in range(20):
            if n == 10:
                self.log.roll(NOW)
            data = batch((T + n, b"key", b"v" * 30), producer=(4, 0, n))
            append(self.log, data, epoch=n // 6)
        self.written = all_records(self.log)
        self.epochs = self.log.epoch_entries()
        self.producers = self.log.producers()

    def again(self, *, clean: bool, recovery_point: int = 0) -> LogRecoveryReport:
        self.files.end_process()
        self.log, recovery = reopen(
            self.files,
            CONFIG,
            clean=clean,
            now_ms=NOW,
            recovery_point=recovery_point,
            shared=ProcessLimits(recent_bytes=0, index_bytes=0, open_files=0),
        )
        return recovery

    def change(self, name: str, change: Callable[[bytearray], object]) -> None:
        path = DIRECTORY / name
        data = bytearray(self.files.read(path))
        change(data)
        self.files.write_atomic(path, data, sync=True)

    def has_all(self) -> None:
        assert all_records(self.log) == self.written == records_of(self.log)
        assert self.log.epoch_entries() == self.epochs
        assert [view.producer_id for view in self.log.producers()] == [4]
        assert self.log.producers()[0].batches[-1:] == self.producers[0].batches[-1:]
        for n in range(20):
            found = self.log.offset_for_timestamp(T + n)
            assert found is not None
            assert found.offset == n
            read = self.log.read(n, max_bytes=1, upper_bound=n + 1, min_one_batch=True)
            assert (read.first_offset, read.size) == (n, SIZE)
        latest = self.log.offset_of_max_timestamp()
        assert latest is not None
        assert (latest.timestamp, latest.offset) == (T + 19, 19)
        assert [view.max_timestamp for view in self.log.segments()][-1] == T + 19


@pytest.fixture
def rig() -> Rig:
    return Rig()


def flip(at: int, bit: int = 0x10) -> Callable[[bytearray], object]:
    def change(data: bytearray) -> None:
        data[at] ^= bit

    return change


# A torn tail.


@pytest.mark.parametrize("left", [1, 11, 60, 61, SIZE - 1])
def test_a_torn_tail_is_cut(rig: Rig, left: int) -> None:
    def tear(data: bytearray) -> None:
        del data[9 * SIZE + left :]

    rig.change(f"{SECOND}.log", tear)
    recovery = rig.again(clean=False)
    assert [(cut.name, cut.position, cut.size, cut.offset) for cut in recovery.cut] == [
        (f"{SECOND}.log", 9 * SIZE, left, 19)
    ]
    assert all_records(rig.log) == rig.written[:19]
    assert rig.files.size(DIRECTORY / f"{SECOND}.log") == 9 * SIZE
    assert append(rig.log).first_offset == 19


def test_zeros_behind_the_end_are_cut(rig: Rig) -> None:
    rig.change(f"{SECOND}.log", lambda data: data.extend(bytes(4096)))
    recovery = rig.again(clean=False)
    assert [(cut.position, cut.size) for cut in recovery.cut] == [(10 * SIZE, 4096)]
    rig.has_all()


def test_after_a_cut_segment_nothing_stays(rig: Rig) -> None:
    rig.change(f"{FIRST}.log", flip(4 * SIZE + 65))
    recovery = rig.again(clean=False)
    assert recovery.cut == [
        TruncatedSegment(
            f"{FIRST}.log",
            4 * SIZE,
            6 * SIZE,
            4,
            "the batch from offset 4 on fails its checksum",
        ),
        TruncatedSegment(f"{SECOND}.log", 0, 10 * SIZE, 10, "what was before it is cut"),
    ]
    assert all_records(rig.log) == rig.written[:4]
    assert rig.log.epoch_entries() == rig.epochs[:1]
    assert not [name for name in rig.files.names(DIRECTORY) if name.startswith(SECOND)]


@pytest.mark.parametrize("at", [0, 3, 8, 11, 16, 20, 22, 35, 43, 61, SIZE - 1])
def test_a_flipped_bit_behind_the_recovery_point_is_found(rig: Rig, at: int) -> None:
    rig.change(f"{SECOND}.log", flip(5 * SIZE + at))
    recovery = rig.again(clean=False, recovery_point=12)
    assert [cut.offset for cut in recovery.cut] == [15]
    assert all_records(rig.log) == rig.written[:15]


def test_a_flipped_bit_in_what_is_durable_costs_nothing_else(rig: Rig) -> None:
    rig.log.flush()
    rig.change(f"{SECOND}.log", flip(2 * SIZE + 65))
    recovery = rig.again(clean=False, recovery_point=20)
    assert not recovery.cut
    assert rig.log.log_end_offset == 20
    assert rig.log.read(15, max_bytes=1, upper_bound=20, min_one_batch=True).first_offset == 15


def test_durable_records_behind_a_damage_are_not_dropped(rig: Rig) -> None:
    def wipe(data: bytearray) -> None:
        data[2 * SIZE : 2 * SIZE + 61] = bytes(61)

    rig.change(f"{SECOND}.log", wipe)
    before = rig.files.read(DIRECTORY / f"{SECOND}.log")
    with pytest.raises(StorageFailure, match=f"t-0: .*no record batch at position {2 * SIZE}"):
        rig.again(clean=False, recovery_point=18)
    assert rig.files.read(DIRECTORY / f"{SECOND}.log") == before
    rig.again(clean=False, recovery_point=12)
    assert all_records(rig.log) == rig.written[:12]


def test_only_what_may_not_be_durable_is_validated(rig: Rig) -> None:
    assert rig.again(clean=False, recovery_point=14).checked_bytes == 10 * SIZE
    assert rig.again(clean=False, recovery_point=10).checked_bytes == 20 * SIZE
    rig.has_all()


# Indexes, snapshots, checkpoints.


def cut_by(size: int) -> Callable[[bytearray], object]:
    def change(data: bytearray) -> None:
        del data[len(data) - size :]

    return change


def empty(data: bytearray) -> None:
    data.clear()


def noise(data: bytearray) -> None:
    data[:] = bytes(range(7, 7 + 24))


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(
    "change",
    [
        None,
        empty,
        noise,
        cut_by(1),
        cut_by(12),
        cut_by(24),
        flip(3),
        flip(7),
        flip(3, 2),
        flip(11, 1),
        flip(-6),
        flip(-9),
    ],
)
@pytest.mark.parametrize("kind", ["index", "timeindex"])
@pytest.mark.parametrize("base", [FIRST, SECOND])
def test_an_index_is_made_anew(
    rig: Rig, base: str, kind: str, change: Callable[[bytearray], object] | None, clean: bool
) -> None:
    rig.log.close()
    name = f"{base}.{kind}"
    if change is None:
        rig.files.remove(DIRECTORY / name)
    else:
        rig.change(name, change)
    rig.again(clean=clean, recovery_point=20)
    rig.has_all()
    if change is None and clean:
        assert name in rig.log.rebuilt
    rig.log.close()
    recovery = rig.again(clean=True)
    rig.has_all()
    assert not recovery


@pytest.mark.parametrize("change", [None, empty, noise, cut_by(1), flip(12)])
@pytest.mark.parametrize("name", [f"{SECOND}.snapshot", "00000000000000000020.snapshot"])
def test_a_snapshot_is_made_anew(
    rig: Rig, name: str, change: Callable[[bytearray], object] | None
) -> None:
    rig.log.close()
    if change is None:
        rig.files.remove(DIRECTORY / name)
    else:
        rig.change(name, change)
    rig.again(clean=True)
    rig.has_all()
    rig.log.truncate_to(13)
    assert [view.batches[-1].last_offset for view in rig.log.producers()] == [12]
    rig.log.truncate_to(10)
    assert [view.batches[-1].last_offset for view in rig.log.producers()] == [9]
    assert rig.log.rebuilt == [name]


def test_without_any_snapshot_the_batches_tell(rig: Rig) -> None:
    rig.log.close()
    for name in rig.files.names(DIRECTORY):
        if name.endswith(".snapshot"):
            rig.files.remove(DIRECTORY / name)
    rig.again(clean=True)
    rig.has_all()
    assert rig.log.producers() == rig.producers


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("change", [None, empty, noise, cut_by(3)])
def test_the_epochs_are_found_again(
    rig: Rig, change: Callable[[bytearray], object] | None, clean: bool
) -> None:
    rig.log.close()
    if change is None:
        rig.files.remove(DIRECTORY / "leader-epoch-checkpoint")
    else:
        rig.change("leader-epoch-checkpoint", change)
    recovery = rig.again(clean=clean, recovery_point=20)
    assert recovery.rebuilt == ["leader-epoch-checkpoint"]
    rig.has_all()
    rig.log.close()
    assert not rig.again(clean=True).rebuilt


def test_epochs_from_before_a_truncation_are_forgotten(rig: Rig) -> None:
    old = rig.files.read(DIRECTORY / "leader-epoch-checkpoint")
    rig.log.truncate_to(11)
    append(rig.log, epoch=2)
    rig.log.flush()
    rig.files.write_atomic(DIRECTORY / "leader-epoch-checkpoint", old, sync=True)
    rig.again(clean=False, recovery_point=11)
    assert rig.log.epoch_entries() == ((0, 0), (1, 6), (2, 11))


# What unfinished deletions and compactions leave (Kafka's rules).


def copy(rig: Rig, old: str, new: str) -> None:
    rig.files.write_atomic(DIRECTORY / new, rig.files.read(DIRECTORY / old), sync=True)


def test_what_was_being_written_goes(rig: Rig) -> None:
    rig.log.close()
    before = rig.files.names(DIRECTORY)
    left = [
        f"{FIRST}.log.cleaned",
        f"{FIRST}.index.cleaned",
        f"{SECOND}.log.deleted",
        f"{SECOND}.log.swap",
        f"{SECOND}.snapshot.tmp",
        "00000000000000000077.index",
    ]
    for name in left:
        copy(rig, f"{FIRST}.log", name)
    recovery = rig.again(clean=True)
    assert sorted(recovery.tidied) == sorted(left)
    assert set(rig.files.names(DIRECTORY)) == set(before) - {"00000000000000000020.snapshot"}
    rig.has_all()


def test_a_swap_is_finished(rig: Rig) -> None:
    rig.log.close()
    copy(rig, f"{FIRST}.log", f"{FIRST}.log.swap")
    rig.change(
        f"{FIRST}.log.swap", lambda data: data.extend(rig.files.read(DIRECTORY / f"{SECOND}.log"))
    )
    recovery = rig.again(clean=False)
    assert f"{FIRST}.log.swap" in recovery.tidied
    assert [view.base_offset for view in rig.log.segments()] == [0]
    rig.has_all()


# The log start.


def test_the_first_segment_counts_where_the_checkpoint_is_older(rig: Rig) -> None:
    rig.log.advance_log_start(10)
    rig.log.close()
    rig.again(clean=True)
    assert rig.log.log_start_offset == 10


def test_a_log_that_ends_before_its_start_begins_there(rig: Rig) -> None:
    rig.log.close()
    log, recovery = reopen(rig.files, CONFIG, clean=True, now_ms=NOW, log_start_offset=25)
    assert [cut.name for cut in recovery.cut] == [f"{FIRST}.log", f"{SECOND}.log"]
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (25, 25, 0)
    assert append(log).first_offset == 25


def test_of_a_tiered_log_the_checkpoint_counts(rig: Rig) -> None:
    config = replace(CONFIG, remote_storage_enable=True)
    rig.log.close()
    log, _ = reopen(rig.files, config, clean=True, now_ms=NOW)
    log.delete_local(10, now_ms=None)
    log.close()
    log, _ = reopen(rig.files, config, clean=True, now_ms=NOW)
    assert (log.log_start_offset, log.local_log_start_offset) == (0, 10)


def test_an_empty_file_is_an_empty_segment(rig: Rig) -> None:
    rig.change(f"{SECOND}.log", empty)
    assert not rig.again(clean=False).cut
    assert rig.log.log_end_offset == 10
    assert all_records(rig.log) == rig.written[:10]
