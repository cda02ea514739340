"""When a `FailingFiles` fails, and when the machine that it is on ends."""

import os
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import PurePath


class Operation(Enum):
    """What can be made to fail."""

    READ = auto()
    """Reading a file's bytes."""
    WRITE = auto()
    """Appending to a file, or cutting it."""
    SYNC = auto()
    """Making a file or a directory durable."""
    CHANGE = auto()
    """Making, renaming or removing a file or a directory, each of a tree's too."""


class PowerOff(Exception):
    """The machine ends here: nobody is to catch this but whoever asked for it."""


@dataclass(slots=True, kw_only=True)
class Fault:
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

    def strikes(self, operation: Operation, path: PurePath) -> bool:
        """Count an operation; whether it fails."""
        if operation is not self.operation or not path.is_relative_to(self.under):
            return False
        if self.after:
            self.after -= 1
            return False
        if self.times is not None:
            self.times -= 1
        return True


class Machine:
    """What all open files of a file system share.

    :ivar faults: Asked in this order; the first that strikes decides.
    :ivar operations_left: How many more are done that change or sync something; None: all.
    :ivar lives: How many processes there were before; an open file ends with its own.
    """

    __slots__ = ("_is_off", "faults", "lives", "operations_left")

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.operations_left: int | None = None
        self.lives = 0
        self._is_off = False

    def begin(self, operation: Operation, path: PurePath) -> Fault | None:
        """Count an operation; what fails it.

        :raises PowerOff: When the machine is off, or goes off now.
        """
        if operation is not Operation.READ and self.operations_left is not None:
            self._is_off = self.operations_left <= 0
            self.operations_left -= 1
        self.check()
        fault = next((each for each in self.faults if each.strikes(operation, path)), None)
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
