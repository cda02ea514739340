"""What the system lets the process use, and what of it goes to logs and requests.

Memory is limited by the machine, by control groups (version 2: ``memory.max``, version 1:
``memory.limit_in_bytes``, each of the group and of those above it), and by RLIMIT_AS.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

if sys.platform != "win32":
    import resource

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
