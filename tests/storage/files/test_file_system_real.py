"""What only the operating system's files do: short writes, syncing, locks of other processes."""

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from fencepost.protocol.byte_utils import Buffer
from fencepost.storage.files.file_system import RealFileSystem
from tests.harness.run import run
from tests.storage.files.refusing import fails_with

FILES = RealFileSystem()


@pytest.mark.parametrize("count", [1, 2, 5, 9, 13])
@pytest.mark.parametrize("then", [1, 4, 100])
def test_a_short_write_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, then: int
) -> None:
    cut_short(monkeypatch, count, then)
    file = FILES.open(tmp_path / "file")
    file.append([b"01234", b"", b"56789", b"abc"])
    file.append([b"!"])
    assert file.read(0, file.size) == (tmp_path / "file").read_bytes() == b"0123456789abc!"


def cut_short(monkeypatch: pytest.MonkeyPatch, count: int, then: int) -> None:
    """Let the system write `count` bytes at first, and `then` bytes each time after."""

    def pwritev(fd: int, buffers: Sequence[Buffer], position: int) -> int:
        return real(fd, b"".join(buffers)[:count], position)

    def pwrite(fd: int, data: Buffer, position: int) -> int:
        return real(fd, bytes(data)[:then], position)

    real = os.pwrite
    monkeypatch.setattr(os, "pwritev", pwritev)
    monkeypatch.setattr(os, "pwrite", pwrite)


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Let the system refuse to write more to a file; up to there it writes what it is given."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("buffers", [[b"x" * 600], [b"x"] * 600, [b"x"] * 3000])
def test_a_write_that_fails_in_the_middle_leaves_nothing(
    tmp_path: Path, buffers: Sequence[Buffer]
) -> None:
    file = FILES.open(tmp_path / "file")
    file.append([b"before"])
    with largest_file(500), fails_with(errno.EFBIG):
        file.append(buffers)
    assert file.size == 6
    assert (tmp_path / "file").read_bytes() == b"before"
    file.append([b", after"])
    assert (tmp_path / "file").read_bytes() == b"before, after"


def test_what_cannot_be_cut_back_lies_behind_the_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = FILES.open(tmp_path / "file")
    file.append([b"before"])

    def ftruncate(fd: int, length: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "ftruncate", ftruncate)
    with largest_file(10), fails_with(errno.EFBIG):  # the first, and not that of the cut
        file.append([b"012345"])
    assert file.size == 6
    assert (tmp_path / "file").read_bytes() == b"before0123"
    file.append([b"next"])
    assert file.read(0, 10) == b"beforenext"


def test_a_system_that_writes_nothing_is_not_asked_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_short(monkeypatch, 2, 0)
    file = FILES.open(tmp_path / "file")
    with fails_with(errno.EIO):
        file.append([b"data"])
    assert (tmp_path / "file").read_bytes() == b""


def test_a_short_read_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = FILES.open(tmp_path / "file")
    file.append([b"0123456789"])
    real = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, count, at: real(fd, min(count, 3), at))
    assert file.read(1, 9) == b"12345678"


def test_what_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file before its new name, and the name after."""
    done: list[str] = []
    watch(monkeypatch, done)
    FILES.write_atomic(tmp_path / "checkpoint", b"data", sync=True)
    assert done == ["sync checkpoint.tmp", "rename", f"sync {tmp_path.name}"]
    done.clear()
    FILES.write_atomic(tmp_path / "checkpoint", b"data", sync=False)
    assert done == ["rename"]
    done.clear()
    FILES.open(tmp_path / "file").sync()
    FILES.sync_dir(tmp_path)
    assert done == ["sync file", f"sync {tmp_path.name}"]
    done.clear()
    FILES.sync_all()
    assert done == ["sync all"]


def watch(monkeypatch: pytest.MonkeyPatch, done: list[str]) -> None:
    sync: Callable[[int], None] = os.fsync
    rename = RealFileSystem.rename

    def fsync(fd: int) -> None:
        done.append(f"sync {Path(f'/proc/self/fd/{fd}').readlink().name}")
        sync(fd)

    def renamed(files: RealFileSystem, old: Path, new: Path) -> None:
        done.append("rename")
        rename(files, old, new)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "sync", lambda: done.append("sync all"))
    monkeypatch.setattr(RealFileSystem, "rename", renamed)


def test_nothing_stays_open(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    lock = FILES.lock(tmp_path / ".lock")
    with pytest.raises(BlockingIOError):
        FILES.lock(tmp_path / ".lock")
    FILES.write_atomic(tmp_path / "checkpoint", b"data", sync=True)
    FILES.open(tmp_path / "file").close()
    FILES.sync_dir(tmp_path)
    lock.release()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


OTHER = """
import fcntl, sys
with open(sys.argv[1], "ab") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("locked")
    else:
        print("free")
"""


def test_a_lock_is_one_that_kafka_sees(tmp_path: Path) -> None:
    def told() -> str:
        return run([sys.executable, "-c", OTHER, str(tmp_path / ".lock")]).out.strip()

    assert told() == "free"
    lock = FILES.lock(tmp_path / ".lock")
    assert told() == "locked"
    lock.release()
    assert told() == "free"


HOLDER = """
import fcntl, sys
with open(sys.argv[1], "ab") as file:
    fcntl.lockf(file, fcntl.LOCK_EX)
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_lock_that_kafka_holds_is_seen(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(BlockingIOError):
            FILES.lock(path)
        holder.communicate()
    FILES.lock(path).release()
