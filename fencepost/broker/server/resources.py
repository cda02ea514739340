"""What the system lets the process use: memory for logs and requests, and descriptors.

Memory is limited by the machine, by control groups (version 2: ``memory.max``, version 1:
``memory.limit_in_bytes``, each of the group and of those above it), and by RLIMIT_AS.

Descriptors are limited by the soft limit RLIMIT_NOFILE, which is left as it is. Connections and the
files of logs share them. What is opened for a moment has a reserve: files that are read whole,
modules that are imported late, a connection that is accepted in order to be closed.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from fencepost.storage.files.file_system import MAX_OPEN_FILES

if sys.platform != "win32":
    import resource

MEMORY_FULL: Final = "request_memory"
MAX_CONNECTIONS: Final = "max.connections"
MAX_CONNECTIONS_PER_IP: Final = "max.connections.per.ip"
DESCRIPTORS: Final = "descriptors"
LIMITS: Final = frozenset({MEMORY_FULL, MAX_CONNECTIONS, MAX_CONNECTIONS_PER_IP, DESCRIPTORS})
"""Reasons of connections that are closed because a limit is reached: they are counted."""
CGROUPS: Final = Path("/sys/fs/cgroup")
"""Where control groups are mounted."""
OWN_CGROUPS: Final = Path("/proc/self/cgroup")
"""The groups of this process: lines of hierarchy, controllers and path, split by colons."""
_OVERHEAD: Final = 256 << 20
"""Bytes that the process takes without logs: the interpreter, the journal, responses."""
_UNLIMITED: Final = 1 << 60
"""A group of version 1 without a limit states a number of this size or above."""


class MemoryShares(NamedTuple):
    """Limits in bytes, by default."""

    logs: int
    requests: int


def memory_shares(available: int) -> MemoryShares:
    """The shares of logs in memory and of requests in what the process may have.

    Logs get half of what the process leaves, and a quarter at least.
    """
    return MemoryShares(
        logs=max((available - _OVERHEAD) // 2, available // 4), requests=available // 4
    )


def available_memory(cgroups: Path = CGROUPS, own_cgroups: Path = OWN_CGROUPS) -> int:
    """How many bytes the process may have: the lowest limit that there is.

    :param own_cgroups: The file that names the groups of this process.
    """
    limits = [sys.maxsize, *_cgroup_limits(cgroups, own_cgroups)]
    if sys.platform != "win32":
        address_space, _ = resource.getrlimit(resource.RLIMIT_AS)
        if address_space != resource.RLIM_INFINITY:
            limits.append(address_space)
        with suppress(ValueError, OSError):
            limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(limits)


def _cgroup_limits(cgroups: Path, own_cgroups: Path) -> Iterator[int]:
    """The limits of the process's groups; those that can't be read are left out."""
    try:
        lines = own_cgroups.read_text().splitlines()
    except (OSError, ValueError):
        return
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            yield from _limits_up_from(cgroups, path, "memory.max")
        elif "memory" in controllers.split(","):
            yield from _limits_up_from(cgroups / "memory", path, "memory.limit_in_bytes")


def _limits_up_from(root: Path, path: str, name: str) -> Iterator[int]:
    # In a container the path may be the host's, and its own group is what is mounted at the root.
    group = Path(path.lstrip("/"))
    for directory in (group, *group.parents) if path.strip("/") else (Path(),):
        with suppress(OSError, ValueError):  # no such file, or "max"
            limit = int((root / directory / name).read_text())
            if limit < _UNLIMITED:
                yield limit


_RESERVE: Final = 40
"""Descriptors that are open from the start, or opened for a moment."""
_RESERVE_PER_BROKER: Final = 2
"""A connection that is refused, the lock of a log directory; and a socket for each listener."""
_RESERVE_OF_REMOTE: Final = 32
"""Connections and files of an object store's client."""
CONTROL_CONNECTIONS: Final = 16
"""Connections of the control API that need no room: it has to be reached when clients take all."""
_FEWEST: Final = 16
"""Descriptors for connections and files below which there is no use in a start."""
_UNKNOWN: Final = 1 << 20


class TooFewDescriptors(Exception):
    """The limit on descriptors is too low to start. The text is one line for the user."""


def descriptor_limit() -> int:
    """The soft limit on descriptors."""
    if sys.platform == "win32":
        return _UNKNOWN
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _UNKNOWN if soft == resource.RLIM_INFINITY else soft


class DescriptorBudget:
    """Shares descriptors among connections and open files.

    Files get what connections leave, and a quarter at least; files that are not used are closed for
    a connection.

    :param limit: On descriptors of the process.
    :param reserve: How many of them are neither connections nor files of logs.
    :param max_files: How many files of logs are held open at most; 0 where there are none.
    :ivar resize_files: Limits the number of open files.
    """

    __slots__ = ("_connections", "_control", "_max_files", "_min_files", "_total", "resize_files")

    def __init__(self, limit: int = _UNKNOWN, *, reserve: int = 0, max_files: int = 0) -> None:
        self._total = limit - reserve
        self._max_files = max_files
        self._min_files = min(max_files, self._total // 4)
        self._connections = 0
        self._control = 0
        self.resize_files: Callable[[int], None] = _ignore_size

    @property
    def files(self) -> int:
        """How many files may be open now."""
        return min(self._max_files, self._total - self._connections)

    def admit(self) -> bool:
        """Take a descriptor for a client's connection; False where none is left."""
        if self._connections >= self._total - self._min_files:
            return False
        self._change(1)
        return True

    def release(self) -> None:
        """Give a client's descriptor back."""
        self._change(-1)

    def admit_control(self) -> bool:
        """Take a descriptor for a connection of the control API; False where none is left."""
        if self._control >= CONTROL_CONNECTIONS and not self.admit():
            return False
        self._control += 1
        return True

    def release_control(self) -> None:
        """Give a descriptor of the control API back."""
        self._control -= 1
        if self._control >= CONTROL_CONNECTIONS:
            self.release()

    def _change(self, by: int) -> None:
        before = self.files
        self._connections += by
        if self.files != before:
            self.resize_files(self.files)


def descriptor_budget(
    limit: int, *, brokers: int, listeners: int = 1, has_files: bool, has_remote: bool = False
) -> DescriptorBudget:
    """The budget of a server.

    :param listeners: How many each broker has.
    :param has_files: Whether its logs are in files.
    :param has_remote: Whether it has a tier outside its memory.
    :raises TooFewDescriptors: When the limit leaves too few for connections and files.
    """
    reserve = _RESERVE + CONTROL_CONNECTIONS + (_RESERVE_PER_BROKER + listeners) * brokers
    if has_remote:
        reserve += _RESERVE_OF_REMOTE
    if limit - reserve < _FEWEST:
        raise TooFewDescriptors(
            f"the process may open {limit} files and connections, and needs {reserve + _FEWEST} "
            f"for {brokers} broker{'' if brokers == 1 else 's'}: see ulimit -n"
        )
    return DescriptorBudget(limit, reserve=reserve, max_files=MAX_OPEN_FILES if has_files else 0)


def _ignore_size(_: int) -> None:
    """The default: there are no files."""
