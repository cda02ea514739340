"""Processes as seen from outside: free ports, memory and CPU time from /proc, a clean stop."""

from __future__ import annotations

import contextlib
import gc
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

STOP_S = 15.0
"""How long a server may take to leave after SIGTERM, seconds, before it is killed."""

IDLE_S = 0.6
"""What counts as a moment; fencepost begins to import its control API within half a second."""
IDLE_TIMEOUT_S = 10.0

MIB = 1024.0
"""KiB in a MiB: /proc reports KiB."""

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Resident memory of a process, MiB: now, and the highest so far."""

    resident: float
    peak: float


def parse_status(text: str) -> Memory:
    """Reads VmRSS and VmHWM out of /proc/PID/status.

    :raises KeyError: When they are missing, as for a process that has ended.
    """
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    resident, peak = (int(fields[key].split()[0]) / MIB for key in ("VmRSS", "VmHWM"))
    return Memory(resident=resident, peak=peak)


def parse_cpu_ticks(text: str) -> int:
    """User and system clock ticks out of /proc/PID/stat.

    The command name in parentheses may itself hold blanks and parentheses, so the fields count
    from the last closing one.
    """
    fields = text[text.rindex(")") + 2 :].split()
    return int(fields[11]) + int(fields[12])


def memory(pid: int) -> Memory:
    return parse_status(Path(f"/proc/{pid}/status").read_text())


def descendants(word: str) -> list[int]:
    """The processes below this one that have a word on their command line."""
    parents = dict(_parents())
    found = []
    for pid, parent in parents.items():
        ancestor = parent
        while ancestor in parents and ancestor != os.getpid():
            ancestor = parents[ancestor]
        with contextlib.suppress(OSError):
            command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
            if ancestor == os.getpid() and word in command:
                found.append(pid)
    return found


def _parents() -> Iterator[tuple[int, int]]:
    """Of each process its parent."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            text = path.read_text()
            yield int(path.parent.name), int(text[text.rindex(")") + 2 :].split()[1])


def cpu_seconds(pid: int) -> float:
    return parse_cpu_ticks(Path(f"/proc/{pid}/stat").read_text()) / _TICKS


def wait_until_idle(pid: int) -> None:
    """Until the process did nothing for a moment: all have work of their own left at their start.

    Gives up waiting after :data:`IDLE_TIMEOUT_S`, since some never rest.
    """
    deadline = time.monotonic() + IDLE_TIMEOUT_S
    spent = cpu_seconds(pid)
    while time.monotonic() < deadline:
        time.sleep(IDLE_S)
        before, spent = spent, cpu_seconds(pid)
        if spent - before <= 1 / _TICKS:
            return


def parse_busy_ticks(text: str) -> int:
    """Ticks that all processors together were not idle, out of /proc/stat.

    Time stolen by the hypervisor counts as busy: it was not there for us.
    """
    user, nice, system, _, _, irq, softirq, steal = map(int, text.split("\n", 1)[0].split()[1:9])
    return user + nice + system + irq + softirq + steal


def touch_memory(size: int) -> None:
    """Has a child take and release ``size`` bytes of memory, or half of what is free if less.

    On a virtual machine the first touch of a page costs many times the later ones, until the host
    has backed it. The first server that is measured would pay that for all.
    """
    available = parse_available(Path("/proc/meminfo").read_text())
    code = (
        "import mmap, sys; m = mmap.mmap(-1, int(sys.argv[1]), flags=mmap.MAP_PRIVATE"
        "|mmap.MAP_ANONYMOUS|mmap.MAP_POPULATE)"
    )
    command = [sys.executable, "-c", code, str(min(size, available // 2))]
    subprocess.run(command, check=False, timeout=120)


def parse_available(text: str) -> int:
    """MemAvailable out of /proc/meminfo, bytes."""
    fields = dict(line.split(":", 1) for line in text.splitlines())
    return int(fields["MemAvailable"].split()[0]) * 1024


class Others:
    """How much of the machine others use: all that was busy, without us and our children.

    A child counts once it has been waited for, so ask when none are left.
    """

    def __init__(self) -> None:
        self._busy, self._own, self._begin = _busy_seconds(), _own_seconds(), time.monotonic()

    def share(self) -> float:
        """From 0 to 1 of all cores, since this was made."""
        busy, own = _busy_seconds() - self._busy, _own_seconds() - self._own
        capacity = (time.monotonic() - self._begin) * (os.cpu_count() or 1)
        return min(max((busy - own) / capacity, 0.0), 1.0)


def _busy_seconds() -> float:
    return parse_busy_ticks(Path("/proc/stat").read_text()) / _TICKS


def _own_seconds() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def free_ports(count: int) -> int:
    """The first of ``count`` consecutive TCP ports that are free on loopback now.

    They lie below the range that outgoing connections draw from, so that no client takes one
    between this look and the server's bind.

    :raises OSError: When none are found.
    """
    for _ in range(100):
        first = random.randrange(20_000, 32_000 - count)
        with contextlib.ExitStack() as held:
            try:
                for port in range(first, first + count):
                    held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return first
    raise OSError(f"no {count} consecutive free ports")


def stop(child: subprocess.Popen[bytes], *, at_once: bool = False) -> None:
    """Ends a child by its own pid: SIGTERM, then SIGKILL after :data:`STOP_S` (or at once)."""
    if child.poll() is None:
        child.send_signal(signal.SIGKILL if at_once else signal.SIGTERM)
    try:
        child.wait(STOP_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait(STOP_S)


@contextlib.contextmanager
def no_collector() -> Iterator[None]:
    """Keeps the harness's own garbage collector out of its measurements."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
