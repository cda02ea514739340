"""The file system that a log uses, the real one, and the errors of a log's files.

Everything is synchronous and raises `OSError` as the operating system would, with its errno.
Paths are pure: only a `FileSystem` accesses a disk, so that a test can pass one that fails
(tests/harness/faulty_file_system.py).

Durable are the bytes of a file after `File.sync`, and the names in a directory (files created,
renamed and removed in it) after `FileSystem.sync_dir` of that directory. Neither implies the
other. All other data may exist after a crash of the machine, or not, or in part.
"""

# A start names tens of thousands of files: to make a `Path` of each takes longer than the calls.
# ruff: noqa: PTH105, PTH108, PTH116, PTH208

import errno
import fcntl
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Final, Protocol, final

from fencepost.protocol.byte_utils import Buffer


@final
class StorageFailure(Exception):
    """A log's files can't be read or written; nothing is done with the log from then on.

    :ivar log: Topic and partition: ``topic-0``.
    :ivar why: What the operating system said, or what is wrong with the bytes.
    :ivar lacks_descriptors: Whether a file could not be opened because too many are: then the log
        may be opened again later.
    """

    def __init__(self, log: str, why: str | OSError) -> None:
        super().__init__(f"{log}: {why}")
        self.log = log
        self.why = str(why)
        self.lacks_descriptors = lacks_descriptors(why)


def lacks_descriptors(error: object) -> bool:
    """Whether an error says that the process, or the system, has too many open files."""
    return isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)


@final
class DamagedSegment(OSError):
    """A segment's bytes are no batches from some position on.

    An `OSError`, because to a log it is the same as a disk that can't read them.

    :ivar offset: The log is sound up to this offset (exclusive), where that is known.
    :ivar position: Where the first bytes are that are none.
    :ivar reason: What is wrong with them.
    """

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(errno.EIO, f"no record batch at position {position}: {reason}")
        self.position = position
        self.reason = reason
        self.offset: int | None = None


TEMPORARY_SUFFIX: Final = ".tmp"
"""Ends the name of what `write_atomic` has not renamed yet; a crash may leave it behind."""

MAX_OPEN_FILES: Final = 512
"""Files of logs that a process holds open at most, where descriptors allow as many."""
_IOV_MAX: Final = 1024
_MODE: Final = 0o644
_CLOSED: Final = -1
_NS_PER_MS: Final = 1_000_000


class File(Protocol):
    """An open file: its end is written, any part of it read.

    It stays valid, and means the same bytes, when the file is renamed or removed. One that is
    closed may not be used; closing it again does nothing.
    """

    @property
    def size(self) -> int:
        """Bytes in it.

        After an `OSError` it is still true of what can be read through this `File`, though the disk
        may hold torn bytes behind it.
        """

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Write the buffers one after the other at the end: all or none of their bytes.

        A write that the system cuts short is gone on with; where it fails in the middle, the file
        is cut back to what it was. Nothing is durable before `sync`. The buffers are not kept.

        :raises OSError: When not everything could be written; the size is what it was. Where the
            file could not be cut back either, torn bytes may lie behind the size: the next append
            overwrites them, and a reader that opens the file before that finds them.
        """

    def read(self, start: int, end: int) -> bytes:
        """The bytes from `start` to `end` (exclusive), by one pread where the system allows.

        :raises OSError: EIO as well where the file ends before `end`.
        """

    def truncate(self, size: int) -> None:
        """Keep the first `size` bytes, which must be there; durable after `sync`."""

    def sync(self) -> None:
        """Make what was written and cut durable (fsync).

        :raises OSError: Then it is unknown which bytes are durable. A retry may succeed without
            having written anything, so the file must not be trusted any more.
        """

    def close(self) -> None:
        """Let go of it; nothing is synced."""


class Lock(Protocol):
    """A lock that `FileSystem.lock` took; it ends with the process at the latest."""

    def release(self) -> None:
        """Let others have it; the file stays. Again does nothing."""


class FileSystem(Protocol):
    """What the log needs of a file system. Paths are absolute.

    A method that works on a file or directory raises FileNotFoundError when it is not there.
    """

    def open(self, path: PurePath) -> File:
        """A file for reading and appending, made if it is missing; its directory must be there."""

    def names(self, directory: PurePath) -> tuple[str, ...]:
        """Names of the files and directories in a directory, in order."""

    def exists(self, path: PurePath) -> bool:
        """Whether there is a file or a directory of that name."""

    def is_dir(self, path: PurePath) -> bool:
        """Whether there is a directory of that name."""

    def size(self, path: PurePath) -> int:
        """Bytes in a file."""

    def modified_ms(self, path: PurePath) -> int:
        """When a file was last written to, in ms since 1970."""

    def set_modified_ms(self, path: PurePath, modified_ms: int) -> None:
        """Say when a file was last written to: a cleaned segment is as old as its sources."""

    def read(self, path: PurePath) -> bytes:
        """All bytes of a file."""

    def write_atomic(self, path: PurePath, data: Buffer, *, sync: bool) -> None:
        """Write a whole file so that a crash leaves the old one or the new one, never a mixture.

        It is written beside (`TEMPORARY_SUFFIX`) and renamed.

        :param sync: Make the file durable before it is renamed, and its name after. Without it a
            crash of the machine may leave an empty or a torn file; one of the process does not.
        :raises OSError: And `path` is what it was, unless only its name could not be synced.
        """

    def rename(self, old: PurePath, new: PurePath) -> None:
        """Rename a file or directory, at once; a file that had the new name is gone.

        Open files stay valid. Durable after `sync_dir`.
        """

    def remove(self, path: PurePath) -> None:
        """Remove a file; durable after `sync_dir`."""

    def make_dirs(self, directory: PurePath) -> None:
        """Make a directory, and those above it that are missing; one that is there is left alone.

        Durable after `sync_dir` of the directory above.
        """

    def remove_tree(self, directory: PurePath) -> None:
        """Remove a directory and all in it; nothing where it is not there."""

    def sync_dir(self, directory: PurePath) -> None:
        """Make the names in a directory durable: those made, renamed and removed (fsync)."""

    def sync_all(self) -> None:
        """Make everything durable that any process has written so far (sync).

        It is quicker than many single syncs, but it reports no error: it must not be used for
        records that were acknowledged as durable.
        """

    def lock(self, path: PurePath) -> Lock:
        """Make a file, if it is missing, and lock it against all others, a real Kafka included.

        :raises BlockingIOError: When another process, or another owner in this one, holds it.
        """


def write_atomic(files: FileSystem, path: PurePath, data: Buffer, *, sync: bool) -> None:
    """What every file system does for `FileSystem.write_atomic`."""
    aside = path.with_name(path.name + TEMPORARY_SUFFIX)
    try:
        _write_new(files, aside, data, sync=sync)
        files.rename(aside, path)
    except OSError:
        with suppress(OSError):
            files.remove(aside)
        raise
    if sync:
        files.sync_dir(path.parent)


def _write_new(files: FileSystem, path: PurePath, data: Buffer, *, sync: bool) -> None:
    file = files.open(path)
    try:
        file.truncate(0)  # one that a crash left
        file.append([data])
        if sync:
            file.sync()
    finally:
        file.close()


class RealFile:
    """A `File` of the operating system.

    :param fd: Of a file open for reading and writing; this owns it.
    """

    __slots__ = ("_fd", "_size")

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._size = os.fstat(fd).st_size

    @property
    def size(self) -> int:
        """Bytes in it."""
        return self._size

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Write the buffers one after the other at the end: all or none of their bytes."""
        end = self._size
        try:
            for start in range(0, len(buffers), _IOV_MAX):
                end = self._write(buffers[start : start + _IOV_MAX], end)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._fd, self._size)
            raise
        self._size = end

    def _write(self, buffers: Sequence[Buffer], position: int) -> int:
        written = os.pwritev(self._fd, buffers, position)
        if written == sum(map(len, buffers)):
            return position + written
        # A disk nearly full, a limit, or 2 GiB at once: too rare to spare the copy.
        rest = memoryview(b"".join(buffers))[written:]
        position += written
        while rest:
            written = os.pwrite(self._fd, rest, position)
            if not written:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            rest = rest[written:]
            position += written
        return position

    def read(self, start: int, end: int) -> bytes:
        """The bytes from `start` to `end` (exclusive)."""
        data = os.pread(self._fd, end - start, start)
        while len(data) < end - start:
            more = os.pread(self._fd, end - start - len(data), start + len(data))
            if not more:
                raise OSError(errno.EIO, f"the file ends before {end}, at {start + len(data)}")
            data += more
        return data

    def truncate(self, size: int) -> None:
        """Keep the first `size` bytes."""
        os.ftruncate(self._fd, size)
        self._size = size

    def sync(self) -> None:
        """Make what was written and cut durable."""
        if self._fd == _CLOSED:  # which os.fsync takes for a wrong argument
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        os.fsync(self._fd)

    def close(self) -> None:
        """Let go of it."""
        fd, self._fd = self._fd, _CLOSED
        if fd != _CLOSED:
            os.close(fd)


class RealLock:
    """A `Lock` on a file of the operating system.

    Two kinds of lock are taken: the one that a Java process would see, but which one process can
    take twice, and one that no process can take twice.
    """

    __slots__ = ("_file",)

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise

    def release(self) -> None:
        """Let others have it."""
        self._file.close()


class RealFileSystem:
    """The operating system's files; see `FileSystem`."""

    def open(self, path: PurePath) -> RealFile:
        """A file for reading and appending, made if it is missing."""
        return RealFile(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _MODE))

    def names(self, directory: PurePath) -> tuple[str, ...]:
        """Names of the files and directories in a directory, in order."""
        return tuple(sorted(os.listdir(directory)))

    def exists(self, path: PurePath) -> bool:
        """Whether there is a file or a directory of that name."""
        return Path(path).exists()

    def is_dir(self, path: PurePath) -> bool:
        """Whether there is a directory of that name."""
        return Path(path).is_dir()

    def size(self, path: PurePath) -> int:
        """Bytes in a file."""
        return os.stat(path).st_size

    def modified_ms(self, path: PurePath) -> int:
        """When a file was last written to, in ms since 1970."""
        return os.stat(path).st_mtime_ns // _NS_PER_MS

    def set_modified_ms(self, path: PurePath, modified_ms: int) -> None:
        """Say when a file was last written to."""
        os.utime(path, ns=(modified_ms * _NS_PER_MS, modified_ms * _NS_PER_MS))

    def read(self, path: PurePath) -> bytes:
        """All bytes of a file."""
        return Path(path).read_bytes()

    def write_atomic(self, path: PurePath, data: Buffer, *, sync: bool) -> None:
        """Write a whole file so that a crash leaves the old one or the new one."""
        write_atomic(self, path, data, sync=sync)

    def rename(self, old: PurePath, new: PurePath) -> None:
        """Rename a file or directory, at once; a file that had the new name is gone."""
        os.replace(old, new)

    def remove(self, path: PurePath) -> None:
        """Remove a file."""
        os.unlink(path)

    def make_dirs(self, directory: PurePath) -> None:
        """Make a directory, and those above it that are missing."""
        Path(directory).mkdir(parents=True, exist_ok=True)

    def remove_tree(self, directory: PurePath) -> None:
        """Remove a directory and all in it; nothing where it is not there."""
        from shutil import rmtree  # late, as it brings archive formats along

        if Path(directory).exists():
            rmtree(directory)

    def sync_dir(self, directory: PurePath) -> None:
        """Make the names in a directory durable."""
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def sync_all(self) -> None:
        """Make everything durable that was written so far, by anybody."""
        os.sync()

    def lock(self, path: PurePath) -> RealLock:
        """Make a file, if it is missing, and lock it against all others."""
        return RealLock(Path(path))
