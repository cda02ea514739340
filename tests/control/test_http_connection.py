"""HTTP/1.1 as clients may speak it: pipelined, with 100-continue, in pieces, and broken off."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import httpx
import pytest

from fencepost.control import http_server
from fencepost.control.http_connection import HttpConnection
from tests.harness.control_client import ok
from tests.harness.in_process_server import HOST, control_plane, sockets
from tests.harness.wait import eventually

if TYPE_CHECKING:
    from fencepost.broker.server.server import Server

HEALTH: Final = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
CLOSING: Final = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


@asynccontextmanager
async def connected(
    control: httpx.AsyncClient,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection, once the control API answers."""
    await ok(control, "GET", "/healthz")
    reader, writer = await asyncio.open_connection(HOST, control.base_url.port)
    async with asyncio.timeout(20):
        yield reader, writer
    writer.close()


def creation(name: str, *headers: str) -> tuple[bytes, bytes]:
    """The head and the body of a request that creates a topic."""
    body = f'{{"name": "{name}"}}'.encode()
    lines = [
        "POST /v1/topics HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        *headers,
    ]
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n", body


async def test_pipelined_requests_are_answered_in_their_order(control: httpx.AsyncClient) -> None:
    async with connected(control) as (reader, writer):
        head, body = creation("t")
        topics = b"GET /v1/topics HTTP/1.1\r\nHost: localhost\r\n\r\n"
        writer.write(head + body + topics + CLOSING)
        answers = (await reader.read()).split(b"HTTP/1.1 200 OK\r\n")
    assert len(answers) == 4
    assert b'"name":"t"' in answers[1]
    assert answers[2].endswith(b"]")
    assert answers[3].endswith(b'{"status":"ok"}')


async def test_a_client_that_waits_for_it_is_told_to_send_its_body(
    control: httpx.AsyncClient,
) -> None:
    async with connected(control) as (reader, writer):
        head, body = creation("t", "Expect: 100-continue", "Connection: close")
        writer.write(head)
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(body)
        assert (await reader.read()).startswith(b"HTTP/1.1 200 OK\r\n")


async def test_a_request_may_arrive_byte_by_byte(control: httpx.AsyncClient) -> None:
    async with connected(control) as (reader, writer):
        head, body = creation("t", "Connection: close")
        for each in head + body:
            writer.write(bytes([each]))
            await writer.drain()
        assert (await reader.read()).startswith(b"HTTP/1.1 200 OK\r\n")


async def test_head_has_the_length_and_no_content(control: httpx.AsyncClient) -> None:
    page = await control.get("/")
    head = await control.head("/")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(page.content))
    assert (await control.head("/healthz")).status_code == 405
    async with connected(control) as (reader, writer):
        writer.write(b"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n" + CLOSING)
        assert (await reader.read()).endswith(b'\r\n\r\n{"status":"ok"}')


async def test_a_client_that_asks_for_it_is_disconnected_after_the_answer(
    control: httpx.AsyncClient,
) -> None:
    async with connected(control) as (reader, writer):
        writer.write(CLOSING)
        answer = await reader.read()
    assert b"\r\nconnection: close\r\n" in answer.lower()
    assert answer.endswith(b'{"status":"ok"}')


async def test_http_1_0_is_answered(control: httpx.AsyncClient) -> None:
    async with connected(control) as (reader, writer):
        writer.write(b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n")
        assert (await reader.read()).endswith(b'{"status":"ok"}')


@pytest.mark.parametrize("rest", [b"zz\r\n", b"5\r\n{}\r\n0\r\n\r\n"])
async def test_a_body_that_breaks_the_rules_is_refused_and_ends_the_connection(
    control: httpx.AsyncClient, rest: bytes
) -> None:
    async with connected(control) as (reader, writer):
        writer.write(
            b"POST /v1/topics HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n" + rest
        )
        assert (await reader.read()).startswith(b"HTTP/1.1 400 ")
    assert await ok(control, "GET", "/v1/topics") == []


async def test_a_request_whose_client_goes_is_given_up(
    server: Server, control: httpx.AsyncClient
) -> None:
    async with connected(control) as (_, writer):
        path = b"/v1/trace/wait?api=fetch&timeout_ms=60000"
        writer.write(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await eventually(lambda: bool(server.journal.listeners))
    await eventually(lambda: not server.journal.listeners)


async def test_a_request_that_never_ends_does_not_keep_the_cluster_from_stopping(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "GRACE_S", 0.01)
    entered = asyncio.Event()

    async def never(_prepare: object) -> None:
        entered.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(server, "reset", never)
    (sock,) = sockets(1)
    port = sock.getsockname()[1]
    async with control_plane(server, sock):
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(b"POST /v1/reset HTTP/1.1\r\nHost: localhost\r\n\r\n")
        async with asyncio.timeout(20):
            await entered.wait()
    assert await reader.read() == b""
    writer.close()


async def test_a_connection_that_is_gone_is_freed_at_once(
    control: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[weakref.ref[HttpConnection]] = []
    connection_made = HttpConnection.connection_made

    def note(self: HttpConnection, transport: asyncio.Transport) -> None:
        made.append(weakref.ref(self))
        connection_made(self, transport)

    await ok(control, "GET", "/healthz")
    monkeypatch.setattr(HttpConnection, "connection_made", note)
    gc.disable()
    try:
        async with connected(control) as (reader, writer):
            writer.write(CLOSING)
            await reader.read()
        await eventually(lambda: made[-1]() is None)
    finally:
        gc.enable()
