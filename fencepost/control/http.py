"""uvicorn in the loop of the cluster: no signals, no access log, no polling of its own."""

import asyncio
import contextlib
import gc
import logging
import socket
from collections.abc import Generator
from typing import Final

import uvicorn
from fastapi import FastAPI

from fencepost.broker.server import logs
from fencepost.broker.server.server import Server
from fencepost.control.app import create_app

_KEEP_ALIVE_S: Final = 600
"""A test may be busy for long between two requests; its connection is to be there still."""
_GRACE_S: Final = 1
"""What a request that is being answered gets when the cluster stops."""


def prepare(server: Server) -> uvicorn.Config:
    """The app and all that serving it needs; it takes long, and touches nothing of the cluster."""
    config = uvicorn.Config(
        create_app(server),
        access_log=False,
        date_header=False,
        http="h11",
        interface="asgi3",
        lifespan="off",
        log_config=None,
        log_level="warning",
        loop="none",
        server_header=False,
        timeout_graceful_shutdown=_GRACE_S,
        timeout_keep_alive=_KEEP_ALIVE_S,
        ws="none",
    )
    config.load()
    _log_with_the_others(logging.getLogger("uvicorn.error"))
    return config


async def serve(config: uvicorn.Config, sock: socket.socket, stop: asyncio.Event) -> None:
    """Serve the control API on a listening socket until ``stop`` is set; then close it."""
    gc.freeze()  # what was imported and made so far lives as long as the process
    await _UvicornServer(config, stop).serve(sockets=[sock])


class _UvicornServer(uvicorn.Server):
    """A server among others: signals are the process's, and it ends with an event."""

    def __init__(self, config: uvicorn.Config, stop: asyncio.Event) -> None:
        super().__init__(config)
        self._stop = stop

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Capture none: whoever runs the cluster has handlers for them."""
        yield

    async def main_loop(self) -> None:
        """Wait for the event, where uvicorn would look ten times a second."""
        await self._stop.wait()
        app = self.config.app
        assert isinstance(app, FastAPI)
        app.state.feed.close()  # streams end by themselves, and are not waited for


class _Forward(logging.Handler):
    """Hands what uvicorn has to say to fencepost's own log."""

    def emit(self, record: logging.LogRecord) -> None:
        """One line, and the exception that it is about."""
        logs.logger(part="control").log(
            record.levelno, "http", detail=record.getMessage(), exc_info=record.exc_info
        )


def _log_with_the_others(logger: logging.Logger) -> None:
    logger.handlers = [_Forward()]
    logger.propagate = False
