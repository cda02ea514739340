"""A file system in memory with faults and crashes on demand.

It does what `FileSystem` says and no more: what was not synced is lost when it crashes, or a part
of it is. All that it does is decided by its caller, so that a failure can be had again.
"""

import errno
import re
from collections.abc import Callable, Sequence
from pathlib import PurePath
from random import Random
from typing import Final

import pytest

from fencepost.protocol.byte_utils import Buffer
from fencepost.storage.files.file_system import write_atomic
from tests.harness.crash_model import (
    Change,
    Content,
    CrashableMachine,
    Directory,
    DirectoryTree,
    FileFault,
    Node,
    Operation,
    failure,
)

_EVERYTHING: Final = PurePath("/")


class FaultyFileSystem:
    """A `FileSystem` in memory; its root directory is there from the beginning.

    :param now_ms: Tells the time that files are written at (ms since 1970).
    """

    def __init__(self, now_ms: Callable[[], int] = lambda: 0) -> None:
        self._now_ms = now_ms
        self._tree = DirectoryTree()
        self._machine = CrashableMachine()
        self._locks: dict[PurePath, FaultyLock] = {}

    # -- faults ----------------------------------------------------------------------------------

    def fail(
        self,
        operation: Operation,
        error: int = errno.EIO,
        *,
        after: int = 0,
        times: int | None = 1,
        under: PurePath = _EVERYTHING,
        torn: int = 0,
    ) -> None:
        """Let an operation fail with an errno, and do nothing.

        :param after: How many such operations still succeed before.
        :param times: How many fail then, one at least; None: all of them, until `heal`.
        :param under: Only those on this file, or on what is in this directory. A file is known by
            what it was called when it was opened.
        :param torn: So many bytes of an append lie in the file all the same, behind its size, as
            if a short write could not be cut back.
        """
        fault = FileFault(
            operation=operation, error=error, after=after, times=times, under=under, torn=torn
        )
        self._machine.faults.append(fault)

    def heal(self) -> None:
        """Let nothing fail any more."""
        self._machine.faults.clear()

    def power_off_after(self, operations: int | None) -> None:
        """Raise `PowerOff` once so many more operations were done that change or sync something.

        From then on whatever is asked raises it, until `crash`. None: never, as before.
        """
        self._machine.operations_left = operations

    def settle(self) -> None:
        """Make everything durable, as an operating system does by itself after a while."""
        self._tree.settle()

    def crash(self, rng: Random | None = None) -> None:
        """Lose what is not durable, all open files and locks; the next process finds the rest.

        :param rng: Decides which part of what is not durable survives: of the names made, renamed
            and removed those up to some moment; of what was written to a file a part, in which
            a sector may be zeros. None: nothing of it.
        """
        self._tree.crash(rng)
        self.end_process()

    def end_process(self) -> None:
        """Lose open files and locks only: what was written is there, synced or not."""
        self._locks.clear()
        self._machine.restart()

    # -- what it does ----------------------------------------------------------------------------

    def open(self, path: PurePath) -> "FaultyFile":
        """A file for reading and appending, made if it is missing."""
        self._machine.perform(Operation.OPEN, path)
        folder = self._folder(path.parent)
        node = folder.entries.get(path.name)
        if isinstance(node, Directory):
            raise failure(errno.EISDIR, path)
        if node is None:
            self._machine.perform(Operation.CHANGE, path)
            node = Content(self._now_ms())
            self._tree.change(Change(folder, path.name, node))
        return FaultyFile(self._machine, path, node, self._now_ms)

    def names(self, directory: PurePath) -> tuple[str, ...]:
        """Names of the files and directories in a directory, in order."""
        entries = self._folder(directory).entries
        self._machine.perform(Operation.OPEN, directory)
        return tuple(sorted(entries))

    def exists(self, path: PurePath) -> bool:
        """Whether there is a file or a directory of that name."""
        return self._find(path) is not None

    def is_dir(self, path: PurePath) -> bool:
        """Whether there is a directory of that name."""
        return isinstance(self._find(path), Directory)

    def size(self, path: PurePath) -> int:
        """Bytes in a file."""
        return len(self._content(path).data)

    def modified_ms(self, path: PurePath) -> int:
        """When a file was last written to, in ms since 1970."""
        return self._content(path).modified_ms

    def set_modified_ms(self, path: PurePath, modified_ms: int) -> None:
        """Say when a file was last written to."""
        self._content(path).modified_ms = modified_ms

    def read(self, path: PurePath) -> bytes:
        """All bytes of a file."""
        content = self._content(path)
        self._machine.perform(Operation.READ, path)
        return bytes(content.data)

    def write_atomic(self, path: PurePath, data: Buffer, *, sync: bool) -> None:
        """Write a whole file so that a crash leaves the old one or the new one."""
        write_atomic(self, path, data, sync=sync)

    def rename(self, old: PurePath, new: PurePath) -> None:
        """Rename a file or directory, at once; a file that had the new name is gone."""
        node = self._node(old)
        source, target = self._folder(old.parent), self._folder(new.parent)
        there = target.entries.get(new.name)
        if isinstance(there, Directory) and there is not node:
            if not isinstance(node, Directory):
                raise failure(errno.EISDIR, new)
            if there.entries:
                raise failure(errno.ENOTEMPTY, new)
        if isinstance(node, Directory) and isinstance(there, Content):
            raise failure(errno.ENOTDIR, new)
        self._machine.perform(Operation.CHANGE, old)
        self._tree.change(Change(source, old.name, None), Change(target, new.name, node))

    def remove(self, path: PurePath) -> None:
        """Remove a file."""
        self._content(path)
        self._unlink(path)

    def make_dirs(self, directory: PurePath) -> None:
        """Make a directory, and those above it that are missing."""
        self._machine.check()
        for path in [*reversed(directory.parents), directory]:
            node = self._find(path)
            if node is None:
                self._machine.perform(Operation.CHANGE, path)
                self._tree.change(Change(self._folder(path.parent), path.name, Directory()))
            elif isinstance(node, Content):
                raise failure(errno.EEXIST if path == directory else errno.ENOTDIR, path)

    def remove_tree(self, directory: PurePath) -> None:
        """Remove a directory and all in it; nothing where it is not there."""
        if self.exists(directory):
            for name in self.names(directory):
                path = directory / name
                if self.is_dir(path):
                    self.remove_tree(path)
                else:
                    self._unlink(path)
            self._unlink(directory)

    def sync_dir(self, directory: PurePath) -> None:
        """Make the names in a directory durable."""
        folder = self._folder(directory)
        self._machine.perform(Operation.SYNC, directory)
        self._tree.sync(folder)

    def sync_all(self) -> None:
        """Make everything durable that was written so far."""
        self._machine.perform(Operation.SYNC, _EVERYTHING)
        self._tree.settle()

    def lock(self, path: PurePath) -> "FaultyLock":
        """Make a file, if it is missing, and lock it against all others."""
        self.open(path)
        if path in self._locks:
            raise failure(errno.EAGAIN, path)
        lock = self._locks[path] = FaultyLock(self._locks, path)
        return lock

    # -- within ----------------------------------------------------------------------------------

    def _unlink(self, path: PurePath) -> None:
        self._machine.perform(Operation.CHANGE, path)
        self._tree.change(Change(self._folder(path.parent), path.name, None))

    def _find(self, path: PurePath) -> Node | None:
        self._machine.check()
        node: Node | None = self._tree.root
        for name in path.relative_to(path.anchor).parts:
            node = node.entries.get(name) if isinstance(node, Directory) else None
        return node

    def _node(self, path: PurePath) -> Node:
        node = self._find(path)
        if node is None:
            raise failure(errno.ENOENT, path)
        return node

    def _folder(self, path: PurePath) -> Directory:
        node = self._node(path)
        if isinstance(node, Content):
            raise failure(errno.ENOTDIR, path)
        return node

    def _content(self, path: PurePath) -> Content:
        node = self._node(path)
        if isinstance(node, Directory):
            raise failure(errno.EISDIR, path)
        return node


class FaultyFile:
    """A `File` of `FaultyFileSystem`; after a crash, or closed, it is a bad file descriptor."""

    __slots__ = ("_content", "_is_closed", "_life", "_machine", "_now_ms", "_path", "_size")

    def __init__(
        self, machine: CrashableMachine, path: PurePath, content: Content, now_ms: Callable[[], int]
    ) -> None:
        self._machine = machine
        self._path = path
        self._content = content
        self._now_ms = now_ms
        self._life = machine.lives
        self._size = len(content.data)
        self._is_closed = False

    @property
    def size(self) -> int:
        """Bytes in it."""
        return self._size

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Write the buffers one after the other at the end: all or none of their bytes."""
        self._check()
        data = b"".join(buffers)
        fault = self._machine.begin(Operation.WRITE, self._path)
        if fault is not None:
            self._write(data[: fault.torn])
            raise failure(fault.error, self._path)
        self._write(data)
        self._size += len(data)

    def _write(self, data: bytes) -> None:
        if data:
            self._content.write(self._size, data)
            self._content.modified_ms = self._now_ms()

    def read(self, start: int, end: int) -> bytes:
        """The bytes from `start` to `end` (exclusive)."""
        self._check()
        self._machine.perform(Operation.READ, self._path)
        data = bytes(self._content.data[start:end])
        if len(data) < end - start:
            raise failure(errno.EIO, self._path)
        return data

    def truncate(self, size: int) -> None:
        """Keep the first `size` bytes."""
        self._check()
        self._machine.perform(Operation.WRITE, self._path)
        self._content.truncate(size)
        self._content.modified_ms = self._now_ms()
        self._size = size

    def sync(self) -> None:
        """Make what was written and cut durable."""
        self._check()
        self._machine.perform(Operation.SYNC, self._path)
        self._content.sync()

    def close(self) -> None:
        """Let go of it."""
        self._is_closed = True

    def _check(self) -> None:
        self._machine.check()
        if self._is_closed or self._life != self._machine.lives:
            raise failure(errno.EBADF, self._path)


class FaultyLock:
    """A `Lock` of `FaultyFileSystem`."""

    __slots__ = ("_locks", "_path")

    def __init__(self, locks: "dict[PurePath, FaultyLock]", path: PurePath) -> None:
        self._locks = locks
        self._path = path

    def release(self) -> None:
        """Let others have it."""
        if self._locks.get(self._path) is self:
            del self._locks[self._path]


def fails_with(error: int) -> pytest.RaisesExc[OSError]:
    """Expect an `OSError` of that errno."""
    return pytest.raises(OSError, match=re.escape(f"[Errno {error}]"))
