"""How a fork server is asked; alone, the program ``fencepost`` as a client of one.

Run by its path with ``python -IS``, it costs 20 ms, so it imports little, and nothing of the
project.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys

LENGTH = 4
"""Bytes of the length before a request, and of each number in an answer."""


def ask(
    address: str,
    module: str,
    arguments: list[str],
    streams: tuple[int, int, int],
    env: dict[str, str],
    cwd: str,
) -> socket.socket:
    """Have a module started as a program; where its process id arrives, and then its exit code.

    :param address: Of the fork server's socket.
    :param streams: Descriptors of its standard input, output and error.
    """
    asked = {"module": module, "arguments": arguments, "env": env, "cwd": cwd}
    data = json.dumps(asked).encode()
    line = socket.socket(socket.AF_UNIX)
    line.connect(address)
    socket.send_fds(line, [len(data).to_bytes(LENGTH, "big")], streams)
    line.sendall(data)
    return line


def receive(line: socket.socket) -> int:
    """The next number. :raises EOFError: When the fork server has ended."""
    return int.from_bytes(read(line, LENGTH), "big", signed=True)


def read(line: socket.socket, count: int) -> bytes:
    """So many bytes. :raises EOFError: When the other side has ended."""
    data = b""
    while len(data) < count:
        more = line.recv(count - len(data))
        if not more:
            raise EOFError("the fork server has ended")
        data += more
    return data


def _main(address: str, module: str, *arguments: str) -> None:
    """Run a module with the streams of this process, and end as it does."""
    here = os.getcwd()  # noqa: PTH109  # pathlib would cost more than all else
    line = ask(address, module, list(arguments), (0, 1, 2), dict(os.environ), here)
    pid = receive(line)
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, lambda number, _: os.kill(pid, number))
    code = receive(line)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)


if __name__ == "__main__":
    _main(*sys.argv[1:])
