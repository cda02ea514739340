"""The control plane beside the cluster: it comes late, and goes when it is told."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import signal
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import httpx
import pytest

from fencepost.broker.server import logs
from fencepost.broker.server.idle_work import Quiet
from fencepost.control import app, lazy_app
from tests.harness.control_client import ok
from tests.harness.in_process_server import HOST, control_plane, sockets, url
from tests.harness.wait import eventually

if TYPE_CHECKING:
    from fencepost.broker.server.server import Server


async def test_a_request_that_comes_first_waits_in_the_backlog(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lazy_app, "IMPORT_AFTER_S", 3600)
    (sock,) = sockets(1)
    async with httpx.AsyncClient(base_url=url(sock), trust_env=False) as client:
        early = asyncio.ensure_future(ok(client, "GET", "/healthz"))
        await asyncio.sleep(0.01)
        assert not early.done()
        async with control_plane(server, sock):
            assert await early == {"status": "ok"}


@pytest.fixture
async def imported(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Set when the control API is imported."""
    event = asyncio.Event()
    loop = asyncio.get_running_loop()
    prepare = app.prepare

    def prepared(given: Server, host: str, token: str | None) -> object:
        loop.call_soon_threadsafe(event.set)
        return prepare(given, host, token)

    monkeypatch.setattr(app, "prepare", prepared)
    monkeypatch.setattr(lazy_app, "IMPORT_AFTER_S", 0.01)
    return event


async def test_without_any_request_it_comes_after_a_moment(
    server: Server, imported: asyncio.Event
) -> None:
    (sock,) = sockets(1)
    async with control_plane(server, sock), asyncio.timeout(30):
        await imported.wait()


async def test_while_clients_leave_no_time_it_comes_at_the_latest_moment(
    server: Server, imported: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[None] = []
    monkeypatch.setattr(Quiet, "look", lambda _quiet: looks.append(None))
    monkeypatch.setattr(lazy_app, "QUIET_S", 0.001)
    monkeypatch.setattr(lazy_app, "IMPORT_BY_S", 3600)
    (sock,) = sockets(1)
    async with control_plane(server, sock), asyncio.timeout(30):
        await eventually(lambda: len(looks) > 20)
        assert not imported.is_set()
    monkeypatch.setattr(lazy_app, "IMPORT_BY_S", 0.05)
    (sock,) = sockets(1)
    async with control_plane(server, sock), asyncio.timeout(30):
        await imported.wait()


async def test_a_cluster_that_stops_early_never_imports_it(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def prepared(*_given: object) -> None:
        pytest.fail("imported without a request")

    monkeypatch.setattr(app, "prepare", prepared)
    (sock,) = sockets(1)
    async with control_plane(server, sock):
        await asyncio.sleep(0)
    assert sock.fileno() == -1


async def test_it_stops_with_connections_open_and_closes_its_port(
    server: Server, control: httpx.AsyncClient
) -> None:
    (sock,) = sockets(1)
    address = sock.getsockname()
    async with (
        httpx.AsyncClient(base_url=url(sock), trust_env=False) as client,
        control_plane(server, sock),  # ends first
    ):
        await ok(client, "GET", "/healthz")
    with pytest.raises(OSError):  # noqa: PT011  # which one is the system's business
        socket.create_connection(address, timeout=5).close()
    # The cluster and its other control plane serve on.
    assert await ok(control, "GET", "/healthz") == {"status": "ok"}


async def test_a_request_that_waits_is_told_that_the_cluster_stops(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    (sock,) = sockets(1)
    async with httpx.AsyncClient(base_url=url(sock), trust_env=False, timeout=30) as client:
        async with control_plane(server, sock):
            waiting = asyncio.ensure_future(client.get("/v1/trace/wait?api=fetch&timeout_ms=20000"))
            await eventually(lambda: bool(server.journal.listeners))
        async with asyncio.timeout(10):
            answer = await waiting
    assert answer.status_code == 409
    assert answer.json() == {"error": "BROKER_NOT_AVAILABLE", "message": "the cluster is stopping"}
    assert not server.journal.listeners
    assert capsys.readouterr().err == ""


async def test_signals_stay_with_whoever_runs_the_cluster(
    server: Server, control: httpx.AsyncClient
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    await ok(control, "GET", "/healthz")
    assert signal.getsignal(signal.SIGTERM) is before


async def test_what_is_no_http_is_answered_and_logged_in_the_clusters_log(
    server: Server, control: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[tuple[int, str, str]] = []

    class Logger:
        def log(self, level: int, event: str, *, detail: str, exc_info: object) -> None:
            lines.append((level, event, detail))

    monkeypatch.setattr(logs, "logger", lambda *_, **_bound: Logger())
    await ok(control, "GET", "/healthz")
    reader, writer = await asyncio.open_connection(HOST, control.base_url.port)
    writer.write(b"\x00\x00\x00\x0a\x00\x12\r\n\r\n")
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert lines == [(logging.WARNING, "http", "Invalid HTTP request received.")]


async def test_the_loop_goes_on_while_it_is_imported(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    turned = threading.Event()
    waited: list[bool] = []
    prepare = app.prepare

    def prepared(given: Server, host: str, token: str | None) -> object:
        loop.call_soon_threadsafe(turned.set)
        waited.append(turned.wait(5))  # in the loop's own thread it would wait in vain
        return prepare(given, host, token)

    monkeypatch.setattr(app, "prepare", prepared)
    (sock,) = sockets(1)
    async with (
        control_plane(server, sock),
        httpx.AsyncClient(base_url=url(sock), trust_env=False, timeout=30) as client,
    ):
        assert await ok(client, "GET", "/healthz") == {"status": "ok"}
    assert waited == [True]


def test_the_plane_itself_imports_nothing_heavy() -> None:
    code = (
        "import json, sys; import fencepost.control.lazy_app;"
        " print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(json.loads(done.stdout))
    assert not {"fencepost.verbs.bodies", "h11"} & loaded


@pytest.mark.parametrize(
    "error",
    [OSError(errno.EMFILE, "Too many open files"), ImportError("x.so: Too many open files")],
)
async def test_modules_that_can_t_be_opened_are_imported_later(
    server: Server, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    prepare, failures = lazy_app._prepare, [error]

    def prepared(given: Server, host: str, token: str | None) -> object:
        if failures:
            raise failures.pop()
        return prepare(given, host, token)

    monkeypatch.setattr(lazy_app, "_prepare", prepared)
    monkeypatch.setattr(lazy_app, "_RETRY_AFTER_S", 0.01)
    (sock,) = sockets(1)
    async with (
        control_plane(server, sock),
        httpx.AsyncClient(base_url=url(sock), trust_env=False) as client,
    ):
        assert await ok(client, "GET", "/healthz") == {"status": "ok"}
    assert failures == []


async def test_any_other_failure_of_an_import_is_one(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def prepared(_server: Server, _host: str, _token: str | None) -> None:
        raise ImportError("no such module")

    monkeypatch.setattr(lazy_app, "_prepare", prepared)
    monkeypatch.setattr(lazy_app, "IMPORT_AFTER_S", 0.01)
    (sock,) = sockets(1)
    with pytest.raises(ImportError, match="no such module"):
        await lazy_app.serve(server, sock, asyncio.Event())
    sock.close()
