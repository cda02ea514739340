"""A network namespace with a loopback of its own, and ports of this machine mapped into it.

It is what a container's network is to a client on the host, without an engine and without root. A
mapped port is carried by two processes and a Unix socket between them: one listens here, the other
connects there.
"""

from __future__ import annotations

import asyncio
import fcntl
import socket
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.harness.process import Process, start
from tests.harness.require import tool, unavailable
from tests.harness.run import run

HOST: Final = "127.0.0.1"
_READY_S: Final = 30.0
_SET_FLAGS: Final = 0x8914
"""SIOCSIFFLAGS, netdevice(7)."""
_UP: Final = 0x1
_CHUNK: Final = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespace:
    """A namespace that lasts as long as the process that holds it."""

    holder: Process
    folder: Path

    def command(self, *command: str) -> list[str]:
        """A command that runs in it."""
        target = ["--target", str(self.holder.pid)]
        return [tool("nsenter"), *target, "--user", "--net", "--preserve-credentials", *command]

    @contextmanager
    def mapped(self, ports: Mapping[int, int]) -> Iterator[None]:
        """Let ports of this machine lead to ports of the namespace's loopback."""
        pairs = [f"{outer}={inner}" for outer, inner in ports.items()]
        with _running("outside", self.folder, *pairs):
            yield


@contextmanager
def namespace(folder: Path) -> Iterator[Namespace]:
    """A namespace.

    :param folder: For the Unix socket and logs; its path is short.
    """
    unshare = [tool("unshare"), "--user", "--map-root-user", "--net"]
    allowed = run([*unshare, "true"], code=None)
    if allowed.code:
        unavailable(f"this machine gives no network namespace: {allowed.err.strip()}")
    with _running("inside", folder, before=unshare) as holder:
        yield Namespace(holder=holder, folder=folder)


@contextmanager
def _running(
    end: str, folder: Path, *arguments: str, before: Sequence[str] = ()
) -> Iterator[Process]:
    command = [*before, sys.executable, "-m", __name__, end, str(folder / "ports"), *arguments]
    with ExitStack() as stack:
        process = start(f"ports {end}", command, folder / f"{end}.log")
        stack.callback(process.stop, expect=None)
        process.first_line(_READY_S)
        yield process


# -- in the two processes -----------------------------------------------------------------------


async def _serve_inside(path: str) -> None:
    with socket.socket() as sock:
        fcntl.ioctl(sock, _SET_FLAGS, struct.pack("16sh", b"lo", _UP))

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = int(await reader.readline())
        try:
            inner = await asyncio.open_connection(HOST, port)
        except OSError:
            writer.close()
        else:
            await _join((reader, writer), inner)

    async with await asyncio.start_unix_server(carry, path) as server:
        print("ready", flush=True)  # noqa: T201  # for the process that waits
        await server.serve_forever()


async def _serve_outside(path: str, pairs: Sequence[str]) -> None:
    for pair in pairs:
        outer, inner = pair.split("=")

        async def carry(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter, inner: str = inner
        ) -> None:
            there = await asyncio.open_unix_connection(path)
            there[1].write(f"{inner}\n".encode())
            await _join((reader, writer), there)

        await asyncio.start_server(carry, HOST, int(outer))
    print("ready", flush=True)  # noqa: T201
    await asyncio.Event().wait()


_Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _join(one: _Stream, other: _Stream) -> None:
    """Copy bytes both ways until one side ends."""

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(_CHUNK):
                writer.write(data)
                await writer.drain()
        writer.close()

    await asyncio.gather(copy(one[0], other[1]), copy(other[0], one[1]))


if __name__ == "__main__":
    _, end, path, *rest = sys.argv
    asyncio.run(_serve_inside(path) if end == "inside" else _serve_outside(path, rest))
