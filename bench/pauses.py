"""The longest pause that another connection sees beside the costliest request of each API.

The requests are those of tests/robustness, of the newest version, one after the other. Beside them
one connection asks for ApiVersions without a break: its longest round trip is the pause. It counts
for each megabyte that was sent and answered, and for one where that was less.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from uuid import UUID

from bench import process, servers, wire
from fencepost.protocol.apis import APIS, Api
from tests.robustness.costliest import PARTITIONS, shapes

ANSWER_S = 5.0
"""How long an answer is waited for; that of a JoinGroup or a long poll may never come."""


class Witness:
    """Asks for ApiVersions again and again, on a connection and in a thread of its own."""

    def __init__(self, server: servers.Server) -> None:
        self._server = server
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._failure: Exception | None = None
        self.longest_ms = 0.0
        """The longest round trip since this was set to 0."""

    def _run(self) -> None:
        try:
            self._ask_until_the_end()
        except Exception as error:  # noqa: BLE001  # of a thread; `watching` raises it
            self._failure = error

    def _ask_until_the_end(self) -> None:
        request = wire.api_versions_request()
        with self._server.connect() as connection:
            while not self._ended.is_set():
                begin = time.perf_counter()
                connection.ask(request)
                self.longest_ms = max(self.longest_ms, (time.perf_counter() - begin) * 1e3)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Ask while the context is open.

        :raises Exception: What ended it early: the pauses from then on were not seen.
        """
        self._thread.start()
        try:
            yield
        finally:
            self._ended.set()
            self._thread.join()
        if self._failure is not None:
            raise self._failure


def measure(kind: servers.Kind, size: int) -> dict[str, float]:
    """Milliseconds a megabyte, by row; ``size`` is that of each request in bytes."""
    values: dict[str, float] = {}
    for api in APIS:
        with servers.running(kind) as server:
            process.wait_until_idle(server.pid)
            values[f"pause_{api.name}"] = longest_pause(server, api, size)
    return values


def longest_pause(server: servers.Server, api: Api, size: int) -> float:
    """Milliseconds a megabyte, of the shapes of the newest version but those of many topics."""
    names = tuple(f"known.{index:02}" for index in range(20))
    server.create(names, PARTITIONS)
    ids = {name: UUID(int=index + 1) for index, name in enumerate(names)}
    witness = Witness(server)
    longest = 0.0
    with process.no_collector(), witness.watching():
        for shape in shapes(api, api.max_version):
            if shape.names != "spread":
                frame = shape.frame(size, ids)
                witness.longest_ms = 0.0
                answered = _send(server, frame)
                megabytes = max(len(frame) + answered, size) / 1e6
                longest = max(longest, witness.longest_ms / megabytes)
    return longest


def _send(server: servers.Server, frame: bytes) -> int:
    """Send a request that may be refused, and read what is answered: so many bytes."""
    answered = 0
    connected = socket.create_connection((servers.HOST, server.launch.port), ANSWER_S)
    with connected, contextlib.suppress(OSError):
        connected.sendall(frame)
        head = connected.recv(4, socket.MSG_WAITALL)
        size = int.from_bytes(head, "big")
        while answered < size and (piece := connected.recv(min(size - answered, 1 << 20))):
            answered += len(piece)
    return answered
