"""A file system in memory fails as it is told, and a crash leaves of it what may be left."""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable
from pathlib import PurePath
from random import Random

import pytest

from tests.harness.crash_model import Operation, PowerOff
from tests.harness.faulty_file_system import FaultyFileSystem, fails_with

ROOT = PurePath("/")
LOG, OTHER = ROOT / "log", ROOT / "other"


@pytest.fixture
def files() -> FaultyFileSystem:
    return FaultyFileSystem()


# -- failing --------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_the_next_write_fails_and_no_other(files: FaultyFileSystem, error: int) -> None:
    file = files.open(LOG)
    file.append([b"before"])
    files.fail(Operation.WRITE, error)
    with fails_with(error):
        file.append([b"lost"])
    assert (file.size, files.read(LOG)) == (6, b"before")
    file.append([b", after"])
    assert files.read(LOG) == b"before, after"


def test_the_nth_and_the_next_fail(files: FaultyFileSystem) -> None:
    file = files.open(LOG)
    files.fail(Operation.WRITE, after=2, times=2)
    for number in range(6):
        try:
            file.append([b"%d" % number])
        except OSError as error:
            assert (error.errno, error.filename) == (errno.EIO, str(LOG))
    assert files.read(LOG) == b"0145"


def test_all_fail_until_it_is_healed(files: FaultyFileSystem) -> None:
    file = files.open(LOG)
    files.fail(Operation.WRITE, errno.ENOSPC, times=None)
    for _ in range(3):
        with fails_with(errno.ENOSPC):
            file.append([b"lost"])
        with fails_with(errno.ENOSPC):
            file.truncate(0)
    file.sync()
    files.heal()
    file.append([b"kept"])
    assert files.read(LOG) == b"kept"


def test_only_what_lies_below_fails(files: FaultyFileSystem) -> None:
    for name in ("a-0", "a-01"):
        files.make_dirs(ROOT / name)
    bad, good = files.open(ROOT / "a-0" / "file"), files.open(ROOT / "a-01" / "file")
    files.fail(Operation.WRITE, times=None, under=ROOT / "a-0")
    good.append([b"data"])
    with fails_with(errno.EIO):
        bad.append([b"data"])


def test_each_of_two_faults_counts_for_itself(files: FaultyFileSystem) -> None:
    file = files.open(LOG)
    files.fail(Operation.WRITE, errno.ENOSPC)
    files.fail(Operation.SYNC, errno.EIO)
    with fails_with(errno.EIO):
        file.sync()
    with fails_with(errno.ENOSPC):
        file.append([b"lost"])
    file.append([b"kept"])
    file.sync()


@pytest.mark.parametrize(
    ("operation", "use"),
    [
        (Operation.READ, lambda files: files.read(LOG)),
        (Operation.READ, lambda files: files.open(LOG).read(0, 1)),
        (Operation.WRITE, lambda files: files.open(LOG).append([b"new"])),
        (Operation.WRITE, lambda files: files.open(LOG).truncate(0)),
        (Operation.WRITE, lambda files: files.write_atomic(LOG, b"new", sync=False)),
        (Operation.SYNC, lambda files: files.open(LOG).sync()),
        (Operation.SYNC, lambda files: files.write_atomic(LOG, b"new", sync=True)),
        (Operation.SYNC, lambda files: files.sync_dir(ROOT)),
        (Operation.CHANGE, lambda files: files.open(OTHER)),
        (Operation.CHANGE, lambda files: files.lock(OTHER)),
        (Operation.CHANGE, lambda files: files.rename(LOG, OTHER)),
        (Operation.CHANGE, lambda files: files.remove(LOG)),
        (Operation.CHANGE, lambda files: files.make_dirs(OTHER)),
        (Operation.CHANGE, lambda files: files.write_atomic(LOG, b"new", sync=True)),
    ],
)
def test_what_fails_does_nothing(
    files: FaultyFileSystem, operation: Operation, use: Callable[[FaultyFileSystem], object]
) -> None:
    files.write_atomic(LOG, b"data", sync=False)
    files.fail(operation)
    with fails_with(errno.EIO):
        use(files)
    assert files.names(ROOT) == ("log",)
    assert files.read(LOG) == b"data"
    use(files)


def test_torn_bytes_lie_behind_the_size(files: FaultyFileSystem) -> None:
    file = files.open(LOG)
    file.append([b"before"])
    files.fail(Operation.WRITE, errno.ENOSPC, torn=4)
    with fails_with(errno.ENOSPC):
        file.append([b"012345"])
    assert file.size == 6
    assert files.read(LOG) == b"before0123"
    with fails_with(errno.EIO):
        files.open(OTHER).read(0, 1)
    file.append([b"x"])
    assert file.size == 7
    assert files.read(LOG) == b"beforex123"


def test_times_are_told_by_its_clock() -> None:
    now = 5
    files = FaultyFileSystem(lambda: now)
    file = files.open(LOG)
    now = 7
    assert files.modified_ms(LOG) == 5
    file.append([b""])
    assert files.modified_ms(LOG) == 5
    file.append([b"data"])
    assert files.modified_ms(LOG) == 7
    now = 9
    file.truncate(0)
    assert files.modified_ms(LOG) == 9


# -- what a crash leaves at least ----------------------------------------------------------------


def durable(files: FaultyFileSystem, path: PurePath, data: bytes) -> None:
    files.write_atomic(path, data, sync=True)


def test_what_is_not_synced_is_lost(files: FaultyFileSystem) -> None:
    durable(files, LOG, b"before")
    files.open(LOG).append([b", after"])
    files.open(OTHER).append([b"data"])
    files.crash()
    assert files.names(ROOT) == ("log",)
    assert files.read(LOG) == b"before"


def test_what_is_synced_stays(files: FaultyFileSystem) -> None:
    durable(files, LOG, b"before")
    file = files.open(LOG)
    file.append([b", after"])
    file.sync()
    file.append([b", lost"])
    files.crash()
    files.crash()
    assert files.read(LOG) == b"before, after"


def test_a_name_is_durable_only_with_its_directory(files: FaultyFileSystem) -> None:
    file = files.open(LOG)
    file.append([b"data"])
    file.sync()
    files.crash()
    assert files.names(ROOT) == ()
    files.open(LOG).append([b"data"])
    files.sync_dir(ROOT)
    files.crash()
    assert files.read(LOG) == b""


def test_a_directory_is_durable_only_with_the_one_above(files: FaultyFileSystem) -> None:
    files.make_dirs(ROOT / "a" / "b")
    durable(files, ROOT / "a" / "b" / "file", b"data")
    files.sync_dir(ROOT / "a")
    files.crash()
    assert files.names(ROOT) == ()
    files.make_dirs(ROOT / "a" / "b")
    durable(files, ROOT / "a" / "b" / "file", b"data")
    files.sync_dir(ROOT / "a")
    files.sync_dir(ROOT)
    files.crash()
    assert files.read(ROOT / "a" / "b" / "file") == b"data"


def test_a_cut_is_durable_only_when_synced(files: FaultyFileSystem) -> None:
    durable(files, LOG, b"0123456789")
    file = files.open(LOG)
    file.truncate(4)
    file.append([b"abcdefgh"])
    file.truncate(6)
    file.truncate(2)
    file.append([b"x"])
    files.crash()
    assert files.read(LOG) == b"0123456789"
    file = files.open(LOG)
    file.truncate(4)
    file.sync()
    file.append([b"abc"])
    files.crash()
    assert files.read(LOG) == b"0123"


def test_what_is_written_over_comes_back(files: FaultyFileSystem) -> None:
    durable(files, LOG, b"before")
    file = files.open(LOG)
    files.fail(Operation.WRITE, torn=4)
    with fails_with(errno.EIO):
        file.append([b"0123"])
    file.sync()
    file.append([b"ab"])
    assert files.read(LOG) == b"beforeab23"
    files.crash()
    assert files.read(LOG) == b"before0123"


def test_a_rename_is_durable_only_with_its_directory(files: FaultyFileSystem) -> None:
    durable(files, LOG, b"new")
    durable(files, OTHER, b"old")
    files.rename(LOG, OTHER)
    files.crash()
    assert (files.read(LOG), files.read(OTHER)) == (b"new", b"old")
    files.rename(LOG, OTHER)
    files.sync_dir(ROOT)
    files.crash()
    assert files.names(ROOT) == ("other",)
    assert files.read(OTHER) == b"new"


def test_what_is_removed_comes_back(files: FaultyFileSystem) -> None:
    files.make_dirs(ROOT / "a")
    files.sync_dir(ROOT)
    durable(files, ROOT / "a" / "file", b"data")
    files.remove_tree(ROOT / "a")
    files.crash()
    assert files.read(ROOT / "a" / "file") == b"data"
    files.remove(ROOT / "a" / "file")
    files.sync_dir(ROOT / "a")
    files.crash()
    assert files.names(ROOT / "a") == ()


def test_syncing_one_directory_is_not_syncing_another(files: FaultyFileSystem) -> None:
    for name in ("a", "b"):
        files.make_dirs(ROOT / name)
    files.sync_dir(ROOT)
    for name in ("a", "b"):
        files.open(ROOT / name / "file")
    files.sync_dir(ROOT / "b")
    files.crash()
    assert files.names(ROOT / "a") == ()
    assert files.names(ROOT / "b") == ("file",)


def test_a_sync_that_failed_made_nothing_durable(files: FaultyFileSystem) -> None:
    durable(files, LOG, b"before")
    file = files.open(LOG)
    file.append([b", after"])
    files.open(OTHER)
    files.fail(Operation.SYNC, times=2)
    with fails_with(errno.EIO):
        file.sync()
    with fails_with(errno.EIO):
        files.sync_dir(ROOT)
    files.crash()
    assert files.names(ROOT) == ("log",)
    assert files.read(LOG) == b"before"


@pytest.mark.parametrize("sync", [FaultyFileSystem.settle, FaultyFileSystem.sync_all])
def test_everything_is_made_durable(
    files: FaultyFileSystem, sync: Callable[[FaultyFileSystem], None]
) -> None:
    files.make_dirs(ROOT / "a" / "b")
    files.open(ROOT / "a" / "b" / "file").append([b"data"])
    sync(files)
    files.crash()
    assert files.read(ROOT / "a" / "b" / "file") == b"data"


def test_syncing_everything_fails_like_any_sync(files: FaultyFileSystem) -> None:
    files.open(LOG)
    files.fail(Operation.SYNC)
    with fails_with(errno.EIO):
        files.sync_all()
    files.power_off_after(0)
    with pytest.raises(PowerOff):
        files.sync_all()
    files.crash()
    assert files.names(ROOT) == ()


def test_open_files_and_locks_end_with_the_process(files: FaultyFileSystem) -> None:
    file, lock = files.open(LOG), files.lock(OTHER)
    file.append([b"data"])
    files.end_process()
    assert files.read(LOG) == b"data"
    for use in (lambda: file.append([b"x"]), lambda: file.read(0, 1), file.sync):
        with fails_with(errno.EBADF):
            use()
    files.lock(OTHER)
    lock.release()
    with pytest.raises(BlockingIOError):
        files.lock(OTHER)


# -- what it may leave ---------------------------------------------------------------------------


Left = tuple[tuple[str, bytes], ...]
"""Names and bytes of the files."""


def outcomes(use: Callable[[FaultyFileSystem], object], seeds: int = 300) -> Counter[Left]:
    """What crashes of all these seeds leave, and how often."""
    found: Counter[Left] = Counter()
    for seed in range(seeds):
        files = FaultyFileSystem()
        use(files)
        files.crash(Random(seed))
        left = everything(files)
        files.crash()
        assert everything(files) == left
        found[left] += 1
    return found


def everything(files: FaultyFileSystem) -> Left:
    return tuple((name, files.read(ROOT / name)) for name in files.names(ROOT))


def append(files: FaultyFileSystem) -> None:
    durable(files, LOG, b"01")
    files.open(LOG).append([b"ab"])


def test_a_crash_may_leave_a_part_of_what_was_written() -> None:
    left = {files[0][1] for files in outcomes(append)}
    assert left == {b"01", b"01a", b"01ab", b"01\0", b"01\0\0"}


def test_torn_bytes_are_sectors() -> None:
    def write(files: FaultyFileSystem) -> None:
        durable(files, LOG, b"x" * 300)
        files.open(LOG).append([b"x" * 2000])

    torn = [data for ((_, data),) in outcomes(write) if b"\0" in data]
    assert torn
    for data in torn:
        start, stop = data.index(0), data.rindex(0) + 1
        assert data[start:stop] == bytes(stop - start)
        assert start == 300 or start % 512 == 0
        assert stop == len(data) or stop % 512 == 0
        assert stop - start <= 512
    assert len({data.index(0) for data in torn}) > 3


def test_a_crash_may_leave_a_cut_or_not() -> None:
    def cut(files: FaultyFileSystem) -> None:
        durable(files, LOG, b"0123")
        files.open(LOG).truncate(1)

    left = outcomes(cut)
    assert set(left) == {(("log", b"0123"),), (("log", b"0"),)}
    assert min(left.values()) > 100


def test_names_survive_up_to_some_moment() -> None:
    def rename(files: FaultyFileSystem) -> None:
        durable(files, LOG, b"new")
        durable(files, OTHER, b"old")
        files.rename(LOG, OTHER)
        files.open(ROOT / "third")
        files.remove(OTHER)

    both, one = (("log", b"new"), ("other", b"old")), ("other", b"new")
    assert set(outcomes(rename)) == {both, (one,), (one, ("third", b"")), (("third", b""),)}


def test_a_crash_of_the_same_seed_leaves_the_same() -> None:
    def write(files: FaultyFileSystem) -> None:
        for number in range(20):
            files.open(ROOT / f"file-{number}").append([bytes([number + 1]) * 999])

    def left(seed: int) -> Left:
        files = FaultyFileSystem()
        write(files)
        files.crash(Random(seed))
        return everything(files)

    assert [left(seed) for seed in range(20)] == [left(seed) for seed in range(20)]
    assert len({left(seed) for seed in range(20)}) > 10


def test_what_is_synced_survives_every_seed() -> None:
    assert set(outcomes(lambda files: durable(files, LOG, b"data"))) == {(("log", b"data"),)}


# -- ending anywhere -----------------------------------------------------------------------------


def test_the_power_goes_off_between_operations(files: FaultyFileSystem) -> None:
    durable(files, LOG, b"old")
    seen = []
    for operations in range(7):
        files.power_off_after(operations)
        try:
            files.write_atomic(LOG, b"new", sync=True)
        except PowerOff:
            for use in (lambda: files.read(LOG), lambda: files.exists(LOG), files_of(files)):
                with pytest.raises(PowerOff):
                    use()
        else:
            seen.append(b"written")
        files.crash()
        files.open(LOG).sync()
        seen.append(files.read(LOG))
    # made, cut, written, synced, renamed and its name synced
    assert seen == [b"old"] * 6 + [b"written", b"new"]


def files_of(files: FaultyFileSystem) -> Callable[[], object]:
    return lambda: files.open(LOG)


def test_reading_costs_no_power(files: FaultyFileSystem) -> None:
    durable(files, LOG, b"data")
    files.power_off_after(1)
    for _ in range(5):
        assert files.read(LOG) == files.open(LOG).read(0, 4) == b"data"
    file = files.open(LOG)
    file.sync()
    with pytest.raises(PowerOff):
        file.sync()
    with pytest.raises(PowerOff):
        file.read(0, 4)


def test_power_that_was_to_go_off_may_stay(files: FaultyFileSystem) -> None:
    files.power_off_after(1)
    files.power_off_after(None)
    for _ in range(5):
        files.open(LOG).append([b"data"])
    assert files.size(LOG) == 20
