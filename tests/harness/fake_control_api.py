"""An HTTP server that answers what a test tells it to, and remembers what it was asked."""

from __future__ import annotations

import json
import socket
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from select import select
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any, Final, TypeAlias

HOST: Final = "127.0.0.1"
Json: TypeAlias = Any
"""What a body decodes to."""


class Then(StrEnum):
    """What becomes of a connection behind an answer."""

    KEEP = "keep"
    CLOSE = "close"
    """Without a word in the answer, as a server does whose idle connections are too many."""
    WAIT = "wait"
    """Nothing more comes, and it stays open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer. ``None`` as its content is no answer at all."""

    content: bytes | None = b"{}"
    status: int = 200
    then: Then = Then.KEEP
    missing: int = 0
    """Bytes that its head promises more than there are."""
    kind: str = "application/json"


def ok(body: Json) -> Reply:
    return Reply(content=json.dumps(body).encode())


def refusal(status: int, code: str, message: str) -> Reply:
    body = {"error": code, "message": message}
    return Reply(status=status, content=json.dumps(body).encode())


def stream(*lines: str, then: Then = Then.CLOSE) -> Reply:
    content = "".join(f"{line}\n" for line in lines).encode()
    return Reply(content=content, kind="text/event-stream", then=then)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request that came."""

    method: str
    target: str
    content: bytes
    connection: int
    """Counts from 1."""
    authorization: str | None = None
    """The header of this name."""

    @property
    def body(self) -> Json:
        return json.loads(self.content)


@dataclass(slots=True)
class FakeControlApi:
    """A running server: gives its replies in turn, then the last one for ever."""

    url: str
    replies: deque[Reply] = field(default_factory=deque)
    asked: list[Asked] = field(default_factory=list)
    connections: list[socket.socket] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)
    closed: int = 0
    """Connections that have ended."""
    ended: threading.Event = field(default_factory=threading.Event)

    def will(self, *replies: Reply) -> None:
        """What it answers from now on."""
        self.replies = deque(replies)

    def wait_for(self, count: int) -> None:
        """Return when so many requests have come."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.asked) >= count, 10)

    def wait_for_all_closed(self) -> None:
        """Return when no client is connected any more."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.closed == len(self.connections), 10)

    def next_reply(self, asked: Asked) -> Reply:
        with self.changed:
            self.asked.append(asked)
            self.changed.notify_all()
            if not self.replies:
                return Reply()
            return self.replies.popleft() if len(self.replies) > 1 else self.replies[0]


class _Server(ThreadingTCPServer):
    stub: FakeControlApi


class _Handler(StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        stub = self.server.stub
        with stub.changed:
            stub.connections.append(self.request)
            number = len(stub.connections)
        with suppress(ConnectionError):  # the client may go at any moment
            self._serve(stub, number)
        with stub.changed:
            stub.closed += 1
            stub.changed.notify_all()

    def _serve(self, stub: FakeControlApi, number: int) -> None:
        while (asked := self._read(number)) is not None:
            reply = stub.next_reply(asked)
            self._write(reply)
            if reply.then is Then.WAIT:
                self._wait(stub)
            if reply.then is not Then.KEEP:
                return

    def _wait(self, stub: FakeControlApi) -> None:
        """Until the test has had enough of it, or the client goes."""
        while not stub.ended.wait(0.01):
            if select([self.request], [], [], 0)[0] and not self.request.recv(1, socket.MSG_PEEK):
                return

    def _read(self, number: int) -> Asked | None:
        words = self.rfile.readline().split()
        if not words:
            return None
        length, authorization = 0, None
        while line := self.rfile.readline().strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
            elif name.lower() == b"authorization":
                authorization = value.strip().decode()
        method, target = (each.decode() for each in words[:2])
        content = self.rfile.read(length)
        return Asked(
            method=method,
            target=target,
            content=content,
            connection=number,
            authorization=authorization,
        )

    def _write(self, reply: Reply) -> None:
        if reply.content is None:
            return
        head = [f"HTTP/1.1 {reply.status} Whatever", f"Content-Type: {reply.kind}"]
        if reply.kind == "application/json":
            head.append(f"Content-Length: {len(reply.content) + reply.missing}")
        self.wfile.write("".join(f"{line}\r\n" for line in [*head, ""]).encode())
        self.wfile.write(reply.content)


@contextmanager
def fake_control_api() -> Iterator[FakeControlApi]:
    """A server on a free port. At the end it closes what is still open."""
    with _Server((HOST, 0), _Handler) as server:
        stub = server.stub = FakeControlApi(f"http://{HOST}:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield stub
        finally:
            stub.ended.set()
            for each in stub.connections:
                with suppress(OSError):  # one that is closed already
                    each.shutdown(socket.SHUT_RDWR)
            server.shutdown()
            thread.join()
