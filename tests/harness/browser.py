"""A page in a headless Chromium, and the site of another origin that serves it.

The browser knows no name but those that a test maps to addresses of the loopback, and has a profile
of its own, which is empty. The page says how it went: it asks its site for a path.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, Self

from tests.harness.process_guard import starts_a_process
from tests.harness.require import unavailable

DONE_S: Final = 120.0
_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
_OPTIONS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class Site:
    """An HTTP server with one page, and what its visitors asked it for.

    :param host: An address of the loopback.
    :param page: HTML; to be set before the first visit.
    """

    def __init__(self, host: str = "127.0.0.1", page: str = "") -> None:
        self.page = page
        self.port = 0
        self.asked: list[str] = []
        self._host = host
        self._arrived = asyncio.Event()
        self._server: asyncio.Server

    async def __aenter__(self) -> Self:
        try:
            self._server = await asyncio.start_server(self._answer, self._host, self.port)
        except OSError as error:
            unavailable(f"nothing can listen on {self._host} here: {error}")
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Listen no more."""
        self._server.close()

    async def wait_for(self, path: str) -> None:
        """Return when a visitor has asked for a path."""
        async with asyncio.timeout(DONE_S):
            while path not in self.asked:
                self._arrived.clear()
                await self._arrived.wait()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            content = self.page.encode()
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
                b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(content)
            )
            writer.write(content)
            await writer.drain()
            self.asked.append(head.split()[1].decode())
            self._arrived.set()
        writer.close()


@asynccontextmanager
async def visiting(url: str, profile: Path, hosts: Mapping[str, str]) -> AsyncIterator[None]:
    """A browser that has been sent to a page, while the context is open.

    :param profile: A directory that is not there yet.
    :param hosts: Addresses of the names that there are.
    """
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        unavailable("Chromium is not installed")
    starts_a_process()
    rules = ", ".join(f"MAP {name} {address}" for name, address in hosts.items())
    with (profile.with_suffix(".log")).open("wb") as log:
        browser = await asyncio.create_subprocess_exec(
            found,
            *_OPTIONS,
            f"--user-data-dir={profile}",
            f"--host-resolver-rules={rules}",
            url,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            yield
        finally:
            with suppress(ProcessLookupError):  # its children too, which are of its own group
                os.killpg(browser.pid, signal.SIGKILL)
            await browser.wait()
