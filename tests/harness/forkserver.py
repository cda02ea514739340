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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Final, TextIO

from tests.harness import fork_client
from tests.harness.fork_client import LENGTH, ask, read, receive
from tests.harness.process_guard import starts_a_process

_IMPORTED: Final = ("fencepost.cli.serve", "fencepost.cli.commands", "fencepost.control.app")
"""What costs the most, and reads nothing of the environment when it is imported."""
_AT_START: Final = ("PYTHON", "LANG", "LC_")
"""Variables that Python reads when it starts begin so."""
_PACKAGES: Final = frozenset({"fencepost", "tests", "examples"})
_STREAMS: Final = 3


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
        self.pid = receive(line)

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
            self.returncode = receive(self._line)
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
    """The process that forks. It ends with this one.

    :ivar address: Of the socket where it is asked.
    """

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="fork-server-")
        self.address = str(Path(self._folder.name) / "socket")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.address)
            listener.listen()
            number = listener.fileno()
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(number)],
                pass_fds=[number],
                stdin=subprocess.PIPE,  # its end tells that of this process
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )


@cache
def fork_server() -> ForkServer:
    """The one of this process, started when it is first wanted."""
    return ForkServer()


def client_command(module: str) -> list[str]:
    """A command that runs a module as a fork, for programs such as a shell."""
    client = [sys.executable, "-IS", str(Path(fork_client.__file__))]
    return [*client, fork_server().address, module]


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
    _, _, module, *arguments = command
    folder = cwd or str(Path.cwd())
    line = ask(fork_server().address, module, arguments, streams, dict(env), folder)
    return Child(command, line)


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
    """Forks for as long as standard input is open."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._selector = selectors.DefaultSelector()
        self._selector.register(sys.stdin, selectors.EVENT_READ)
        self._selector.register(listener, selectors.EVENT_READ)

    def run(self) -> _Program | None:
        """In a fork, the program for it to run; None in the end."""
        while True:
            for key, _ in self._selector.select():
                if key.data is not None:
                    self._ended(*key.data)
                elif key.fileobj is not self._listener:
                    return None
                elif (program := self._fork()) is not None:
                    return program

    def _fork(self) -> _Program | None:
        line, _ = self._listener.accept()
        length, streams, _, _ = socket.recv_fds(line, LENGTH, _STREAMS)
        program = _Program(**json.loads(read(line, int.from_bytes(length))))
        pid = os.fork()
        if pid == 0:
            line.close()
            self._close()
            _take_over(streams)
            return program
        for each in streams:
            os.close(each)
        descriptor = os.pidfd_open(pid)
        self._selector.register(descriptor, selectors.EVENT_READ, (descriptor, pid, line))
        _send(line, pid)
        return None

    def _close(self) -> None:
        """Close what a fork has of this, before the program opens the same descriptors."""
        for key in self._selector.get_map().values():
            if key.data is not None:
                descriptor, _, line = key.data
                os.close(descriptor)
                line.close()
        self._selector.close()
        self._listener.close()

    def _ended(self, descriptor: int, pid: int, line: socket.socket) -> None:
        self._selector.unregister(descriptor)
        os.close(descriptor)
        with line:
            _send(line, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def _take_over(streams: Sequence[int]) -> None:
    """Have these as standard streams."""
    os.setsid()
    for number, each in enumerate(streams):
        os.dup2(each, number)
        os.close(each)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        opened = _opened(number, "w" if number else "r", getattr(sys, name))
        setattr(sys, name, opened)
        setattr(sys, f"__{name}__", opened)


def _opened(number: int, mode: str, as_before: TextIO) -> IO[str]:
    """A standard stream: what it is decides whether it is buffered by lines, and can be sought."""
    return open(  # of a descriptor, for as long as the process runs
        number,
        mode,
        buffering=1 if mode == "w" and (number == 2 or os.isatty(number)) else -1,
        encoding=as_before.encoding,
        errors=as_before.errors,
        closefd=False,
    )


def _send(line: socket.socket, number: int) -> None:
    with contextlib.suppress(BrokenPipeError):  # the side that asked has ended
        line.sendall(number.to_bytes(LENGTH, signed=True))


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
