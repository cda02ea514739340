"""When a `FaultyFileSystem` fails, and when the machine that it is on ends.

Files and directories in memory that know what of them a crash would leave.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import PurePath
from random import Random
from typing import Final, NamedTuple, TypeAlias


class Operation(Enum):
    """What can be made to fail."""

    OPEN = auto()
    """Opening a file, or listing a directory: what takes a descriptor."""
    READ = auto()
    """Reading a file's bytes."""
    WRITE = auto()
    """Appending to a file, or cutting it."""
    SYNC = auto()
    """Making a file or a directory durable."""
    CHANGE = auto()
    """Making, renaming or removing a file or a directory, each of a tree's too."""


class PowerOff(Exception):
    """The machine ends here: only the test that asked for it may catch this."""


@dataclass(slots=True, kw_only=True)
class FileFault:
    """What is to fail; see `FailingFiles.fail`.

    :ivar after: How many such operations still succeed before.
    :ivar times: How many fail then, one at least; None: all of them.
    """

    operation: Operation
    error: int
    after: int
    times: int | None
    under: PurePath
    torn: int

    def applies_to(self, operation: Operation, path: PurePath) -> bool:
        """Count an operation; whether it fails."""
        if operation is not self.operation or not path.is_relative_to(self.under):
            return False
        if self.after:
            self.after -= 1
            return False
        if self.times is not None:
            self.times -= 1
        return True


class CrashableMachine:
    """What all open files of a file system share.

    :ivar faults: Asked in this order; the first that strikes decides.
    :ivar operations_left: How many more are done that change or sync something; None: all.
    :ivar lives: How many processes there were before; an open file ends with its own.
    """

    __slots__ = ("_is_off", "faults", "lives", "operations_left")

    def __init__(self) -> None:
        self.faults: list[FileFault] = []
        self.operations_left: int | None = None
        self.lives = 0
        self._is_off = False

    def begin(self, operation: Operation, path: PurePath) -> FileFault | None:
        """Count an operation; what fails it.

        :raises PowerOff: When the machine is off, or goes off now.
        """
        is_counted = operation not in (Operation.READ, Operation.OPEN)
        if is_counted and self.operations_left is not None:
            self._is_off = self.operations_left <= 0
            self.operations_left -= 1
        self.check()
        fault = next((each for each in self.faults if each.applies_to(operation, path)), None)
        if fault is not None and fault.times == 0:
            self.faults.remove(fault)
        return fault

    def perform(self, operation: Operation, path: PurePath) -> None:
        """Count an operation.

        :raises OSError: When it fails.
        :raises PowerOff: When the machine is off, or goes off now.
        """
        fault = self.begin(operation, path)
        if fault is not None:
            raise failure(fault.error, path)

    def check(self) -> None:
        """See that the machine runs.

        :raises PowerOff: When it does not.
        """
        if self._is_off:
            raise PowerOff

    def restart(self) -> None:
        """Run again, as another process."""
        self.operations_left = None
        self._is_off = False
        self.lives += 1


def failure(error: int, path: PurePath) -> OSError:
    """What the operating system would raise."""
    return OSError(error, os.strerror(error), str(path))


_SECTOR: Final = 512
_STALE: Final = 0.5
_TORN: Final = 0.25


class Content:
    """The bytes of a file: those in it, and those that are durable.

    :ivar data: What is read.
    :ivar modified_ms: When it was last written to.
    """

    __slots__ = ("_common", "_cut", "data", "modified_ms")

    def __init__(self, modified_ms: int) -> None:
        self.data = bytearray()
        self.modified_ms = modified_ms
        # Durable are the first so many bytes of `data`, and those behind them that were written
        # over or cut since.
        self._common = 0
        self._cut = b""

    def write(self, position: int, data: bytes) -> None:
        """Put bytes at a position, which lies at the end at most."""
        self._part(position)
        self.data[position : position + len(data)] = data

    def truncate(self, size: int) -> None:
        """Keep the first `size` bytes."""
        self._part(size)
        del self.data[size:]

    def sync(self) -> None:
        """Make it durable as it is."""
        self._common, self._cut = len(self.data), b""

    def crash(self, rng: Random | None) -> None:
        """Be what a crash leaves.

        :param rng: Which part of what was not durable survives: a part of what was written, now
            and then with a sector of zeros in it, and a cut or not. None of it without.
        """
        if rng is None or (self._cut and rng.random() < _STALE):
            self.data[self._common :] = self._cut
        else:
            self._tear(rng)
        self.sync()

    def _part(self, position: int) -> None:
        if position < self._common:
            self._cut = bytes(self.data[position : self._common]) + self._cut
            self._common = position

    def _tear(self, rng: Random) -> None:
        end = rng.randint(self._common, len(self.data))
        del self.data[end:]
        if end > self._common and rng.random() < _TORN:
            within = rng.randrange(self._common, end)
            start = max(within - within % _SECTOR, self._common)
            stop = min(within - within % _SECTOR + _SECTOR, end)
            self.data[start:stop] = bytes(stop - start)


class Directory:
    """The names in a directory: those in it, and those that are durable."""

    __slots__ = ("durable", "entries")

    def __init__(self) -> None:
        self.entries: dict[str, Node] = {}
        self.durable: dict[str, Node] = {}


Node: TypeAlias = Content | Directory


class Change(NamedTuple):
    """That a name in a directory means something else now; None: nothing."""

    folder: Directory
    name: str
    node: Node | None


class DirectoryTree:
    """All directories of a file system, and the changes in them that are not durable.

    :ivar root: What all paths begin at; it is always there.
    """

    __slots__ = ("_pending", "root")

    def __init__(self) -> None:
        self.root = Directory()
        # Oldest first; those made by one call are one, and not torn apart.
        self._pending: list[tuple[Change, ...]] = []

    def change(self, *changes: Change) -> None:
        """Change names, all of them or, after a crash, none."""
        for each in changes:
            _apply(each.folder.entries, each)
        self._pending.append(changes)

    def sync(self, folder: Directory) -> None:
        """Make the names in a directory durable."""
        pending = self._pending
        self._pending = [each for each in pending if not _concerns(each, folder)]
        _persist(each for each in pending if _concerns(each, folder))

    def settle(self) -> None:
        """Make everything durable."""
        _persist(self._pending)
        self._pending = []
        for content in self._contents(self.root):
            content.sync()

    def crash(self, rng: Random | None) -> None:
        """Be what a crash leaves.

        :param rng: How many of the changes that were not durable survive, oldest first, and
            which part of the files' bytes. None of it without.
        """
        if rng is not None:
            _persist(self._pending[: rng.randint(0, len(self._pending))])
        self._pending = []
        self._restore(self.root)
        for content in self._contents(self.root):
            content.crash(rng)

    def _restore(self, folder: Directory) -> None:
        folder.entries = dict(folder.durable)
        for node in folder.entries.values():
            if isinstance(node, Directory):
                self._restore(node)

    def _contents(self, folder: Directory) -> Iterable[Content]:
        for _, node in sorted(folder.entries.items()):
            if isinstance(node, Directory):
                yield from self._contents(node)
            else:
                yield node


def _concerns(changes: tuple[Change, ...], folder: Directory) -> bool:
    return any(each.folder is folder for each in changes)


def _persist(pending: Iterable[tuple[Change, ...]]) -> None:
    for changes in pending:
        for each in changes:
            _apply(each.folder.durable, each)


def _apply(names: dict[str, Node], change: Change) -> None:
    if change.node is None:
        names.pop(change.name, None)
    else:
        names[change.name] = change.node
