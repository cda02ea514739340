"""Python programs as forks of one process that has imported their modules.

The tests start hundreds of ``fencepost`` processes, and a start costs half a second of a processor,
nearly all of it for imports. A forked program runs in a process of its own, with its own arguments,
environment, folder, session and standard streams. It differs from a started one in two ways: its
modules are imported already, and all forks share the seed of ``hash()``. So tests of the start
itself, and of what is imported when, start their programs.

`ForkServer` is the tests' side; ``python -m tests.harness.forkserver FD`` the process that forks.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, Final

from tests.harness.process_guard import starts_a_process

_IMPORTED: Final = ("fencepost.cli.serve", "fencepost.cli.commands", "fencepost.control.app")
"""What costs the most, and reads nothing of the environment when it is imported."""
_AT_START: Final = ("PYTHON", "LANG", "LC_")
"""Variables that Python reads when it starts begin so."""
_PACKAGES: Final = frozenset({"fencepost", "tests", "examples"})
_STREAMS: Final = 3
_LENGTH: Final = 4
"""Bytes of the length before each message."""


class Child:
    """A forked program: as much of `subprocess.Popen` as the harness needs.

    :param line: The process id arrives here, then the exit code.
    :ivar stdin: The other end of its standard input, where it is a pipe; as `stdout`.
    """

    def __init__(self, args: Sequence[str], line: socket.socket) -> None:
        self.args = args
        self.stdin: IO[bytes] | None = None
        self.stdout: IO[bytes] | None = None
        self.returncode: int | None = None
        self._line = line
        self.pid = _receive(line)

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end. :raises subprocess.TimeoutExpired: When it still runs."""
        if self.returncode is None:
            with selectors.DefaultSelector() as selector:
                selector.register(self._line, selectors.EVENT_READ)
                if not selector.select(timeout):
                    raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = _receive(self._line)
            self._line.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL, unless it has ended."""
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """The process that forks. It ends with this one."""

    def __init__(self) -> None:
        self._line, theirs = socket.socketpair()
        self._lock = threading.Lock()
        with theirs:
            number = theirs.fileno()
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(number)],
                pass_fds=[number],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )

    def ask(
        self, command: Sequence[str], streams: Sequence[int], env: Mapping[str, str], cwd: str
    ) -> socket.socket:
        """Have a program started; where its process id and its exit code arrive."""
        _, _, module, *arguments = command
        asked = {"module": module, "arguments": arguments, "env": dict(env), "cwd": cwd}
        data = json.dumps(asked).encode()
        line, theirs = socket.socketpair()
        with theirs, self._lock:
            length = len(data).to_bytes(_LENGTH)
            socket.send_fds(self._line, [length], [*streams, theirs.fileno()])
            self._line.sendall(data)
        return line


@cache
def _server() -> ForkServer:
    return ForkServer()


def can_fork(command: Sequence[str], env: Mapping[str, str]) -> bool:
    """Whether a command runs a module of the project, by the Python of the tests as it is."""
    if not hasattr(os, "pidfd_open") or list(command[:2]) != [sys.executable, "-m"]:
        return False
    is_ours = command[2].partition(".")[0] in _PACKAGES
    return is_ours and _at_start(os.environ) == _at_start(env)


def _at_start(env: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in env.items() if name.startswith(_AT_START)}


def fork(
    command: Sequence[str],
    streams: tuple[int, int, int],
    env: Mapping[str, str],
    cwd: str | None = None,
) -> Child:
    """Run a command for which `can_fork` holds.

    :param streams: Descriptors of its standard input, output and error; the caller closes its own.
    """
    starts_a_process()
    return Child(command, _server().ask(command, streams, env, cwd or str(Path.cwd())))


# -- the process that forks ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Program:
    module: str
    arguments: list[str]
    env: dict[str, str]
    cwd: str

    def run(self) -> None:
        """Become it. Its module ends this process, as a started one's does."""
        os.environ.clear()
        os.environ.update(self.env)
        os.chdir(self.cwd)
        sys.path[0] = self.cwd
        sys.argv[1:] = self.arguments
        runpy.run_module(self.module, run_name="__main__", alter_sys=True)


class _Forks:
    """Forks for as long as the tests' side is open.

    :param line: The tests' side.
    """

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._selector = selectors.DefaultSelector()
        self._selector.register(line, selectors.EVENT_READ)

    def run(self) -> _Program | None:
        """In a fork, the program for it to run; None in the end."""
        while True:
            for key, _ in self._selector.select():
                if key.data is not None:
                    self._ended(*key.data)
                elif (asked := _receive_request(self._line)) is None:
                    return None
                elif (program := self._fork(*asked)) is not None:
                    return program

    def _fork(
        self, program: _Program, streams: Sequence[int], line: socket.socket
    ) -> _Program | None:
        pid = os.fork()
        if pid == 0:
            _take_over(streams)
            return program
        for each in streams:
            os.close(each)
        descriptor = os.pidfd_open(pid)
        self._selector.register(descriptor, selectors.EVENT_READ, (descriptor, pid, line))
        _send(line, pid)
        return None

    def _ended(self, descriptor: int, pid: int, line: socket.socket) -> None:
        self._selector.unregister(descriptor)
        os.close(descriptor)
        with line:
            _send(line, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def _take_over(streams: Sequence[int]) -> None:
    """Have these as standard streams, and no other descriptor."""
    os.setsid()
    for number, each in enumerate(streams):
        os.dup2(each, number)
    os.closerange(_STREAMS, os.sysconf("SC_OPEN_MAX"))


def _receive_request(
    line: socket.socket,
) -> tuple[_Program, list[int], socket.socket] | None:
    length, descriptors, _, _ = socket.recv_fds(line, _LENGTH, _STREAMS + 1)
    if not length:
        return None
    data = _read(line, int.from_bytes(length))
    *streams, end = descriptors
    return _Program(**json.loads(data)), streams, socket.socket(fileno=end)


def _send(line: socket.socket, number: int) -> None:
    with contextlib.suppress(BrokenPipeError):  # the side that asked has ended
        line.sendall(number.to_bytes(_LENGTH, signed=True))


def _receive(line: socket.socket) -> int:
    return int.from_bytes(_read(line, _LENGTH), signed=True)


def _read(line: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = line.recv(count - len(data))
        if not more:
            raise EOFError("the process that forks has ended")
        data += more
    return data


def main(descriptor: int) -> None:
    """Serve forks, or be one of them."""
    for each in _IMPORTED:
        import_module(each)
    gc.freeze()
    program = _Forks(socket.socket(fileno=descriptor)).run()
    if program is not None:
        program.run()


if __name__ == "__main__":
    main(int(sys.argv[1]))
